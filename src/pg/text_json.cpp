// text_json.cpp: see text_json.hpp.
#include "core/canonical.hpp"
#include "core/json_text.hpp"

#include "pg/errors.hpp"
#include "pg/jsonb_tokens.hpp"
#include "pg/text_json.hpp"
#include "pg/varlena.hpp"

namespace idem::pg {
namespace {

using core::Bytes;
using core::JsonReader;
using core::JsonToken;
using core::Member;

template <class T>
T* grown(T* old, std::size_t used, std::size_t* capacity) {
    *capacity = 2 * used + 64;
    auto* larger = static_cast<T*>(MemoryContextAllocHuge(CurrentMemoryContext, *capacity * sizeof(T)));
    if (used > 0) {
        std::memcpy(static_cast<void*>(larger), old, used * sizeof(T));
        pfree(old);
    }
    return larger;
}

// Names are the member names of all objects that are open, those of the innermost one last.
class Names {
public:
    void begin_object() {
        if (depth_ == depth_capacity_) {
            starts_ = grown(starts_, depth_, &depth_capacity_);
        }
        starts_[depth_++] = count_;
    }

    // add takes a name; position is where it begins in the text, in bytes.
    void add(Bytes name, std::size_t position) {
        if (count_ == capacity_) {
            members_ = grown(members_, count_, &capacity_);
        }
        members_[count_++] = {name, static_cast<std::uint32_t>(position), 0};
    }

    // end_object returns true, and the position of the second one, if a name occurred twice in the object that ends.
    bool end_object(std::size_t* position) {
        const std::size_t start = starts_[--depth_];
        const std::size_t count = count_ - start;
        Member* members = members_ + start;
        count_ = start;
        if (count > core::INSERTION_LIMIT && count > scratch_capacity_) {
            if (scratch_ != nullptr) {
                pfree(scratch_);
            }
            scratch_capacity_ = 2 * count;
            scratch_ =
                static_cast<Member*>(MemoryContextAllocHuge(CurrentMemoryContext, scratch_capacity_ * sizeof(Member)));
        }
        core::sort_members(members, scratch_, count, [] { CHECK_FOR_INTERRUPTS(); });
        for (std::size_t i = 1; i < count; ++i) {
            if (members[i].key == members[i - 1].key) {
                *position = members[i].entry;
                return true;
            }
        }
        return false;
    }

private:
    std::size_t* starts_ = nullptr;
    std::size_t depth_ = 0;
    std::size_t depth_capacity_ = 0;
    Member* members_ = nullptr;
    std::size_t count_ = 0;
    std::size_t capacity_ = 0;
    Member* scratch_ = nullptr;
    std::size_t scratch_capacity_ = 0;
};

// character returns the position, from 1, of the character that begins at byte `at` of text.
std::size_t character(Bytes text, std::size_t at) {
    std::size_t count = 1;
    for (std::size_t i = 0; i < at; ++i) {
        count += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 ? 1 : 0;
    }
    return count;
}

// value_of returns the value of the string that reader is at; palloc'd if it has escapes.
Bytes value_of(const JsonReader& reader) {
    const Bytes inner = reader.inner();
    if (!reader.has_escape()) {
        return inner;
    }
    auto* room = static_cast<char*>(MemoryContextAllocHuge(CurrentMemoryContext, inner.size()));
    return {room, core::unescape(inner, room)};
}

// check_escapes raises where the server's encoding lacks a character that a string spells as an escape: jsonb's parser
// would, and show the text around it.
void check_escapes(Bytes inner) {
    std::size_t at = 0;
    while (const std::uint32_t point = core::next_escape(inner, &at)) {
        unsigned char room[MAX_UNICODE_EQUIVALENT_STRING + 1];
        pg_unicode_to_server(point, room);
    }
}

void check_string(Bytes text, const JsonReader& reader, bool is_strict) {
    if (is_strict && reader.has_noncharacter()) {
        error_json_noncharacter(character(text, reader.position()));
    }
    if (reader.has_escape() && GetDatabaseEncoding() != PG_UTF8) {
        check_escapes(reader.inner());
    }
}

// check reads all of text and raises what is wrong with it.
void check(Bytes text, bool is_strict) {
    const std::size_t nesting_size = JsonReader::nesting_size(text.size());
    JsonReader reader(text, static_cast<std::uint8_t*>(palloc0(nesting_size)));
    Names names;
    std::size_t position;
    for (;;) {
        switch (reader.next()) {
        case JsonToken::BEGIN_OBJECT:
            CHECK_FOR_INTERRUPTS();
            names.begin_object();
            break;
        case JsonToken::KEY:
            check_string(text, reader, is_strict);
            if (is_strict) {
                names.add(value_of(reader), reader.position());
            }
            break;
        case JsonToken::END_OBJECT:
            if (names.end_object(&position)) {
                error_json_member_twice(character(text, position));
            }
            break;
        case JsonToken::STRING: check_string(text, reader, is_strict); break;
        case JsonToken::BEGIN_ARRAY: CHECK_FOR_INTERRUPTS(); break;
        case JsonToken::END_ARRAY:
        case JsonToken::NUMBER:
        case JsonToken::TRUE:
        case JsonToken::FALSE:
        case JsonToken::NOTHING: break;
        case JsonToken::END: return;
        case JsonToken::FAULT: error_json_text(reader.fault(), character(text, reader.position()));
        }
    }
}

} // namespace

Jsonb* read_json_text(const text* value, bool is_strict) {
    MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "JSON text", ALLOCSET_DEFAULT_SIZES);
    MemoryContext caller = MemoryContextSwitchTo(context);
    check(utf8_of(bytes_of(value)), is_strict);
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(context);

    char* copy = text_to_cstring(value);
    auto* result = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(copy)));
    pfree(copy);
    return result;
}

} // namespace idem::pg
