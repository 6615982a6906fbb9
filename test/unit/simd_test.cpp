// simd_test: what works on sixteen bytes at a time agrees with what is said of each byte, and reads only what it may.
#include "core/decimal.hpp"
#include "core/simd.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using idem::core::Block;
using idem::core::BLOCK_SIZE;

TEST(Simd, EscapesOfEveryByteAtEveryPlace) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        for (std::size_t at = 0; at < BLOCK_SIZE; ++at) {
            for (const char around : {'a', '\x80', '\xff', ' ', '!'}) {
                std::string text(BLOCK_SIZE, around);
                text[at] = static_cast<char>(byte);
                const bool escapes = byte < 0x20 || byte == '"' || byte == '\\';
                ASSERT_EQ(idem::core::escape_mask(idem::core::load_block(text.data())), escapes ? 1U << at : 0U)
                    << byte << " at " << at;
            }
        }
    }
}

TEST(Simd, PartialBlocksHoldNoMoreThanTheirBytes) {
    for (std::size_t size = 0; size < BLOCK_SIZE; ++size) {
        std::vector<char> exact;
        for (std::size_t i = 0; i < size; ++i) {
            exact.push_back(static_cast<char>('a' + i));
        }
        char stored[BLOCK_SIZE];
        idem::core::store_block(stored, idem::core::load_partial(exact.data(), size));
        EXPECT_EQ(std::string(stored, size), std::string(exact.data(), size));
    }
}

TEST(Simd, EqualBytes) {
    std::mt19937 random(5);
    for (std::size_t size = 0; size <= 70; ++size) {
        std::vector<char> a(size);
        for (char& byte : a) {
            byte = static_cast<char>(random());
        }
        std::vector<char> b = a;
        EXPECT_TRUE(idem::core::equal_bytes(a.data(), b.data(), size));
        for (std::size_t i = 0; i < size; ++i) {
            b[i] = static_cast<char>(b[i] ^ (1 << random() % 8));
            EXPECT_FALSE(idem::core::equal_bytes(a.data(), b.data(), size)) << i << " of " << size;
            b[i] = a[i];
        }
    }
}

TEST(Simd, SpreadsEveryGroup) {
    for (unsigned group = 0; group < 10000; ++group) {
        const unsigned others[] = {(group * 7) % 10000, 9999 - group, (group + 5000) % 10000};
        const std::uint64_t groups =
            group | std::uint64_t{others[0]} << 16 | std::uint64_t{others[1]} << 32 | std::uint64_t{others[2]} << 48;
        const idem::core::Digits digits = idem::core::spread_groups(groups);
        char text[17];
        std::snprintf(text, sizeof text, "%04u%04u%04u%04u", group, others[0], others[1], others[2]);
        for (unsigned i = 0; i < 16; ++i) {
            const std::uint64_t word = i < 8 ? digits.low : digits.high;
            ASSERT_EQ((word >> (8 * (i % 8))) & 0xFF, static_cast<unsigned>(text[i] - '0')) << text;
        }
    }
}

TEST(Simd, CountsSmaller) {
    std::mt19937 random(6);
    for (std::uint32_t count = 1; count <= 32; ++count) {
        std::int32_t values[32];
        for (std::int32_t& value : values) {
            value = static_cast<std::int32_t>(random() >> (random() % 24) & ~31U);
        }
        for (std::int32_t i = 0; i < 32; ++i) {
            values[i] |= i; // all different
        }
        std::uint32_t places[32];
        idem::core::count_smaller(values, count, places);
        for (std::uint32_t i = 0; i < count; ++i) {
            std::uint32_t smaller = 0;
            for (std::uint32_t j = 0; j < count; ++j) {
                smaller += values[j] < values[i] ? 1 : 0;
            }
            ASSERT_EQ(places[i], smaller);
        }
    }
}

} // namespace
