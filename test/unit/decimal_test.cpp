// decimal_test: each decimal number has one spelling, laid out as ECMAScript does, with no digit lost.
#include "core/decimal.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace {

using idem::core::Decimal;
using idem::core::DecimalPrinter;

std::string print(const Decimal& value) {
    std::string out;
    DecimalPrinter printer(value);
    while (!printer.is_done()) {
        char piece[DecimalPrinter::PIECE + 1];
        piece[DecimalPrinter::PIECE] = '#';
        const std::size_t size = printer.next(piece);
        EXPECT_GT(size, 0U);
        EXPECT_LE(size, DecimalPrinter::PIECE);
        EXPECT_EQ(piece[DecimalPrinter::PIECE], '#');
        out.append(piece, size);
    }
    char unused[DecimalPrinter::PIECE];
    EXPECT_EQ(printer.next(unused), 0U);
    return out;
}

std::string print(const std::string& json) {
    return print(reference::store(reference::parse_number(json)).view());
}

TEST(Decimal, LayoutChangesAtItsBoundaries) {
    const std::pair<const char*, const char*> cases[] = {
        {"0", "0"},
        {"-0.00", "0"},
        {"1", "1"},
        {"-1.50", "-1.5"},
        {"10", "10"},
        {"9999", "9999"},
        {"10000", "10000"},
        {"100000000", "100000000"},
        {"1234.5678", "1234.5678"},
        {"0.1", "0.1"},
        {"0.0001", "0.0001"},
        {"0.00001", "0.00001"},
        {"0.000001", "0.000001"},
        {"0.00000123", "0.00000123"},
        {"0.0000001", "1e-7"},
        {"0.000000123", "1.23e-7"},
        {"1e20", "100000000000000000000"},
        {"-1e20", "-100000000000000000000"},
        {"1e21", "1e+21"},
        {"999999999999999999999", "999999999999999999999"},
        {"1000000000000000000001", "1.000000000000000000001e+21"},
        {"123456789012345678901.5", "123456789012345678901.5"},
        {"1234567890123456789012.5", "1.2345678901234567890125e+21"},
        {"1e131071", "1e+131071"},
        {"-1e-16383", "-1e-16383"},
        {"9007199254740993", "9007199254740993"},
        {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
    };
    for (const auto& [json, expected] : cases) {
        EXPECT_EQ(print(json), expected) << json;
    }
}

TEST(Decimal, MatchesTheVectors) {
    const std::pair<const char*, std::pair<std::size_t, std::size_t>> files[] = {
        {"numbers.tsv", {1, 2}}, {"numbers_exact.tsv", {0, 1}}, {"numbers_spellings.tsv", {0, 1}}};
    for (const auto& [file, column] : files) {
        const auto rows = reference::lines(file);
        for (std::size_t i = 1; i < rows.size(); ++i) {
            const auto fields = reference::columns(rows[i]);
            EXPECT_EQ(print(fields.at(column.first)), fields.at(column.second)) << file << ":" << i + 1;
            EXPECT_EQ(print(fields.at(column.second)), fields.at(column.second)) << file << ":" << i + 1;
        }
    }
}

// Every length of digits at every place of the point, so every layout meets every alignment to the groups of four.
TEST(Decimal, MatchesTheReferenceAtEveryLengthAndPoint) {
    const std::string digits =
        "1203045060708090010203040506070809012345678901234567890123456789012345678901234567890001";
    std::set<std::string> seen;
    std::size_t count = 0;
    for (std::size_t k = 1; k <= digits.size(); ++k) {
        if (digits[k - 1] == '0') {
            continue;
        }
        for (int n = -40; n <= 100; ++n) {
            for (const bool negative : {false, true}) {
                const reference::Digits number{negative, digits.substr(0, k), n};
                const std::string text = print(reference::store(number).view());
                ASSERT_EQ(text, reference::print_number(number));
                seen.insert(text);
                ++count;
            }
        }
    }
    EXPECT_EQ(seen.size(), count) << "two numbers share a spelling";
}

TEST(Decimal, MatchesTheReferenceOnRandomNumbers) {
    std::mt19937 random(20240501);
    for (int i = 0; i < 100000; ++i) {
        reference::Digits number;
        number.negative = random() % 2 == 0;
        for (std::size_t k = 1 + random() % (i % 10 == 0 ? 400 : 20); k > 0; --k) {
            number.text += static_cast<char>('0' + (random() % 3 == 0 ? 0 : random() % 10));
        }
        number.text.front() = static_cast<char>('1' + random() % 9);
        number.text.back() = static_cast<char>('1' + random() % 9);
        number.point = static_cast<int>(random() % 60) - 30;
        ASSERT_EQ(print(reference::store(number).view()), reference::print_number(number));
    }
}

TEST(Decimal, ZeroGroupsAtEitherEndLeaveNoTrace) {
    const std::int16_t digits[] = {0, 0, 12, 3400, 0};
    EXPECT_EQ(print(Decimal{digits, 5, 3, false}), "123400");
    EXPECT_EQ(print(Decimal{digits + 2, 2, 1, false}), "123400");
    EXPECT_EQ(print(Decimal{digits, 5, 2, true}), "-12.34");
    EXPECT_EQ(print(Decimal{digits, 2, 7, true}), "0");
    EXPECT_EQ(print(Decimal{nullptr, 0, 0, true}), "0");
}

TEST(Decimal, LargestNumbersComeInPieces) {
    std::string digits;
    for (std::size_t i = 0; i < 131072 + 16383; ++i) {
        digits += static_cast<char>('1' + i % 9);
    }
    for (const int n : {131072, 22, 21, 20, 1, 0, -5, -6, -16383}) {
        const reference::Digits number{true, digits, n};
        EXPECT_EQ(print(reference::store(number).view()), reference::print_number(number)) << n;
    }
}

} // namespace
