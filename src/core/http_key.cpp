// http_key.cpp: a small RFC 8941 parser for one item whose bare item is a string, and the bare word beside it.
//
// The first byte decides: a quote starts a structured string, and then the whole field must be one well-formed item;
// anything else is a bare word. A bare word holds no comma, because proxies join repeated fields with commas, and two
// keys are no key.
#include "core/http_key.hpp"

namespace idem::core {
namespace {

// Cursor is the unread rest of the field: [at, end).
struct Cursor {
    const char* at;
    const char* end;

    bool done() const noexcept { return at == end; }

    bool take(char wanted) noexcept {
        if (done() || *at != wanted)
            return false;
        ++at;
        return true;
    }
};

constexpr bool is_lower(char c) noexcept {
    return c >= 'a' && c <= 'z';
}
constexpr bool is_alpha(char c) noexcept {
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}
constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
constexpr bool is_printable(char c) noexcept {
    return c >= ' ' && c <= '~';
}
constexpr bool is_blank(char c) noexcept {
    return c == ' ' || c == '\t';
}

constexpr bool is_one_of(char c, std::string_view set) noexcept {
    for (char member : set)
        if (c == member)
            return true;
    return false;
}

constexpr bool is_bare(char c) noexcept {
    return c > ' ' && c <= '~' && c != ',' && c != '"';
}
constexpr bool is_key_rest(char c) noexcept {
    return is_lower(c) || is_digit(c) || is_one_of(c, "_-.*");
}
constexpr bool is_base64(char c) noexcept {
    return is_alpha(c) || is_digit(c) || is_one_of(c, "+/=");
}
constexpr bool is_token_rest(char c) noexcept {
    return is_alpha(c) || is_digit(c) || is_one_of(c, "!#$%&'*+-.^_`|~:/");
}

// take_while moves past every byte of the class and returns how many there were.
template <typename Class>
std::size_t take_while(Cursor* in, Class is_member) noexcept {
    const char* start = in->at;
    while (!in->done() && is_member(*in->at))
        ++in->at;
    return static_cast<std::size_t>(in->at - start);
}

// take_string reads a quoted string; the unescaped text goes to out unless that is null.
bool take_string(Cursor* in, char* out, std::size_t* out_size) noexcept {
    std::size_t size = 0;
    if (!in->take('"'))
        return false;
    while (!in->done()) {
        char c = *in->at++;
        if (c == '"') {
            *out_size = size;
            return true;
        }
        if (c == '\\') {
            if (in->done() || !is_one_of(*in->at, "\"\\"))
                return false;
            c = *in->at++;
        } else if (!is_printable(c)) {
            return false;
        }
        if (out != nullptr)
            out[size] = c;
        ++size;
    }
    return false;
}

// take_number reads an integer of at most 15 digits or a decimal of at most 12 before and 1 to 3 after the point.
bool take_number(Cursor* in) noexcept {
    in->take('-');
    std::size_t whole = take_while(in, is_digit);
    if (!in->take('.'))
        return whole >= 1 && whole <= 15;
    std::size_t fraction = take_while(in, is_digit);
    return whole >= 1 && whole <= 12 && fraction >= 1 && fraction <= 3;
}

bool take_bare_item(Cursor* in) noexcept {
    if (in->done())
        return false;
    char first = *in->at;
    if (first == '"') {
        std::size_t ignored = 0;
        return take_string(in, nullptr, &ignored);
    }
    if (first == ':') {
        ++in->at;
        take_while(in, is_base64);
        return in->take(':');
    }
    if (first == '?') {
        ++in->at;
        return in->take('0') || in->take('1');
    }
    if (is_alpha(first) || first == '*') {
        take_while(in, is_token_rest);
        return true;
    }
    return take_number(in);
}

bool take_parameters(Cursor* in) noexcept {
    while (in->take(';')) {
        while (in->take(' ')) {
        }
        if (in->done() || !(is_lower(*in->at) || *in->at == '*'))
            return false;
        take_while(in, is_key_rest);
        if (in->take('=') && !take_bare_item(in))
            return false;
    }
    return true;
}

bool take_bare_word(Cursor* in, char* out, std::size_t* out_size) noexcept {
    std::size_t size = 0;
    for (; !in->done() && is_bare(*in->at); ++in->at)
        out[size++] = *in->at;
    *out_size = size;
    return true;
}

} // namespace

bool parse_http_key(std::string_view field, char* out, std::size_t* out_size) noexcept {
    Cursor in = {field.data(), field.data() + field.size()};
    std::size_t size = 0;
    bool well_formed;

    *out_size = 0;
    while (!in.done() && is_blank(*in.at))
        ++in.at;
    while (!in.done() && is_blank(in.end[-1]))
        --in.end;
    if (in.done())
        return false;
    if (*in.at == '"')
        well_formed = take_string(&in, out, &size) && take_parameters(&in);
    else
        well_formed = take_bare_word(&in, out, &size);
    if (!well_formed || !in.done() || size == 0)
        return false;
    *out_size = size;
    return true;
}

} // namespace idem::core
