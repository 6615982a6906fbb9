// xxh3_variants.hpp: XXH3 compiled for more than one processor.
//
// Purpose: the loop of XXH3 over long texts runs twice as fast with the 32-byte vectors of AVX2, which most x86-64 have
// but not all. So it is compiled a second time, in a file of its own, with flags of its own, and chosen while running.
// Contract: all variants compute the same and use the same streaming state. Only plain types here: nothing inline may
// be compiled with those flags and then be taken for everybody's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idem::core {

// Xxh3Functions hash data as one piece, add data to a streaming state, and take its digest; a digest is two words, the
// high one first.
struct Xxh3Functions {
    void (*hash)(const void* data, std::size_t size, std::uint64_t* digest) noexcept;
    void (*update)(void* state, const void* data, std::size_t size) noexcept;
    void (*digest)(const void* state, std::uint64_t* digest) noexcept;
};

// xxh3_avx2 returns the functions for processors with AVX2, or NULL if they were compiled without.
const Xxh3Functions* xxh3_avx2() noexcept;

} // namespace idem::core
