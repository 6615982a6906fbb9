// execute.cpp: idem_execute.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "api/arguments.hpp"
#include "engine/claim.hpp"
#include "engine/execute.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/installation.hpp"
#include "worker/slots.hpp"

namespace idem::api {

namespace {

enum ExecuteArgument : int {
    ACTOR,
    OP,
    KEY,
    PAYLOAD,
    HANDLER,
    TARGET,
    WAIT,
    ATTEMPT_ID,
    PARENT_OPERATION_ID,
    TRACEPARENT,
};

engine::ClaimRequest execute_arguments(FunctionCallInfo fcinfo) {
    engine::ClaimRequest request{};
    request.actor = required_text(fcinfo, ACTOR, "actor", ACTOR_MAX);
    request.op = required_text(fcinfo, OP, "op", core::MAX_OP_BYTES);
    request.key = required_key(fcinfo, KEY);
    request.payload = optional_jsonb(fcinfo, PAYLOAD);
    request.target = optional_target(fcinfo, TARGET);
    request.wait = optional_wait(fcinfo, WAIT);
    request.lease = engine::NOT_GIVEN;
    request.ttl = engine::NOT_GIVEN;
    request.attempt_id = optional_uuid(fcinfo, ATTEMPT_ID);
    request.parent = optional_uuid(fcinfo, PARENT_OPERATION_ID);
    request.traceparent = optional_text(fcinfo, TRACEPARENT);
    request.call_site = fcinfo->flinfo;
    return request;
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_execute_v1) {
    const engine::ClaimRequest request = api::execute_arguments(fcinfo);
    const text* handler = api::optional_text(fcinfo, api::HANDLER);
    const pg::Installation installation = pg::installation_of(fcinfo);
    worker::note_claim();
    engine::ClaimSession session = engine::begin_claims(installation, request.op, request.wait, "idem_execute()");
    engine::Result result;
    if (!engine::rejects(session, request, &result))
        result = engine::execute(session, request, engine::operation_id_of(request), handler);
    const Datum datum = engine::result_datum(installation, result);
    engine::end_claims(session);
    PG_RETURN_DATUM(datum);
}
