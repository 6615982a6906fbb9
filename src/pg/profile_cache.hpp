// profile_cache.hpp: the versioned rules under which payloads are hashed.
//
// Purpose: a key remembers the version its payload was hashed under, and a retry is compared under that version, so
// that a changed policy never makes an honest retry a conflict. A version is a row of idem_profiles: algorithm,
// options, and the secret where the hash is keyed. Lifetime: a version never changes once it is made, so a cached one
// is never stale; the cache (one per backend, in a context named "idempotency profiles") is emptied when it is full or
// belongs to another idem_profiles, and only by begin_profiles, so that what find_profile returns lives as long as the
// call that began.
#pragma once

#include <string_view>

#include "core/profile.hpp"
#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// ProfileRules is how a payload becomes a digest.
struct ProfileRules {
    core::HashAlgorithm algorithm;
    core::Profile profile;
    bool keyed; // HMAC-SHA-256 with the secret and the actor
    std::uint8_t secret[32];
};

// begin_profiles prepares the cache for one call of the extension's functions.
void begin_profiles(Oid profiles_relid);

// find_profile returns a version of an op's rules; version 0 is the plain default. Raises XX001 when it is not there.
const ProfileRules& find_profile(Oid profiles_relid, Oid secrets_relid, std::string_view op, std::int32_t version);

} // namespace idem::pg
