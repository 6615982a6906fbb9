// message.cpp: idem_message_claim, and idem_message_reopen below idem_message_force.
#include "core/types.hpp"
#include "core/words.hpp"
#include "api/arguments.hpp"
#include "api/families.hpp"
#include "engine/claim.hpp"
#include "engine/finish.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "pg/policy_cache.hpp"
#include "pg/varlena.hpp"

namespace idem::api {

namespace {

// named_message reads who sends what through which channel.
engine::ClaimRequest named_message(FunctionCallInfo fcinfo) {
    engine::ClaimRequest request{};
    request.actor = required_text(fcinfo, 0, "actor", ACTOR_MAX);
    request.op = family_op(pg::MESSAGE_OPS, required_text(fcinfo, 1, "channel", FAMILY_NAME_MAX));
    request.key = optional_text(fcinfo, 2);
    if (request.key == nullptr)
        pg::error_null_argument("message_id");
    request.wait = request.lease = request.ttl = engine::NOT_GIVEN;
    request.call_site = fcinfo->flinfo;
    return request;
}

} // namespace

} // namespace idem::api

using namespace idem;

// idem_message_claim: the recipient is the target, so it is part of what is compared.
IDEM_FUNCTION(idem_message_claim_v1) {
    engine::ClaimRequest request = api::named_message(fcinfo);
    request.target = api::required_text(fcinfo, 3, "recipient", api::TARGET_MAX);
    request.payload = api::optional_jsonb(fcinfo, 4);
    request.ttl = api::optional_dedup_window(fcinfo, 5);
    request.parent = api::optional_uuid(fcinfo, 6);
    const pg::Installation installation = pg::installation_of(fcinfo);
    engine::ClaimSession session = engine::begin_claims(installation, request.op, request.wait, "idem_message_claim()");
    engine::Result result;
    if (!engine::rejects(session, request, &result))
        result = engine::claim(session, request, engine::operation_id_of(request));
    engine::end_claims(session);
    PG_RETURN_DATUM(engine::result_datum(installation, result));
}

IDEM_FUNCTION(idem_message_reopen_v1) {
    const engine::ClaimRequest request = api::named_message(fcinfo);
    Jsonb* evidence = api::optional_jsonb(fcinfo, 3);
    if (evidence == nullptr)
        pg::error_null_argument("evidence");
    engine::check_evidence(evidence);
    if (pg::bytes_of(request.key).size() > core::MAX_KEY_BYTES)
        pg::error_argument_too_long("message_id", core::MAX_KEY_BYTES);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(
        engine::result_datum(installation, engine::reopen(installation, engine::operation_id_of(request), evidence)));
}
