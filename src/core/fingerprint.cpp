// fingerprint.cpp: XXH3, inlined from xxhash.h, for any processor; and the choice of a better variant for long texts.
#include "core/fingerprint.hpp"
#include "core/simd.hpp"
#include "core/xxh3_variants.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem::core {
namespace {

constexpr std::size_t LONG_TEXT = 241; // bytes from which XXH3 works with vectors

void put(XXH128_hash_t hash, std::uint64_t* digest) noexcept {
    digest[0] = hash.high64;
    digest[1] = hash.low64;
}

void hash_once(const void* data, std::size_t size, std::uint64_t* digest) noexcept {
    put(XXH3_128bits(data, size), digest);
}

void update_state(void* state, const void* data, std::size_t size) noexcept {
    XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, size);
}

void digest_state(const void* state, std::uint64_t* digest) noexcept {
    put(XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state)), digest);
}

constexpr Xxh3Functions FUNCTIONS = {hash_once, update_state, digest_state};

constinit const Xxh3Functions* chosen = nullptr;

const Xxh3Functions* choose() noexcept {
#if defined(__x86_64__)
    if (xxh3_avx2() != nullptr && __builtin_cpu_supports("avx2")) {
        return xxh3_avx2();
    }
#endif
    return &FUNCTIONS;
}

const Xxh3Functions& functions() noexcept {
    if (chosen == nullptr) {
        chosen = choose();
    }
    return *chosen;
}

Digest big_endian(const std::uint64_t* words) noexcept {
    Digest digest{};
    auto* const bytes = reinterpret_cast<char*>(digest.bytes);
    store_word(bytes, __builtin_bswap64(words[0]));
    store_word(bytes + sizeof words[0], __builtin_bswap64(words[1]));
    digest.size = 16;
    return digest;
}

} // namespace

Digest xxh3_128(Bytes data) noexcept {
    std::uint64_t words[2];
    if (data.size() < LONG_TEXT) {
        hash_once(data.data(), data.size(), words);
    } else {
        functions().hash(data.data(), data.size(), words);
    }
    return big_endian(words);
}

void Xxh3Stream::reset() noexcept {
    static_assert(sizeof(XXH3_state_t) <= STATE_SIZE && alignof(XXH3_state_t) <= STATE_ALIGN);
    auto* const state = reinterpret_cast<XXH3_state_t*>(state_);
    XXH3_INITSTATE(state);
    XXH3_128bits_reset(state);
}

void Xxh3Stream::update(Bytes data) noexcept {
    functions().update(state_, data.data(), data.size());
}

Digest Xxh3Stream::digest() const noexcept {
    std::uint64_t words[2];
    functions().digest(state_, words);
    return big_endian(words);
}

} // namespace idem::core
