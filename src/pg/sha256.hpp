// sha256.hpp: SHA-256, without the price of setting it up each time.
//
// Purpose: every claim needs one SHA-256 for its operation id, payment and order payloads a second. The server's own
// pg_cryptohash looks the algorithm up in OpenSSL and allocates a context on each use, which costs several times the
// hashing of a short text.
// Lifetime: one context per backend in static memory, one hash at a time. begin() starts afresh, so an error between
// begin and end leaves nothing behind.
#pragma once

#include "core/types.hpp"

namespace idem::pg {

// SHA256_SIZE is the size of a digest in bytes.
inline constexpr std::size_t SHA256_SIZE = 32;

// sha256_begin starts a hash, sha256_add takes its bytes in any number of pieces, sha256_end returns the digest.
void sha256_begin();
void sha256_add(core::Bytes bytes);
core::Digest sha256_end();

// sha256 is the digest of bytes as one piece.
core::Digest sha256(core::Bytes bytes);

} // namespace idem::pg
