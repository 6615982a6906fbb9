// version.hpp: one writer for each version of a resource.
//
// Purpose: optimistic concurrency that survives a lost answer. Who sets something at version N claims the key of
// (resource, N): the same change at the same version is a retry and replays, another one is a conflict that tells the
// present version. The version advances in the claiming transaction, so the work, its answer and the new version commit
// together or not at all. A resource nobody wrote yet has version 0.
// Locking: the key, then the resource's row of idem_versions. Whoever moves a version from N has the key of N, so the
// row is waited for only by claims of other versions, which then lose.
#pragma once

#include "core/types.hpp"
#include "engine/claim.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"

namespace idem::engine {

// claim_version claims the right to move a resource from `expected` to the next version. request.target names it and
// request.key is version_key's.
Result claim_version(const pg::Installation& installation, const ClaimRequest& request, std::int64_t expected);

// version_key is the key of a resource at a version: fixed in length, of characters that every policy's key_chars
// takes.
text* version_key(const text* target, std::int64_t version);

} // namespace idem::engine
