// key_order.hpp: the order of an object's members, from keys that lie together in memory.
//
// Purpose: what sort_members does, for a walker that must not lose time: keys are compared eight bytes at a time, as
// numbers, behind what all of them have in common. Few keys are ranked by comparing each with each, which takes no
// branch to mispredict; more are merged from the ascending runs they arrive in (jsonb keeps keys by length, then
// bytes, so each length is such a run). Data layout: keys are given by offsets into one stretch of memory; the result
// is a list of their numbers. Nothing is allocated: the caller provides scratch space.
#pragma once

#include "core/types.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// KeyTable is count keys (valid UTF-8): key i reaches from data + starts[i] up to data + starts[i + 1]. Memory up to
// readable_end may be read, whatever is there.
struct KeyTable {
    const char* data;
    const std::uint32_t* starts; // count + 1
    std::uint32_t count;
    const char* readable_end;

    Bytes operator[](std::uint32_t i) const noexcept { return {data + starts[i], starts[i + 1] - starts[i]}; }
};

// SortKey is a key while many are ordered: its first bytes that tell it from others, as a number that compares like
// them.
struct SortKey {
    std::uint64_t prefix;
    std::uint32_t index;
    std::uint32_t run_end; // of the first key of an ascending run: where the run ends
};

// RANKED_KEYS is the most keys that are ordered without scratch.
inline constexpr std::uint32_t RANKED_KEYS = 64;

// order_keys writes the numbers of the keys to order, in canonical order: as UTF-16 code units compare. scratch has
// room for 2 * keys.count elements and is not touched up to RANKED_KEYS. tick() is called before each pass over many
// keys and may leave by longjmp.
void order_keys(const KeyTable& keys, std::uint32_t* order, SortKey* scratch, void (*tick)()) noexcept;

} // namespace idem::core
