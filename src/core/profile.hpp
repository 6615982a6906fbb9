// profile.hpp: what may be different in two payloads that mean the same.
//
// Purpose: Profile holds the options under which a payload is made canonical, in the form that a walk reads; the steps
// on single values that need no server are here too. Each option changes the value and nothing else, in a fixed order:
// ignore and intent paths, strip nulls, for each string trim, then NFC, then decimal; for each number round, then
// double. So anybody can reproduce the hash by doing the same to the value first. The empty profile changes nothing.
// Lifetime: a Profile is a view; its paths are the memory of whoever compiled them.
#pragma once

#include "core/decimal.hpp"
#include "core/paths.hpp"
#include "core/types.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// Numbers is whether numbers stay exact or become the nearest double.
enum class Numbers : std::uint8_t { EXACT, DOUBLE };

// Profile is a set of options.
struct Profile {
    bool trim_strings = false;
    bool nfc_strings = false;
    bool strip_nulls = false;
    Numbers numbers = Numbers::EXACT;
    PathSet paths;

    constexpr bool is_empty() const noexcept {
        return !trim_strings && !nfc_strings && !strip_nulls && numbers == Numbers::EXACT && paths.is_empty();
    }
};

// Scales that a round path may have: those a stored number has digits for.
inline constexpr std::int32_t MIN_SCALE = -131072;
inline constexpr std::int32_t MAX_SCALE = 16383;

// decimal_groups is the most base-10000 groups that a decimal of size bytes has.
constexpr std::size_t decimal_groups(std::size_t size) noexcept {
    return size / 4 + 2;
}

// parse_decimal reads a decimal, all of text: an optional sign, digits, optionally a point and digits, optionally an
// exponent; leading zeros are fine. groups has room for decimal_groups of its size. False, if text is not one, or has a
// digit that the server's numeric has no place for (131072 before the point, 16383 after it).
bool parse_decimal(Bytes text, std::int16_t* groups, Decimal* out) noexcept;

// round_decimal rounds value to scale digits after the point (before it, if negative), halves away from zero as the
// server's round() does. groups has room for value.count + 1; the result lies there or is value itself.
Decimal round_decimal(const Decimal& value, std::int32_t scale, std::int16_t* groups) noexcept;

} // namespace idem::core
