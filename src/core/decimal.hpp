// decimal.hpp: one spelling for each decimal number.
//
// Purpose: print an exact decimal the way RFC 8785 lays numbers out (the ECMAScript rule), but from its decimal digits,
// so that no digit is ever rounded away. Two decimals print alike if and only if they are equal; scale, trailing zeros
// and the sign of zero leave no trace. Data layout: a Decimal is a view on base-10000 digits, the form in which the
// server stores a numeric. Limits: up to 2^31 decimal digits; a number is printed in pieces of at most
// DecimalPrinter::PIECE bytes, because one number can be larger than any buffer on the stack.
#pragma once

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

} // namespace idem::core
