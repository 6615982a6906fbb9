// payload_hash.hpp: the hash by which two requests are told to be the same.
//
// Purpose: one Digest per payload and target. What is hashed, exactly:
//   jsonb payload           its canonical text (core/canonical.hpp), UTF-8
//   bytes payload           the bytes as they are
//   with a target           the target as a canonical JSON string, a line feed, then the above
//   a target, no payload    the target as a canonical JSON string, a line feed
//   neither                 nothing: a Digest of size 0, which equals only itself
// A canonical text contains no raw line feed and no target string ends before its quote, so a hash with target never
// has the input of a hash without, nor of another target. Bytes are hashed untagged: bytes that happen to be a
// canonical text hash like the jsonb, on purpose, so that a client can reproduce the hash with xxhsum -H128 or
// sha256sum. The same value gives the same digest on every platform, server version and server encoding; stored rows
// rely on it. Memory: text up to the stack buffer is hashed in one go, longer text is streamed; nothing grows with the
// payload.
#pragma once

#include "core/profile.hpp"
#include "core/types.hpp"

#include <string_view>

#include "pg/server.hpp"

namespace idem::pg {

// hash_payload returns the digest of payload and target, either of which may be NULL; both detoasted. Raises 22021
// where text has no UTF-8 form.
core::Digest hash_payload(const Jsonb* payload_or_null, const text* target_or_null, core::HashAlgorithm algorithm);

// hash_payload_bytes is hash_payload for a payload of raw bytes.
core::Digest hash_payload_bytes(const bytea* payload_or_null, const text* target_or_null,
                                core::HashAlgorithm algorithm);

// hash_payload_with_profile is hash_payload of the value that profile makes of payload. Raises 22003 for a number
// beyond the doubles under numbers => double.
core::Digest hash_payload_with_profile(const Jsonb* payload_or_null, const text* target_or_null,
                                       core::HashAlgorithm algorithm, const core::Profile& profile);

// canonical_text returns the canonical text of payload (detoasted, not NULL) as a palloc'd text in the server encoding.
// Raises 54000 if it would not fit a text value (1 GB), 22021 where text has no UTF-8 form.
text* canonical_text(const Jsonb* payload);

// canonical_text_with_profile is canonical_text of the value that profile makes of payload. Raises 22003 as above.
text* canonical_text_with_profile(const Jsonb* payload, const core::Profile& profile);

// hash_algorithm_from_name sets *algorithm to the algorithm called name ('xxh3-128', 'sha256') and returns true, or
// leaves it and returns false.
bool hash_algorithm_from_name(std::string_view name, core::HashAlgorithm* algorithm);

} // namespace idem::pg
