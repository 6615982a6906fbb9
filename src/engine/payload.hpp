// payload.hpp: what of a request is compared, and under which rules.
//
// Purpose: a digest belongs to the version of the op's rules it was made under. A first claim uses the current version;
// a retry is compared under the version its key remembers.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/profile_cache.hpp"

namespace idem::engine {

// Payload is what a request is about; pointers null where the argument was NULL. At most one of json and bytes.
struct Payload {
    const Jsonb* json;
    const bytea* bytes;
    const text* target;
};

// digest_payload returns the digest of a payload under rules. Under keyed rules it is HMAC-SHA-256, keyed with the
// secret, over the actor (its length as 4 bytes big-endian, then its bytes) and the SHA-256 digest the payload would
// have without a key. Nothing to hash gives the empty digest.
core::Digest digest_payload(const Payload& payload, const text* actor, const pg::ProfileRules& rules);

// canonical_payload returns the canonical text of a JSON payload under rules.
text* canonical_payload(const Jsonb* json, const pg::ProfileRules& rules);

} // namespace idem::engine
