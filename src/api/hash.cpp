// hash.cpp: idem_canonical and idem_hash, the payload hash for everybody to call.
//
// Both are STRICT, IMMUTABLE and PARALLEL SAFE: their results are stored in generated columns and indexes, so the bytes
// never change under these names.
#include "core/types.hpp"

#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/payload_hash.hpp"

// idem_canonical_v1(payload jsonb) returns the canonical text.
IDEM_FUNCTION(idem_canonical_v1) {
    PG_RETURN_TEXT_P(idem::pg::canonical_text(PG_GETARG_JSONB_P(0)));
}

// idem_hash_v1(payload jsonb, algorithm text) returns the digest, 16 or 32 bytes. Raises 22023 for an unknown
// algorithm.
IDEM_FUNCTION(idem_hash_v1) {
    const Jsonb* payload = PG_GETARG_JSONB_P(0);
    const text* name = PG_GETARG_TEXT_PP(1);
    const char* name_data = VARDATA_ANY(name);
    const int name_size = static_cast<int>(VARSIZE_ANY_EXHDR(name));

    idem::core::HashAlgorithm algorithm;
    if (!idem::pg::hash_algorithm_from_name({name_data, static_cast<std::size_t>(name_size)}, &algorithm)) {
        idem::pg::error_unknown_hash_algorithm(name_data, name_size);
    }
    const idem::core::Digest digest = idem::pg::hash_payload(payload, nullptr, algorithm);
    PG_RETURN_BYTEA_P(
        cstring_to_text_with_len(reinterpret_cast<const char*>(digest.bytes), static_cast<int>(digest.size)));
}
