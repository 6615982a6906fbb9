// double.hpp: decimals as the doubles of RFC 8785.
//
// Purpose: under numbers => double a number is rounded to the nearest double and printed with the fewest digits that
// give that double back, as ECMAScript does. All of it is integer arithmetic of arbitrary size: exact, and the same on
// every platform, compiler and rounding mode. Numbers of up to 15 digits in the range of doubles come out as they went
// in, so nearly all of them never reach the arithmetic. Limits: a halfway point between two doubles has at most 767
// digits; a decimal is read up to about 800, and any digit beyond only breaks ties.
#pragma once

#include "core/decimal.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// ShortDecimal is the shortest decimal of a double, with digits of its own; valid as long as it stays where it is.
class ShortDecimal {
public:
    Decimal view() const noexcept { return {groups_, count_, weight_, negative_}; }

    // MAX_DIGITS is the most decimal digits a double needs.
    static constexpr std::size_t MAX_DIGITS = 17;

    // set makes it (-1 if negative) * 0.d1...dk * 10^point; digits are values from 0 to 9, k at most MAX_DIGITS.
    void set(bool negative, const std::uint8_t* digits, std::size_t count, std::int32_t point) noexcept;

private:
    std::int16_t groups_[6];
    std::uint32_t count_ = 0;
    std::int32_t weight_ = 0;
    bool negative_ = false;
};

// nearest_double sets *out to the double nearest to value, ties to even, and returns true; false if value is beyond the
// range. What is too small becomes zero, never negative.
bool nearest_double(const Decimal& value, double* out) noexcept;

// shortest_decimal sets *out to the shortest decimal that gives the double (finite) back; of several the closest, of
// two as close the even one.
void shortest_decimal(double value, ShortDecimal* out) noexcept;

// is_surely_double tells quickly that a decimal is the shortest decimal of a double. A false says nothing.
bool is_surely_double(const Decimal& value) noexcept;

// as_double returns value if it is the shortest decimal of a double, else that of the double nearest to it, in *room.
// Sets *overflow, and returns value, if that double is infinite.
Decimal as_double(const Decimal& value, ShortDecimal* room, bool* overflow) noexcept;

// equals tells whether two decimals are the same number.
bool equals(const Decimal& a, const Decimal& b) noexcept;

} // namespace idem::core
