// outbox.cpp: idem_outbox_put, _fetch, _ack, _nack, _requeue, _skip, _set_topic, and the trigger that queues.
#include <string_view>

#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/claim.hpp"
#include "engine/outbox.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "pg/outbox_queue.hpp"
#include "pg/varlena.hpp"

namespace idem::api {

namespace {

constexpr std::size_t TOPIC_MAX = 128;
constexpr std::size_t TEXT_MAX = 255;
constexpr std::size_t PAYLOAD_MAX = 1024 * 1024;
constexpr int BATCH_MAX = 10000;
constexpr int DEFAULT_BATCH = 100;
constexpr core::Duration DEFAULT_LEASE = 30 * core::SECOND;
constexpr int ATTEMPTS_MAX = 1000;

enum PutArgument : int { ACTOR, TOPIC, PAYLOAD, PAYLOAD_BYTES, ORDERING_KEY, DEDUP_ID, HEADERS, OPERATION_ID, DELAY };
enum FetchArgument : int { RELAY, BATCH, LEASE, TOPICS, WAIT };

void prevent_reading(const char* function) {
    PreventCommandIfReadOnly(function);
    PreventCommandDuringRecovery(function);
    PreventCommandIfParallelMode(function);
}

text* optional_name(FunctionCallInfo fcinfo, int argument, const char* name) {
    return PG_ARGISNULL(argument) ? nullptr : required_text(fcinfo, argument, name, TEXT_MAX);
}

void check_size(const char* what, const void* value) {
    const std::size_t size = value == nullptr ? 0 : VARSIZE_ANY_EXHDR(value);
    if (size > PAYLOAD_MAX)
        pg::error_too_large(what, size, PAYLOAD_MAX);
}

engine::OutboxMessage read_message(FunctionCallInfo fcinfo) {
    engine::OutboxMessage message{};
    message.actor = required_text(fcinfo, ACTOR, "actor", ACTOR_MAX);
    message.topic = required_text(fcinfo, TOPIC, "topic", TOPIC_MAX);
    message.payload = optional_jsonb(fcinfo, PAYLOAD);
    message.payload_bytes = optional_bytea(fcinfo, PAYLOAD_BYTES);
    if (message.payload != nullptr && message.payload_bytes != nullptr)
        pg::error_two_payloads();
    check_size("payload", message.payload);
    check_size("payload_bytes", message.payload_bytes);
    message.ordering_key = optional_name(fcinfo, ORDERING_KEY, "ordering_key");
    message.dedup_id = optional_name(fcinfo, DEDUP_ID, "dedup_id");
    message.headers = optional_jsonb(fcinfo, HEADERS);
    message.operation_id = optional_uuid(fcinfo, OPERATION_ID);
    message.delay = optional_duration(fcinfo, DELAY, "delay", 0, 90 * core::DAY, "0", "90 days");
    return message;
}

int compare_cells(const ListCell* a, const ListCell* b) {
    return pg::compare_texts(static_cast<const text*>(lfirst(a)), static_cast<const text*>(lfirst(b)));
}

// read_topics returns the topics asked for, sorted; NIL for all. `none` tells that an empty array was given.
List* read_topics(FunctionCallInfo fcinfo, bool* none) {
    *none = false;
    if (PG_ARGISNULL(TOPICS))
        return NIL;
    ArrayType* array = PG_GETARG_ARRAYTYPE_P(TOPICS);
    if (ARR_NDIM(array) > 1)
        pg::error_array_shape("topics");
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    List* topics = NIL;
    for (int i = 0; i < count; ++i) {
        if (nulls[i])
            pg::error_null_argument("topic");
        topics = lappend(topics, DatumGetTextPP(values[i]));
    }
    list_sort(topics, compare_cells);
    *none = count == 0;
    return topics;
}

engine::FetchRequest read_fetch(FunctionCallInfo fcinfo, bool* none) {
    engine::FetchRequest request{};
    request.relay = required_text(fcinfo, RELAY, "relay", TEXT_MAX);
    request.batch = PG_ARGISNULL(BATCH) ? DEFAULT_BATCH : PG_GETARG_INT32(BATCH);
    if (request.batch < 1 || request.batch > BATCH_MAX)
        pg::error_number_range("batch", 1, BATCH_MAX);
    const core::Duration lease = optional_lease(fcinfo, LEASE);
    request.lease = lease == engine::NOT_GIVEN ? DEFAULT_LEASE : lease;
    request.topics = read_topics(fcinfo, none);
    const core::Duration wait = optional_wait(fcinfo, WAIT);
    request.wait = wait == engine::NOT_GIVEN ? 0 : wait;
    return request;
}

// Columns of idem_outbox_fetch, and where the first ten are in idem_outbox.
enum FetchColumn : int { MESSAGE_PART = 10, SEQ = MESSAGE_PART, ATTEMPT, TOKEN, LEASE_UNTIL, FETCH_COLUMNS };
constexpr int MESSAGE_PARTS[MESSAGE_PART] = {
    pg::MESSAGE_ID,           pg::MESSAGE_TOPIC,     pg::MESSAGE_ACTOR,         pg::MESSAGE_TYPE,
    pg::MESSAGE_ORDERING_KEY, pg::MESSAGE_PAYLOAD,   pg::MESSAGE_PAYLOAD_BYTES, pg::MESSAGE_HEADERS,
    pg::MESSAGE_OPERATION_ID, pg::MESSAGE_CREATED_AT};

bool is_varlena(int part) {
    return part != pg::MESSAGE_ID && part != pg::MESSAGE_OPERATION_ID && part != pg::MESSAGE_CREATED_AT;
}

// put_row adds a message to the answer, detoasted: the sweep may remove it before the answer is read.
void put_row(void* context, TupleTableSlot* message, const engine::FetchedMessage& lease) {
    auto* rows = static_cast<ReturnSetInfo*>(context);
    Datum values[FETCH_COLUMNS];
    bool isnull[FETCH_COLUMNS] = {};
    slot_getallattrs(message);
    for (int i = 0; i < MESSAGE_PART; ++i) {
        const int part = MESSAGE_PARTS[i];
        isnull[i] = message->tts_isnull[part];
        values[i] = message->tts_values[part];
        if (!isnull[i] && is_varlena(part))
            values[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[i]));
    }
    values[SEQ] = Int64GetDatum(lease.seq);
    values[ATTEMPT] = Int32GetDatum(lease.attempt);
    values[TOKEN] = Int64GetDatum(lease.token);
    values[LEASE_UNTIL] = TimestampTzGetDatum(lease.lease_until);
    tuplestore_putvalues(rows->setResult, rows->setDesc, values, isnull);
}

struct Ids {
    core::OperationId* values;
    int count;
};

Ids required_ids(FunctionCallInfo fcinfo, int argument) {
    if (PG_ARGISNULL(argument))
        pg::error_null_argument("ids");
    ArrayType* array = PG_GETARG_ARRAYTYPE_P(argument);
    if (ARR_NDIM(array) > 1)
        pg::error_array_shape("ids");
    Datum* values;
    bool* nulls;
    Ids ids{};
    deconstruct_array(array, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &values, &nulls, &ids.count);
    if (ids.count > BATCH_MAX)
        pg::error_too_large("batch", static_cast<std::size_t>(ids.count), BATCH_MAX);
    ids.values = static_cast<core::OperationId*>(palloc(sizeof(core::OperationId) * static_cast<Size>(ids.count + 1)));
    for (int i = 0; i < ids.count; ++i) {
        if (nulls[i])
            pg::error_null_argument("id");
        std::memcpy(ids.values[i].bytes, DatumGetUUIDP(values[i])->data, sizeof ids.values[i].bytes);
    }
    return ids;
}

core::OperationId required_id(FunctionCallInfo fcinfo, int argument) {
    const pg_uuid_t* value = optional_uuid(fcinfo, argument);
    if (value == nullptr)
        pg::error_null_argument("id");
    core::OperationId id;
    std::memcpy(id.bytes, value->data, sizeof id.bytes);
    return id;
}

Datum row_datum(FunctionCallInfo fcinfo, Datum* values) {
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "the function must return a row");
    bool isnull[2] = {};
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull));
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_outbox_enqueue_v1) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED), errmsg("not called as a trigger")));
    auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    const pg::Installation installation = pg::installation_of(fcinfo);
    if (RelationGetRelid(trigger->tg_relation) != installation.outbox || !TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED), errmsg("not called by idem_outbox")));
    engine::enqueue_message(installation, trigger->tg_trigslot);
    return PointerGetDatum(nullptr);
}

IDEM_FUNCTION(idem_outbox_put_v1) {
    api::prevent_reading("idem_outbox_put()");
    const engine::OutboxMessage message = api::read_message(fcinfo);
    const engine::PutAnswer answer = engine::put_message(pg::installation_of(fcinfo), message);
    pg_uuid_t uuid;
    std::memcpy(uuid.data, answer.id.bytes, sizeof uuid.data);
    Datum values[] = {UUIDPGetDatum(&uuid), CStringGetTextDatum(answer.outcome)};
    return api::row_datum(fcinfo, values);
}

IDEM_FUNCTION(idem_outbox_fetch_v1) {
    api::prevent_reading("idem_outbox_fetch()");
    InitMaterializedSRF(fcinfo, 0);
    auto* rows = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    if (rows->setDesc->natts != api::FETCH_COLUMNS)
        elog(ERROR, "idem_outbox_fetch has %d columns, expected %d", rows->setDesc->natts, int{api::FETCH_COLUMNS});
    bool none;
    const engine::FetchRequest request = api::read_fetch(fcinfo, &none);
    if (!none)
        engine::fetch_messages(pg::installation_of(fcinfo), request, api::put_row, rows);
    return Datum{0};
}

IDEM_FUNCTION(idem_outbox_ack_v1) {
    api::prevent_reading("idem_outbox_ack()");
    const api::Ids ids = api::required_ids(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    PG_RETURN_INT64(engine::ack_messages(pg::installation_of(fcinfo), ids.values, ids.count, token.value));
}

IDEM_FUNCTION(idem_outbox_nack_v1) {
    api::prevent_reading("idem_outbox_nack()");
    const core::OperationId id = api::required_id(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    const core::Duration retry_in = api::optional_duration(fcinfo, 2, "retry_in", 0, core::DAY, "0", "24 hours");
    const engine::NackAnswer answer =
        engine::nack_message(pg::installation_of(fcinfo), id, token.value, retry_in, api::optional_text(fcinfo, 3));
    Datum values[] = {CStringGetTextDatum(answer.outcome), TimestampTzGetDatum(answer.ready_at)};
    return api::row_datum(fcinfo, values);
}

IDEM_FUNCTION(idem_outbox_requeue_v1) {
    api::prevent_reading("idem_outbox_requeue()");
    const api::Ids ids = api::required_ids(fcinfo, 0);
    PG_RETURN_INT64(engine::requeue_messages(pg::installation_of(fcinfo), ids.values, ids.count));
}

IDEM_FUNCTION(idem_outbox_skip_v1) {
    api::prevent_reading("idem_outbox_skip()");
    const api::Ids ids = api::required_ids(fcinfo, 0);
    PG_RETURN_INT64(engine::skip_messages(pg::installation_of(fcinfo), ids.values, ids.count));
}

IDEM_FUNCTION(idem_outbox_set_topic_v1) {
    api::prevent_reading("idem_outbox_set_topic()");
    text* topic = api::required_text(fcinfo, 0, "topic", api::TOPIC_MAX);
    if (PG_ARGISNULL(1))
        pg::error_null_argument("max_attempts");
    pg::TopicRules rules;
    rules.max_attempts = PG_GETARG_INT32(1);
    if (rules.max_attempts < 1 || rules.max_attempts > api::ATTEMPTS_MAX)
        pg::error_number_range("max_attempts", 1, api::ATTEMPTS_MAX);
    const std::string_view word = pg::bytes_of(api::required_text(fcinfo, 2, "on_dead_letter", api::TEXT_MAX));
    if (word != "hold" && word != "skip")
        pg::error_on_dead_letter();
    rules.hold = word == "hold";
    pg::write_topic_rules(pg::installation_of(fcinfo), topic, rules);
    PG_RETURN_TEXT_P(topic);
}
