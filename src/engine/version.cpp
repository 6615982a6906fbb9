// version.cpp: see version.hpp.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/claim.hpp"
#include "engine/detail.hpp"
#include "engine/lookup.hpp"
#include "engine/version.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/helpers.hpp"
#include "pg/sha256.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

namespace {

constexpr std::size_t KEY_HASH_BYTES = 16;

// Versions calls the script's functions on one resource.
struct Versions {
    Oid schema;
    const ClaimRequest& request;
};

std::int64_t current_version(const Versions& versions) {
    const Oid types[] = {TEXTOID, TEXTOID, TEXTOID};
    const NullableDatum arguments[] = {pg::given(versions.request.actor), pg::given(versions.request.op),
                                       pg::given(versions.request.target)};
    const pg::Helper helper = pg::prepare_helper(versions.schema, "idem_version_current", types, lengthof(types));
    return DatumGetInt64(pg::call_helper(helper, arguments).value);
}

// advance moves the version on; false when it is not `expected` any more.
bool advance(const Versions& versions, std::int64_t expected) {
    const Oid types[] = {TEXTOID, TEXTOID, TEXTOID, INT8OID};
    const NullableDatum arguments[] = {pg::given(versions.request.actor),
                                       pg::given(versions.request.op),
                                       pg::given(versions.request.target),
                                       {Int64GetDatum(expected), false}};
    const pg::Helper helper = pg::prepare_helper(versions.schema, "idem_version_advance", types, lengthof(types));
    return !pg::call_helper(helper, arguments).isnull;
}

Result with_version(Result result, std::int64_t version) {
    Detail detail;
    add_integer(detail, "current_version", version);
    Jsonb* member = finish(detail);
    result.detail =
        result.detail == nullptr
            ? member
            : DatumGetJsonbP(DirectFunctionCall2(jsonb_concat, JsonbPGetDatum(result.detail), JsonbPGetDatum(member)));
    return result;
}

Result version_differs(const ClaimRequest& request, const core::OperationId& id, std::int64_t current) {
    Result result{};
    result.outcome = core::Outcome::CONFLICT;
    result.id = id;
    result.has_id = true;
    result.key = request.key;
    result.reason = "version_differs";
    return with_version(result, current);
}

// is_settled tells whether the key of a version that is past has an answer to give, of whatever kind; it looks with a
// fresh snapshot, because current_version did.
bool is_settled(const pg::Installation& installation, const core::OperationId& id) {
    PushActiveSnapshot(GetTransactionSnapshot());
    const Result found = lookup(installation, id);
    PopActiveSnapshot();
    return found.known && found.outcome != core::Outcome::RELEASED;
}

} // namespace

text* version_key(const text* target, std::int64_t version) {
    const core::Digest digest = pg::sha256(pg::bytes_of(target));
    char hex[2 * KEY_HASH_BYTES + 1];
    (void)hex_encode(reinterpret_cast<const char*>(digest.bytes), KEY_HASH_BYTES, hex);
    hex[2 * KEY_HASH_BYTES] = '\0';
    return cstring_to_text(psprintf("version:" INT64_FORMAT ":%s", version, hex));
}

Result claim_version(const pg::Installation& installation, const ClaimRequest& request, std::int64_t expected) {
    ClaimSession session = begin_claims(installation, request.op, request.wait, "idem_version_claim()");
    Result result;
    if (rejects(session, request, &result)) {
        end_claims(session);
        return result;
    }
    if (session.policy.mode == core::Mode::LEASE)
        pg::error_version_in_lease_mode();
    session.policy.mode = core::Mode::TRANSACTION;
    const core::OperationId id = operation_id_of(request);
    const Versions versions{installation.schema, request};
    const std::int64_t current = current_version(versions);
    if (expected > current || (expected < current && !is_settled(installation, id))) {
        end_claims(session);
        return version_differs(request, id, current);
    }
    result = claim(session, request, id);
    end_claims(session);
    if (core::proceeds(result.outcome)) {
        if (!advance(versions, expected))
            pg::error_serialization();
        return with_version(result, expected + 1);
    }
    if (result.outcome == core::Outcome::CONFLICT)
        return with_version(result, current_version(versions));
    return result;
}

} // namespace idem::engine
