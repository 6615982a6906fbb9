// xxh3_avx2.cpp: see xxh3_variants.hpp. The build compiles this file with -mavx2 on x86-64; without, it is empty.
#include "core/xxh3_variants.hpp"

#ifdef __AVX2__
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace idem::core {

#ifdef __AVX2__

namespace {

// leave returns a digest with the upper halves of the vector registers cleared. The compiler does not always do so by
// itself here, and with them in use the SSE2 code of everybody else runs at half its speed, until somebody clears them.
void leave(XXH128_hash_t hash, std::uint64_t* digest) noexcept {
    digest[0] = hash.high64;
    digest[1] = hash.low64;
    _mm256_zeroupper();
}

void hash_once(const void* data, std::size_t size, std::uint64_t* digest) noexcept {
    leave(XXH3_128bits(data, size), digest);
}

void update_state(void* state, const void* data, std::size_t size) noexcept {
    XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, size);
    _mm256_zeroupper();
}

void digest_state(const void* state, std::uint64_t* digest) noexcept {
    leave(XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state)), digest);
}

constexpr Xxh3Functions FUNCTIONS = {hash_once, update_state, digest_state};

} // namespace

const Xxh3Functions* xxh3_avx2() noexcept {
    return &FUNCTIONS;
}

#else

const Xxh3Functions* xxh3_avx2() noexcept {
    return nullptr;
}

#endif

} // namespace idem::core
