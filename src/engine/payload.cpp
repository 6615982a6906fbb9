// payload.cpp: see payload.hpp.
#include "core/profile.hpp"
#include "core/types.hpp"
#include "engine/payload.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/payload_hash.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

namespace {

core::Digest plain_digest(const Payload& payload, core::HashAlgorithm algorithm, const core::Profile& profile) {
    if (payload.bytes != nullptr)
        return pg::hash_payload_bytes(payload.bytes, payload.target, algorithm);
    if (payload.json == nullptr || profile.is_empty())
        return pg::hash_payload(payload.json, payload.target, algorithm);
    return pg::hash_payload_with_profile(payload.json, payload.target, algorithm, profile);
}

core::Digest keyed_digest(const core::Digest& inner, core::Bytes actor, const pg::ProfileRules& rules) {
    std::uint8_t size[4];
    for (int i = 0; i < 4; ++i)
        size[i] = static_cast<std::uint8_t>(actor.size() >> (24 - 8 * i));
    core::Digest digest{};
    digest.size = PG_SHA256_DIGEST_LENGTH;
    pg_hmac_ctx* hmac = pg_hmac_create(PG_SHA256);
    if (hmac == nullptr || pg_hmac_init(hmac, rules.secret, sizeof rules.secret) < 0 ||
        pg_hmac_update(hmac, size, sizeof size) < 0 ||
        pg_hmac_update(hmac, reinterpret_cast<const std::uint8_t*>(actor.data()), actor.size()) < 0 ||
        pg_hmac_update(hmac, inner.bytes, inner.size) < 0 || pg_hmac_final(hmac, digest.bytes, digest.size) < 0)
        elog(ERROR, "could not compute an HMAC");
    pg_hmac_free(hmac);
    return digest;
}

} // namespace

core::Digest digest_payload(const Payload& payload, const text* actor, const pg::ProfileRules& rules) {
    const core::Digest inner =
        plain_digest(payload, rules.keyed ? core::HashAlgorithm::SHA256 : rules.algorithm, rules.profile);
    return rules.keyed && inner.size != 0 ? keyed_digest(inner, pg::bytes_of(actor), rules) : inner;
}

text* canonical_payload(const Jsonb* json, const pg::ProfileRules& rules) {
    return rules.profile.is_empty() ? pg::canonical_text(json) : pg::canonical_text_with_profile(json, rules.profile);
}

} // namespace idem::engine
