// profile.cpp: see profile.hpp.
#include "core/profile.hpp"

namespace idem::core {
namespace {

constexpr std::int32_t GROUP = 4;
constexpr std::int16_t BASE = 10000;
constexpr std::int64_t MAX_BEFORE_POINT = 131072;
constexpr std::int64_t MAX_AFTER_POINT = 16383;
constexpr std::int64_t MAX_EXPONENT = 1000000000; // larger ones are cut here; texts are too short to make up for them

constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

// floor_div rounds towards minus infinity.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// Cursor reads text from left to right.
struct Cursor {
    const char* at;
    const char* end;

    bool take(char c) noexcept {
        if (at == end || *at != c) {
            return false;
        }
        ++at;
        return true;
    }

    Bytes digits() noexcept {
        const char* const start = at;
        while (at < end && is_digit(*at)) {
            ++at;
        }
        return {start, static_cast<std::size_t>(at - start)};
    }

    // take_minus takes a sign, if there is one, and tells whether it is a minus.
    bool take_minus() noexcept {
        if (take('-')) {
            return true;
        }
        take('+');
        return false;
    }
};

// Spelling is a decimal as it is written.
struct Spelling {
    bool negative;
    Bytes whole;
    Bytes fraction;
    std::int64_t exponent;
};

bool read_spelling(Bytes text, Spelling* out) noexcept {
    Cursor cursor{text.data(), text.data() + text.size()};
    out->negative = cursor.take_minus();
    out->whole = cursor.digits();
    out->fraction = {};
    out->exponent = 0;
    if (out->whole.empty()) {
        return false;
    }
    if (cursor.take('.')) {
        out->fraction = cursor.digits();
        if (out->fraction.empty()) {
            return false;
        }
    }
    if (cursor.take('e') || cursor.take('E')) {
        const bool is_below = cursor.take_minus();
        const Bytes digits = cursor.digits();
        if (digits.empty()) {
            return false;
        }
        for (const char c : digits) {
            out->exponent = out->exponent * 10 + (c - '0');
            if (out->exponent > MAX_EXPONENT) {
                out->exponent = MAX_EXPONENT;
            }
        }
        if (is_below) {
            out->exponent = -out->exponent;
        }
    }
    return cursor.at == cursor.end;
}

} // namespace

bool parse_decimal(Bytes text, std::int16_t* groups, Decimal* out) noexcept {
    Spelling spelling;
    if (!read_spelling(text, &spelling)) {
        return false;
    }
    const std::size_t whole = spelling.whole.size();
    const std::size_t all = whole + spelling.fraction.size();
    const auto digit = [&spelling, whole](std::size_t i) {
        return (i < whole ? spelling.whole[i] : spelling.fraction[i - whole]) - '0';
    };
    std::size_t first = 0;
    std::size_t end = all;
    while (first < end && digit(first) == 0) {
        ++first;
    }
    while (end > first && digit(end - 1) == 0) {
        --end;
    }
    *out = {groups, 0, 0, spelling.negative};
    if (first == end) {
        return true;
    }
    // Digit i stands for 10^(top - i).
    const std::int64_t top = static_cast<std::int64_t>(whole) - 1 + spelling.exponent;
    const std::int64_t highest = top - static_cast<std::int64_t>(first);
    const std::int64_t lowest = top - static_cast<std::int64_t>(end - 1);
    if (highest >= MAX_BEFORE_POINT || lowest < -MAX_AFTER_POINT) {
        return false;
    }
    const std::int64_t weight = floor_div(highest, GROUP);
    std::int64_t place = highest - weight * GROUP; // of the next digit in its group, 3 to 0
    std::int32_t group = 0;
    std::uint32_t count = 0;
    for (std::size_t i = first; i < end || place != GROUP - 1; ++i) {
        group = group * 10 + (i < end ? digit(i) : 0);
        if (place-- == 0) {
            groups[count++] = static_cast<std::int16_t>(group);
            group = 0;
            place = GROUP - 1;
        }
    }
    out->count = count;
    out->weight = static_cast<std::int32_t>(weight);
    return true;
}

Decimal round_decimal(const Decimal& value, std::int32_t scale, std::int16_t* groups) noexcept {
    // The first digit that goes stands for 10^gone; it is the place-th from below in its group.
    const std::int64_t gone = -static_cast<std::int64_t>(scale) - 1;
    const std::int64_t group_weight = floor_div(gone, GROUP);
    const std::int64_t index = value.weight - group_weight;
    if (index >= static_cast<std::int64_t>(value.count)) {
        return value;
    }
    if (index < 0) {
        return {groups, 0, 0, false};
    }
    const auto at = static_cast<std::uint32_t>(index);
    std::int16_t place_value = 1;
    for (std::int64_t place = gone - group_weight * GROUP; place > 0; --place) {
        place_value = static_cast<std::int16_t>(place_value * 10);
    }
    const std::int32_t unit = place_value * 10;
    const std::int32_t last = value.digits[at];
    const bool goes_up = last / place_value % 10 >= 5;

    // One group is left free in front for a carry.
    std::memcpy(groups + 1, value.digits, at * sizeof *groups);
    std::int32_t sum = last - last % unit + (goes_up ? unit : 0);
    std::int32_t carry = sum / BASE;
    groups[at + 1] = static_cast<std::int16_t>(sum % BASE);
    for (std::uint32_t i = at; i > 0 && carry != 0; --i) {
        sum = groups[i] + carry;
        carry = sum / BASE;
        groups[i] = static_cast<std::int16_t>(sum % BASE);
    }
    groups[0] = static_cast<std::int16_t>(carry);
    return {groups, at + 2, value.weight + 1, value.negative};
}

} // namespace idem::core
