// fingerprint.cpp: the only file that includes xxhash.h, inlined.
#include "core/fingerprint.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem::core {
namespace {

Digest big_endian(XXH128_hash_t hash) noexcept {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    Digest digest{};
    static_assert(sizeof canonical.digest == 16);
    std::memcpy(digest.bytes, canonical.digest, sizeof canonical.digest);
    digest.size = sizeof canonical.digest;
    return digest;
}

XXH3_state_t* as_state(unsigned char* bytes) noexcept {
    return reinterpret_cast<XXH3_state_t*>(bytes);
}
const XXH3_state_t* as_state(const unsigned char* bytes) noexcept {
    return reinterpret_cast<const XXH3_state_t*>(bytes);
}

} // namespace

Digest xxh3_128(Bytes data) noexcept {
    return big_endian(XXH3_128bits(data.data(), data.size()));
}

void Xxh3Stream::reset() noexcept {
    static_assert(sizeof(XXH3_state_t) <= STATE_SIZE && alignof(XXH3_state_t) <= STATE_ALIGN);
    XXH3_INITSTATE(as_state(state_));
    XXH3_128bits_reset(as_state(state_));
}

void Xxh3Stream::update(Bytes data) noexcept {
    XXH3_128bits_update(as_state(state_), data.data(), data.size());
}

Digest Xxh3Stream::digest() const noexcept {
    return big_endian(XXH3_128bits_digest(as_state(state_)));
}

} // namespace idem::core
