// http_key.hpp: the client's idempotency key, out of an Idempotency-Key header field.
//
// Purpose: accept both spellings found in practice: the structured field of the IETF draft (`"8e03978e"`, RFC 8941) and
// the bare word most SDKs send (`8e03978e`). Both give the same key, so a client may change its spelling between
// retries. Data layout: the field is a view on the caller's bytes; the key is written to the caller's buffer. Nothing
// is kept.
#pragma once

#include <cstddef>
#include <string_view>

namespace idem::core {

// parse_http_key reads one Idempotency-Key field value and writes the key to out, which has room for field.size()
// bytes. Spaces and tabs around the value are not part of it; parameters after a quoted key are checked and ignored.
// Inside the quotes nothing is trimmed or folded. False, with *out_size 0 and out in any state, for everything that is
// no single key: empty, `""`, broken quoting, several values, controls, non-ASCII. Time is linear in the field.
bool parse_http_key(std::string_view field, char* out, std::size_t* out_size) noexcept;

} // namespace idem::core
