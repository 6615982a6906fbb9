// key_shapes.cpp: admitting shapes, and forgetting them.
#include "core/canonical.hpp"

#include "pg/key_shapes.hpp"

namespace idem::pg {

constinit shapes_detail::Cache shapes_detail::cache = {};

namespace {

using core::CanonicalWriter;
using core::KeyTable;
using shapes_detail::BUCKETS;
using shapes_detail::cache;
using shapes_detail::WAYS;

// SHAPES_SIZE is the size of the arena in bytes; the system gives memory only for what is used of it.
constexpr std::size_t SHAPES_SIZE = 1024 * 1024;
static_assert(MAX_SHAPE_KEYS <= UINT16_MAX);

// text_bound returns the size of the text of a key of size bytes, at most.
std::size_t text_bound(std::size_t size) {
    return 6 * size + 4;
}

void unexpected_flush(void*, const char*, std::size_t) {
    elog(ERROR, "text of keys is longer than it can be");
}

// write_text writes `,"key":` for each key in order and returns the size of all, 0 if one is longer than a shape may
// have.
std::size_t write_text(const KeyTable& keys, const std::uint32_t* order, char* text, std::size_t capacity,
                       ShapeMember* members) {
    CanonicalWriter writer(text, capacity, unexpected_flush, nullptr);
    std::size_t written = 0;
    writer.begin_object();
    for (std::uint32_t i = 0; i < keys.count; ++i) {
        writer.key(keys[order[i]]);
        const std::size_t size = writer.pending().size();
        if (size - written > MAX_KEY_TEXT) {
            return 0;
        }
        members[i] = {static_cast<std::uint16_t>(order[i]), static_cast<std::uint16_t>(size - written)};
        written = size;
        writer.give_back(text + size, true);
    }
    return written;
}

// build puts a shape at the free end of the arena, if it fits, and returns it.
Shape* build(std::uint64_t hash, const JEntry* entries, const KeyTable& keys, const std::uint32_t* order) {
    const std::uint32_t key_size = keys.starts[keys.count];
    const std::size_t keys_offset = sizeof(Shape) + keys.count * (sizeof(JEntry) + sizeof(ShapeMember));
    const std::size_t text_offset = keys_offset + key_size;
    std::size_t capacity = CanonicalWriter::MIN_CAPACITY;
    for (std::uint32_t i = 0; i < keys.count; ++i) {
        capacity += text_bound(keys[i].size());
    }
    if (text_offset + capacity > SHAPES_SIZE - cache.used) {
        cache.is_full = true;
        return nullptr;
    }
    char* const base = cache.arena + cache.used;
    auto* const shape = reinterpret_cast<Shape*>(base);
    *shape = {nullptr,
              hash,
              keys.count,
              key_size,
              static_cast<std::uint32_t>(keys_offset),
              static_cast<std::uint32_t>(text_offset)};
    std::memcpy(base + sizeof(Shape), entries, keys.count * sizeof(JEntry));
    std::memcpy(base + keys_offset, keys.data, key_size);
    const std::size_t text_size =
        write_text(keys, order, base + text_offset, capacity,
                   reinterpret_cast<ShapeMember*>(base + sizeof(Shape) + keys.count * sizeof(JEntry)));
    if (text_size == 0) {
        return nullptr;
    }
    cache.used += MAXALIGN(text_offset + text_size + core::WINDOW);
    return shape;
}

bool has_arena() {
    if (cache.arena == nullptr) {
        cache.arena = static_cast<char*>(MemoryContextAllocExtended(TopMemoryContext, SHAPES_SIZE, MCXT_ALLOC_NO_OOM));
    }
    return cache.arena != nullptr;
}

} // namespace

void ShapeFinder::forget() {
    cache.first = nullptr;
    std::memset(cache.shapes, 0, sizeof cache.shapes);
    cache.used = 0;
    cache.is_full = false;
}

void ShapeFinder::note(std::uint64_t hash, const JEntry* entries, const KeyTable& keys, const std::uint32_t* order) {
    std::uint64_t& seen = cache.seen[hash % (BUCKETS * WAYS)];
    if (seen != hash) {
        seen = hash;
        return;
    }
    seen = 0;
    if (cache.is_full || !has_arena()) {
        return;
    }
    if (Shape* const shape = build(hash, entries, keys, order)) {
        Shape** const bucket = cache.shapes[hash % BUCKETS];
        bucket[1] = bucket[0];
        bucket[0] = shape;
    }
}

} // namespace idem::pg
