// outbox_put.cpp: putting a message, and queueing it at commit. See outbox.hpp.
#include "core/types.hpp"
#include "engine/claim.hpp"
#include "engine/identity.hpp"
#include "engine/outbox.hpp"
#include "engine/outbox_wakeup.hpp"
#include "pg/server.hpp"
#include "pg/event_headers.hpp"
#include "pg/key_table.hpp"
#include "pg/outbox_queue.hpp"
#include "pg/table_writer.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

namespace {

pg_uuid_t uuid_of(const core::OperationId& id) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof uuid.data);
    return uuid;
}

// new_id makes a version 7 uuid: the time in milliseconds, then chance, so that new rows are neighbours in the index.
core::OperationId new_id() {
    core::OperationId id;
    if (!pg_strong_random(id.bytes, sizeof id.bytes))
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));
    const auto now = pg::unix_milliseconds();
    for (int i = 0; i < 6; ++i)
        id.bytes[i] = static_cast<std::uint8_t>(now >> (40 - 8 * i));
    id.bytes[6] = static_cast<std::uint8_t>(0x70 | (id.bytes[6] & 0x0f));
    id.bytes[8] = static_cast<std::uint8_t>(0x80 | (id.bytes[8] & 0x3f));
    return id;
}

// repeatable_id is the same for every put of one intent. The first part tells it from an operation's id.
core::OperationId repeatable_id(const OutboxMessage& message) {
    const core::Bytes topic = pg::bytes_of(message.topic);
    char* op = static_cast<char*>(palloc(topic.size() + 7));
    std::memcpy(op, "outbox ", 7);
    std::memcpy(op + 7, topic.data(), topic.size());
    return derive_operation_id(pg::bytes_of(message.actor), core::Bytes{op, topic.size() + 7},
                               pg::bytes_of(message.dedup_id));
}

// operation_trace returns the trace context of the operation that causes the message, or null.
const text* operation_trace(const pg::Installation& installation, const pg_uuid_t* operation_id) {
    if (operation_id == nullptr)
        return nullptr;
    core::OperationId id;
    std::memcpy(id.bytes, operation_id->data, sizeof id.bytes);
    pg::KeyReader reader = pg::open_reader(installation.keys, AccessShareLock);
    const text* trace = nullptr;
    if (pg::probe_latest(reader, id)) {
        const pg::KeyRow row = pg::read_row(reader);
        if (row.traceparent != nullptr)
            trace = cstring_to_text_with_len(pg::bytes_of(row.traceparent).data(),
                                             static_cast<int>(pg::bytes_of(row.traceparent).size()));
    }
    pg::close_reader(reader);
    return trace;
}

pg::EventHeaders headers_of(const pg::Installation& installation, const OutboxMessage& message,
                            const core::OperationId& id) {
    pg::EventDefaults defaults{};
    defaults.id = id;
    defaults.topic = pg::bytes_of(message.topic);
    defaults.actor = pg::bytes_of(message.actor);
    defaults.time = GetCurrentTimestamp();
    defaults.is_json = message.payload != nullptr;
    if (const text* trace = operation_trace(installation, message.operation_id); trace != nullptr)
        defaults.traceparent = pg::bytes_of(trace);
    return pg::complete_event_headers(message.headers, defaults);
}

void set_optional(pg::TableWriter& writer, int column, const void* value) {
    if (value != nullptr)
        pg::set_column(writer, column, PointerGetDatum(value));
}

void compose(pg::TableWriter& writer, const OutboxMessage& message, pg_uuid_t* id, const pg::EventHeaders& headers) {
    const core::Timestamp now = GetCurrentTransactionStartTimestamp();
    pg::clear_row(writer);
    pg::set_column(writer, pg::MESSAGE_ID, UUIDPGetDatum(id));
    pg::set_column(writer, pg::MESSAGE_CREATED_AT, TimestampTzGetDatum(now));
    pg::set_column(writer, pg::MESSAGE_DELIVER_AT,
                   TimestampTzGetDatum(message.delay > 0 ? GetCurrentTimestamp() + message.delay : now));
    set_optional(writer, pg::MESSAGE_OPERATION_ID, message.operation_id);
    set_optional(writer, pg::MESSAGE_TOPIC, message.topic);
    set_optional(writer, pg::MESSAGE_ORDERING_KEY, message.ordering_key);
    set_optional(writer, pg::MESSAGE_TYPE, headers.type);
    set_optional(writer, pg::MESSAGE_ACTOR, message.actor);
    set_optional(writer, pg::MESSAGE_DEDUP_ID, message.dedup_id);
    set_optional(writer, pg::MESSAGE_HEADERS, headers.object);
    set_optional(writer, pg::MESSAGE_PAYLOAD, message.payload);
    set_optional(writer, pg::MESSAGE_PAYLOAD_BYTES, message.payload_bytes);
    pg::store_row(writer);
}

bool is_rival(TransactionId xid) {
    return TransactionIdIsValid(xid) && !TransactionIdIsCurrentTransactionId(xid);
}

// first_put_stands waits until nobody is writing the row of `id` and tells whether there is one.
bool first_put_stands(const pg::Installation& installation, const core::OperationId& id) {
    pg::KeyReader reader = pg::open_reader(installation.outbox, AccessShareLock);
    bool stands = false;
    for (;;) {
        pg::Rival rival;
        stands = pg::probe_any(reader, id, &rival);
        pg::forget_row(reader);
        if (!stands)
            break;
        if (is_rival(rival.inserter) && rival.speculation != 0)
            SpeculativeInsertionWait(rival.inserter, rival.speculation);
        else if (is_rival(rival.inserter))
            XactLockTableWait(rival.inserter, nullptr, nullptr, XLTW_None);
        else if (is_rival(rival.updater))
            XactLockTableWait(rival.updater, nullptr, nullptr, XLTW_None);
        else
            break;
        CHECK_FOR_INTERRUPTS();
    }
    pg::close_reader(reader);
    return stands;
}

bool is_dead(const pg::Installation& installation, const core::OperationId& id) {
    pg::KeyReader reader = pg::open_reader(installation.outbox_queue, AccessShareLock);
    const bool dead = pg::probe_latest(reader, id) && pg::read_queue_row(reader.slot).state == pg::DEAD;
    pg::close_reader(reader);
    return dead;
}

} // namespace

PutAnswer put_message(const pg::Installation& installation, const OutboxMessage& message) {
    const bool repeatable = message.dedup_id != nullptr;
    const core::OperationId id = repeatable ? repeatable_id(message) : new_id();
    pg_uuid_t uuid = uuid_of(id);
    const pg::EventHeaders headers = headers_of(installation, message, id);
    const char* outcome = "queued";
    pg::TableWriter writer = pg::open_writer(installation.outbox);
    compose(writer, message, &uuid, headers);
    if (!repeatable)
        pg::insert_row(writer);
    else
        while (pg::insert_row_speculatively(writer) == pg::InsertResult::CONFLICT) {
            if (first_put_stands(installation, id)) {
                outcome = is_dead(installation, id) ? "dead" : "duplicate";
                break;
            }
            compose(writer, message, &uuid, headers);
        }
    pg::close_writer(writer);
    CommandCounterIncrement();
    return PutAnswer{id, outcome};
}

void enqueue_message(const pg::Installation& installation, TupleTableSlot* message) {
    slot_getallattrs(message);
    const Datum* values = message->tts_values;
    const std::int64_t seq = nextval_internal(installation.outbox_seq, false);
    const text* ordering_key =
        message->tts_isnull[pg::MESSAGE_ORDERING_KEY] ? nullptr : DatumGetTextPP(values[pg::MESSAGE_ORDERING_KEY]);
    pg::TableWriter writer = pg::open_writer(installation.outbox_queue);
    pg::clear_row(writer);
    pg::set_column(writer, pg::QUEUE_MESSAGE_ID, values[pg::MESSAGE_ID]);
    pg::set_column(writer, pg::QUEUE_SEQ, Int64GetDatum(seq));
    pg::set_column(writer, pg::QUEUE_LANE, Int64GetDatum(pg::lane_of(ordering_key, seq)));
    pg::set_column(writer, pg::QUEUE_READY_AT, values[pg::MESSAGE_DELIVER_AT]);
    pg::set_column(writer, pg::QUEUE_TOKEN, Int64GetDatum(0));
    pg::set_column(writer, pg::QUEUE_ATTEMPT, Int32GetDatum(0));
    pg::set_column(writer, pg::QUEUE_STATE, CharGetDatum(pg::QUEUED));
    pg::set_column(writer, pg::QUEUE_TOPIC, values[pg::MESSAGE_TOPIC]);
    pg::set_column(writer, pg::QUEUE_ACTOR, values[pg::MESSAGE_ACTOR]);
    pg::store_row(writer);
    pg::insert_row(writer);
    pg::close_writer(writer);
    touch_outbox();
}

} // namespace idem::engine
