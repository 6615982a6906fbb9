// key_order.cpp: see key_order.hpp.
#include "core/canonical.hpp"
#include "core/key_order.hpp"
#include "core/simd.hpp"

namespace idem::core {
namespace {

constexpr std::size_t WORD = sizeof(std::uint64_t);
constexpr std::uint64_t TOP_BITS = 0x8080808080808080;

// FIRST_BYTES masks the first 0 to 8 bytes; sizes of keys are too irregular to branch on.
constexpr std::uint64_t FIRST_BYTES[] = {0,
                                         0xFF00000000000000,
                                         0xFFFF000000000000,
                                         0xFFFFFF0000000000,
                                         0xFFFFFFFF00000000,
                                         0xFFFFFFFFFF000000,
                                         0xFFFFFFFFFFFF0000,
                                         0xFFFFFFFFFFFFFF00,
                                         0xFFFFFFFFFFFFFFFF};

// rank_bytes replaces the lead bytes EE and EF by FE and FF: U+E000 to U+FFFF come behind the surrogates of F0 to F4.
std::uint64_t rank_bytes(std::uint64_t prefix) noexcept {
    std::uint64_t ranked = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        std::uint64_t byte = (prefix >> shift) & 0xFF;
        byte += byte == 0xEE || byte == 0xEF ? 0x10 : 0;
        ranked |= byte << shift;
    }
    return ranked;
}

// prefix_of returns up to eight bytes of the key behind the first skip ones (which exist), the first as the highest. A
// shorter rest is filled up with zeros: what ties then is compared in full.
[[gnu::always_inline]] inline std::uint64_t prefix_of(const KeyTable& keys, std::uint32_t i,
                                                      std::uint32_t skip) noexcept {
    const char* key = keys.data + keys.starts[i] + skip;
    const std::size_t size = keys.starts[i + 1] - keys.starts[i] - skip;
    std::uint64_t prefix = 0;
    if (static_cast<std::size_t>(keys.readable_end - key) >= WORD) [[likely]] {
        prefix = __builtin_bswap64(load_word(key)) & FIRST_BYTES[size < WORD ? size : WORD];
    } else {
        for (std::size_t at = 0; at < size && at < WORD; ++at) {
            prefix |= std::uint64_t{static_cast<unsigned char>(key[at])} << (56 - 8 * at);
        }
    }
    return (prefix & TOP_BITS) == 0 ? prefix : rank_bytes(prefix);
}

// common_prefix returns how many bytes (at most eight) all keys start with, given what their prefixes differ in.
std::uint32_t common_prefix(const KeyTable& keys, std::uint64_t differences) noexcept {
    const auto shared = differences == 0 ? WORD : static_cast<std::size_t>(std::countl_zero(differences)) / 8;
    // Keys of jsonb come by length, but nobody promises that here.
    std::size_t shortest = shared;
    for (std::uint32_t i = 0; i < keys.count; ++i) {
        const std::size_t size = keys.starts[i + 1] - keys.starts[i];
        shortest = size < shortest ? size : shortest;
    }
    return static_cast<std::uint32_t>(shortest);
}

// WORTH_SKIPPING is how many common bytes make it pay to read the prefixes again from behind them.
constexpr std::uint32_t WORTH_SKIPPING = 3;

// make_prefixes calls put(i, prefix) for each key, perhaps twice, the second time with the better prefix.
template <class Put>
[[gnu::always_inline]] inline void make_prefixes(const KeyTable& keys, Put put) noexcept {
    const std::uint64_t first = prefix_of(keys, 0, 0);
    std::uint64_t differences = 0;
    for (std::uint32_t i = 0; i < keys.count; ++i) {
        const std::uint64_t prefix = prefix_of(keys, i, 0);
        differences |= prefix ^ first;
        put(i, prefix);
    }
    if (differences >> (64 - 8 * WORTH_SKIPPING) != 0) [[likely]] {
        return;
    }
    const std::uint32_t skip = common_prefix(keys, differences);
    for (std::uint32_t i = 0; skip >= WORTH_SKIPPING && i < keys.count; ++i) {
        put(i, prefix_of(keys, i, skip));
    }
}

// --- few ---

// rank writes the numbers of count keys to order. They are ranked by the highest bits of their prefixes, with their
// places in the last bits, so that no two ranks are the same; where that is not the order yet, neighbours are few, and
// they are put right one by one.
template <class Prefix, class Index>
[[gnu::always_inline]] inline void rank(const KeyTable& keys, std::uint32_t count, Prefix prefix, Index index,
                                        std::uint32_t* order) noexcept {
    constexpr int place_bits = 6;
    static_assert(1 << place_bits == RANKED_KEYS);
    std::int32_t values[RANKED_KEYS];
    std::uint32_t places[RANKED_KEYS];
    std::uint64_t sorted[RANKED_KEYS];
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto high = static_cast<std::uint32_t>(prefix(i) >> 32) >> place_bits << place_bits;
        values[i] = static_cast<std::int32_t>((high | i) ^ 0x80000000);
    }
    count_smaller(values, count, places);
    for (std::uint32_t i = 0; i < count; ++i) {
        order[places[i]] = index(i);
        sorted[places[i]] = prefix(i);
    }
    for (std::uint32_t i = 1; i < count; ++i) {
        if (sorted[i - 1] < sorted[i]) [[likely]] {
            continue;
        }
        const std::uint32_t moving = order[i];
        const std::uint64_t mine = sorted[i];
        std::uint32_t hole = i;
        while (hole > 0 && (mine < sorted[hole - 1] ||
                            (mine == sorted[hole - 1] && compare_keys(keys[moving], keys[order[hole - 1]]) < 0))) {
            order[hole] = order[hole - 1];
            sorted[hole] = sorted[hole - 1];
            --hole;
        }
        order[hole] = moving;
        sorted[hole] = mine;
    }
}

// --- many ---

// Span is some of the keys while they are ordered: from and to are two halves of scratch, at the same place as order.
struct Span {
    SortKey* from;
    SortKey* to;
    std::uint32_t* order;
    std::uint32_t count;
};

// merge_pair merges the runs [left, middle) and [middle, end) of from into to.
void merge_pair(const KeyTable& keys, const SortKey* from, SortKey* to, std::uint32_t left, std::uint32_t middle,
                std::uint32_t end) noexcept {
    std::uint32_t right = middle;
    for (std::uint32_t at = left; at < end; ++at) {
        const bool takes_right =
            left == middle || (right < end && compare_keys(keys[from[right].index], keys[from[left].index]) < 0);
        to[at] = takes_right ? from[right++] : from[left++];
    }
}

// merge_keys orders keys that share their prefix.
void merge_keys(const KeyTable& keys, Span span, void (*tick)()) noexcept {
    std::uint32_t start = 0;
    for (std::uint32_t i = 1; i < span.count; ++i) {
        if (compare_keys(keys[span.from[i].index], keys[span.from[i - 1].index]) < 0) {
            span.from[start].run_end = i;
            start = i;
        }
    }
    span.from[start].run_end = span.count;
    while (span.from[0].run_end != span.count) {
        tick();
        for (start = 0; start < span.count;) {
            const std::uint32_t middle = span.from[start].run_end;
            const std::uint32_t end = middle < span.count ? span.from[middle].run_end : middle;
            merge_pair(keys, span.from, span.to, start, middle, end);
            span.to[start].run_end = end;
            start = end;
        }
        SortKey* const swapped = span.from;
        span.from = span.to;
        span.to = swapped;
    }
    for (std::uint32_t i = 0; i < span.count; ++i) {
        span.order[i] = span.from[i].index;
    }
}

// distribute orders the keys of span, which share the bytes of their prefix above bit shift + 8.
void distribute(const KeyTable& keys, Span span, int shift, void (*tick)()) noexcept {
    if (span.count <= RANKED_KEYS) {
        // What they share would only be in the way.
        const SortKey* const from = span.from;
        const int shared = shift < 0 ? 0 : 56 - shift;
        rank(
            keys, span.count, [from, shared](std::uint32_t i) { return from[i].prefix << shared; },
            [from](std::uint32_t i) { return from[i].index; }, span.order);
        return;
    }
    if (shift < 0) {
        merge_keys(keys, span, tick);
        return;
    }
    tick();
    std::uint32_t ends[256] = {};
    for (std::uint32_t i = 0; i < span.count; ++i) {
        ++ends[(span.from[i].prefix >> shift) & 0xFF];
    }
    // Most of the 256 are empty: both loops end with the last that is not.
    std::uint32_t sum = 0;
    for (std::uint32_t* end = ends; sum < span.count; ++end) {
        const std::uint32_t size = *end;
        *end = sum;
        sum += size;
    }
    for (std::uint32_t i = 0; i < span.count; ++i) {
        span.to[ends[(span.from[i].prefix >> shift) & 0xFF]++] = span.from[i];
    }
    std::uint32_t start = 0;
    for (const std::uint32_t* end = ends; start < span.count; ++end) {
        if (*end > start) {
            distribute(keys, {span.to + start, span.from + start, span.order + start, *end - start}, shift - 8, tick);
            start = *end;
        }
    }
}

} // namespace

void order_keys(const KeyTable& keys, std::uint32_t* order, SortKey* scratch, void (*tick)()) noexcept {
    if (keys.count == 1) {
        order[0] = 0;
        return;
    }
    if (keys.count <= RANKED_KEYS) {
        std::uint64_t prefixes[RANKED_KEYS];
        make_prefixes(keys, [&](std::uint32_t i, std::uint64_t prefix) { prefixes[i] = prefix; });
        rank(
            keys, keys.count, [&](std::uint32_t i) { return prefixes[i]; }, [](std::uint32_t i) { return i; }, order);
        return;
    }
    make_prefixes(keys, [&](std::uint32_t i, std::uint64_t prefix) { scratch[i] = {prefix, i, 0}; });
    distribute(keys, {scratch, scratch + keys.count, order, keys.count}, 56, tick);
}

} // namespace idem::core
