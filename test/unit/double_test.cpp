// double_test: decimals become the nearest double, and doubles their shortest decimal, as ECMAScript says: against the
// vectors, and against the standard library on random bits. Covers A17 B11.
#include "core/double.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

namespace {

using idem::core::Decimal;
using idem::core::DecimalPrinter;
using idem::core::ShortDecimal;

std::string print(const Decimal& value) {
    std::string out;
    DecimalPrinter printer(value);
    while (!printer.is_done()) {
        char piece[DecimalPrinter::PIECE];
        out.append(piece, printer.next(piece));
    }
    return out;
}

// as_double prints what a number is under numbers => double, "overflow" beyond the range.
std::string as_double(const std::string& json) {
    const reference::Stored stored = reference::store(reference::parse_number(json));
    ShortDecimal room;
    bool overflow;
    const Decimal decimal = idem::core::as_double(stored.view(), &room, &overflow);
    return overflow ? "overflow" : print(decimal);
}

double nearest(const std::string& json) {
    const reference::Stored stored = reference::store(reference::parse_number(json));
    double out = -1;
    return idem::core::nearest_double(stored.view(), &out) ? out : std::numeric_limits<double>::infinity();
}

std::string shortest(double value) {
    ShortDecimal out;
    idem::core::shortest_decimal(value, &out);
    return print(out.view());
}

// ecmascript lays out what the standard library finds to be the shortest digits.
std::string ecmascript(double value) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
    return reference::print_number(reference::parse_number(std::string(text, end)));
}

TEST(Double, EcmascriptSamplesComeBack) {
    for (const std::string& line : reference::lines("es6_first10000.csv")) {
        const std::size_t comma = line.find(',');
        const double value = std::bit_cast<double>(std::stoull(line.substr(0, comma), nullptr, 16));
        ASSERT_EQ(shortest(value), line.substr(comma + 1));
        ASSERT_EQ(as_double(line.substr(comma + 1)), line.substr(comma + 1));
    }
}

TEST(Double, VectorsOfSpellings) {
    for (const std::string& line : reference::lines("numbers.tsv")) {
        const auto column = reference::columns(line);
        if (column[0] == "ieee754_hex") {
            continue;
        }
        ASSERT_EQ(as_double(column[1]), column[2]) << line;
        ASSERT_EQ(shortest(std::bit_cast<double>(std::stoull(column[0], nullptr, 16))), column[2]) << line;
    }
    for (const std::string& line : reference::lines("numbers_exact.tsv")) {
        const auto column = reference::columns(line);
        if (column[0] != "json_input") {
            ASSERT_EQ(as_double(column[0]), column[2] == "ERROR:overflow" ? "overflow" : column[2]) << line;
        }
    }
}

TEST(Double, Boundaries) {
    const std::pair<const char*, const char*> cases[] = {
        {"0", "0"},
        {"-0.0", "0"},
        {"9007199254740993", "9007199254740992"},
        {"9007199254740993.0000000000000000000000000000001", "9007199254740994"},
        {"9007199254740995", "9007199254740996"},
        {"18446744073709551615", "18446744073709552000"},
        {"0.1000000000000000055511151231257827", "0.1"},
        {"5e-324", "5e-324"},
        {"2.4703282292062327e-324", "0"},
        {"2.4703282292062328e-324", "5e-324"},
        {"-2e-324", "0"},
        {"1e-400", "0"},
        {"1e-16383", "0"},
        {"2.2250738585072011e-308", "2.225073858507201e-308"},
        {"2.2250738585072014e-308", "2.2250738585072014e-308"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"1.7976931348623158e308", "1.7976931348623157e+308"},
        {"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
         "9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447"
         "5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904"
         "174497792",
         "overflow"},
        {"1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070"
         "9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447"
         "5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904"
         "174497791",
         "1.7976931348623157e+308"},
        {"1.7976931348623159e308", "overflow"},
        {"1e309", "overflow"},
        {"-1e131071", "overflow"},
        {"1e23", "1e+23"},
        {"99999999999999991611392", "1e+23"},
        {"5.684341886080802e-14", "5.684341886080802e-14"},
        {"5.6843418860808015e-14", "5.684341886080802e-14"},
        {"123456789012345678901234567890.5", "1.2345678901234568e+29"},
    };
    for (const auto& [json, expected] : cases) {
        EXPECT_EQ(as_double(json), expected) << json;
    }
}

// The largest double plus half a step, spelled out, is a tie that goes up and out of the range; anything less is not.
TEST(Double, LongTies) {
    for (const double value : {5e-324, 1.5e-310, 2.2250738585072014e-308, 1.0, 0.1, 1e-7, 3.0e-200, 1e22, 7.7e300}) {
        const double above = std::nextafter(value, std::numeric_limits<double>::infinity());
        // long double holds the halfway point exactly where the doubles are normal.
        char text[2048];
        const long double half = (static_cast<long double>(value) + static_cast<long double>(above)) / 2;
        std::snprintf(text, sizeof text, "%.1200Lf", half);
        const bool is_even = (std::bit_cast<std::uint64_t>(value) & 1) == 0;
        EXPECT_EQ(nearest(text), is_even ? value : above) << value;
        std::string more = text;
        more.insert(more.size(), "0000000000000000001");
        EXPECT_EQ(nearest(more), above) << value;
        std::snprintf(text, sizeof text, "%.1200Lf", half);
        std::string less = text;
        const std::size_t at = less.find_last_not_of("0.");
        less[at] = static_cast<char>(less[at] - 1);
        less.insert(at > less.find('.') ? at + 1 : less.size(), "99999999999999999");
        EXPECT_EQ(nearest(less), value) << value;
    }
}

TEST(Double, RandomDoublesAsTheStandardLibrarySays) {
    std::mt19937_64 random(11);
    for (int i = 0; i < 200000; ++i) {
        std::uint64_t bits = random();
        switch (i % 8) {
        case 0: bits &= ~((std::uint64_t{1} << 52) - 1); break;                                        // powers of two
        case 1: bits &= (std::uint64_t{1} << 63) | ((std::uint64_t{1} << (random() % 53)) - 1); break; // subnormal
        case 2: bits = std::bit_cast<std::uint64_t>(static_cast<double>(random() >> (random() % 60))); break;
        case 3: bits = (bits & ~((std::uint64_t{1} << 52) - 1)) | (random() % 3); break;
        default: break;
        }
        const auto value = std::bit_cast<double>(bits);
        if (!std::isfinite(value)) {
            continue;
        }
        const std::string text = shortest(value);
        ASSERT_EQ(text, ecmascript(value)) << std::hex << bits;
        ASSERT_EQ(nearest(text), value) << text;
    }
}

TEST(Double, RandomDecimalsAsTheStandardLibrarySays) {
    std::mt19937_64 random(12);
    for (int i = 0; i < 100000; ++i) {
        std::string json = random() % 2 == 0 ? "-" : "";
        const std::size_t size = 1 + random() % (i % 50 == 0 ? 900 : 40);
        for (std::size_t j = 0; j < size; ++j) {
            json += static_cast<char>('0' + (j == 0 ? 1 + random() % 9 : random() % 10));
            if (j == 0 && size > 1) {
                json += '.';
            }
        }
        json += "e" + std::to_string(static_cast<int>(random() % 660) - 335);
        double expected = 0;
        const auto result = std::from_chars(json.data(), json.data() + json.size(), expected);
        if (result.ec != std::errc()) { // too large or too small: the standard library does not say which
            expected = std::strtod(json.c_str(), nullptr);
        }
        if (std::isinf(expected)) {
            ASSERT_EQ(as_double(json), "overflow") << json;
        } else {
            ASSERT_EQ(nearest(json), expected) << json;
            ASSERT_EQ(as_double(json), ecmascript(expected)) << json;
        }
    }
}

TEST(Double, ShortDecimalsAreTheirOwnDouble) {
    std::mt19937_64 random(13);
    for (int i = 0; i < 100000; ++i) {
        const std::string json =
            std::to_string(random() % 1000000000000000) + "e" + std::to_string(static_cast<int>(random() % 580) - 290);
        const reference::Stored stored = reference::store(reference::parse_number(json));
        ASSERT_TRUE(idem::core::is_surely_double(stored.view())) << json;
        ASSERT_EQ(shortest(nearest(json)), print(stored.view())) << json;
    }
}

TEST(Double, EqualsIgnoresZerosAtTheEnds) {
    const std::int16_t plain[] = {12, 3400};
    const std::int16_t padded[] = {0, 0, 12, 3400, 0};
    const Decimal a{plain, 2, 0, false};
    EXPECT_TRUE(idem::core::equals(a, {padded, 5, 2, false}));
    EXPECT_FALSE(idem::core::equals(a, {padded, 5, 1, false}));
    EXPECT_FALSE(idem::core::equals(a, {plain, 2, 0, true}));
    EXPECT_FALSE(idem::core::equals(a, {plain, 1, 0, false}));
    EXPECT_TRUE(idem::core::equals({padded, 2, 5, true}, {nullptr, 0, 0, false}));
}

} // namespace
