// json_text.cpp: see json_text.hpp.
#include "core/json_text.hpp"
#include "core/unicode.hpp"

namespace idem::core {
namespace {

constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

constexpr int hex_value(char c) noexcept {
    if (is_digit(c)) {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

constexpr bool is_high(std::uint32_t unit) noexcept {
    return unit >= 0xD800 && unit <= 0xDBFF;
}

constexpr bool is_low(std::uint32_t unit) noexcept {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

constexpr std::uint32_t from_pair(std::uint32_t high, std::uint32_t low) noexcept {
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

// LETTERS are what may follow a backslash, MEANINGS what they stand for; u is apart.
constexpr char LETTERS[] = "\"\\/bfnrt";
constexpr char MEANINGS[] = "\"\\/\b\f\n\r\t";

char meaning_of(char letter) noexcept {
    for (std::size_t i = 0; LETTERS[i] != '\0'; ++i) {
        if (LETTERS[i] == letter) {
            return MEANINGS[i];
        }
    }
    return '\0';
}

// valid_unit reads four hexadecimal digits that are known to be there.
std::uint32_t valid_unit(const char* digits) noexcept {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
        unit = unit << 4 | static_cast<std::uint32_t>(hex_value(digits[i]));
    }
    return unit;
}

// valid_escape reads the \u escape (or pair of them) at text and returns its size in bytes.
std::size_t valid_escape(const char* text, std::uint32_t* point) noexcept {
    const std::uint32_t unit = valid_unit(text + 2);
    if (!is_high(unit)) {
        *point = unit;
        return 6;
    }
    *point = from_pair(unit, valid_unit(text + 8));
    return 12;
}

} // namespace

JsonToken JsonReader::fail(JsonFault fault, const char* where) noexcept {
    fault_ = fault;
    start_ = where;
    return JsonToken::FAULT;
}

void JsonReader::skip_space() noexcept {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) {
        ++at_;
    }
}

bool JsonReader::in_object() const noexcept {
    return (nesting_[(depth_ - 1) / 8] >> ((depth_ - 1) % 8) & 1) != 0;
}

void JsonReader::after_value() noexcept {
    expect_ = depth_ == 0 ? Expect::NOTHING : Expect::COMMA_OR_END;
}

JsonToken JsonReader::next() noexcept {
    if (fault_ != JsonFault::NONE) {
        return JsonToken::FAULT;
    }
    skip_space();
    start_ = at_;
    if (at_ == end_) {
        return expect_ == Expect::NOTHING ? JsonToken::END : fail(JsonFault::UNFINISHED, at_);
    }
    if (expect_ == Expect::COMMA_OR_END) {
        if (*at_ == (in_object() ? '}' : ']')) {
            return close(in_object() ? JsonToken::END_OBJECT : JsonToken::END_ARRAY);
        }
        if (*at_ != ',') {
            return fail(JsonFault::SYNTAX, at_);
        }
        ++at_;
        expect_ = in_object() ? Expect::KEY : Expect::VALUE;
        skip_space();
        start_ = at_;
        if (at_ == end_) {
            return fail(JsonFault::UNFINISHED, at_);
        }
    }
    switch (expect_) {
    case Expect::VALUE_OR_END:
        if (*at_ == ']') {
            return close(JsonToken::END_ARRAY);
        }
        return value();
    case Expect::VALUE: return value();
    case Expect::KEY_OR_END:
        if (*at_ == '}') {
            return close(JsonToken::END_OBJECT);
        }
        [[fallthrough]];
    case Expect::KEY: {
        if (*at_ != '"') {
            return fail(JsonFault::SYNTAX, at_);
        }
        const char* const start = at_;
        if (!string()) {
            return JsonToken::FAULT;
        }
        skip_space();
        if (at_ == end_) {
            return fail(JsonFault::UNFINISHED, at_);
        }
        if (*at_ != ':') {
            return fail(JsonFault::SYNTAX, at_);
        }
        ++at_;
        start_ = start;
        expect_ = Expect::VALUE;
        return JsonToken::KEY;
    }
    case Expect::COMMA_OR_END:
    case Expect::NOTHING: break;
    }
    return fail(JsonFault::SYNTAX, at_);
}

JsonToken JsonReader::value() noexcept {
    switch (*at_) {
    case '{': return open(true, JsonToken::BEGIN_OBJECT);
    case '[': return open(false, JsonToken::BEGIN_ARRAY);
    case '"':
        if (!string()) {
            return JsonToken::FAULT;
        }
        after_value();
        return JsonToken::STRING;
    case 't': return word("true", JsonToken::TRUE);
    case 'f': return word("false", JsonToken::FALSE);
    case 'n': return word("null", JsonToken::NOTHING);
    default: return number();
    }
}

JsonToken JsonReader::open(bool is_object, JsonToken token) noexcept {
    std::uint8_t& bits = nesting_[depth_ / 8];
    const auto bit = static_cast<std::uint8_t>(1U << (depth_ % 8));
    bits = static_cast<std::uint8_t>(is_object ? bits | bit : bits & ~bit);
    ++depth_;
    ++at_;
    expect_ = is_object ? Expect::KEY_OR_END : Expect::VALUE_OR_END;
    return token;
}

JsonToken JsonReader::close(JsonToken token) noexcept {
    --depth_;
    ++at_;
    after_value();
    return token;
}

JsonToken JsonReader::word(Bytes spelling, JsonToken token) noexcept {
    for (const char c : spelling) {
        if (at_ == end_) {
            return fail(JsonFault::UNFINISHED, at_);
        }
        if (*at_ != c) {
            return fail(JsonFault::SYNTAX, start_);
        }
        ++at_;
    }
    after_value();
    return token;
}

bool JsonReader::digits() noexcept {
    const char* const first = at_;
    while (at_ < end_ && is_digit(*at_)) {
        ++at_;
    }
    return at_ != first;
}

JsonToken JsonReader::number() noexcept {
    const auto missing = [this] { return fail(at_ == end_ ? JsonFault::UNFINISHED : JsonFault::SYNTAX, at_); };
    if (*at_ == '-') {
        ++at_;
    }
    const bool is_zero = at_ < end_ && *at_ == '0';
    if (is_zero) {
        ++at_;
    } else if (!digits()) {
        return missing();
    }
    if (at_ < end_ && *at_ == '.') {
        ++at_;
        if (!digits()) {
            return missing();
        }
    }
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
        ++at_;
        if (at_ < end_ && (*at_ == '+' || *at_ == '-')) {
            ++at_;
        }
        if (!digits()) {
            return missing();
        }
    }
    inner_ = Bytes(start_, static_cast<std::size_t>(at_ - start_));
    has_escape_ = has_noncharacter_ = false;
    after_value();
    return JsonToken::NUMBER;
}

// string reads from the opening quote to behind the closing one.
bool JsonReader::string() noexcept {
    const char* const first = ++at_;
    has_escape_ = has_noncharacter_ = false;
    while (at_ < end_ && *at_ != '"') {
        const auto byte = static_cast<unsigned char>(*at_);
        if (byte < 0x20) {
            fail(JsonFault::CONTROL, at_);
            return false;
        }
        if (byte == '\\') {
            has_escape_ = true;
            if (!escape()) {
                return false;
            }
        } else if (byte < 0x80) {
            ++at_;
        } else {
            std::size_t size;
            has_noncharacter_ = is_noncharacter(decode_utf8(at_, &size)) || has_noncharacter_;
            at_ += size;
        }
    }
    if (at_ == end_) {
        fail(JsonFault::UNFINISHED, at_);
        return false;
    }
    inner_ = Bytes(first, static_cast<std::size_t>(at_ - first));
    ++at_;
    return true;
}

bool JsonReader::escape() noexcept {
    const char* const start = at_++;
    if (at_ == end_) {
        fail(JsonFault::UNFINISHED, at_);
        return false;
    }
    if (*at_ != 'u') {
        if (meaning_of(*at_) == '\0') {
            fail(JsonFault::ESCAPE, start);
            return false;
        }
        ++at_;
        return true;
    }
    ++at_;
    std::uint32_t point;
    if (!code_unit(&point)) {
        fail(at_ == end_ ? JsonFault::UNFINISHED : JsonFault::ESCAPE, at_ == end_ ? at_ : start);
        return false;
    }
    if (is_high(point)) {
        std::uint32_t low = 0;
        if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') {
            fail(JsonFault::SURROGATE, start);
            return false;
        }
        at_ += 2;
        if (!code_unit(&low) || !is_low(low)) {
            fail(JsonFault::SURROGATE, start);
            return false;
        }
        point = from_pair(point, low);
    } else if (is_low(point)) {
        fail(JsonFault::SURROGATE, start);
        return false;
    }
    if (point == 0) {
        fail(JsonFault::ZERO, start);
        return false;
    }
    has_noncharacter_ = has_noncharacter_ || is_noncharacter(point);
    return true;
}

bool JsonReader::code_unit(std::uint32_t* out) noexcept {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
        if (at_ == end_) {
            return false;
        }
        const int digit = hex_value(*at_);
        if (digit < 0) {
            return false;
        }
        unit = unit << 4 | static_cast<std::uint32_t>(digit);
        ++at_;
    }
    *out = unit;
    return true;
}

std::size_t unescape(Bytes inner, char* out) noexcept {
    char* at = out;
    for (std::size_t i = 0; i < inner.size();) {
        if (inner[i] != '\\') {
            *at++ = inner[i++];
        } else if (inner[i + 1] != 'u') {
            *at++ = meaning_of(inner[i + 1]);
            i += 2;
        } else {
            std::uint32_t point;
            i += valid_escape(inner.data() + i, &point);
            at = encode_utf8(at, point);
        }
    }
    return static_cast<std::size_t>(at - out);
}

std::uint32_t next_escape(Bytes inner, std::size_t* at) noexcept {
    std::size_t i = *at;
    while (i < inner.size()) {
        if (inner[i] != '\\') {
            ++i;
        } else if (inner[i + 1] != 'u') {
            i += 2;
        } else {
            std::uint32_t point;
            i += valid_escape(inner.data() + i, &point);
            if (point >= 0x80) {
                *at = i;
                return point;
            }
        }
    }
    *at = i;
    return 0;
}

} // namespace idem::core
