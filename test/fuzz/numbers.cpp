// numbers: layout, spelling, rounding and doubles of any decimal, against the reference and the standard library.
#include "core/double.hpp"
#include "core/profile.hpp"

#include "fuzz.hpp"

#include <bit>
#include <charconv>
#include <cmath>

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

// spelled writes a decimal out, without an exponent, so that nothing of the layout is needed to read it.
std::string spelled(const Decimal& value) {
    std::string digits;
    for (std::uint32_t i = 0; i < value.count; ++i) {
        char group[8];
        std::snprintf(group, sizeof group, "%04d", value.digits[i]);
        digits += group;
    }
    std::int64_t point = (static_cast<std::int64_t>(value.weight) + 1) * 4;
    if (point > static_cast<std::int64_t>(digits.size())) {
        digits.append(static_cast<std::size_t>(point) - digits.size(), '0');
    } else if (point < 1) {
        digits.insert(0, static_cast<std::size_t>(1 - point), '0');
        point = 1;
    }
    std::string out = (value.negative ? "-" : "") + digits.substr(0, static_cast<std::size_t>(point));
    const std::string fraction = digits.substr(static_cast<std::size_t>(point));
    return fraction.empty() ? out : out + "." + fraction;
}

// rounded does on the text what round_decimal does on groups: halves away from zero.
std::string rounded(const std::string& json, int scale) {
    reference::Digits number = reference::parse_number(json);
    const int keep = number.point + scale; // digits that stay
    if (number.text.empty() || keep >= static_cast<int>(number.text.size())) {
        return reference::print_number(number);
    }
    if (keep < 0) {
        return "0";
    }
    const bool goes_up = number.text[static_cast<std::size_t>(keep)] >= '5';
    number.text = "0" + number.text.substr(0, static_cast<std::size_t>(keep));
    ++number.point;
    if (goes_up) {
        std::size_t i = number.text.size() - 1;
        while (number.text[i] == '9') {
            number.text[i--] = '0';
        }
        ++number.text[i];
    }
    std::string text = (number.negative ? "-0." : "0.") + number.text + "e" + std::to_string(number.point);
    return reference::print_number(reference::parse_number(text));
}

void check_double(const Decimal& value, const std::string& json) {
    double expected = 0;
    const auto result = std::from_chars(json.data(), json.data() + json.size(), expected);
    if (result.ec != std::errc()) {
        expected = std::strtod(json.c_str(), nullptr);
    }
    double nearest = -1;
    const bool is_finite = idem::core::nearest_double(value, &nearest);
    fuzz::expect(is_finite == std::isfinite(expected), "range of " + json);
    if (!is_finite) {
        return;
    }
    fuzz::expect(nearest == expected, "nearest double of " + json);
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, expected, std::chars_format::scientific).ptr;
    const std::string shortest = reference::print_number(reference::parse_number(std::string(text, end)));
    idem::core::ShortDecimal room;
    idem::core::shortest_decimal(nearest, &room);
    fuzz::expect_equal(print(room.view()), shortest, "shortest of " + json);
    bool overflow = false;
    const Decimal as_double = idem::core::as_double(value, &room, &overflow);
    fuzz::expect_equal(print(as_double), shortest, "as double " + json);
    fuzz::expect(idem::core::equals(value, as_double) == (print(value) == shortest), "equality of " + json);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint32_t kind = input.below(4);
    std::vector<std::int16_t> digits;
    Decimal value{};
    if (kind == 0) {
        // The decimal of a double's own bits.
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) {
            bits = bits << 8 | input.byte();
        }
        const auto number = std::bit_cast<double>(bits);
        if (!std::isfinite(number)) {
            return 0;
        }
        idem::core::ShortDecimal room;
        idem::core::shortest_decimal(number, &room);
        check_double(room.view(), spelled(room.view()));
        return 0;
    }
    value.negative = input.below(2) == 0;
    value.weight = kind == 1 ? static_cast<int>(input.below(180)) - 90 : static_cast<int>(input.below(12)) - 6;
    const int scale = static_cast<int>(input.below(256)) - 128;
    while (!input.is_empty() && digits.size() < 400) {
        digits.push_back(static_cast<std::int16_t>(input.below(10000)));
    }
    value.digits = digits.data();
    value.count = static_cast<std::uint32_t>(digits.size());

    const std::string json = spelled(value);
    const std::string expected = reference::print_number(reference::parse_number(json));
    fuzz::expect_equal(print(value), expected, "layout of " + json);

    for (const std::string& text : {json, expected}) {
        std::vector<std::int16_t> groups(idem::core::decimal_groups(text.size()));
        Decimal parsed{};
        fuzz::expect(idem::core::parse_decimal(text, groups.data(), &parsed), "decimal " + text);
        fuzz::expect_equal(print(parsed), expected, "decimal " + text);
    }
    std::vector<std::int16_t> room(digits.size() + 1);
    fuzz::expect_equal(print(idem::core::round_decimal(value, scale, room.data())), rounded(json, scale),
                       json + " rounded to " + std::to_string(scale));
    check_double(value, json);
    return 0;
}
