// key_shapes.hpp: objects with the same keys again.
//
// Purpose: documents of one kind have the same keys over and over. For such a shape the members' canonical order and
// the text of the keys, escaped and quoted, are worked out once and kept. Correctness does not rest on any hash: a
// shape is used only if the number of keys, the JEntries of all keys (their lengths) and all bytes of the keys are
// compared and equal. Data layout: a table of pointers, two to a bucket, into one arena of SHAPES_SIZE bytes, made at
// first use in TopMemoryContext and never larger. A shape is admitted when its hash is met for the second time while a
// filter remembers the first, so that keys which do not repeat cost little. Lifetime: per backend. A shape stays where
// it is until the next walk begins, which empties a full arena; an error in between leaves nothing half made. Only for
// databases in UTF-8: the text of keys is what is stored.
#pragma once

#include "core/key_order.hpp"
#include "core/simd.hpp"
#include "core/types.hpp"

#include "pg/server.hpp"

namespace idem::pg {

// ShapeMember is one member in canonical order: its number in the object, and the size of its key's text.
struct ShapeMember {
    std::uint16_t index;
    std::uint16_t text_size;
};

// Shape is what is known of objects with certain keys. Behind it lie, in this order: the JEntries of the keys, the
// members (`count` each), the bytes of the keys, and the text: for each member `,"key":`, the first with `{` for the
// comma. A window may be read at any place of the text. next is the shape that was met after this one the last time.
struct Shape {
    Shape* next;
    std::uint64_t hash;
    std::uint32_t count;
    std::uint32_t key_size;
    std::uint32_t keys_offset;
    std::uint32_t text_offset;

    const JEntry* entries() const { return reinterpret_cast<const JEntry*>(this + 1); }
    const ShapeMember* members() const { return reinterpret_cast<const ShapeMember*>(entries() + count); }
    const char* keys() const { return reinterpret_cast<const char*>(this) + keys_offset; }
    const char* text() const { return reinterpret_cast<const char*>(this) + text_offset; }
};

// These bound what is kept, in keys, in bytes of all keys, and in bytes of one key's text. Larger objects are ordered
// each time.
inline constexpr std::uint32_t MAX_SHAPE_KEYS = 8192;
inline constexpr std::uint32_t MAX_SHAPE_KEY_BYTES = 128 * 1024;
inline constexpr std::uint32_t MAX_KEY_TEXT = 256;

namespace shapes_detail {

inline constexpr std::uint32_t BUCKETS = 256;
inline constexpr std::uint32_t WAYS = 2;

struct Cache {
    Shape* first; // the shape that was met first in the last value
    Shape* shapes[BUCKETS][WAYS];
    std::uint64_t seen[BUCKETS * WAYS]; // hashes met once, by their low bits
    char* arena;                        // NULL until the first shape is admitted
    std::size_t used;
    bool is_full;
};

extern constinit Cache cache;

} // namespace shapes_detail

// ShapeFinder finds shapes in the course of one walk over a value. Objects mostly come in the same order again, so the
// shape that followed last time is tried before the table. keys means the bytes of all keys of the object in question,
// key_size >= 1 of them; entries their JEntries, count >= 2 of them; up to end may be read.
class ShapeFinder {
public:
    ShapeFinder() : expected_(&shapes_detail::cache.first) {
        if (unlikely(shapes_detail::cache.is_full)) {
            forget();
        }
    }

    // expected returns the shape that is most likely next, if it is that of this object, or NULL.
    [[gnu::always_inline]] const Shape* expected(const JEntry* entries, std::uint32_t count, const char* keys,
                                                 const char* end) {
        Shape* const shape = *expected_;
        if (shape != nullptr && shape->count == count && static_cast<std::size_t>(end - keys) >= shape->key_size &&
            has_keys(shape, entries, keys)) {
            expected_ = &shape->next;
            return shape;
        }
        return nullptr;
    }

    // find returns the shape of an object with these keys, or NULL. hash is hash_keys of them.
    const Shape* find(std::uint64_t hash, const JEntry* entries, std::uint32_t count, const char* keys,
                      std::uint32_t key_size) {
        using namespace shapes_detail;
        for (Shape* shape : cache.shapes[hash % BUCKETS]) {
            if (shape != nullptr && shape->hash == hash && shape->count == count && shape->key_size == key_size &&
                has_keys(shape, entries, keys)) {
                *expected_ = shape;
                expected_ = &shape->next;
                return shape;
            }
        }
        return nullptr;
    }

    // note is told of an object that find did not know, with the order that was worked out for its keys. It remembers
    // the hash, or keeps the shape if it remembered it before.
    void note(std::uint64_t hash, const JEntry* entries, const core::KeyTable& keys, const std::uint32_t* order);

private:
    // has_keys compares all lengths, then all bytes; the lengths say where the bytes end.
    [[gnu::always_inline]] static bool has_keys(const Shape* shape, const JEntry* entries, const char* keys) {
        return core::equal_bytes(reinterpret_cast<const char*>(shape->entries()),
                                 reinterpret_cast<const char*>(entries), shape->count * sizeof(JEntry)) &&
               core::equal_bytes(shape->keys(), keys, shape->key_size);
    }

    static void forget();

    Shape** expected_; // where the guess for the next object is kept
};

// hash_keys mixes what tells shapes apart most of the time. key_size >= 1 bytes of keys; up to end may be read.
[[gnu::always_inline]] inline std::uint64_t hash_keys(std::uint32_t count, const char* keys, std::uint32_t key_size,
                                                      const char* end) {
    std::uint64_t first = 0;
    std::uint64_t middle = 0;
    std::uint64_t last = 0;
    if (key_size >= 8) {
        first = core::load_word(keys);
        middle = core::load_word(keys + (key_size - 8) / 2);
        last = core::load_word(keys + key_size - 8);
    } else if (end - keys >= 8) {
        first = core::load_word(keys) & (~std::uint64_t{0} >> (64 - 8 * key_size));
    }
    std::uint64_t hash = (first ^ (std::uint64_t{count} << 32 | key_size)) * 0x9E3779B97F4A7C15;
    hash = (hash ^ (hash >> 29) ^ middle) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 32) ^ last) * 0x94D049BB133111EB;
    return hash ^ (hash >> 31);
}

} // namespace idem::pg
