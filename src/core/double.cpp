// double.cpp: see double.hpp.
//
// Reading: value = D * 5^e * 2^e with an integer D, as one quotient or product of big integers, of which the top 64
// bits and whether anything is left below are all that rounding needs. Printing: the free-format algorithm of Steele
// and White, digit by digit, until what is left is within half the distance to a neighbouring double.
#include "core/double.hpp"

#include <bit>
#include <cstring>

namespace idem::core {
namespace {

constexpr std::int32_t GROUP = 4;         // decimal digits per base-10000 digit
constexpr std::uint32_t MAX_GROUPS = 200; // read exactly
constexpr std::int32_t MAX_POINT = 310;   // 0.d * 10^n with a larger n is infinite
constexpr std::int32_t MIN_POINT = -324;  // with a smaller n it is zero
constexpr int FRACTION_BITS = 52;
constexpr int EXPONENT_BIAS = 1075;        // of the exponent of an integer mantissa
constexpr std::int32_t MAX_EXPONENT = 971; // of such a mantissa
constexpr std::int32_t MIN_EXPONENT = -1074;
constexpr std::uint64_t HIDDEN_BIT = std::uint64_t{1} << FRACTION_BITS;

// --- big integers ---------------------------------------------------------------------------------------------------

// Big is an integer of up to WORDS words, the lowest first, without zeros at the top.
struct Big {
    static constexpr std::uint32_t WORDS = 136;

    std::uint32_t count = 0;
    std::uint32_t words[WORDS];
};

void set(Big& big, std::uint64_t value) noexcept {
    big.count = 0;
    for (; value != 0; value >>= 32) {
        big.words[big.count++] = static_cast<std::uint32_t>(value);
    }
}

// multiply_add makes big = big * factor + addend.
void multiply_add(Big& big, std::uint32_t factor, std::uint32_t addend) noexcept {
    std::uint64_t carry = addend;
    for (std::uint32_t i = 0; i < big.count; ++i) {
        carry += static_cast<std::uint64_t>(big.words[i]) * factor;
        big.words[i] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
    }
    if (carry != 0) {
        big.words[big.count++] = static_cast<std::uint32_t>(carry);
    }
}

void multiply_power_of_5(Big& big, std::int32_t exponent) noexcept {
    constexpr std::uint32_t FIVE_TO_13 = 1220703125;
    for (; exponent >= 13; exponent -= 13) {
        multiply_add(big, FIVE_TO_13, 0);
    }
    std::uint32_t rest = 1;
    for (; exponent > 0; --exponent) {
        rest *= 5;
    }
    multiply_add(big, rest, 0);
}

void shift_left(Big& big, std::uint32_t bits) noexcept {
    if (big.count == 0 || bits == 0) {
        return;
    }
    const std::uint32_t words = bits / 32;
    const std::uint32_t rest = bits % 32;
    std::memmove(big.words + words, big.words, big.count * sizeof big.words[0]);
    std::memset(big.words, 0, words * sizeof big.words[0]);
    big.count += words;
    if (rest == 0) {
        return;
    }
    std::uint32_t carry = 0;
    for (std::uint32_t i = words; i < big.count; ++i) {
        const std::uint32_t word = big.words[i];
        big.words[i] = word << rest | carry;
        carry = word >> (32 - rest);
    }
    if (carry != 0) {
        big.words[big.count++] = carry;
    }
}

std::int32_t bit_size(const Big& big) noexcept {
    return big.count == 0 ? 0 : static_cast<std::int32_t>(big.count * 32) - std::countl_zero(big.words[big.count - 1]);
}

void drop_top_zeros(Big& big) noexcept {
    while (big.count > 0 && big.words[big.count - 1] == 0) {
        --big.count;
    }
}

int compare(const Big& a, const Big& b) noexcept {
    if (a.count != b.count) {
        return a.count < b.count ? -1 : 1;
    }
    for (std::uint32_t i = a.count; i-- > 0;) {
        if (a.words[i] != b.words[i]) {
            return a.words[i] < b.words[i] ? -1 : 1;
        }
    }
    return 0;
}

std::uint32_t word_at(const Big& big, std::uint32_t i) noexcept {
    return i < big.count ? big.words[i] : 0;
}

// compare_sum compares a + b with c.
int compare_sum(const Big& a, const Big& b, const Big& c) noexcept {
    Big sum;
    const std::uint32_t count = a.count > b.count ? a.count : b.count;
    std::uint64_t carry = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        carry += static_cast<std::uint64_t>(word_at(a, i)) + word_at(b, i);
        sum.words[i] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
    }
    sum.count = count;
    if (carry != 0) {
        sum.words[sum.count++] = static_cast<std::uint32_t>(carry);
    }
    return compare(sum, c);
}

// subtract makes a = a - factor * b, shifted up by offset words; the result must not be negative.
void subtract(Big& a, const Big& b, std::uint32_t factor, std::uint32_t offset) noexcept {
    std::uint64_t carry = 0;
    std::uint32_t borrow = 0;
    for (std::uint32_t i = offset; i < a.count; ++i) {
        carry += static_cast<std::uint64_t>(word_at(b, i - offset)) * factor;
        const auto low = static_cast<std::uint32_t>(carry);
        carry >>= 32;
        const std::uint64_t difference = static_cast<std::uint64_t>(a.words[i]) - low - borrow;
        a.words[i] = static_cast<std::uint32_t>(difference);
        borrow = static_cast<std::uint32_t>(difference >> 32) & 1;
    }
    drop_top_zeros(a);
}

// divide_word returns the quotient word of a / (b shifted up by offset words), which must fit, and leaves the rest in
// a. The estimate from the top words is never too large: it divides by one more than the divisor's top. What it misses
// is made up for by further rounds.
std::uint32_t divide_word(Big& a, const Big& b, std::uint32_t offset) noexcept {
    const std::uint32_t top = b.count + offset;
    std::uint64_t quotient = 0;
    for (;;) {
        const std::uint64_t high = static_cast<std::uint64_t>(word_at(a, top)) << 32 | word_at(a, top - 1);
        const std::uint64_t step = high / (static_cast<std::uint64_t>(b.words[b.count - 1]) + 1);
        if (step == 0) {
            break;
        }
        const auto factor = static_cast<std::uint32_t>(step > UINT32_MAX ? UINT32_MAX : step);
        subtract(a, b, factor, offset);
        quotient += factor;
    }
    // The rest is below twice the divisor.
    Big shifted = b;
    shift_left(shifted, 32 * offset);
    if (compare(a, shifted) >= 0) {
        subtract(a, shifted, 1, 0);
        ++quotient;
    }
    return static_cast<std::uint32_t>(quotient);
}

// --- reading --------------------------------------------------------------------------------------------------------

// Extent is a decimal without the zeros at its ends: value = 0.d1...dk * 10^point.
struct Extent {
    const std::int16_t* digits;
    std::uint32_t groups;
    std::int32_t weight;
    std::int32_t point;
    std::int32_t k;
};

Extent extent_of(const Decimal& value) noexcept {
    Extent extent{value.digits, value.count, value.weight, 0, 0};
    while (extent.groups > 0 && extent.digits[0] == 0) {
        ++extent.digits;
        --extent.groups;
        --extent.weight;
    }
    while (extent.groups > 0 && extent.digits[extent.groups - 1] == 0) {
        --extent.groups;
    }
    if (extent.groups == 0) {
        return extent;
    }
    const int first = extent.digits[0];
    const int last = extent.digits[extent.groups - 1];
    const int skip = first >= 1000 ? 0 : first >= 100 ? 1 : first >= 10 ? 2 : 3;
    const int drop = last % 10 != 0 ? 0 : last % 100 != 0 ? 1 : last % 1000 != 0 ? 2 : 3;
    extent.point = (extent.weight + 1) * GROUP - skip;
    extent.k = static_cast<std::int32_t>(extent.groups) * GROUP - skip - drop;
    return extent;
}

// rounded makes the double of mantissa * 2^exponent, where mantissa has its top bit set and is_inexact tells that the
// true value is a bit larger. False on overflow.
bool rounded(std::uint64_t mantissa, std::int32_t exponent, bool is_inexact, bool negative, double* out) noexcept {
    // Of the 64 bits 53 stay, fewer where the exponent would fall below that of subnormal numbers.
    std::int32_t drop = 64 - 1 - FRACTION_BITS;
    if (exponent + drop < MIN_EXPONENT) {
        drop = MIN_EXPONENT - exponent;
    }
    if (drop > 64) {
        *out = 0;
        return true;
    }
    std::uint64_t kept = drop == 64 ? 0 : mantissa >> drop;
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    const std::uint64_t below = drop == 64 ? mantissa : mantissa & (half * 2 - 1);
    if (below > half || (below == half && (is_inexact || (kept & 1) != 0))) {
        ++kept;
    }
    exponent += drop;
    if (kept == HIDDEN_BIT * 2) {
        kept >>= 1;
        ++exponent;
    }
    if (exponent > MAX_EXPONENT) {
        return false;
    }
    std::uint64_t bits = kept;
    if (kept >= HIDDEN_BIT) {
        bits = (kept & (HIDDEN_BIT - 1)) | static_cast<std::uint64_t>(exponent + EXPONENT_BIAS) << FRACTION_BITS;
    }
    if (bits != 0 && negative) {
        bits |= std::uint64_t{1} << 63;
    }
    *out = std::bit_cast<double>(bits);
    return true;
}

// top_64 returns the 64 bits of big (not zero) below its highest one, and whether any bit is left below them; *shift is
// the number of bits that are missing, negative if zeros were appended.
std::uint64_t top_64(const Big& big, std::int32_t* shift, bool* is_inexact) noexcept {
    const std::int32_t size = bit_size(big);
    *shift = size - 64;
    *is_inexact = false;
    if (size <= 64) {
        const std::uint64_t all = static_cast<std::uint64_t>(word_at(big, 1)) << 32 | word_at(big, 0);
        return all << (64 - size);
    }
    const auto word = static_cast<std::uint32_t>(*shift / 32);
    const auto bit = static_cast<std::uint32_t>(*shift % 32);
    const std::uint64_t low = static_cast<std::uint64_t>(word_at(big, word + 1)) << 32 | word_at(big, word);
    for (std::uint32_t i = 0; i < word; ++i) {
        *is_inexact = *is_inexact || big.words[i] != 0;
    }
    if (bit == 0) {
        return low;
    }
    *is_inexact = *is_inexact || (big.words[word] & ((1U << bit) - 1)) != 0;
    return low >> bit | static_cast<std::uint64_t>(word_at(big, word + 2)) << (64 - bit);
}

// --- printing -------------------------------------------------------------------------------------------------------

// digit_of returns the digit of numerator / denominator, from 0 to 9, and leaves the rest in numerator.
std::uint8_t digit_of(Big& numerator, const Big& denominator) noexcept {
    std::uint8_t digit = 0;
    while (compare(numerator, denominator) >= 0) {
        subtract(numerator, denominator, 1, 0);
        ++digit;
    }
    return digit;
}

// Range is a double between its neighbours: value = number / unit, halfway to the next double below (above) is
// below / unit (above / unit) away.
struct Range {
    Big number;
    Big unit;
    Big below;
    Big above;
    bool is_even; // halfway itself still gives this double back
};

void multiply_10(Range& range) noexcept {
    multiply_add(range.number, 10, 0);
    multiply_add(range.below, 10, 0);
    multiply_add(range.above, 10, 0);
}

bool reaches_below(const Range& range) noexcept {
    const int order = compare(range.number, range.below);
    return order < 0 || (order == 0 && range.is_even);
}

bool reaches_above(const Range& range) noexcept {
    const int order = compare_sum(range.number, range.above, range.unit);
    return order > 0 || (order == 0 && range.is_even);
}

void make_range(std::uint64_t mantissa, std::int32_t exponent, Range& range) noexcept {
    // The double below a power of two is only half as far away.
    const bool is_power = mantissa == HIDDEN_BIT && exponent > MIN_EXPONENT;
    const std::uint32_t scale = is_power ? 2 : 1;
    range.is_even = (mantissa & 1) == 0;
    set(range.number, mantissa);
    set(range.unit, 1);
    set(range.below, 1);
    set(range.above, 1);
    shift_left(range.number, scale);
    shift_left(range.unit, scale);
    shift_left(range.above, scale - 1);
    if (exponent >= 0) {
        shift_left(range.number, static_cast<std::uint32_t>(exponent));
        shift_left(range.below, static_cast<std::uint32_t>(exponent));
        shift_left(range.above, static_cast<std::uint32_t>(exponent));
    } else {
        shift_left(range.unit, static_cast<std::uint32_t>(-exponent));
    }
}

// scale_range multiplies by the power of ten that puts the first digit right behind the point, and returns the point.
std::int32_t scale_range(Range& range, std::uint64_t mantissa, std::int32_t exponent) noexcept {
    // Never too large, and too small by one at most: 1233 / 4096 is a bit less than the logarithm of 2.
    const std::int32_t top = exponent + 63 - std::countl_zero(mantissa);
    std::int32_t point = top >= 0 ? top * 1233 / 4096 : -((-top * 1234 + 4095) / 4096);
    if (point >= 0) {
        multiply_power_of_5(range.unit, point);
        shift_left(range.unit, static_cast<std::uint32_t>(point));
    } else {
        Big* const bigs[] = {&range.number, &range.below, &range.above};
        for (Big* big : bigs) {
            multiply_power_of_5(*big, -point);
            shift_left(*big, static_cast<std::uint32_t>(-point));
        }
    }
    while (reaches_above(range)) {
        multiply_add(range.unit, 10, 0);
        ++point;
    }
    return point;
}

} // namespace

void ShortDecimal::set(bool negative, const std::uint8_t* digits, std::size_t count, std::int32_t point) noexcept {
    // Digit i has the exponent point - 1 - i; groups begin at multiples of four.
    const std::int32_t top = point - 1;
    weight_ = top >= 0 ? top / GROUP : -((-top + GROUP - 1) / GROUP);
    negative_ = negative;
    count_ = 0;
    auto filled = static_cast<std::uint32_t>((weight_ + 1) * GROUP - point); // digits of the group that are there
    std::int32_t group = 0;
    for (std::size_t i = 0; i < count || filled != 0; ++i) {
        group = group * 10 + (i < count ? digits[i] : 0);
        if (++filled == GROUP) {
            groups_[count_++] = static_cast<std::int16_t>(group);
            group = 0;
            filled = 0;
        }
    }
}

bool nearest_double(const Decimal& value, double* out) noexcept {
    const Extent extent = extent_of(value);
    if (extent.groups == 0 || extent.point < MIN_POINT) {
        *out = 0;
        return true;
    }
    if (extent.point > MAX_POINT) {
        return false;
    }
    const std::uint32_t groups = extent.groups < MAX_GROUPS ? extent.groups : MAX_GROUPS;
    Big number;
    set(number, 0);
    for (std::uint32_t i = 0; i < groups; ++i) {
        if (number.count == 0) {
            set(number, static_cast<std::uint64_t>(extent.digits[i]));
        } else {
            multiply_add(number, 10000, static_cast<std::uint32_t>(extent.digits[i]));
        }
    }
    std::int32_t exponent = (extent.weight - static_cast<std::int32_t>(groups) + 1) * GROUP;
    if (groups < extent.groups) {
        // Digits are left out: one more digit that is neither zero nor five breaks every tie as they would.
        multiply_add(number, 10, 1);
        --exponent;
    }
    std::int32_t shift;
    bool is_inexact;
    if (exponent >= 0) {
        multiply_power_of_5(number, exponent);
        const std::uint64_t mantissa = top_64(number, &shift, &is_inexact);
        return rounded(mantissa, exponent + shift, is_inexact, value.negative, out);
    }
    // A divisor with its top bit set makes good estimates; a dividend 65 to 96 bits longer gives more than 64 bits.
    Big divisor;
    set(divisor, 1);
    multiply_power_of_5(divisor, -exponent);
    const auto up = static_cast<std::uint32_t>(std::countl_zero(divisor.words[divisor.count - 1]));
    shift_left(divisor, up);
    std::int32_t down = bit_size(divisor) + 95 - bit_size(number);
    if (down < 0) {
        down = 0;
    }
    shift_left(number, static_cast<std::uint32_t>(down));
    Big quotient;
    const std::uint32_t quotient_words = number.count >= divisor.count ? number.count - divisor.count + 1 : 0;
    for (std::uint32_t i = quotient_words; i-- > 0;) {
        quotient.words[i] = divide_word(number, divisor, i);
    }
    quotient.count = quotient_words;
    drop_top_zeros(quotient);
    const std::uint64_t mantissa = top_64(quotient, &shift, &is_inexact);
    is_inexact = is_inexact || number.count != 0;
    return rounded(mantissa, exponent + shift - down + static_cast<std::int32_t>(up), is_inexact, value.negative, out);
}

void shortest_decimal(double value, ShortDecimal* out) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const bool negative = bits >> 63 != 0;
    const std::uint64_t fraction = bits & (HIDDEN_BIT - 1);
    const auto biased = static_cast<std::int32_t>(bits >> FRACTION_BITS & 0x7FF);
    const std::uint64_t mantissa = biased == 0 ? fraction : fraction | HIDDEN_BIT;
    const std::int32_t exponent = biased == 0 ? MIN_EXPONENT : biased - EXPONENT_BIAS;
    if (mantissa == 0) {
        out->set(false, nullptr, 0, 1);
        return;
    }
    Range range;
    make_range(mantissa, exponent, range);
    const std::int32_t point = scale_range(range, mantissa, exponent);

    std::uint8_t digits[ShortDecimal::MAX_DIGITS + 1];
    std::size_t count = 0;
    for (;;) {
        multiply_10(range);
        std::uint8_t digit = digit_of(range.number, range.unit);
        const bool below = reaches_below(range);
        const bool above = reaches_above(range);
        if (below || above) {
            const int order = compare_sum(range.number, range.number, range.unit);
            if (above && (!below || order > 0 || (order == 0 && (digit & 1) != 0))) {
                ++digit;
            }
            digits[count++] = digit;
            break;
        }
        digits[count++] = digit;
    }
    out->set(negative, digits, count, point);
}

bool is_surely_double(const Decimal& value) noexcept {
    const Extent extent = extent_of(value);
    return extent.k <= 15 && extent.point >= -306 && extent.point <= 308;
}

Decimal as_double(const Decimal& value, ShortDecimal* room, bool* overflow) noexcept {
    *overflow = false;
    if (is_surely_double(value)) {
        return value;
    }
    double nearest;
    if (!nearest_double(value, &nearest)) {
        *overflow = true;
        return value;
    }
    shortest_decimal(nearest, room);
    return room->view();
}

bool equals(const Decimal& a, const Decimal& b) noexcept {
    const Extent left = extent_of(a);
    const Extent right = extent_of(b);
    if (left.groups != right.groups) {
        return false;
    }
    return left.groups == 0 || (a.negative == b.negative && left.weight == right.weight &&
                                std::memcmp(left.digits, right.digits, left.groups * sizeof left.digits[0]) == 0);
}

} // namespace idem::core
