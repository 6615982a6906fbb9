// json_text.hpp: JSON text read strictly, token by token.
//
// Purpose: see what a parser of values hides: whether the text is JSON of RFC 8259 to the letter, and where a string
// has what I-JSON (RFC 7493) forbids. Nothing is repaired. Data layout: one bit per nesting level tells objects from
// arrays; it is the caller's memory, so depth costs no stack. Contract: text is valid UTF-8. Tokens are views on the
// text.
#pragma once

#include "core/types.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// JsonToken is what comes next; END follows the root value, FAULT ends the reading.
enum class JsonToken : std::uint8_t {
    BEGIN_OBJECT,
    END_OBJECT,
    BEGIN_ARRAY,
    END_ARRAY,
    KEY,
    STRING,
    NUMBER,
    TRUE,
    FALSE,
    NOTHING, // null
    END,
    FAULT,
};

// JsonFault is why a text is not JSON. ZERO is U+0000, which jsonb cannot hold.
enum class JsonFault : std::uint8_t { NONE, SYNTAX, UNFINISHED, CONTROL, ESCAPE, SURROGATE, ZERO };

// JsonReader reads one text.
class JsonReader {
public:
    // nesting_size is the size in bytes of the nesting bits for a text of size bytes.
    static constexpr std::size_t nesting_size(std::size_t size) noexcept { return size / 8 + 1; }

    JsonReader(Bytes json, std::uint8_t* nesting) noexcept
        : begin_(json.data()), at_(json.data()), end_(json.data() + json.size()), nesting_(nesting) {}

    // next reads the next token.
    JsonToken next() noexcept;

    // inner is what stands between the quotes of a KEY or STRING, or the text of a NUMBER.
    Bytes inner() const noexcept { return inner_; }

    // has_escape tells whether inner() has to be unescaped, has_noncharacter whether its value has a noncharacter.
    bool has_escape() const noexcept { return has_escape_; }
    bool has_noncharacter() const noexcept { return has_noncharacter_; }

    // fault is why the last next() said FAULT.
    JsonFault fault() const noexcept { return fault_; }

    // position is where the token, or the fault, begins, in bytes.
    std::size_t position() const noexcept { return static_cast<std::size_t>(start_ - begin_); }

private:
    enum class Expect : std::uint8_t { VALUE, VALUE_OR_END, KEY, KEY_OR_END, COMMA_OR_END, NOTHING };

    JsonToken fail(JsonFault fault, const char* where) noexcept;
    JsonToken value() noexcept;
    JsonToken open(bool is_object, JsonToken token) noexcept;
    JsonToken close(JsonToken token) noexcept;
    JsonToken word(Bytes spelling, JsonToken token) noexcept;
    JsonToken number() noexcept;
    bool string() noexcept;
    bool escape() noexcept;
    bool code_unit(std::uint32_t* out) noexcept;
    bool digits() noexcept;
    void skip_space() noexcept;
    void after_value() noexcept;
    bool in_object() const noexcept;

    const char* begin_;
    const char* at_;
    const char* end_;
    const char* start_ = begin_;
    std::uint8_t* nesting_;
    std::size_t depth_ = 0;
    Bytes inner_;
    Expect expect_ = Expect::VALUE;
    JsonFault fault_ = JsonFault::NONE;
    bool has_escape_ = false;
    bool has_noncharacter_ = false;
};

// unescape writes the value of a string that JsonReader has read to out (at most as long as inner) and returns its
// size in bytes.
std::size_t unescape(Bytes inner, char* out) noexcept;

// next_escape returns the next code point beyond ASCII that inner, from *at on, spells as an escape, and moves *at
// behind it; 0 if there is none.
std::uint32_t next_escape(Bytes inner, std::size_t* at) noexcept;

} // namespace idem::core
