// payload.cpp: idem_payload_form, what idem_payload_explain and idem_payload_diff are made of.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/payload.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "pg/policy_cache.hpp"
#include "pg/profile_cache.hpp"
#include "pg/varlena.hpp"

using namespace idem;

// idem_payload_form(op, payload, actor) returns (canonical, hash, hash_algorithm, profile).
IDEM_FUNCTION(idem_payload_form_v1) {
    const text* op = api::required_text(fcinfo, 0, "op", core::MAX_OP_BYTES);
    const Jsonb* payload = api::optional_jsonb(fcinfo, 1);
    const text* actor = api::optional_text(fcinfo, 2);
    if (payload == nullptr)
        pg::error_null_argument("payload");
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE || desc->natts != 4)
        elog(ERROR, "idem_payload_form has unexpected columns");
    const pg::Installation installation = pg::installation_of(fcinfo);
    core::Policy policy;
    pg::begin_profiles(installation.profiles);
    (void)pg::load_policy(installation.policies, pg::bytes_of(op), &policy);
    const pg::ProfileRules& rules =
        pg::find_profile(installation.profiles, installation.secrets, pg::bytes_of(op), policy.profile);

    Datum values[4];
    bool isnull[4] = {false, rules.keyed && actor == nullptr, false, false};
    values[0] = PointerGetDatum(engine::canonical_payload(payload, rules));
    const core::Digest digest =
        isnull[1] ? core::Digest{} : engine::digest_payload(engine::Payload{payload, nullptr, nullptr}, actor, rules);
    values[1] = PointerGetDatum(cstring_to_text_with_len(reinterpret_cast<const char*>(digest.bytes), digest.size));
    const char* algorithm = rules.keyed                                      ? "hmac-sha256"
                            : rules.algorithm == core::HashAlgorithm::SHA256 ? "sha256"
                                                                             : "xxh3-128";
    values[2] = PointerGetDatum(cstring_to_text(algorithm));
    values[3] = Int32GetDatum(policy.profile);
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, isnull)));
}
