// jsonb_tokens.cpp: the walk over jsonb containers.
//
// A container is a header word, one JEntry per array element (or per key, then per value), and their data. A JEntry
// holds the length of its data, or the end offset if its offset bit is set; so offsets are summed up while walking
// forward, and the bit is read each time, never guessed from the stride. Numbers and containers start at the next
// multiple of four.
//
// The nesting is kept in an explicit stack of frames, 24 bytes per level: a value stored under a large max_stack_depth
// must hash under a small one. Objects also keep their members' order until they are closed. Both start in this file's
// stack frame and move to palloc'd memory only when they outgrow it, so small payloads never allocate.
//
// numeric's on-disk header is private to the server's numeric.c but fixed by the on-disk format.
#include "pg/errors.hpp"
#include "pg/jsonb_tokens.hpp"

namespace idem::pg {
namespace {

using core::Bytes;
using core::CanonicalWriter;
using core::Decimal;
using core::Member;

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

// --- the walk -------------------------------------------------------------------------------------------------------

// Frame is one open container. members is NULL for an array; offset (arrays only) is where the next element's data
// start.
struct Frame {
    const JsonbContainer* container;
    const Member* members;
    std::uint32_t next;
    std::uint32_t offset;
};

constexpr std::size_t INLINE_FRAMES = 16;
constexpr std::size_t INLINE_MEMBERS = 96;

template <class T>
T* allocate(std::size_t count) {
    return static_cast<T*>(MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(T)));
}

// entry_end returns where the data of entry end, if they start at offset start.
std::uint32_t entry_end(JEntry entry, std::uint32_t start) {
    return JBE_HAS_OFF(entry) ? JBE_OFFLENFLD(entry) : start + JBE_OFFLENFLD(entry);
}

std::uint32_t entry_type(JEntry entry) {
    return entry & JENTRY_TYPEMASK;
}

// data_of returns the start of container's data, behind all of its JEntries.
const char* data_of(const JsonbContainer* container) {
    const std::size_t count = JsonContainerSize(container);
    return reinterpret_cast<const char*>(container->children + (JsonContainerIsObject(container) ? 2 * count : count));
}

class Walk {
public:
    Walk(const Jsonb* value, CanonicalWriter& writer)
        : value_(value), writer_(writer), is_utf8_(GetDatabaseEncoding() == PG_UTF8) {}

    void run() {
        open(&value_->root);
        while (depth_ > 0) {
            if (const JsonbContainer* child = advance(frames_[depth_ - 1])) {
                open(child);
            } else {
                close();
            }
        }
        if (frames_ != inline_frames_) {
            pfree(frames_);
        }
    }

private:
    void open(const JsonbContainer* container) {
        CHECK_FOR_INTERRUPTS();
        if (depth_ == frame_capacity_) {
            grow_frames();
        }
        const Member* members = nullptr;
        if (JsonContainerIsObject(container)) {
            writer_.begin_object();
            members = ordered_members(container);
        } else if (!JsonContainerIsScalar(container)) {
            writer_.begin_array();
        }
        frames_[depth_++] = {container, members, 0, 0};
    }

    void close() {
        const Frame& frame = frames_[--depth_];
        if (JsonContainerIsObject(frame.container)) {
            writer_.end_object();
            release_members(frame.members, JsonContainerSize(frame.container));
        } else if (!JsonContainerIsScalar(frame.container)) {
            writer_.end_array();
        }
    }

    // advance writes frame's children up to the next container and returns that; NULL at the end.
    const JsonbContainer* advance(Frame& frame) {
        return JsonContainerIsObject(frame.container) ? advance_object(frame) : advance_array(frame);
    }

    const JsonbContainer* advance_array(Frame& frame) {
        const std::uint32_t count = JsonContainerSize(frame.container);
        const JEntry* entries = frame.container->children;
        const char* data = data_of(frame.container);
        while (frame.next < count) {
            const JEntry entry = entries[frame.next++];
            const std::uint32_t start = frame.offset;
            frame.offset = entry_end(entry, start);
            if (entry_type(entry) == JENTRY_ISCONTAINER) {
                return reinterpret_cast<const JsonbContainer*>(data + INTALIGN(start));
            }
            scalar(entry_type(entry), data, start, frame.offset - start);
        }
        return nullptr;
    }

    const JsonbContainer* advance_object(Frame& frame) {
        const std::uint32_t count = JsonContainerSize(frame.container);
        const char* data = data_of(frame.container);
        while (frame.next < count) {
            const Member& member = frame.members[frame.next++];
            writer_.key(member.key);
            if (!is_utf8_) {
                free_key(member.key);
            }
            if (entry_type(member.entry) == JENTRY_ISCONTAINER) {
                return reinterpret_cast<const JsonbContainer*>(data + INTALIGN(member.offset));
            }
            scalar(entry_type(member.entry), data, member.offset, JBE_OFFLENFLD(member.entry));
        }
        return nullptr;
    }

    void scalar(std::uint32_t type, const char* data, std::uint32_t start, std::uint32_t size) {
        switch (type) {
        case JENTRY_ISSTRING:
            if (is_utf8_) {
                writer_.string(Bytes(data + start, size));
            } else {
                write_string(Bytes(data + start, size), writer_);
            }
            break;
        case JENTRY_ISNUMERIC: writer_.number(decimal_of(data + INTALIGN(start))); break;
        case JENTRY_ISBOOL_FALSE: writer_.boolean(false); break;
        case JENTRY_ISBOOL_TRUE: writer_.boolean(true); break;
        case JENTRY_ISNULL: writer_.null(); break;
        default: elog(ERROR, "unrecognized jsonb entry type: 0x%x", type);
        }
    }

    // ordered_members returns container's members in canonical order. An entry of a member keeps the type bits and
    // always the length, never the end offset.
    const Member* ordered_members(const JsonbContainer* container) {
        const std::uint32_t count = JsonContainerSize(container);
        const JEntry* entries = container->children;
        const char* data = data_of(container);
        Member* members = take_members(count);
        std::uint32_t offset = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint32_t end = entry_end(entries[i], offset);
            members[i].key = Bytes(data + offset, end - offset);
            offset = end;
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            const JEntry entry = entries[count + i];
            const std::uint32_t end = entry_end(entry, offset);
            members[i].entry = entry_type(entry) | (end - offset);
            members[i].offset = offset;
            offset = end;
        }
        if (!is_utf8_) {
            for (std::uint32_t i = 0; i < count; ++i) {
                members[i].key = utf8_of(members[i].key);
            }
        }
        order(members, count);
        return members;
    }

    void order(Member* members, std::uint32_t count) {
        if (count <= core::INSERTION_LIMIT) {
            core::sort_few(members, count);
            return;
        }
        Member* scratch = take_members(count);
        core::sort_members(members, scratch, count, [] { CHECK_FOR_INTERRUPTS(); });
        release_members(scratch, count);
    }

    // free_key frees a key that was converted: one that does not point into the value.
    void free_key(Bytes key) const {
        const auto address = reinterpret_cast<std::uintptr_t>(key.data());
        const auto begin = reinterpret_cast<std::uintptr_t>(value_);
        if (address < begin || address - begin > VARSIZE(value_)) {
            pfree(const_cast<char*>(key.data()));
        }
    }

    // take_members and release_members are a stack: the last taken is the first released.
    Member* take_members(std::size_t count) {
        if (count <= INLINE_MEMBERS - members_used_) {
            Member* taken = inline_members_ + members_used_;
            members_used_ += count;
            return taken;
        }
        return allocate<Member>(count);
    }

    void release_members(const Member* members, std::size_t count) {
        if (members >= inline_members_ && members <= inline_members_ + INLINE_MEMBERS) {
            members_used_ -= count;
        } else {
            pfree(const_cast<Member*>(members));
        }
    }

    void grow_frames() {
        Frame* grown = allocate<Frame>(2 * frame_capacity_);
        std::memcpy(grown, frames_, depth_ * sizeof(Frame));
        if (frames_ != inline_frames_) {
            pfree(frames_);
        }
        frames_ = grown;
        frame_capacity_ *= 2;
    }

    const Jsonb* const value_;
    CanonicalWriter& writer_;
    const bool is_utf8_;
    Frame* frames_ = inline_frames_;
    std::size_t depth_ = 0;
    std::size_t frame_capacity_ = INLINE_FRAMES;
    std::size_t members_used_ = 0;
    Frame inline_frames_[INLINE_FRAMES];
    union {
        Member inline_members_[INLINE_MEMBERS]; // a union, so that nothing is set to zero per call
    };
};

} // namespace

void write_jsonb(const Jsonb* value, core::CanonicalWriter& writer) {
    Walk(value, writer).run();
}

void write_string(core::Bytes text, core::CanonicalWriter& writer) {
    const Bytes utf8 = utf8_of(text);
    writer.string(utf8);
    free_conversion(utf8, text);
}

} // namespace idem::pg
