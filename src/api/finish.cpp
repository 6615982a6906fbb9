// finish.cpp: idem_complete, idem_fail, idem_release, idem_extend, idem_checkpoint, idem_resolve.
#include <string_view>

#include "core/types.hpp"
#include "core/words.hpp"
#include "api/arguments.hpp"
#include "engine/finish.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "pg/varlena.hpp"

namespace idem::api {

namespace {

// given_answer reads the arguments that idem_complete, idem_fail and idem_resolve share, in their common order.
engine::GivenAnswer given_answer(FunctionCallInfo fcinfo, int first) {
    engine::GivenAnswer given{};
    given.has_status = !PG_ARGISNULL(first);
    given.status = given.has_status ? PG_GETARG_INT32(first) : 0;
    given.body = optional_text(fcinfo, first + 1);
    given.body_json = optional_jsonb(fcinfo, first + 2);
    given.body_bytes = optional_bytea(fcinfo, first + 3);
    given.headers = optional_jsonb(fcinfo, first + 4);
    return given;
}

engine::Failure failure_named(const text* state) {
    if (state == nullptr)
        return engine::Failure::BY_STATUS;
    const std::string_view word = pg::bytes_of(state);
    if (word == "failed")
        return engine::Failure::FAILED;
    if (word == "released")
        return engine::Failure::RELEASED;
    if (word == "indeterminate")
        return engine::Failure::INDETERMINATE;
    pg::error_unknown_state("idem_fail", "failed, released and indeterminate");
}

core::State resolution_named(const text* state) {
    if (state == nullptr)
        pg::error_null_argument("state");
    const std::string_view word = pg::bytes_of(state);
    if (word == "completed")
        return core::State::COMPLETED;
    if (word == "failed")
        return core::State::FAILED;
    if (word == "released")
        return core::State::RELEASED;
    pg::error_unknown_state("idem_resolve", "completed, failed and released");
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_complete_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    engine::GivenAnswer given = api::given_answer(fcinfo, 2);
    given.body_ref = api::optional_text(fcinfo, 7);
    given.body_sha256 = api::optional_bytea(fcinfo, 8);
    engine::check_answer(given);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::complete(installation, id, token, given)));
}

IDEM_FUNCTION(idem_fail_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    const engine::Failure failure = api::failure_named(api::optional_text(fcinfo, 2));
    const engine::GivenAnswer given = api::given_answer(fcinfo, 3);
    engine::check_answer(given);
    Jsonb* evidence = api::optional_jsonb(fcinfo, 8);
    engine::check_evidence(evidence);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(
        engine::result_datum(installation, engine::fail(installation, id, token, failure, given, evidence)));
}

IDEM_FUNCTION(idem_release_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::release(installation, id, token)));
}

IDEM_FUNCTION(idem_extend_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    const core::Duration lease = api::optional_lease(fcinfo, 2);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::extend(installation, id, token, lease)));
}

IDEM_FUNCTION(idem_checkpoint_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::Token token = api::required_token(fcinfo, 1);
    Jsonb* checkpoint = api::optional_jsonb(fcinfo, 2);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::checkpoint(installation, id, token, checkpoint)));
}

IDEM_FUNCTION(idem_resolve_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::State state = api::resolution_named(api::optional_text(fcinfo, 1));
    Jsonb* evidence = api::optional_jsonb(fcinfo, 2);
    if (evidence == nullptr)
        pg::error_evidence_required();
    engine::check_evidence(evidence);
    const engine::GivenAnswer given = api::given_answer(fcinfo, 3);
    engine::check_answer(given);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::resolve(installation, id, state, given, evidence)));
}
