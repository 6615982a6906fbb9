// decimal.cpp: the number layout of the canonical form.
//
// With abs(value) = 0.d1...dk * 10^n, d1 and dk not zero:
//   k <= n <= 21    digits, n - k zeros
//   0 < n <= 21     digits with a point after the n-th
//   -6 < n <= 0     "0.", -n zeros, digits
//   otherwise       d1, a point if k > 1, d2...dk, "e+" or "e-", abs(n - 1)
// So every number is: sign, head, digits with at most one point among them, tail. The digits come in chunks of
// base-10000 groups, one chunk per piece; nearly every number is a single piece.
#include "core/decimal.hpp"

#include <cstring>

namespace idem::core {

#ifdef IDEM_HAS_SSE2
alignas(BLOCK_SIZE) extern const std::int16_t FACTORS[2][8] = {{100, 100, 100, 100, 100, 100, 100, 100},
                                                               {10, 10, 10, 10, 10, 10, 10, 10}};
#endif

namespace {

constexpr std::uint32_t NO_POINT = UINT32_MAX;
constexpr std::uint32_t GROUP = 4;             // decimal digits per base-10000 digit
constexpr std::uint32_t GROUPS_PER_PIECE = 16; // 64 digits
constexpr std::int32_t MAX_PLAIN = 21;         // most integer digits without an exponent
constexpr std::int32_t MIN_PLAIN = -6;         // smaller or equal n needs an exponent
constexpr std::size_t MAX_HEAD = 1 + 2 + 5;    // "-0.00000"
constexpr std::size_t MAX_TAIL = 20;           // zeros; longer than any exponent
static_assert(MAX_HEAD + GROUP * GROUPS_PER_PIECE + 1 + MAX_TAIL <= DecimalPrinter::PIECE);

struct PairTable {
    char text[200];
};

constexpr PairTable make_pairs() noexcept {
    PairTable table{};
    for (std::size_t i = 0; i < 100; ++i) {
        table.text[2 * i] = static_cast<char>('0' + i / 10);
        table.text[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return table;
}

constexpr PairTable PAIRS = make_pairs();

void put_group(char* at, std::int16_t digit) noexcept {
    const auto group = static_cast<std::uint32_t>(digit);
    std::memcpy(at, PAIRS.text + 2 * (group / 100), 2);
    std::memcpy(at + 2, PAIRS.text + 2 * (group % 100), 2);
}

std::uint32_t leading_zeros(std::int16_t group) noexcept {
    return group >= 1000 ? 0 : group >= 100 ? 1 : group >= 10 ? 2 : 3;
}

std::uint32_t trailing_zeros(std::int16_t group) noexcept {
    return group % 10 != 0 ? 0 : group % 100 != 0 ? 1 : group % 1000 != 0 ? 2 : 3;
}

} // namespace

DecimalPrinter::DecimalPrinter(const Decimal& value) noexcept
    : digits_(value.digits), groups_(value.count), point_(NO_POINT), negative_(value.negative) {
    std::int32_t weight = value.weight;
    while (groups_ > 0 && digits_[0] == 0) {
        ++digits_;
        --groups_;
        --weight;
    }
    while (groups_ > 0 && digits_[groups_ - 1] == 0) {
        --groups_;
    }
    if (groups_ == 0) {
        negative_ = false;
        return;
    }
    skip_ = leading_zeros(digits_[0]);
    drop_ = trailing_zeros(digits_[groups_ - 1]);
    const auto k = static_cast<std::int32_t>(groups_ * GROUP - skip_ - drop_);
    const std::int32_t n = (weight + 1) * static_cast<std::int32_t>(GROUP) - static_cast<std::int32_t>(skip_);
    if (n > MAX_PLAIN || n <= MIN_PLAIN) {
        has_exponent_ = true;
        exponent_ = n - 1;
        if (k > 1) {
            point_ = 1;
        }
    } else if (n <= 0) {
        zeros_ = -n;
    } else if (n < k) {
        point_ = static_cast<std::uint32_t>(n);
    } else {
        padding_ = n - k;
    }
}

std::size_t DecimalPrinter::next(char* out) noexcept {
    if (is_done_) {
        return 0;
    }
    char* at = out;
    if (!is_started_) {
        is_started_ = true;
        at = put_head(at);
    }
    if (groups_ > 0) {
        at = put_digits(at);
    }
    if (groups_ == 0) {
        at = put_tail(at);
        is_done_ = true;
    }
    return static_cast<std::size_t>(at - out);
}

// put_head writes what stands before the first digit; for zero, which has none, that is all.
char* DecimalPrinter::put_head(char* at) noexcept {
    if (groups_ == 0) {
        *at++ = '0';
        return at;
    }
    if (negative_) {
        *at++ = '-';
    }
    if (zeros_ >= 0) {
        std::memcpy(at, "0.00000", 7);
        at += 2 + zeros_;
    }
    return at;
}

// put_digits writes the next chunk of groups, without the zeros at the number's ends and with the point if it is due.
char* DecimalPrinter::put_digits(char* at) noexcept {
    char* const first = at;
    const std::uint32_t chunk = groups_ < GROUPS_PER_PIECE ? groups_ : GROUPS_PER_PIECE;
    char group[2 * GROUP];
    put_group(group, digits_[0]);
    std::memset(group + GROUP, '0', GROUP);
    std::memcpy(at, group + skip_, GROUP);
    at += GROUP - skip_;
    skip_ = 0;
    for (std::uint32_t i = 1; i < chunk; ++i) {
        put_group(at, digits_[i]);
        at += GROUP;
    }
    digits_ += chunk;
    groups_ -= chunk;
    if (groups_ == 0) {
        at -= drop_;
    }
    if (point_ == NO_POINT) {
        return at;
    }
    const auto written = static_cast<std::uint32_t>(at - first);
    if (point_ >= written) {
        point_ -= written;
        return at;
    }
    std::memmove(first + point_ + 1, first + point_, written - point_);
    first[point_] = '.';
    point_ = NO_POINT;
    return at + 1;
}

// put_tail writes what follows the last digit.
char* DecimalPrinter::put_tail(char* at) const noexcept {
    if (padding_ > 0) {
        std::memset(at, '0', static_cast<std::size_t>(padding_));
        return at + padding_;
    }
    if (!has_exponent_) {
        return at;
    }
    *at++ = 'e';
    *at++ = exponent_ < 0 ? '-' : '+';
    auto rest = static_cast<std::uint32_t>(exponent_ < 0 ? -exponent_ : exponent_);
    char reversed[10];
    std::size_t size = 0;
    do {
        reversed[size++] = static_cast<char>('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    while (size > 0) {
        *at++ = reversed[--size];
    }
    return at;
}

char* print_packed_long(char* out, std::uint64_t low, std::uint64_t high, std::int32_t weight, bool negative) noexcept {
    using namespace decimal_detail;
    constexpr std::int32_t max_weight = 4; // up to 20 digits before the point
    if (weight < -1 || weight > max_weight || (low & 0xFFFF) == 0) {
        return nullptr;
    }
    const Digits front = spread_groups(low);
    const Digits back = spread_groups(high);
    char text[4 * BLOCK_SIZE]; // 32 digits, and what copies of whole windows read beyond them
    store_from(text, front, 0);
    store_from(text + BLOCK_SIZE, back, 0);
    store_from(text + 2 * BLOCK_SIZE, {0, 0}, 0);
    store_from(text + 3 * BLOCK_SIZE, {0, 0}, 0);
    const std::uint32_t end = (back.low | back.high) != 0 ? 16 + significant_end(back) : significant_end(front);
    *out = '-';
    out += negative ? 1 : 0;
    std::uint32_t whole = 0;
    if (weight < 0) {
        *out++ = '0';
    } else {
        whole = GROUP * static_cast<std::uint32_t>(weight + 1);
        const std::uint32_t skip = digit_index(std::countr_zero(front.low));
        copy_window(out, text + skip);
        out += whole - skip;
    }
    if (end <= whole) {
        return out;
    }
    *out++ = '.';
    copy_window(out, text + whole);
    return out + (end - whole);
}

} // namespace idem::core
