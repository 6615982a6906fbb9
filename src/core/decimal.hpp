// decimal.hpp: one spelling for each decimal number.
//
// Purpose: print an exact decimal the way RFC 8785 lays numbers out (the ECMAScript rule), but from its decimal digits,
// so that no digit is ever rounded away. Two decimals print alike if and only if they are equal; scale, trailing zeros
// and the sign of zero leave no trace. Data layout: a Decimal is a view on base-10000 digits, the form in which the
// server stores a numeric. Limits: up to 2^31 decimal digits; a number is printed in pieces of at most
// DecimalPrinter::PIECE bytes, because one number can be larger than any buffer on the stack. Nearly every number of
// real life has at most eight such digits and no exponent: print_packed writes those in one go, from two machine words.
#pragma once

#include "core/simd.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// Decimal is the value (-1 if negative) * sum of digits[i] * 10000^(weight - i). Zero groups at either end are allowed;
// no digit at all is zero.
struct Decimal {
    const std::int16_t* digits;
    std::uint32_t count;
    std::int32_t weight;
    bool negative;
};

// DecimalPrinter prints one Decimal piece by piece; the digits have to outlive it.
class DecimalPrinter {
public:
    // PIECE is the most bytes that one next() writes.
    static constexpr std::size_t PIECE = 128;

    explicit DecimalPrinter(const Decimal& value) noexcept;

    // next writes the next piece to out (room for PIECE bytes) and returns its size in bytes. is_done() tells whether
    // it was the last one.
    std::size_t next(char* out) noexcept;

    // is_done is true once the whole number is written.
    bool is_done() const noexcept { return is_done_; }

private:
    char* put_head(char* at) noexcept;
    char* put_digits(char* at) noexcept;
    char* put_tail(char* at) const noexcept;

    const std::int16_t* digits_; // groups not yet printed
    std::uint32_t groups_;       // their number
    std::uint32_t skip_ = 0;     // leading zeros of the first group
    std::uint32_t drop_ = 0;     // trailing zeros of the last group
    std::uint32_t point_;        // digits still to come before the point, NO_POINT if none is due
    std::int32_t zeros_ = -1;    // zeros between "0." and the digits, -1: the number does not start with "0."
    std::int32_t padding_ = 0;   // zeros after the last digit
    std::int32_t exponent_ = 0;  // decimal exponent, if has_exponent_
    bool has_exponent_ = false;
    bool negative_;
    bool is_started_ = false;
    bool is_done_ = false;
};

// PackedDecimal is a decimal of 1 to MAX_PACKED base-10000 digits, the first in the lowest 16 bits of low, the fifth in
// those of high; bits without a digit are zero. count, weight and negative as in Decimal.
struct PackedDecimal {
    std::uint64_t low;
    std::uint64_t high;
    std::uint32_t count;
    std::int32_t weight;
    bool negative;
};

inline constexpr std::uint32_t MAX_PACKED = 8;

// PACKED_ROOM is the space print_packed needs: it may overwrite bytes behind the number.
inline constexpr std::size_t PACKED_ROOM = 96;

namespace decimal_detail {

inline constexpr std::uint64_t ASCII_ZEROS = 0x3030303030303030;

// digit_index is the place of the digit that has the given bit of a Digits word.
[[gnu::always_inline]] inline std::uint32_t digit_index(int bit) noexcept {
    return static_cast<std::uint32_t>(bit) / 8;
}

// store_from writes 16 digits to out as text, starting at the digit skip (below 16); fewer than 16 are meaningful then.
[[gnu::always_inline]] inline void store_from(char* out, Digits digits, std::uint32_t skip) noexcept {
    const auto all = static_cast<unsigned __int128>(digits.high | ASCII_ZEROS) << 64 | (digits.low | ASCII_ZEROS);
    const unsigned __int128 rest = all >> (8 * skip);
    store_word(out, static_cast<std::uint64_t>(rest));
    store_word(out + sizeof(std::uint64_t), static_cast<std::uint64_t>(rest >> 64));
}

// significant_end is the number of digits up to the last one that is not zero, of which there has to be one.
[[gnu::always_inline]] inline std::uint32_t significant_end(Digits digits) noexcept {
    return digits.high != 0 ? 16 - digit_index(std::countl_zero(digits.high | 1))
                            : 8 - digit_index(std::countl_zero(digits.low | 1));
}

} // namespace decimal_detail

// print_packed_long is print_packed for any count.
[[gnu::noinline]] char* print_packed_long(char* out, std::uint64_t low, std::uint64_t high, std::int32_t weight,
                                          bool negative) noexcept;

// print_packed writes value to out (PACKED_ROOM bytes) and returns the end, or NULL, having written nothing that
// counts, if its layout is one for DecimalPrinter: an exponent, many zeros of padding, or a zero group in front.
[[gnu::always_inline]] inline char* print_packed(char* out, const PackedDecimal& value) noexcept {
    using namespace decimal_detail;
    if (value.count > 4 || static_cast<std::uint32_t>(value.weight + 1) > 4) {
        return print_packed_long(out, value.low, value.high, value.weight, value.negative);
    }
    const Digits digits = spread_groups(value.low);
    const std::uint32_t whole = 4 * static_cast<std::uint32_t>(value.weight + 1);
    const std::uint32_t skip = digit_index(std::countr_zero(digits.low | std::uint64_t{1} << 63));
    if (skip >= 4) {
        return nullptr;
    }
    *out = '-';
    out += value.negative ? 1 : 0;
    if (value.weight < 0) {
        std::memcpy(out, "0.", 2);
        store_from(out + 2, digits, 0);
        return out + 2 + significant_end(digits);
    }
    store_from(out, digits, skip);
    out += whole - skip;
    if (4 * value.count <= whole) {
        return out;
    }
    const std::uint32_t end = significant_end(digits);
    if (end <= whole) {
        return out;
    }
    *out++ = '.';
    store_from(out, digits, whole);
    return out + (end - whole);
}

} // namespace idem::core
