// simd.hpp: sixteen bytes at a time.
//
// Purpose: the few vector operations of the canonical form, in one place: look for bytes that JSON escapes, compare,
// and turn base-10000 digits into decimal ones. Data layout: a Block is 16 bytes in memory order; bit i of a mask is
// byte i. SSE2 is part of every x86-64, so there is no dispatch; elsewhere, or with IDEM_NO_SIMD defined, two machine
// words do the same. Both give the same results, which the unit tests hold against each other's definition.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__) && !defined(IDEM_NO_SIMD)
#define IDEM_HAS_SSE2
#include <emmintrin.h>
#endif

namespace idem::core {

// BLOCK_SIZE is the size of a Block in bytes.
inline constexpr std::size_t BLOCK_SIZE = 16;

// load_word reads eight bytes, the first of them as the lowest.
[[gnu::always_inline]] inline std::uint64_t load_word(const char* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (std::endian::native == std::endian::big) {
        word = __builtin_bswap64(word);
    }
    return word;
}

// store_word is the inverse of load_word.
[[gnu::always_inline]] inline void store_word(char* to, std::uint64_t word) noexcept {
    if constexpr (std::endian::native == std::endian::big) {
        word = __builtin_bswap64(word);
    }
    std::memcpy(to, &word, sizeof word);
}

// Block is 16 bytes of text.
#ifdef IDEM_HAS_SSE2
struct Block {
    __m128i bytes;
};
#else
struct Block {
    std::uint64_t low;
    std::uint64_t high;
};
#endif

// Digits is 16 decimal digits, one per byte (0 to 9, not ASCII), the first in the lowest byte of low.
struct Digits {
    std::uint64_t low;
    std::uint64_t high;
};

#ifdef IDEM_HAS_SSE2

[[gnu::always_inline]] inline Block load_block(const char* from) noexcept {
    return {_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from))};
}

[[gnu::always_inline]] inline void store_block(char* to, Block block) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to), block.bytes);
}

[[gnu::always_inline]] inline Block make_block(std::uint64_t low, std::uint64_t high) noexcept {
    return {_mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low))};
}

// escape_mask has a bit for each byte that a JSON string cannot hold as it is: controls below 20, quote, backslash.
[[gnu::always_inline]] inline std::uint32_t escape_mask(Block block) noexcept {
    const __m128i last_control = _mm_set1_epi8(0x1F);
    const __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(block.bytes, last_control), last_control);
    const __m128i quote = _mm_cmpeq_epi8(block.bytes, _mm_set1_epi8('"'));
    const __m128i backslash = _mm_cmpeq_epi8(block.bytes, _mm_set1_epi8('\\'));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)));
}

// difference_mask has a bit for each byte in which a and b differ.
[[gnu::always_inline]] inline std::uint32_t difference_mask(Block a, Block b) noexcept {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(a.bytes, b.bytes))) ^ 0xFFFF;
}

// FACTORS is what spread_groups multiplies by. It is defined elsewhere, so that no compiler knows the numbers and takes
// six additions for each of them.
alignas(BLOCK_SIZE) extern const std::int16_t FACTORS[2][8];

// spread_groups turns four base-10000 digits, the first in the lowest 16 bits, into their 16 decimal digits.
[[gnu::always_inline]] inline Digits spread_groups(std::uint64_t groups) noexcept {
    // x / 100 for x < 10000 and x / 10 for x < 100, as multiplications.
    const __m128i hundred = _mm_load_si128(reinterpret_cast<const __m128i*>(FACTORS[0]));
    const __m128i ten = _mm_load_si128(reinterpret_cast<const __m128i*>(FACTORS[1]));
    const __m128i four = _mm_cvtsi64_si128(static_cast<long long>(groups));
    const __m128i hundreds = _mm_srli_epi16(_mm_mulhi_epu16(four, _mm_set1_epi16(5243)), 3);
    const __m128i rest = _mm_sub_epi16(four, _mm_mullo_epi16(hundreds, hundred));
    const __m128i pairs = _mm_unpacklo_epi16(hundreds, rest);
    const __m128i tens = _mm_mulhi_epu16(pairs, _mm_set1_epi16(6554));
    const __m128i ones = _mm_sub_epi16(pairs, _mm_mullo_epi16(tens, ten));
    const __m128i digits = _mm_or_si128(tens, _mm_slli_epi16(ones, 8));
    return {static_cast<std::uint64_t>(_mm_cvtsi128_si64(digits)),
            static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(digits, digits)))};
}

// count_smaller sets places[i], for i below count, to how many of the values, which are all different, are smaller than
// values[i]. Both arrays have room for a multiple of eight; values behind count may be anything.
[[gnu::always_inline]] inline void count_smaller(const std::int32_t* values, std::uint32_t count,
                                                 std::uint32_t* places) noexcept {
    const __m128i others = _mm_set1_epi32(static_cast<int>(count) - 1);
    for (std::uint32_t i = 0; i < count; i += 8) {
        const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(values + i));
        const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(values + i + 4));
        __m128i first_places = others;
        __m128i second_places = others;
        for (std::uint32_t j = 0; j < count; ++j) {
            // A comparison that holds is -1: what is greater is taken off.
            const __m128i other = _mm_set1_epi32(values[j]);
            first_places = _mm_add_epi32(_mm_cmpgt_epi32(other, first), first_places);
            second_places = _mm_add_epi32(_mm_cmpgt_epi32(other, second), second_places);
        }
        _mm_storeu_si128(reinterpret_cast<__m128i_u*>(places + i), first_places);
        _mm_storeu_si128(reinterpret_cast<__m128i_u*>(places + i + 4), second_places);
    }
}

#else

inline Block load_block(const char* from) noexcept {
    return {load_word(from), load_word(from + sizeof(std::uint64_t))};
}

inline void store_block(char* to, Block block) noexcept {
    store_word(to, block.low);
    store_word(to + sizeof(std::uint64_t), block.high);
}

inline Block make_block(std::uint64_t low, std::uint64_t high) noexcept {
    return {low, high};
}

namespace simd_detail {

constexpr std::uint64_t ONES = 0x0101010101010101;
constexpr std::uint64_t LOW_BITS = ONES * 0x7F;

// zero_bytes has the top bit of each byte of word that is zero, exactly.
constexpr std::uint64_t zero_bytes(std::uint64_t word) noexcept {
    return ~(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS);
}

// gather packs the top bits of eight bytes into the low eight bits.
constexpr std::uint32_t gather(std::uint64_t tops) noexcept {
    return static_cast<std::uint32_t>(((tops >> 7) * 0x0102040810204080) >> 56);
}

constexpr std::uint32_t escapes_in(std::uint64_t word) noexcept {
    return gather(zero_bytes(word & (ONES * 0xE0)) | zero_bytes(word ^ (ONES * '"')) |
                  zero_bytes(word ^ (ONES * '\\')));
}

// digits_of_two turns two base-10000 digits, 32 bits apart, into their eight decimal digits.
constexpr std::uint64_t digits_of_two(std::uint64_t groups) noexcept {
    const std::uint64_t hundreds = ((groups * 10486) >> 20) & 0x0000007F0000007F;
    const std::uint64_t pairs = hundreds | ((groups - 100 * hundreds) << 16);
    const std::uint64_t tens = ((pairs * 103) >> 10) & 0x000F000F000F000F;
    return tens | ((pairs - 10 * tens) << 8);
}

} // namespace simd_detail

// escape_mask has a bit for each byte that a JSON string cannot hold as it is: controls below 20, quote, backslash.
inline std::uint32_t escape_mask(Block block) noexcept {
    return simd_detail::escapes_in(block.low) | simd_detail::escapes_in(block.high) << 8;
}

// difference_mask has a bit for each byte in which a and b differ.
inline std::uint32_t difference_mask(Block a, Block b) noexcept {
    using simd_detail::gather;
    using simd_detail::zero_bytes;
    return (gather(zero_bytes(a.low ^ b.low)) | gather(zero_bytes(a.high ^ b.high)) << 8) ^ 0xFFFF;
}

// spread_groups turns four base-10000 digits, the first in the lowest 16 bits, into their 16 decimal digits.
inline Digits spread_groups(std::uint64_t groups) noexcept {
    const auto apart = [](std::uint64_t two) { return (two & 0xFFFF) | (two & 0xFFFF0000) << 16; };
    return {simd_detail::digits_of_two(apart(groups)), simd_detail::digits_of_two(apart(groups >> 32))};
}

// count_smaller sets places[i], for i below count, to how many of the values, which are all different, are smaller than
// values[i]. Both arrays have room for a multiple of eight; values behind count may be anything.
inline void count_smaller(const std::int32_t* values, std::uint32_t count, std::uint32_t* places) noexcept {
    for (std::uint32_t i = 0; i < count; ++i) {
        places[i] = 0;
        for (std::uint32_t j = 0; j < count; ++j) {
            places[i] += values[j] < values[i] ? 1 : 0;
        }
    }
}

#endif

// load_partial reads size bytes, 1 to 15 of them, into a Block and touches no byte beyond; the rest is unspecified.
inline Block load_partial(const char* from, std::size_t size) noexcept {
    if (size >= sizeof(std::uint64_t)) {
        // The high word starts where the low one ends: its bytes move down over those that both hold.
        const std::uint64_t last = load_word(from + size - sizeof(std::uint64_t));
        const std::size_t overlap = 2 * sizeof(std::uint64_t) - size;
        return make_block(load_word(from), overlap == sizeof(std::uint64_t) ? 0 : last >> (8 * overlap));
    }
    std::uint64_t word = 0;
    for (std::size_t i = size; i > 0; --i) {
        word = word << 8 | static_cast<unsigned char>(from[i - 1]);
    }
    return make_block(word, 0);
}

// WINDOW is two blocks.
inline constexpr std::size_t WINDOW = 2 * BLOCK_SIZE;

// copy_window copies WINDOW bytes.
[[gnu::always_inline]] inline void copy_window(char* to, const char* from) noexcept {
    const Block first = load_block(from);
    const Block second = load_block(from + BLOCK_SIZE);
    store_block(to, first);
    store_block(to + BLOCK_SIZE, second);
}

// equal_bytes tells whether size bytes are equal; it reads none beyond.
[[gnu::always_inline]] inline bool equal_bytes(const char* a, const char* b, std::size_t size) noexcept {
    if (size >= BLOCK_SIZE) {
        // The last block may overlap the one before it.
        const std::size_t last = size - BLOCK_SIZE;
        std::uint32_t difference = difference_mask(load_block(a + last), load_block(b + last));
        for (std::size_t i = 0; i < last; i += BLOCK_SIZE) {
            difference |= difference_mask(load_block(a + i), load_block(b + i));
        }
        return difference == 0;
    }
    if (size >= sizeof(std::uint64_t)) {
        const std::size_t last = size - sizeof(std::uint64_t);
        return ((load_word(a) ^ load_word(b)) | (load_word(a + last) ^ load_word(b + last))) == 0;
    }
    unsigned char difference = 0;
    for (std::size_t i = 0; i < size; ++i) {
        difference |= static_cast<unsigned char>(a[i] ^ b[i]);
    }
    return difference == 0;
}

} // namespace idem::core
