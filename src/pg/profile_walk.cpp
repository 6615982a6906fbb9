// profile_walk.cpp: see profile_walk.hpp.
//
// Containers are read with the server's JsonbIterator, one per open array and one per object when it is opened. Nodes
// of the path set that a container is at lie on a stack of their own: a frame remembers how high it was before. Nearly
// everywhere there are none. Everything is allocated in one memory context, which is current during
// the walk and ends with it.
#include "core/canonical.hpp"
#include "core/double.hpp"
#include "core/profile.hpp"
#include "core/unicode.hpp"

#include "pg/errors.hpp"
#include "pg/jsonb_tokens.hpp"
#include "pg/profile_walk.hpp"

namespace idem::pg {
namespace {

using core::Bytes;
using core::CanonicalWriter;
using core::Decimal;
using core::Member;
using core::PathNode;
using core::PathUse;
using core::Profile;

constexpr std::size_t FIRST_CAPACITY = 64;
constexpr std::size_t PIECE = 1024; // bytes that are normalized at a time, if marks do not make it more

Bytes string_of(const JsonbValue& value) {
    return {value.val.string.val, static_cast<std::size_t>(value.val.string.len)};
}

bool is_container(const JsonbValue& value) {
    return value.type == jbvBinary;
}

// Room is memory that only grows. It is never freed: the walk's context is.
template <class T>
class Room {
public:
    // at_least returns room for count items; the first `kept` of what was there stay.
    T* at_least(std::size_t count, std::size_t kept = 0) {
        if (count > capacity_) {
            const std::size_t doubled = 2 * capacity_ > FIRST_CAPACITY ? 2 * capacity_ : FIRST_CAPACITY;
            capacity_ = count > doubled ? count : doubled;
            auto* grown = static_cast<T*>(MemoryContextAllocHuge(CurrentMemoryContext, capacity_ * sizeof(T)));
            if (kept > 0) {
                std::memcpy(static_cast<void*>(grown), data_, kept * sizeof(T));
            }
            if (data_ != nullptr) {
                pfree(data_);
            }
            data_ = grown;
        }
        return data_;
    }

    T* data() const { return data_; }

private:
    T* data_ = nullptr;
    std::size_t capacity_ = 0;
};

// Elements are the canonical texts of an unordered array's elements, one after the other, each with a line feed behind
// it; ends are where they end.
struct Elements {
    CanonicalWriter* outer;
    CanonicalWriter writer;
    Room<char> text;
    std::size_t size;
    Room<std::size_t> ends;
    std::size_t count;
};

void collect(void* context, const char* text, std::size_t size) {
    CHECK_FOR_INTERRUPTS();
    auto* elements = static_cast<Elements*>(context);
    std::memcpy(elements->text.at_least(elements->size + size, elements->size) + elements->size, text, size);
    elements->size += size;
}

// Places is a part of the stack of nodes.
struct Places {
    std::uint32_t first;
    std::uint32_t count;
};

// Frame is one open container: an object with its members in order, or an array that is being iterated.
struct Frame {
    const Member* members;    // of an object, else null
    const JsonbValue* values; // by Member.entry
    std::uint32_t count;
    std::uint32_t next;
    JsonbIterator* iterator; // of an array or a root scalar; null for an object
    Elements* elements;      // of an unordered array
    Places places;           // of an object: itself; of an array: its elements
    std::uint32_t mark;      // height of the stack of nodes before this frame
    bool is_scalar;
    bool filters; // only what intent paths lead to is kept
};

class Walk {
public:
    Walk(const Profile& profile, const Jsonb* value, CanonicalWriter& writer)
        : profile_(profile), value_(value), writer_(&writer) {}

    void run() {
        Places root{0, 0};
        if (!profile_.paths.is_empty()) {
            push(0);
            root.count = 1;
        }
        const bool filters = profile_.paths.has_intent && !any(root, PathUse::INTENT);
        open(const_cast<JsonbContainer*>(&value_->root), root, 0, filters);
        while (depth_ > 0) {
            advance();
        }
    }

private:
    // --- places -----------------------------------------------------------------------------------------------------

    const PathNode& node(std::uint32_t i) const { return profile_.paths.nodes[nodes_.data()[i]]; }

    void push(std::uint32_t node) {
        nodes_.at_least(height_ + 1, height_)[height_] = node;
        ++height_;
    }

    Places since(std::uint32_t mark) const { return {mark, height_ - mark}; }

    Places of_member(Places places, Bytes key) {
        const std::uint32_t mark = height_;
        for (std::uint32_t i = 0; i < places.count; ++i) {
            const std::uint32_t parent = nodes_.data()[places.first + i];
            const PathNode& at = profile_.paths.nodes[parent];
            if (at.every_member != 0) {
                push(at.every_member);
            }
            const std::uint32_t named = at.has_names ? profile_.paths.member(parent, key) : 0;
            if (named != 0) {
                push(named);
            }
        }
        return since(mark);
    }

    Places of_elements(Places places) {
        const std::uint32_t mark = height_;
        for (std::uint32_t i = 0; i < places.count; ++i) {
            const std::uint32_t element = node(places.first + i).every_element;
            if (element != 0) {
                push(element);
            }
        }
        return since(mark);
    }

    bool any(Places places, PathUse use) const {
        for (std::uint32_t i = 0; i < places.count; ++i) {
            if (node(places.first + i).is(use)) {
                return true;
            }
        }
        return false;
    }

    bool leads(Places places, std::uint8_t how) const {
        for (std::uint32_t i = 0; i < places.count; ++i) {
            if ((node(places.first + i).leads & how) != 0) {
                return true;
            }
        }
        return false;
    }

    // scale returns whether numbers at places are rounded, and to what: the fewest digits that any path asks for.
    bool scale(Places places, std::int32_t* out) const {
        bool found = false;
        for (std::uint32_t i = 0; i < places.count; ++i) {
            const PathNode& at = node(places.first + i);
            if (at.is(PathUse::ROUND) && (!found || at.scale < *out)) {
                *out = at.scale;
                found = true;
            }
        }
        return found;
    }

    // --- containers -------------------------------------------------------------------------------------------------

    // open pushes a frame for container, which is at places; mark is how high the stack of nodes is without it.
    void open(JsonbContainer* container, Places places, std::uint32_t mark, bool filters) {
        CHECK_FOR_INTERRUPTS();
        Frame frame{};
        frame.mark = mark;
        frame.is_scalar = JsonContainerIsScalar(container);
        frame.count = JsonContainerSize(container);
        if (JsonContainerIsObject(container)) {
            // A path that goes on with [*] does not fit an object, which stays whole then; likewise below.
            frame.filters = filters && leads(places, PathNode::LEADS_BY_MEMBER);
            frame.places = places;
            writer_->begin_object();
            take_members(container, frame);
        } else {
            frame.filters = filters && leads(places, PathNode::LEADS_BY_ELEMENT);
            frame.places = frame.is_scalar ? places : of_elements(places);
            frame.iterator = JsonbIteratorInit(container);
            JsonbValue ignored;
            JsonbIteratorNext(&frame.iterator, &ignored, true);
            if (!frame.is_scalar && any(places, PathUse::UNORDERED)) {
                frame.elements = begin_elements();
            } else if (!frame.is_scalar) {
                writer_->begin_array();
            }
        }
        frames_.at_least(depth_ + 1, depth_)[depth_] = frame;
        ++depth_;
    }

    void close() {
        Frame& frame = frames_.data()[--depth_];
        if (frame.iterator == nullptr) {
            writer_->end_object();
            release_members(frame);
        } else if (frame.elements != nullptr) {
            end_elements(frame.elements);
        } else if (!frame.is_scalar) {
            writer_->end_array();
        }
        height_ = frame.mark;
    }

    // advance writes one child of the innermost container, or closes it.
    void advance() {
        Frame& frame = frames_.data()[depth_ - 1];
        if (frame.iterator == nullptr) {
            if (frame.next < frame.count) {
                member(frame, frame.members[frame.next++]);
            } else {
                close();
            }
            return;
        }
        if (frame.elements != nullptr && frame.next > 0) {
            end_element(frame.elements);
        }
        JsonbValue value;
        JsonbIterator* iterator = frame.iterator;
        const JsonbIteratorToken token = JsonbIteratorNext(&iterator, &value, true);
        if (token != WJB_ELEM) {
            close();
            return;
        }
        frame.iterator = iterator;
        ++frame.next;
        const bool filters = frame.filters && !any(frame.places, PathUse::INTENT);
        child(value, frame.places, height_, filters);
    }

    void member(const Frame& frame, const Member& member) {
        const JsonbValue& value = frame.values[member.entry];
        if (profile_.strip_nulls && value.type == jbvNull) {
            return;
        }
        const std::uint32_t mark = height_;
        const Places places = of_member(frame.places, member.key);
        bool filters = frame.filters;
        bool is_kept = !any(places, PathUse::IGNORE);
        if (filters && any(places, PathUse::INTENT)) {
            filters = false;
        } else if (filters && !leads(places, PathNode::LEADS_BY_MEMBER | PathNode::LEADS_BY_ELEMENT)) {
            is_kept = false;
        }
        if (!is_kept) {
            height_ = mark;
            return;
        }
        writer_->key(member.key);
        child(value, places, mark, filters);
    }

    // child writes a scalar, or opens a container; either way nodes above mark go when it is done.
    void child(const JsonbValue& value, Places places, std::uint32_t mark, bool filters) {
        if (is_container(value)) {
            open(value.val.binary.data, places, mark, filters);
            return;
        }
        scalar(value, places);
        height_ = mark;
    }

    // take_members reads an object's members and puts them in order.
    void take_members(JsonbContainer* container, Frame& frame) {
        if (frame.count == 0) {
            return;
        }
        auto* members = allocate<Member>(frame.count);
        auto* values = allocate<JsonbValue>(frame.count);
        JsonbIterator* iterator = JsonbIteratorInit(container);
        JsonbValue key;
        JsonbIteratorNext(&iterator, &key, true);
        for (std::uint32_t i = 0; i < frame.count; ++i) {
            JsonbIteratorNext(&iterator, &key, true);
            members[i] = {utf8_of(string_of(key)), i, 0};
            JsonbIteratorNext(&iterator, &values[i], true);
        }
        pfree(iterator);
        Member* scratch = frame.count > core::INSERTION_LIMIT ? allocate<Member>(frame.count) : nullptr;
        core::sort_members(members, scratch, frame.count, [] { CHECK_FOR_INTERRUPTS(); });
        if (scratch != nullptr) {
            pfree(scratch);
        }
        frame.members = members;
        frame.values = values;
    }

    void release_members(const Frame& frame) {
        if (frame.count > 0) {
            pfree(const_cast<Member*>(frame.members));
            pfree(const_cast<JsonbValue*>(frame.values));
        }
    }

    // --- unordered arrays -------------------------------------------------------------------------------------------

    Elements* begin_elements() {
        auto* elements = allocate<Elements>(1);
        auto* buffer = allocate<char>(2 * CanonicalWriter::MIN_CAPACITY);
        *elements = Elements{
            writer_, CanonicalWriter(buffer, 2 * CanonicalWriter::MIN_CAPACITY, collect, elements), {}, 0, {}, 0};
        writer_ = &elements->writer;
        return elements;
    }

    void end_element(Elements* elements) {
        elements->writer.line_break();
        elements->writer.flush();
        elements->ends.at_least(elements->count + 1, elements->count)[elements->count] = elements->size;
        ++elements->count;
    }

    void end_elements(Elements* elements) {
        writer_ = elements->outer;
        writer_->begin_array();
        const std::size_t count = elements->count;
        auto* texts = allocate<Member>(2 * count + 1);
        std::size_t start = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t end = elements->ends.data()[i];
            texts[i] = {Bytes(elements->text.data() + start, end - start - 1), 0, 0};
            start = end;
        }
        core::sort_members(texts, texts + count, count, [] { CHECK_FOR_INTERRUPTS(); });
        for (std::size_t i = 0; i < count; ++i) {
            writer_->raw(texts[i].key);
        }
        writer_->end_array();
        pfree(texts);
        if (count > 0) {
            pfree(elements->text.data());
            pfree(elements->ends.data());
        }
    }

    // --- scalars ----------------------------------------------------------------------------------------------------

    void scalar(const JsonbValue& value, Places places) {
        switch (value.type) {
        case jbvNull: writer_->null(); break;
        case jbvBool: writer_->boolean(value.val.boolean); break;
        case jbvNumeric: number(decimal_of(reinterpret_cast<const char*>(value.val.numeric)), places); break;
        case jbvString: string(string_of(value), places); break;
        default: elog(ERROR, "unrecognized jsonb value type: %d", static_cast<int>(value.type));
        }
    }

    void number(Decimal value, Places places) {
        std::int32_t digits = 0;
        if (scale(places, &digits)) {
            value = core::round_decimal(value, digits, rounded_.at_least(value.count + 1));
        }
        core::ShortDecimal room;
        if (profile_.numbers == core::Numbers::DOUBLE) {
            bool overflow;
            value = core::as_double(value, &room, &overflow);
            if (overflow) {
                error_beyond_double();
            }
        }
        writer_->number(value);
    }

    void string(Bytes stored, Places places) {
        const Bytes utf8 = utf8_of(stored);
        Bytes value = utf8;
        if (profile_.trim_strings) {
            value = core::trim(value);
        }
        if (profile_.nfc_strings && !core::is_surely_nfc(value)) {
            value = normalized(value);
        }
        Decimal decimal;
        if (any(places, PathUse::DECIMAL) &&
            core::parse_decimal(value, parsed_.at_least(core::decimal_groups(value.size())), &decimal)) {
            number(decimal, places);
        } else {
            writer_->string(value);
        }
        free_conversion(utf8, stored);
    }

    Bytes normalized(Bytes value) {
        std::size_t size = 0;
        while (!value.empty()) {
            CHECK_FOR_INTERRUPTS();
            const std::size_t piece = core::nfc_piece(value, PIECE);
            char* out = text_.at_least(size + piece * core::NFC_GROWTH, size);
            size += core::nfc(Bytes(value.data(), piece), out + size, points_.at_least(piece * core::NFC_SCRATCH));
            value.remove_prefix(piece);
        }
        return {text_.data(), size};
    }

    template <class T>
    static T* allocate(std::size_t count) {
        return static_cast<T*>(MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(T)));
    }

    const Profile& profile_;
    const Jsonb* const value_;
    CanonicalWriter* writer_;
    Room<Frame> frames_;
    std::size_t depth_ = 0;
    Room<std::uint32_t> nodes_;
    std::uint32_t height_ = 0;
    Room<std::int16_t> parsed_;
    Room<std::int16_t> rounded_;
    Room<char> text_;
    Room<std::uint32_t> points_;
};

bool is_safe(const JsonbValue& value) {
    if (value.type == jbvString) {
        const Bytes stored = string_of(value);
        const Bytes utf8 = utf8_of(stored);
        const bool is_fine = !core::has_noncharacter(utf8);
        free_conversion(utf8, stored);
        return is_fine;
    }
    if (value.type != jbvNumeric) {
        return true;
    }
    const Decimal exact = decimal_of(reinterpret_cast<const char*>(value.val.numeric));
    core::ShortDecimal room;
    bool overflow;
    const Decimal shortest = core::as_double(exact, &room, &overflow);
    return !overflow && core::equals(exact, shortest);
}

} // namespace

void write_jsonb_under(const core::Profile& profile, const Jsonb* value, core::CanonicalWriter& writer) {
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "payload walk", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(context);
    Walk(profile, value, writer).run();
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(context);
}

bool is_jcs_safe(const Jsonb* value) {
    JsonbIterator* iterator = JsonbIteratorInit(const_cast<JsonbContainer*>(&value->root));
    JsonbValue part;
    JsonbIteratorToken token;
    while ((token = JsonbIteratorNext(&iterator, &part, false)) != WJB_DONE) {
        if (token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT) {
            CHECK_FOR_INTERRUPTS();
        } else if ((token == WJB_KEY || token == WJB_VALUE || token == WJB_ELEM) && !is_safe(part)) {
            return false;
        }
    }
    return true;
}

} // namespace idem::pg
