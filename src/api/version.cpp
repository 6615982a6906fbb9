// version.cpp: idem_version_claim.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/claim.hpp"
#include "engine/result.hpp"
#include "engine/version.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"

using namespace idem;

IDEM_FUNCTION(idem_version_claim_v1) {
    engine::ClaimRequest request{};
    request.actor = api::required_text(fcinfo, 0, "actor", api::ACTOR_MAX);
    request.op = api::required_text(fcinfo, 1, "op", core::MAX_OP_BYTES);
    request.target = api::required_text(fcinfo, 2, "target", api::TARGET_MAX);
    if (PG_ARGISNULL(3))
        pg::error_null_argument("expected_version");
    const std::int64_t expected = PG_GETARG_INT64(3);
    if (expected < 0)
        pg::error_negative_argument("expected_version");
    request.payload = api::optional_jsonb(fcinfo, 4);
    request.key = engine::version_key(request.target, expected);
    request.wait = request.lease = request.ttl = engine::NOT_GIVEN;
    request.call_site = fcinfo->flinfo;
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::claim_version(installation, request, expected)));
}
