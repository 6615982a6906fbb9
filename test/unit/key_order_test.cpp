// key_order_test: keys come out in UTF-16 order, whatever their number, and however much they have in common.
#include "core/key_order.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace {

using idem::core::KeyTable;
using idem::core::SortKey;

int ticks = 0;

// expect_ordered orders keys, given in any order, with and without memory behind them.
void expect_ordered(const std::vector<std::string>& keys) {
    std::string data;
    std::vector<std::uint32_t> starts;
    for (const std::string& key : keys) {
        starts.push_back(static_cast<std::uint32_t>(data.size()));
        data += key;
    }
    starts.push_back(static_cast<std::uint32_t>(data.size()));
    for (const std::size_t behind : {std::size_t{0}, std::size_t{20}}) {
        const std::string memory = data + std::string(behind, '\xff');
        const std::vector<char> exact(memory.begin(), memory.end());
        const SortKey untouched{1, 2, 3};
        std::vector<SortKey> scratch(2 * keys.size(), untouched);
        std::vector<std::uint32_t> order(keys.size(), UINT32_MAX);
        const KeyTable table{exact.data(), starts.data(), static_cast<std::uint32_t>(keys.size()),
                             exact.data() + exact.size()};
        ticks = 0;
        idem::core::order_keys(table, order.data(), scratch.data(), [] { ++ticks; });
        std::vector<std::string> expected = keys;
        std::sort(expected.begin(), expected.end(),
                  [](const std::string& a, const std::string& b) { return reference::utf16(a) < reference::utf16(b); });
        for (std::size_t i = 0; i < keys.size(); ++i) {
            ASSERT_LT(order[i], keys.size());
            ASSERT_EQ(keys[order[i]], expected[i]) << i << " of " << keys.size();
        }
        if (keys.size() <= idem::core::RANKED_KEYS) {
            EXPECT_EQ(ticks, 0);
            EXPECT_TRUE(std::all_of(scratch.begin(), scratch.end(),
                                    [&](const SortKey& key) { return key.prefix == untouched.prefix; }));
        } else {
            EXPECT_GT(ticks, 0);
        }
    }
}

// random_keys makes different keys: `common` in front of all, then up to `most` characters of few or of many kinds.
std::vector<std::string> random_keys(std::mt19937& random, std::size_t count, const std::string& common,
                                     std::size_t most, bool of_many_kinds) {
    const std::uint32_t few[] = {'a', 'b', 'Z', 0xE9, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
    std::vector<std::string> keys;
    while (keys.size() < count) {
        std::string key = common;
        for (std::size_t size = random() % (most + 1); size > 0; --size) {
            reference::append_utf8(key, of_many_kinds ? static_cast<std::uint32_t>(1 + random() % 0xD7FF)
                                                      : few[random() % std::size(few)]);
        }
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
            key += std::to_string(keys.size());
        }
        keys.push_back(key);
    }
    return keys;
}

// as_stored puts keys into the order of jsonb: by length, then bytes.
std::vector<std::string> as_stored(std::vector<std::string> keys) {
    std::sort(keys.begin(), keys.end(), [](const std::string& a, const std::string& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    return keys;
}

TEST(KeyOrder, ObjectsOfEverySize) {
    std::mt19937 random(11);
    for (std::size_t count = 1; count <= 400; count += count < 40 ? 1 : 45) {
        for (const char* common : {"", "k", "key", "common_prefix_", "\xc3\xa9\xee\x80\x80"}) {
            for (const std::size_t most : {2U, 9U}) {
                std::vector<std::string> keys = random_keys(random, count, common, most, count % 2 == 0);
                expect_ordered(keys);
                expect_ordered(as_stored(keys));
            }
        }
    }
}

// Groups that share more than the eight bytes of a prefix, in one object with others that do not.
TEST(KeyOrder, KeysThatShareTheirPrefix) {
    std::mt19937 random(12);
    for (const std::size_t count : {5U, 20U, 32U, 33U, 200U, 1000U}) {
        std::vector<std::string> keys = random_keys(random, count, "repository_", 6, false);
        const std::vector<std::string> others = random_keys(random, count / 2, "", 4, true);
        keys.insert(keys.end(), others.begin(), others.end());
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        std::shuffle(keys.begin(), keys.end(), random);
        expect_ordered(keys);
        expect_ordered(as_stored(keys));
    }
}

TEST(KeyOrder, OneIsThePrefixOfAnother) {
    std::vector<std::string> keys;
    for (std::size_t size = 0; size < 300; ++size) {
        keys.emplace_back(size, 'a');
    }
    expect_ordered(keys);
    std::reverse(keys.begin(), keys.end());
    expect_ordered(keys);
}

TEST(KeyOrder, SurrogatesComeBeforePrivateUse) {
    expect_ordered({"\xee\x80\x80", "\xf0\x90\x80\x80", "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf", "z", ""});
    expect_ordered({"k\xee\x80\x80", "k\xf0\x90\x80\x80", "k\xef\xbf\xbf"});
}

} // namespace
