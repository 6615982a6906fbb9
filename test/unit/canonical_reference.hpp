// canonical_reference.hpp: a slow and obvious canonical form to hold the fast one against, and the way from JSON text
// to tokens. For tests only; it uses the standard library freely and shares no code with src/core but the token
// interface.
#pragma once

#include "core/canonical.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reference {

// --- numbers ---

// Digits is a decimal as text: (negative ? -1 : 1) * 0.text * 10^point, text without zeros at either end.
struct Digits {
    bool negative = false;
    std::string text;
    int point = 0;
};

// parse_number reads a JSON number.
inline Digits parse_number(const std::string& json) {
    Digits number;
    std::size_t i = 0;
    if (json[i] == '-') {
        number.negative = true;
        ++i;
    }
    bool is_fraction = false;
    for (; i < json.size() && json[i] != 'e' && json[i] != 'E'; ++i) {
        if (json[i] == '.') {
            is_fraction = true;
            continue;
        }
        number.text += json[i];
        number.point += is_fraction ? 0 : 1;
    }
    if (i < json.size()) {
        number.point += std::stoi(json.substr(i + 1));
    }
    while (!number.text.empty() && number.text.front() == '0') {
        number.text.erase(0, 1);
        --number.point;
    }
    while (!number.text.empty() && number.text.back() == '0') {
        number.text.pop_back();
    }
    if (number.text.empty()) {
        return {};
    }
    return number;
}

// print_number lays a decimal out as the definition says, rule by rule.
inline std::string print_number(const Digits& number) {
    if (number.text.empty()) {
        return "0";
    }
    const int k = static_cast<int>(number.text.size());
    const int n = number.point;
    std::string out = number.negative ? "-" : "";
    if (k <= n && n <= 21) {
        return out + number.text + std::string(static_cast<std::size_t>(n - k), '0');
    }
    if (0 < n && n <= 21) {
        return out + number.text.substr(0, static_cast<std::size_t>(n)) + "." +
               number.text.substr(static_cast<std::size_t>(n));
    }
    if (-6 < n && n <= 0) {
        return out + "0." + std::string(static_cast<std::size_t>(-n), '0') + number.text;
    }
    out += number.text.substr(0, 1);
    if (k > 1) {
        out += "." + number.text.substr(1);
    }
    return out + "e" + (n - 1 < 0 ? "-" : "+") + std::to_string(std::abs(n - 1));
}

// Stored is a decimal in base 10000, as the server stores it.
struct Stored {
    std::vector<std::int16_t> digits;
    int weight = 0;
    bool negative = false;

    idem::core::Decimal view() const {
        return {digits.data(), static_cast<std::uint32_t>(digits.size()), weight, negative};
    }
};

// store packs a decimal into base-10000 digits, without zero digits at either end.
inline Stored store(const Digits& number) {
    Stored stored;
    if (number.text.empty()) {
        return stored;
    }
    int before = number.point; // decimal digits before the point, made a multiple of four
    std::string text = number.text;
    while (((before % 4) + 4) % 4 != 0) {
        text.insert(0, 1, '0');
        ++before;
    }
    text.append((4 - text.size() % 4) % 4, '0');
    for (std::size_t i = 0; i < text.size(); i += 4) {
        stored.digits.push_back(static_cast<std::int16_t>(std::stoi(text.substr(i, 4))));
    }
    stored.weight = before / 4 - 1;
    stored.negative = number.negative;
    return stored;
}

// --- values ---

struct Member;

struct Value {
    enum class Kind { NOTHING, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT } kind = Kind::NOTHING;
    bool boolean = false;
    std::string text; // of a string (UTF-8) or of a number (JSON)
    std::vector<Value> items;
    std::vector<Member> members; // in input order, a repeated key keeps its last value
};

struct Member {
    std::string first;
    Value second;
};

inline void append_utf8(std::string& out, std::uint32_t point) {
    const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | (point >> 6));
        put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | (point >> 12));
        put(0x80 | ((point >> 6) & 0x3F));
        put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | (point >> 18));
        put(0x80 | ((point >> 12) & 0x3F));
        put(0x80 | ((point >> 6) & 0x3F));
        put(0x80 | (point & 0x3F));
    }
}

// Parser reads JSON text that is known to be valid.
class Parser {
public:
    explicit Parser(const std::string& json) : json_(json) {}

    Value parse() {
        Value value;
        skip_space();
        switch (peek()) {
        case '{':
            value.kind = Value::Kind::OBJECT;
            list('}', [&] {
                const std::string key = string();
                skip_space();
                expect(':');
                Value member = parse();
                for (auto& old : value.members) {
                    if (old.first == key) {
                        old.second = std::move(member);
                        return;
                    }
                }
                value.members.push_back({key, std::move(member)});
            });
            break;
        case '[':
            value.kind = Value::Kind::ARRAY;
            list(']', [&] { value.items.push_back(parse()); });
            break;
        case '"':
            value.kind = Value::Kind::STRING;
            value.text = string();
            break;
        case 't':
        case 'f':
            value.kind = Value::Kind::BOOLEAN;
            value.boolean = peek() == 't';
            at_ += value.boolean ? 4 : 5;
            break;
        case 'n': at_ += 4; break;
        default:
            value.kind = Value::Kind::NUMBER;
            while (at_ < json_.size() && std::string("+-.0123456789eE").find(json_[at_]) != std::string::npos) {
                value.text += json_[at_++];
            }
        }
        return value;
    }

private:
    char peek() const { return json_.at(at_); }
    void skip_space() {
        while (at_ < json_.size() && std::string(" \t\r\n").find(json_[at_]) != std::string::npos) {
            ++at_;
        }
    }
    void expect(char wanted) {
        if (json_.at(at_++) != wanted) {
            throw std::runtime_error("malformed test vector: " + json_);
        }
    }
    template <class Item>
    void list(char end, Item item) {
        ++at_;
        skip_space();
        if (peek() == end) {
            ++at_;
            return;
        }
        for (;;) {
            skip_space();
            item();
            skip_space();
            if (peek() == end) {
                ++at_;
                return;
            }
            expect(',');
        }
    }
    std::uint32_t hex4() {
        const auto unit = static_cast<std::uint32_t>(std::stoul(json_.substr(at_, 4), nullptr, 16));
        at_ += 4;
        return unit;
    }
    std::string string() {
        std::string out;
        expect('"');
        while (peek() != '"') {
            if (peek() != '\\') {
                out += json_[at_++];
                continue;
            }
            ++at_;
            const char letter = json_.at(at_++);
            if (letter == 'u') {
                std::uint32_t point = hex4();
                if (point >= 0xD800 && point < 0xDC00) {
                    at_ += 2;
                    point = 0x10000 + ((point - 0xD800) << 10) + (hex4() - 0xDC00);
                }
                append_utf8(out, point);
                continue;
            }
            const std::string letters = "bfnrt";
            const std::size_t known = letters.find(letter);
            out += known == std::string::npos ? letter : "\b\f\n\r\t"[known];
        }
        ++at_;
        return out;
    }

    const std::string& json_;
    std::size_t at_ = 0;
};

inline Value parse(const std::string& json) {
    return Parser(json).parse();
}

// utf16 decodes valid UTF-8 into UTF-16 code units.
inline std::u16string utf16(const std::string& utf8) {
    std::u16string out;
    for (std::size_t i = 0; i < utf8.size();) {
        const auto lead = static_cast<unsigned char>(utf8[i]);
        const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        std::uint32_t point = size == 1 ? lead : lead & (0xFFU >> (size + 1));
        for (std::size_t j = 1; j < size; ++j) {
            point = (point << 6) | (static_cast<unsigned char>(utf8[i + j]) & 0x3FU);
        }
        i += size;
        if (point < 0x10000) {
            out += static_cast<char16_t>(point);
        } else {
            out += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
            out += static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF));
        }
    }
    return out;
}

inline std::string print_string(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
        case '"': out += "\\\""; break;
        case '\\': out += "\\\\"; break;
        case '\b': out += "\\b"; break;
        case '\t': out += "\\t"; break;
        case '\n': out += "\\n"; break;
        case '\f': out += "\\f"; break;
        case '\r': out += "\\r"; break;
        default:
            if (static_cast<unsigned char>(c) < 0x20) {
                char hex[8];
                std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(c));
                out += hex;
            } else {
                out += c;
            }
        }
    }
    return out + "\"";
}

// print is the whole canonical form.
inline std::string print(const Value& value) {
    std::string out;
    switch (value.kind) {
    case Value::Kind::NOTHING: return "null";
    case Value::Kind::BOOLEAN: return value.boolean ? "true" : "false";
    case Value::Kind::NUMBER: return print_number(parse_number(value.text));
    case Value::Kind::STRING: return print_string(value.text);
    case Value::Kind::ARRAY:
        for (const Value& item : value.items) {
            out += (out.empty() ? "" : ",") + print(item);
        }
        return "[" + out + "]";
    case Value::Kind::OBJECT: {
        auto members = value.members;
        std::sort(members.begin(), members.end(),
                  [](const auto& a, const auto& b) { return utf16(a.first) < utf16(b.first); });
        for (const auto& member : members) {
            out += (out.empty() ? "" : ",") + print_string(member.first) + ":" + print(member.second);
        }
        return "{" + out + "}";
    }
    }
    return out;
}

// --- tokens ---

// stored_order is how jsonb keeps the members of an object: by length of the key, then by bytes.
inline void stored_order(std::vector<Member>& members) {
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
        return a.first.size() != b.first.size() ? a.first.size() < b.first.size() : a.first < b.first;
    });
}

// feed sends value as tokens to writer, the members of objects ordered by core.
inline void feed(const Value& value, idem::core::CanonicalWriter& writer) {
    switch (value.kind) {
    case Value::Kind::NOTHING: writer.null(); break;
    case Value::Kind::BOOLEAN: writer.boolean(value.boolean); break;
    case Value::Kind::NUMBER: writer.number(store(parse_number(value.text)).view()); break;
    case Value::Kind::STRING: writer.string(value.text); break;
    case Value::Kind::ARRAY:
        writer.begin_array();
        for (const Value& item : value.items) {
            feed(item, writer);
        }
        writer.end_array();
        break;
    case Value::Kind::OBJECT: {
        auto stored = value.members;
        stored_order(stored);
        std::vector<idem::core::Member> members;
        for (std::size_t i = 0; i < stored.size(); ++i) {
            members.push_back({stored[i].first, static_cast<std::uint32_t>(i), 0});
        }
        std::vector<idem::core::Member> scratch(members.size());
        idem::core::sort_members(members.data(), scratch.data(), members.size(), [] {});
        writer.begin_object();
        for (const auto& member : members) {
            writer.key(member.key);
            feed(stored[member.entry].second, writer);
        }
        writer.end_object();
        break;
    }
    }
}

// --- vectors ---

// lines reads a file of test/unit/vectors.
inline std::vector<std::string> lines(const std::string& name) {
    std::ifstream file(std::string(UNIT_DATA) + "/vectors/" + name);
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) {
        out.push_back(line);
    }
    if (out.empty()) {
        throw std::runtime_error("no vectors in " + name);
    }
    return out;
}

// columns splits a line of a .tsv file.
inline std::vector<std::string> columns(const std::string& line) {
    std::vector<std::string> out(1);
    for (const char c : line) {
        if (c == '\t') {
            out.emplace_back();
        } else {
            out.back() += c;
        }
    }
    return out;
}

// member returns a string member of a .jsonl row, "" if it is not there or not a string.
inline std::string member(const Value& row, const std::string& name) {
    for (const auto& candidate : row.members) {
        if (candidate.first == name && candidate.second.kind == Value::Kind::STRING) {
            return candidate.second.text;
        }
    }
    return "";
}

} // namespace reference
