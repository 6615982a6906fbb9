// jsonb_tokens.cpp: the walk over jsonb containers.
//
// A container is a header word, one JEntry per array element (or per key, then per value), and their data. A JEntry
// holds the length of its data, or the end offset if its offset bit is set; so offsets are summed up while walking
// forward, and the bit is read each time, never guessed from the stride. Numbers and containers start at the next
// multiple of four.
//
// The nesting is kept in an explicit stack of frames: a value stored under a large max_stack_depth must hash under a
// small one. Objects also keep where each value starts, and their members' order, until they are closed. Both start in
// this file's stack frame and move to palloc'd memory only when they outgrow it, so small payloads never allocate.
//
// Text is put straight into the writer's buffer. Its free end is looked at once per member or element: RESERVE bytes
// take a key and a value of the usual kind, and whatever is longer goes through the writer, which looks for itself.
// Strings and numbers are read in blocks that may reach into what lies behind them, but never beyond the value.
//
// numeric's on-disk header is private to the server's numeric.c but fixed by the on-disk format.
#include <bit>

#include "core/key_order.hpp"

#include "pg/errors.hpp"
#include "pg/jsonb_tokens.hpp"
#include "pg/key_shapes.hpp"

namespace idem::pg {
namespace {

using core::Bytes;
using core::CanonicalWriter;
using core::Decimal;
using core::KeyTable;

// --- text -----------------------------------------------------------------------------------------------------------

bool is_ascii(Bytes text) {
    std::uint64_t seen = 0;
    std::size_t i = 0;
    for (; text.size() - i >= sizeof seen; i += sizeof seen) {
        std::uint64_t word;
        std::memcpy(&word, text.data() + i, sizeof word);
        seen |= word;
    }
    for (; i < text.size(); ++i) {
        seen |= static_cast<unsigned char>(text[i]) & 0x80U;
    }
    return (seen & 0x8080808080808080) == 0;
}

} // namespace

Bytes utf8_of(Bytes text) {
    const int encoding = GetDatabaseEncoding();
    if (encoding == PG_UTF8 || is_ascii(text)) {
        return text;
    }
    if (encoding == PG_SQL_ASCII) {
        error_canonical_not_utf8();
    }
    const char* converted = pg_server_to_any(text.data(), static_cast<int>(text.size()), PG_UTF8);
    return converted == text.data() ? text : Bytes(converted);
}

void free_conversion(Bytes converted, Bytes original) {
    if (converted.data() != original.data()) {
        pfree(const_cast<char*>(converted.data()));
    }
}

namespace {

// --- numeric --------------------------------------------------------------------------------------------------------

constexpr std::uint16_t NUMERIC_FLAGS = 0xC000; // 00 positive, 40 negative, 80 short form, C0 NaN or infinity
constexpr std::uint16_t NUMERIC_SPECIAL = 0xC000;
constexpr std::uint16_t NUMERIC_SHORT = 0x8000;
constexpr std::uint16_t NUMERIC_NEGATIVE = 0x4000;
constexpr std::uint16_t SHORT_NEGATIVE = 0x2000;
constexpr std::uint16_t SHORT_WEIGHT_SIGN = 0x0040;
constexpr std::uint16_t SHORT_WEIGHT_MASK = 0x003F;
static_assert((SHORT_WEIGHT_SIGN | SHORT_WEIGHT_MASK) == 0x7F);

} // namespace

Decimal decimal_of(const char* stored) {
    if (unlikely(!VARATT_IS_4B_U(stored))) {
        stored = reinterpret_cast<const char*>(pg_detoast_datum(reinterpret_cast<varlena*>(const_cast<char*>(stored))));
    }
    const char* data = VARDATA(stored);
    const std::size_t size = VARSIZE(stored) - VARHDRSZ;
    std::uint16_t header;
    std::memcpy(&header, data, sizeof header);
    if (unlikely((header & NUMERIC_FLAGS) == NUMERIC_SPECIAL)) {
        elog(ERROR, "jsonb number is not finite");
    }
    Decimal value;
    std::size_t header_size = sizeof header;
    if ((header & NUMERIC_FLAGS) == NUMERIC_SHORT) {
        value.negative = (header & SHORT_NEGATIVE) != 0;
        value.weight = header & SHORT_WEIGHT_MASK;
        if ((header & SHORT_WEIGHT_SIGN) != 0) {
            value.weight -= SHORT_WEIGHT_MASK + 1;
        }
    } else {
        std::int16_t weight;
        std::memcpy(&weight, data + sizeof header, sizeof weight);
        value.negative = (header & NUMERIC_FLAGS) == NUMERIC_NEGATIVE;
        value.weight = weight;
        header_size += sizeof weight;
    }
    value.digits = reinterpret_cast<const std::int16_t*>(data + header_size);
    value.count = static_cast<std::uint32_t>((size - header_size) / sizeof(std::int16_t));
    return value;
}

namespace {

// pack_number packs a numeric of 1 to core::MAX_PACKED digits into words; returns false for any other.
[[gnu::always_inline]] inline bool pack_number(const char* stored, core::PackedDecimal* packed) {
    if constexpr (std::endian::native != std::endian::little) {
        return false;
    }
    std::uint16_t header;
    std::memcpy(&header, stored + VARHDRSZ, sizeof header);
    if (unlikely(!VARATT_IS_4B_U(stored) || (header & NUMERIC_FLAGS) != NUMERIC_SHORT)) {
        return false;
    }
    const std::size_t size = VARSIZE(stored);
    const std::size_t digits_size = size - VARHDRSZ - sizeof header;
    if (unlikely(digits_size - 1 >= core::MAX_PACKED * sizeof(std::int16_t))) {
        return false;
    }
    // The word that ends where the digits end starts within the headers before them at the earliest.
    const char* const end = stored + size;
    const std::uint64_t last = core::load_word(end - sizeof(std::uint64_t));
    if (digits_size <= sizeof(std::uint64_t)) {
        packed->low = last >> (64 - 8 * digits_size);
        packed->high = 0;
    } else {
        packed->low = core::load_word(end - digits_size);
        packed->high = last >> (128 - 8 * digits_size);
    }
    packed->count = static_cast<std::uint32_t>(digits_size / sizeof(std::int16_t));
    // The weight is the lowest seven bits, in two's complement.
    packed->weight = static_cast<std::int32_t>(static_cast<std::uint32_t>(header) << 25) >> 25;
    packed->negative = (header & SHORT_NEGATIVE) != 0;
    return true;
}

// --- the walk -------------------------------------------------------------------------------------------------------

enum class Kind : std::uint8_t { ARRAY, SHAPED, SORTED };

// Frame is one open container. data are those its entries speak of.
struct Frame {
    const char* data;
    // arrays
    const JsonbContainer* container;
    std::uint32_t offset; // where the next element's data start
    // arrays and sorted objects
    std::uint32_t next;
    std::uint32_t count;
    // objects
    Kind kind;
    bool is_inline;               // taken is memory of the walk
    std::uint32_t offsets_before; // what of that was used before
    std::uint32_t* taken;
    const JEntry* values;
    const std::uint32_t* starts; // of the values' data, and where the last end
    // shaped objects: what is left of the members and their keys' text
    const ShapeMember* members;
    const ShapeMember* members_end;
    const char* text;
    // sorted objects
    const std::uint32_t* order;
    KeyTable keys;
};

constexpr std::size_t INLINE_FRAMES = 12;
constexpr std::size_t INLINE_OFFSETS = 512;

// RESERVE is the room for a key's text, a short value, and brackets.
constexpr std::size_t RESERVE = MAX_KEY_TEXT + core::WINDOW + core::PACKED_ROOM + 8;
static_assert(RESERVE < CanonicalWriter::MIN_CAPACITY && core::PACKED_ROOM > core::STRING_ROOM);
static_assert(2 * core::STRING_ROOM < RESERVE);

// MAX_CLEAN is the size up to which a string is written in the hope that it needs no escape.
constexpr std::size_t MAX_CLEAN = 512;

template <class T>
T* allocate(std::size_t count) {
    return static_cast<T*>(MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(T)));
}

// entry_end returns where the data of entry end, if they start at offset start.
std::uint32_t entry_end(JEntry entry, std::uint32_t start) {
    const std::uint32_t field = JBE_OFFLENFLD(entry);
    return JBE_HAS_OFF(entry) ? field : start + field;
}

std::uint32_t entry_type(JEntry entry) {
    return entry & JENTRY_TYPEMASK;
}

class Walk {
public:
    Walk(const Jsonb* value, CanonicalWriter& writer)
        : writer_(writer), is_utf8_(GetDatabaseEncoding() == PG_UTF8),
          end_(reinterpret_cast<const char*>(value) + VARSIZE(value)),
          wide_end_(is_utf8_ ? reinterpret_cast<std::uintptr_t>(end_) - core::SHORT_STRING : 0),
          full_(writer.limit() - RESERVE) {}

    void run(const JsonbContainer* root) {
        char* at = writer_.borrow(RESERVE);
        *at = ',';
        at += writer_.needs_comma() ? 1 : 0;
        at = enter(at, root);
        while (depth_ > 0) {
            const JsonbContainer* child = nullptr;
            at = advance(at, frames_[depth_ - 1], &child);
            if (child != nullptr) {
                at = enter(at, child);
            } else {
                leave(frames_[--depth_]);
            }
        }
        writer_.give_back(at, true);
        if (frames_ != inline_frames_) {
            pfree(frames_);
        }
    }

private:
    // --- text ---

    // drain flushes the buffer and returns where text goes on.
    [[gnu::noinline]] char* drain(char* at) {
        writer_.give_back(at, false);
        writer_.flush();
        return writer_.borrow(RESERVE);
    }

    [[gnu::always_inline]] char* put_string(char* at, const char* text, std::size_t size, std::uintptr_t wide_end) {
        if (likely(size <= core::SHORT_STRING && reinterpret_cast<std::uintptr_t>(text) <= wide_end)) {
            if (char* const done = core::put_short_string(at, text, size)) {
                return done;
            }
        }
        return put_other_string(at, Bytes(text, size));
    }

    // put_other_string writes a string of any kind: longer, with escapes, at the end of the value, in another encoding.
    [[gnu::noinline]] char* put_other_string(char* at, Bytes text) {
        if (is_utf8_ && text.size() < core::BLOCK_SIZE) {
            if (char* const done = core::put_block_string(at, text)) {
                return done;
            }
        } else if (is_utf8_ && text.size() <= MAX_CLEAN &&
                   text.size() + RESERVE <= static_cast<std::size_t>(writer_.limit() - at) &&
                   text.size() + core::BLOCK_SIZE <= static_cast<std::size_t>(end_ - text.data())) {
            if (char* const done = core::put_clean_string(at, text.data(), text.size())) {
                return done;
            }
        }
        writer_.give_back(at, false);
        if (is_utf8_) {
            writer_.string(text);
        } else {
            write_string(text, writer_);
        }
        return writer_.borrow(RESERVE);
    }

    [[gnu::always_inline]] char* put_number(char* at, const char* stored) {
        core::PackedDecimal packed;
        if (likely(pack_number(stored, &packed))) {
            if (char* const done = core::print_packed(at, packed)) {
                return done;
            }
        }
        return put_other_number(at, stored);
    }

    [[gnu::noinline]] char* put_other_number(char* at, const char* stored) {
        writer_.give_back(at, false);
        writer_.number(decimal_of(stored));
        return writer_.borrow(RESERVE);
    }

    // put_scalar writes the value at data + start, of type and size.
    [[gnu::always_inline]] char* put_scalar(char* at, std::uint32_t type, const char* data, std::uint32_t start,
                                            std::uint32_t size, std::uintptr_t wide_end) {
        if (type == JENTRY_ISSTRING) {
            return put_string(at, data + start, size, wide_end);
        }
        if (type == JENTRY_ISNUMERIC) {
            return put_number(at, data + INTALIGN(start));
        }
        if (type == JENTRY_ISBOOL_TRUE || type == JENTRY_ISNULL) {
            std::memcpy(at, type == JENTRY_ISNULL ? "null" : "true", 4);
            return at + 4;
        }
        if (unlikely(type != JENTRY_ISBOOL_FALSE)) {
            elog(ERROR, "unrecognized jsonb entry type: 0x%x", type);
        }
        std::memcpy(at, "false", 5);
        return at + 5;
    }

    // --- containers ---

    // advance writes frame's children up to the next container, and sets *child to that, or closes frame.
    [[gnu::always_inline]] char* advance(char* at, Frame& frame, const JsonbContainer** child) {
        switch (frame.kind) {
        case Kind::ARRAY: return advance_array(at, frame, child);
        case Kind::SHAPED: return advance_shaped(at, frame, child);
        case Kind::SORTED: return advance_sorted(at, frame, child);
        }
        pg_unreachable();
    }

    [[gnu::always_inline]] char* advance_array(char* at, Frame& frame, const JsonbContainer** child) {
        const JEntry* const entries = frame.container->children;
        const char* const data = frame.data;
        const std::uintptr_t wide_end = wide_end_;
        const char* const full = full_;
        const std::uint32_t count = frame.count;
        std::uint32_t offset = frame.offset;
        std::uint32_t i = frame.next;
        for (;; ++i) {
            if (unlikely(at > full)) {
                at = drain(at);
            }
            if (i == count) {
                *at = ']';
                return at + (JsonContainerIsScalar(frame.container) ? 0 : 1);
            }
            *at = ',';
            at += i > 0 ? 1 : 0;
            const JEntry entry = entries[i];
            const std::uint32_t start = offset;
            offset = entry_end(entry, start);
            if (entry_type(entry) == JENTRY_ISCONTAINER) {
                frame.next = i + 1;
                frame.offset = offset;
                *child = reinterpret_cast<const JsonbContainer*>(data + INTALIGN(start));
                return at;
            }
            at = put_scalar(at, entry_type(entry), data, start, offset - start, wide_end);
        }
    }

    [[gnu::always_inline]] char* advance_shaped(char* at, Frame& frame, const JsonbContainer** child) {
        const std::uint32_t* const starts = frame.starts;
        const char* const data = frame.data;
        const JEntry* const values = frame.values;
        const std::uintptr_t wide_end = wide_end_;
        const char* const full = full_;
        const ShapeMember* const end = frame.members_end;
        const char* text = frame.text;
        for (const ShapeMember* member = frame.members;; ++member) {
            if (unlikely(at > full)) {
                at = drain(at);
            }
            if (member == end) {
                *at = '}';
                return at + 1;
            }
            core::copy_window(at, text);
            if (unlikely(member->text_size > core::WINDOW)) {
                std::memcpy(at, text, member->text_size);
            }
            at += member->text_size;
            text += member->text_size;
            const std::uint32_t index = member->index;
            const std::uint32_t start = starts[index];
            const std::uint32_t type = entry_type(values[index]);
            if (type == JENTRY_ISCONTAINER) {
                frame.members = member + 1;
                frame.text = text;
                *child = reinterpret_cast<const JsonbContainer*>(data + INTALIGN(start));
                return at;
            }
            at = put_scalar(at, type, data, start, starts[index + 1] - start, wide_end);
        }
    }

    [[gnu::always_inline]] char* advance_sorted(char* at, Frame& frame, const JsonbContainer** child) {
        const std::uint32_t count = frame.count;
        const std::uint32_t* const order = frame.order;
        const std::uint32_t* const starts = frame.starts;
        const char* const data = frame.data;
        const JEntry* const values = frame.values;
        const char* const keys = frame.keys.data;
        const std::uint32_t* const key_starts = frame.keys.starts;
        const std::uintptr_t wide_end = wide_end_;
        const char* const full = full_;
        for (std::uint32_t i = frame.next;; ++i) {
            if (unlikely(at > full)) {
                at = drain(at);
            }
            if (i == count) {
                *at = '}';
                return at + 1;
            }
            *at = ',';
            at += i > 0 ? 1 : 0;
            const std::uint32_t index = order[i];
            const std::uint32_t key_start = key_starts[index];
            at = put_key(at, keys + key_start, key_starts[index + 1] - key_start, wide_end);
            *at++ = ':';
            const std::uint32_t start = starts[index];
            const std::uint32_t type = entry_type(values[index]);
            if (type == JENTRY_ISCONTAINER) {
                frame.next = i + 1;
                *child = reinterpret_cast<const JsonbContainer*>(data + INTALIGN(start));
                return at;
            }
            at = put_scalar(at, type, data, start, starts[index + 1] - start, wide_end);
        }
    }

    // put_key writes a key, which is in UTF-8 already.
    [[gnu::always_inline]] char* put_key(char* at, const char* key, std::size_t size, std::uintptr_t wide_end) {
        if (likely(size <= core::SHORT_STRING && reinterpret_cast<std::uintptr_t>(key) <= wide_end)) {
            if (char* const done = core::put_short_string(at, key, size)) {
                return done;
            }
        }
        return put_other_key(at, Bytes(key, size));
    }

    [[gnu::noinline]] char* put_other_key(char* at, Bytes key) {
        writer_.give_back(at, false);
        writer_.string(key);
        return writer_.borrow(RESERVE);
    }

    // enter opens container; empty ones are written as a whole.
    [[gnu::always_inline]] char* enter(char* at, const JsonbContainer* container) {
        CHECK_FOR_INTERRUPTS();
        const std::uint32_t count = JsonContainerSize(container);
        if (count == 0) {
            std::memcpy(at, JsonContainerIsObject(container) ? "{}" : "[]", 2);
            return at + 2;
        }
        if (unlikely(depth_ == frame_capacity_)) {
            grow_frames();
        }
        Frame& frame = frames_[depth_++];
        if (JsonContainerIsObject(container)) {
            return open_object(at, frame, container, count);
        }
        frame.kind = Kind::ARRAY;
        frame.container = container;
        frame.data = reinterpret_cast<const char*>(container->children + count);
        frame.count = count;
        frame.next = 0;
        frame.offset = 0;
        *at = '[';
        return at + (JsonContainerIsScalar(container) ? 0 : 1);
    }

    [[gnu::always_inline]] void leave(const Frame& frame) {
        if (frame.kind != Kind::ARRAY) {
            release(frame);
        }
    }

    // open_object prepares the members of an object in canonical order.
    [[gnu::always_inline]] char* open_object(char* at, Frame& frame, const JsonbContainer* container,
                                             std::uint32_t count) {
        const JEntry* const entries = container->children;
        frame.values = entries + count;
        frame.data = reinterpret_cast<const char*>(entries + 2 * std::size_t{count});
        if (likely(is_utf8_ && count >= 2)) {
            if (const Shape* shape = shapes_.expected(entries, count, frame.data, end_)) {
                open_shaped(frame, shape);
                return at;
            }
        }
        return open_other_object(at, frame, container, count);
    }

    // open_other_object looks the object's shape up, or orders its keys.
    [[gnu::noinline]] char* open_other_object(char* at, Frame& frame, const JsonbContainer* container,
                                              std::uint32_t count) {
        std::uint32_t* const starts = take(frame, 3 * std::size_t{count} + 1);
        sum_up(container->children, 2 * count, 0, starts);
        frame.starts = starts + count;
        const std::uint32_t key_size = starts[count];
        if (is_utf8_ && count >= 2 && count <= MAX_SHAPE_KEYS && key_size <= MAX_SHAPE_KEY_BYTES) {
            const std::uint64_t hash = hash_keys(count, frame.data, key_size, end_);
            if (const Shape* shape = shapes_.find(hash, container->children, count, frame.data, key_size)) {
                use_shape(frame, shape);
                return at;
            }
            order_members(frame, count);
            shapes_.note(hash, container->children, frame.keys, frame.order);
        } else {
            order_members(frame, count);
        }
        *at = '{';
        return at + 1;
    }

    [[gnu::always_inline]] void open_shaped(Frame& frame, const Shape* shape) {
        use_shape(frame, shape);
        frame.starts = take(frame, shape->count + std::size_t{1});
        sum_up(frame.values, shape->count, shape->key_size, frame.taken);
    }

    [[gnu::always_inline]] static void use_shape(Frame& frame, const Shape* shape) {
        frame.kind = Kind::SHAPED;
        frame.members = shape->members();
        frame.members_end = frame.members + shape->count;
        frame.text = shape->text();
    }

    // sum_up writes where the data of count entries start, the first at offset, and where the last end.
    [[gnu::always_inline]] static void sum_up(const JEntry* entries, std::uint32_t count, std::uint32_t offset,
                                              std::uint32_t* starts) {
        std::uint32_t i = 0;
        for (; count - i >= 4; i += 4) {
            const JEntry* const four = entries + i;
            if (likely(((four[0] | four[1] | four[2] | four[3]) & JENTRY_HAS_OFF) == 0)) {
                const std::uint32_t second = offset + JBE_OFFLENFLD(four[0]);
                const std::uint32_t third = second + JBE_OFFLENFLD(four[1]);
                const std::uint32_t fourth = third + JBE_OFFLENFLD(four[2]);
                starts[i] = offset;
                starts[i + 1] = second;
                starts[i + 2] = third;
                starts[i + 3] = fourth;
                offset = fourth + JBE_OFFLENFLD(four[3]);
            } else {
                for (std::uint32_t j = 0; j < 4; ++j) {
                    starts[i + j] = offset;
                    offset = entry_end(four[j], offset);
                }
            }
        }
        for (; i < count; ++i) {
            starts[i] = offset;
            offset = entry_end(entries[i], offset);
        }
        starts[count] = offset;
    }

    // order_members puts the members of an object into canonical order; frame has taken three times their number and
    // one, and begins with where their keys start.
    void order_members(Frame& frame, std::uint32_t count) {
        std::uint32_t* const order = frame.taken + 2 * std::size_t{count} + 1;
        frame.kind = Kind::SORTED;
        frame.count = count;
        frame.next = 0;
        frame.order = order;
        frame.keys = {frame.data, frame.taken, count, end_};
        if (!is_utf8_ && !is_ascii(Bytes(frame.data, frame.taken[count]))) {
            convert_keys(frame);
        }
        core::SortKey* scratch = nullptr;
        if (count > core::RANKED_KEYS) {
            scratch = allocate<core::SortKey>(2 * std::size_t{count});
        }
        core::order_keys(frame.keys, order, scratch, [] { CHECK_FOR_INTERRUPTS(); });
        if (scratch != nullptr) {
            pfree(scratch);
        }
    }

    // convert_keys replaces frame's keys by palloc'd ones in UTF-8. No character takes more than four times its bytes.
    void convert_keys(Frame& frame) {
        const KeyTable stored = frame.keys;
        auto* const starts = allocate<std::uint32_t>(stored.count + std::size_t{1});
        std::size_t size = 0;
        char* data = allocate<char>(4 * std::size_t{stored.starts[stored.count]} + 1);
        for (std::uint32_t i = 0; i < stored.count; ++i) {
            const Bytes key = utf8_of(stored[i]);
            std::memcpy(data + size, key.data(), key.size());
            starts[i] = static_cast<std::uint32_t>(size);
            size += key.size();
            free_conversion(key, stored[i]);
        }
        starts[stored.count] = static_cast<std::uint32_t>(size);
        frame.keys = {data, starts, stored.count, data + size};
    }

    // --- memory ---

    // take gives frame memory for count offsets. It and release are a stack: the last taken is the first released.
    [[gnu::always_inline]] std::uint32_t* take(Frame& frame, std::size_t count) {
        frame.offsets_before = static_cast<std::uint32_t>(offsets_used_);
        if (likely(count <= INLINE_OFFSETS - offsets_used_)) {
            frame.taken = inline_offsets_ + offsets_used_;
            frame.is_inline = true;
            offsets_used_ += count;
        } else {
            frame.taken = allocate<std::uint32_t>(count);
            frame.is_inline = false;
        }
        return frame.taken;
    }

    [[gnu::always_inline]] void release(const Frame& frame) {
        offsets_used_ = frame.offsets_before;
        if (unlikely(!frame.is_inline)) {
            pfree(frame.taken);
        }
        if (unlikely(frame.kind == Kind::SORTED && frame.keys.data != frame.data)) {
            pfree(const_cast<char*>(frame.keys.data));
            pfree(const_cast<std::uint32_t*>(frame.keys.starts));
        }
    }

    [[gnu::noinline]] void grow_frames() {
        Frame* grown = allocate<Frame>(2 * frame_capacity_);
        std::memcpy(static_cast<void*>(grown), frames_, depth_ * sizeof(Frame));
        if (frames_ != inline_frames_) {
            pfree(frames_);
        }
        frames_ = grown;
        frame_capacity_ *= 2;
    }

    CanonicalWriter& writer_;
    ShapeFinder shapes_;
    const bool is_utf8_;
    const char* const end_;         // of the value
    const std::uintptr_t wide_end_; // text up to here can be read in blocks
    const char* const full_;        // text must not start behind it
    Frame* frames_ = inline_frames_;
    std::size_t depth_ = 0;
    std::size_t frame_capacity_ = INLINE_FRAMES;
    std::size_t offsets_used_ = 0;
    Frame inline_frames_[INLINE_FRAMES];
    std::uint32_t inline_offsets_[INLINE_OFFSETS];
};

} // namespace

void write_jsonb(const Jsonb* value, core::CanonicalWriter& writer) {
    Walk(value, writer).run(&value->root);
}

void write_string(core::Bytes text, core::CanonicalWriter& writer) {
    const Bytes utf8 = utf8_of(text);
    writer.string(utf8);
    free_conversion(utf8, text);
}

} // namespace idem::pg
