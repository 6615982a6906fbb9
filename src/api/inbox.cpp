// inbox.cpp: idem_inbox_claim, idem_inbox_claim_many, idem_inbox_complete.
#include "core/types.hpp"
#include "core/words.hpp"
#include "api/arguments.hpp"
#include "api/arrays.hpp"
#include "api/families.hpp"
#include "engine/claim.hpp"
#include "engine/inbox.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "pg/policy_cache.hpp"
#include "pg/varlena.hpp"

namespace idem::api {

namespace {

constexpr int BATCH_MAX = 10000;
constexpr std::size_t ENTITY_MAX = 255;

// Arguments of idem_inbox_claim; idem_inbox_claim_many has arrays at the places of all but the last two.
enum InboxArgument : int { ACTOR, SOURCE, EVENT_ID, PAYLOAD, ENTITY, SEQ, DEDUP_ID, DEDUP_WINDOW, LEASE };

// shared_event reads what the events of one call have in common. Its op is the one that has the policy.
engine::Event shared_event(FunctionCallInfo fcinfo) {
    engine::Event event{};
    event.claim.actor = required_text(fcinfo, ACTOR, "actor", ACTOR_MAX);
    event.source = required_text(fcinfo, SOURCE, "source", FAMILY_NAME_MAX);
    event.claim.op = family_op(pg::INBOX_OPS, event.source);
    event.claim.wait = engine::NOT_GIVEN;
    event.claim.lease = engine::NOT_GIVEN;
    event.claim.ttl = engine::NOT_GIVEN;
    event.claim.call_site = fcinfo->flinfo;
    return event;
}

// shared_times reads window and lease.
void shared_times(FunctionCallInfo fcinfo, engine::Event& event) {
    event.claim.ttl = optional_dedup_window(fcinfo, DEDUP_WINDOW);
    event.claim.lease = optional_lease(fcinfo, LEASE);
    event.dedup_window = NullableDatum{fcinfo->args[DEDUP_WINDOW].value, PG_ARGISNULL(DEDUP_WINDOW)};
}

// name_event says which key an event is: that of its intent where there is one, else that of its delivery.
void name_event(engine::Event& event, const text* event_id, const text* dedup_id) {
    if (event_id == nullptr)
        pg::error_null_argument("event_id");
    event.event_id = event_id;
    event.dedup_id = dedup_id;
    event.claim.key = dedup_id == nullptr ? event_id : dedup_id;
    if (dedup_id != nullptr)
        event.claim.op = family_op(pg::INTENT_OPS, event.source);
}

void place_event(engine::Event& event, const text* entity, NullableDatum seq) {
    if ((entity == nullptr) != seq.isnull)
        pg::error_seq_without_entity();
    if (entity == nullptr)
        return;
    if (pg::bytes_of(entity).empty())
        pg::error_empty_argument("entity");
    if (pg::bytes_of(entity).size() > ENTITY_MAX)
        pg::error_argument_too_long("entity", ENTITY_MAX);
    event.entity = entity;
    event.seq = DatumGetInt64(seq.value);
    if (event.seq < 0)
        pg::error_negative_argument("seq");
}

// Item is one event of a batch.
struct Item {
    engine::Event event;
    core::OperationId id;
    engine::Result result;
};

int by_operation_id(const void* a, const void* b) {
    const auto* x = *static_cast<Item* const*>(a);
    const auto* y = *static_cast<Item* const*>(b);
    const int order = std::memcmp(x->id.bytes, y->id.bytes, sizeof x->id.bytes);
    return order != 0 ? order : (x < y ? -1 : 1);
}

// by_entity puts events without an entity first, then entity by entity, each in the order of its numbers.
int by_entity(const void* a, const void* b) {
    const auto* x = *static_cast<Item* const*>(a);
    const auto* y = *static_cast<Item* const*>(b);
    const core::Bytes left = x->event.entity == nullptr ? core::Bytes{} : pg::bytes_of(x->event.entity);
    const core::Bytes right = y->event.entity == nullptr ? core::Bytes{} : pg::bytes_of(y->event.entity);
    const int order = left.compare(right);
    if (order != 0)
        return order;
    if (x->event.seq != y->event.seq)
        return x->event.seq < y->event.seq ? -1 : 1;
    return x < y ? -1 : 1;
}

// receive claims all keys in the order of their operation ids, the one order that every batch everywhere uses, and then
// puts what is new in order, entity by entity.
void receive(engine::Inbox& inbox, Item* items, int count) {
    auto** order = static_cast<Item**>(palloc(sizeof(Item*) * static_cast<Size>(count + 1)));
    int claimable = 0;
    for (int i = 0; i < count; ++i) {
        if (engine::rejects(inbox.claims, items[i].event.claim, &items[i].result))
            continue;
        items[i].id = engine::operation_id_of(items[i].event.claim);
        order[claimable++] = &items[i];
    }
    qsort(order, static_cast<std::size_t>(claimable), sizeof(Item*), by_operation_id);
    int fresh = 0;
    for (int i = 0; i < claimable; ++i) {
        order[i]->result = engine::claim_event(inbox, order[i]->event, order[i]->id);
        if (core::proceeds(order[i]->result.outcome))
            order[fresh++] = order[i];
    }
    qsort(order, static_cast<std::size_t>(fresh), sizeof(Item*), by_entity);
    for (int i = 0; i < fresh; ++i)
        order[i]->result = engine::put_in_order(inbox, order[i]->event, order[i]->id, order[i]->result);
}

Item* read_items(FunctionCallInfo fcinfo, const engine::Event& shared, int* count) {
    if (PG_ARGISNULL(EVENT_ID))
        pg::error_null_argument("event_ids");
    const Elements ids = elements_of(fcinfo, EVENT_ID, "event_ids", TEXT_ELEMENTS);
    const Elements payloads = parallel_elements(fcinfo, PAYLOAD, "payloads", JSONB_ELEMENTS, "event_ids", ids.count);
    const Elements entities = parallel_elements(fcinfo, ENTITY, "entities", TEXT_ELEMENTS, "event_ids", ids.count);
    const Elements seqs = parallel_elements(fcinfo, SEQ, "seqs", BIGINT_ELEMENTS, "event_ids", ids.count);
    const Elements dedup_ids = parallel_elements(fcinfo, DEDUP_ID, "dedup_ids", TEXT_ELEMENTS, "event_ids", ids.count);
    if (ids.count > BATCH_MAX)
        pg::error_too_large("batch", static_cast<std::size_t>(ids.count), BATCH_MAX);
    auto* items = static_cast<Item*>(
        MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Item) * static_cast<Size>(ids.count > 0 ? ids.count : 1)));
    for (int i = 0; i < ids.count; ++i) {
        items[i] = Item{};
        engine::Event& event = items[i].event;
        event = shared;
        if (dedup_ids.given && text_element(dedup_ids, i) == nullptr)
            pg::error_null_argument("dedup_id");
        name_event(event, text_element(ids, i), text_element(dedup_ids, i));
        place_event(event, text_element(entities, i), element(seqs, i));
        event.claim.payload = jsonb_element(payloads, i);
    }
    *count = ids.count;
    return items;
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_inbox_claim_v1) {
    api::Item item{};
    item.event = api::shared_event(fcinfo);
    api::shared_times(fcinfo, item.event);
    api::name_event(item.event, api::optional_text(fcinfo, api::EVENT_ID), api::optional_text(fcinfo, api::DEDUP_ID));
    api::place_event(item.event, api::optional_text(fcinfo, api::ENTITY), fcinfo->args[api::SEQ]);
    item.event.claim.payload = api::optional_jsonb(fcinfo, api::PAYLOAD);
    const pg::Installation installation = pg::installation_of(fcinfo);
    engine::Inbox inbox = engine::open_inbox(installation, item.event.claim.op,
                                             item.event.claim.lease != engine::NOT_GIVEN, "idem_inbox_claim()");
    api::receive(inbox, &item, 1);
    engine::close_inbox(inbox);
    PG_RETURN_DATUM(engine::result_datum(installation, item.result));
}

IDEM_FUNCTION(idem_inbox_claim_many_v1) {
    InitMaterializedSRF(fcinfo, 0);
    auto* rows = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    engine::check_result_shape(rows->setDesc);
    engine::Event shared = api::shared_event(fcinfo);
    api::shared_times(fcinfo, shared);
    int count;
    api::Item* items = api::read_items(fcinfo, shared, &count);
    const pg::Installation installation = pg::installation_of(fcinfo);
    if (count > 0) {
        engine::Inbox inbox = engine::open_inbox(installation, items[0].event.claim.op,
                                                 shared.claim.lease != engine::NOT_GIVEN, "idem_inbox_claim_many()");
        api::receive(inbox, items, count);
        engine::close_inbox(inbox);
    }
    for (int i = 0; i < count; ++i) {
        Datum values[pg::RESULT_COLUMNS];
        bool isnull[pg::RESULT_COLUMNS];
        engine::result_tuple(items[i].result, values, isnull);
        tuplestore_putvalues(rows->setResult, rows->setDesc, values, isnull);
    }
    return static_cast<Datum>(0);
}

IDEM_FUNCTION(idem_inbox_complete_v1) {
    engine::Event event = api::shared_event(fcinfo);
    api::name_event(event, api::optional_text(fcinfo, 2), api::optional_text(fcinfo, 5));
    const core::Token token = api::required_token(fcinfo, 3);
    if (pg::bytes_of(event.claim.key).size() > core::MAX_KEY_BYTES)
        pg::error_argument_too_long("event_id", core::MAX_KEY_BYTES);
    const pg::Installation installation = pg::installation_of(fcinfo);
    const core::OperationId id = engine::operation_id_of(event.claim);
    PG_RETURN_DATUM(engine::result_datum(
        installation, engine::complete_event(installation, event, id, token, api::optional_text(fcinfo, 4))));
}
