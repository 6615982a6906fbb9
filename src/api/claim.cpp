// claim.cpp: idem_claim and idem_claim_many.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "api/arguments.hpp"
#include "api/arrays.hpp"
#include "engine/claim.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "worker/slots.hpp"

namespace idem::api {

namespace {

constexpr int BATCH_MAX = 10000;

// Arguments of idem_claim that idem_claim_many has at the same places.
enum ClaimArgument : int {
    ACTOR,
    OP,
    KEY,
    PAYLOAD,
    TARGET,
    WAIT,
    LEASE,
    TTL,
    ATTEMPT_ID,
    PARENT_OPERATION_ID,
    TRACEPARENT,
    CAPABILITIES_VERSION,
    PAYLOAD_BYTES,
};

// named_operation reads who and what.
engine::ClaimRequest named_operation(FunctionCallInfo fcinfo) {
    engine::ClaimRequest request{};
    request.actor = required_text(fcinfo, ACTOR, "actor", ACTOR_MAX);
    request.op = required_text(fcinfo, OP, "op", core::MAX_OP_BYTES);
    request.call_site = fcinfo->flinfo;
    return request;
}

// shared_arguments reads what is said once per call; key and payload are the caller's to set.
engine::ClaimRequest shared_arguments(FunctionCallInfo fcinfo) {
    engine::ClaimRequest request = named_operation(fcinfo);
    request.target = optional_target(fcinfo, TARGET);
    request.wait = optional_wait(fcinfo, WAIT);
    request.lease = optional_lease(fcinfo, LEASE);
    request.ttl = optional_ttl(fcinfo, TTL);
    request.attempt_id = optional_uuid(fcinfo, ATTEMPT_ID);
    request.parent = optional_uuid(fcinfo, PARENT_OPERATION_ID);
    request.traceparent = optional_text(fcinfo, TRACEPARENT);
    request.capabilities_version = PG_ARGISNULL(CAPABILITIES_VERSION) ? 0 : PG_GETARG_INT32(CAPABILITIES_VERSION);
    return request;
}

engine::Result claim_or_reject(engine::ClaimSession& session, const engine::ClaimRequest& request) {
    engine::Result result;
    if (engine::rejects(session, request, &result))
        return result;
    return engine::claim(session, request, engine::operation_id_of(request));
}

Datum answer_claim(FunctionCallInfo fcinfo, const engine::ClaimRequest& request) {
    worker::note_claim();
    const pg::Installation installation = pg::installation_of(fcinfo);
    engine::ClaimSession session = engine::begin_claims(installation, request.op, request.wait, "idem_claim()");
    const Datum datum = engine::result_datum(installation, claim_or_reject(session, request));
    engine::end_claims(session);
    return datum;
}

// Item is one key of a batch: its place in the arrays and in the order of locking.
struct Item {
    engine::ClaimRequest request;
    core::OperationId id;
    engine::Result result;
};

int by_operation_id(const void* a, const void* b) {
    const auto* x = *static_cast<Item* const*>(a);
    const auto* y = *static_cast<Item* const*>(b);
    const int order = std::memcmp(x->id.bytes, y->id.bytes, sizeof x->id.bytes);
    return order != 0 ? order : (x < y ? -1 : 1);
}

// read_items unpacks keys and payloads.
Item* read_items(FunctionCallInfo fcinfo, int* count) {
    if (PG_ARGISNULL(KEY))
        pg::error_null_argument("keys");
    const engine::ClaimRequest shared = shared_arguments(fcinfo);
    const Elements keys = elements_of(fcinfo, KEY, "keys", TEXT_ELEMENTS);
    Elements payloads{};
    if (!PG_ARGISNULL(PAYLOAD)) {
        payloads = elements_of(fcinfo, PAYLOAD, "payloads", JSONB_ELEMENTS);
        if (payloads.count != keys.count)
            pg::error_array_lengths("keys", keys.count, "payloads", payloads.count);
    }
    if (keys.count > BATCH_MAX)
        pg::error_too_large("batch", static_cast<std::size_t>(keys.count), BATCH_MAX);
    auto* items = static_cast<Item*>(MemoryContextAllocHuge(
        CurrentMemoryContext, sizeof(Item) * static_cast<Size>(keys.count > 0 ? keys.count : 1)));
    for (int i = 0; i < keys.count; ++i) {
        if (keys.nulls[i])
            pg::error_null_argument("key");
        items[i] = Item{};
        items[i].request = shared;
        items[i].request.key = DatumGetTextPP(keys.values[i]);
        if (payloads.count > 0 && !payloads.nulls[i])
            items[i].request.payload = DatumGetJsonbP(payloads.values[i]);
    }
    *count = keys.count;
    return items;
}

// claim_items claims all items in the order of their operation ids, the one order that every batch everywhere uses.
void claim_items(engine::ClaimSession& session, Item* items, int count) {
    auto** order = static_cast<Item**>(palloc(sizeof(Item*) * static_cast<Size>(count + 1)));
    int claimable = 0;
    for (int i = 0; i < count; ++i) {
        const engine::ClaimRequest& request = items[i].request;
        if (engine::rejects(session, request, &items[i].result))
            continue;
        items[i].id = engine::operation_id_of(request);
        order[claimable++] = &items[i];
    }
    qsort(order, static_cast<std::size_t>(claimable), sizeof(Item*), by_operation_id);
    for (int i = 0; i < claimable; ++i)
        order[i]->result = engine::claim(session, order[i]->request, order[i]->id);
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_claim_v1) {
    engine::ClaimRequest request = api::shared_arguments(fcinfo);
    request.key = api::required_key(fcinfo, api::KEY);
    request.payload = api::optional_jsonb(fcinfo, api::PAYLOAD);
    request.payload_bytes = api::optional_bytea(fcinfo, api::PAYLOAD_BYTES);
    if (request.payload != nullptr && request.payload_bytes != nullptr)
        pg::error_two_payloads();
    return api::answer_claim(fcinfo, request);
}

// idem_claim_plain(actor, op, key, payload) is idem_claim whose other arguments are NULL; see claim_support.cpp.
IDEM_FUNCTION(idem_claim_plain_v1) {
    engine::ClaimRequest request = api::named_operation(fcinfo);
    request.key = api::required_key(fcinfo, api::KEY);
    request.payload = api::optional_jsonb(fcinfo, api::PAYLOAD);
    request.wait = request.lease = request.ttl = engine::NOT_GIVEN;
    return api::answer_claim(fcinfo, request);
}

IDEM_FUNCTION(idem_claim_many_v1) {
    InitMaterializedSRF(fcinfo, 0);
    auto* rows = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    engine::check_result_shape(rows->setDesc);
    int count;
    api::Item* items = api::read_items(fcinfo, &count);
    const pg::Installation installation = pg::installation_of(fcinfo);
    if (count > 0) {
        worker::note_claim();
        engine::ClaimSession session =
            engine::begin_claims(installation, items[0].request.op, items[0].request.wait, "idem_claim_many()");
        api::claim_items(session, items, count);
        engine::end_claims(session);
    }
    for (int i = 0; i < count; ++i) {
        Datum values[pg::RESULT_COLUMNS];
        bool isnull[pg::RESULT_COLUMNS];
        engine::result_tuple(items[i].result, values, isnull);
        tuplestore_putvalues(rows->setResult, rows->setDesc, values, isnull);
    }
    return static_cast<Datum>(0);
}
