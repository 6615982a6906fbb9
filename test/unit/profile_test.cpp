// profile_test: which strings are decimals, and how numbers are rounded. Covers A17.
#include "core/profile.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace {

using idem::core::Decimal;
using idem::core::DecimalPrinter;

std::string print(const Decimal& value) {
    std::string out;
    DecimalPrinter printer(value);
    while (!printer.is_done()) {
        char piece[DecimalPrinter::PIECE];
        out.append(piece, printer.next(piece));
    }
    return out;
}

// parsed prints the decimal that text spells, "no" if it spells none.
std::string parsed(const std::string& text) {
    std::vector<std::int16_t> groups(idem::core::decimal_groups(text.size()));
    Decimal value;
    return idem::core::parse_decimal(text, groups.data(), &value) ? print(value) : "no";
}

std::string rounded(const std::string& json, int scale) {
    const reference::Stored stored = reference::store(reference::parse_number(json));
    std::vector<std::int16_t> groups(stored.digits.size() + 1);
    return print(idem::core::round_decimal(stored.view(), scale, groups.data()));
}

TEST(Profile, StringsThatAreDecimals) {
    const std::pair<const char*, const char*> cases[] = {
        {"10.00", "10"},
        {"10", "10"},
        {"-0.10", "-0.1"},
        {"+5", "5"},
        {"007", "7"},
        {"00.50", "0.5"},
        {"0", "0"},
        {"-0.000", "0"},
        {"1e3", "1000"},
        {"1E+3", "1000"},
        {"12.5e-1", "1.25"},
        {"1e131071", "1e+131071"},
        {"1e131072", "no"},
        {"1e-16383", "1e-16383"},
        {"1e-16384", "no"},
        {"10e-16384", "1e-16383"},
        {"0e99999999999999999999", "0"},
        {"1e99999999999999999999", "no"},
        {"1e-99999999999999999999", "no"},
        {"", "no"},
        {" 1", "no"},
        {"1 ", "no"},
        {"1.", "no"},
        {".5", "no"},
        {"-", "no"},
        {"--1", "no"},
        {"1e", "no"},
        {"1,000", "no"},
        {"1_000", "no"},
        {"0x10", "no"},
        {"NaN", "no"},
        {"Infinity", "no"},
        {"12345678901234567890.123456789", "12345678901234567890.123456789"},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(parsed(text), expected) << text;
    }
}

TEST(Profile, RandomDecimalsReadAsTheReferenceDoes) {
    std::mt19937 random(31);
    for (int i = 0; i < 50000; ++i) {
        std::string text = random() % 2 == 0 ? "-" : "";
        for (std::size_t size = 1 + random() % 12; size > 0; --size) {
            text += static_cast<char>('0' + (random() % 3 == 0 ? 0 : random() % 10));
        }
        if (random() % 2 == 0) {
            text += '.';
            for (std::size_t size = 1 + random() % 12; size > 0; --size) {
                text += static_cast<char>('0' + (random() % 3 == 0 ? 0 : random() % 10));
            }
        }
        if (random() % 3 == 0) {
            text += "e" + std::to_string(static_cast<int>(random() % 60) - 30);
        }
        ASSERT_EQ(parsed(text), reference::print_number(reference::parse_number(text))) << text;
    }
}

TEST(Profile, RoundsHalvesAwayFromZero) {
    const std::tuple<const char*, int, const char*> cases[] = {
        {"1.005", 2, "1.01"},
        {"-1.005", 2, "-1.01"},
        {"1.0049999", 2, "1"},
        {"0.5", 0, "1"},
        {"-0.5", 0, "-1"},
        {"0.4999", 0, "0"},
        {"-0.4999", 0, "0"},
        {"2.5", 0, "3"},
        {"9999.5", 0, "10000"},
        {"99999999.95", 1, "1e8"},
        {"1234.5678", -2, "1200"},
        {"1250", -2, "1300"},
        {"50", -2, "100"},
        {"49", -2, "0"},
        {"5", -1, "10"},
        {"5", -2, "0"},
        {"123", 5, "123"},
        {"0", 2, "0"},
        {"1e-10", 5, "0"},
        {"1e20", -3, "1e20"},
        {"1e20", -21, "0"},
        {"6e20", -21, "1e21"},
        {"0.00005", 4, "0.0001"},
        {"0.00004", 4, "0"},
        {"12.3456", 4, "12.3456"},
        {"12.3456", 3, "12.346"},
        {"12.3456", 1, "12.3"},
        {"1e131071", -131072, "0"},
        {"5e131071", -131072, "1e131072"},
        {"1e-16383", 16382, "0"},
    };
    for (const auto& [json, scale, expected] : cases) {
        EXPECT_EQ(rounded(json, scale), reference::print_number(reference::parse_number(expected)))
            << json << " " << scale;
    }
}

// Against integers: v / 10^6 rounded to s digits is the integer v / 10^(6 - s), rounded.
TEST(Profile, RandomRoundingAgainstIntegers) {
    std::mt19937_64 random(32);
    for (int i = 0; i < 100000; ++i) {
        const auto value = static_cast<std::int64_t>(random() % 100000000000000 >> (random() % 40));
        const int scale = static_cast<int>(random() % 16) - 8;
        std::int64_t unit = 1;
        for (int j = 6 - scale; j > 0; --j) {
            unit *= 10;
        }
        const std::int64_t expected = scale >= 6 ? value : (value + unit / 2) / unit * unit;
        ASSERT_EQ(rounded("-" + std::to_string(value) + "e-6", scale),
                  reference::print_number(reference::parse_number("-" + std::to_string(expected) + "e-6")))
            << value << " " << scale;
    }
}

TEST(Profile, TheEmptyProfileIsEmpty) {
    idem::core::Profile profile;
    EXPECT_TRUE(profile.is_empty());
    profile.numbers = idem::core::Numbers::DOUBLE;
    EXPECT_FALSE(profile.is_empty());
}

} // namespace
