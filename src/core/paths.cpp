// paths.cpp: see paths.hpp. A path is checked and compiled in one pass; its names are unescaped into the caller's text.
#include "core/paths.hpp"
#include "core/unicode.hpp"

namespace idem::core {
namespace {

constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

constexpr bool is_name_start(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           static_cast<unsigned char>(c) >= 0x80;
}

constexpr int hex_value(char c) noexcept {
    if (is_digit(c)) {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// hash_name mixes a node and a name (FNV-1a, then the upper bits down).
std::uint32_t hash_name(std::uint32_t parent, Bytes name) noexcept {
    std::uint64_t hash = 0xCBF29CE484222325 ^ parent;
    for (const char c : name) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    }
    hash = (hash ^ parent) * 0x100000001B3;
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

// Reader reads one path.
class Reader {
public:
    explicit Reader(Bytes path) noexcept : path_(path) {}

    bool is_done() const noexcept { return at_ == path_.size(); }
    std::size_t at() const noexcept { return at_; }
    char peek() const noexcept { return is_done() ? '\0' : path_[at_]; }

    bool take(char c) noexcept {
        if (is_done() || path_[at_] != c) {
            return false;
        }
        ++at_;
        return true;
    }

    Bytes plain_name() noexcept {
        const std::size_t start = at_;
        if (!is_done() && is_name_start(peek())) {
            ++at_;
            while (!is_done() && (is_name_start(peek()) || is_digit(peek()))) {
                ++at_;
            }
        }
        return {path_.data() + start, at_ - start};
    }

    // quoted_name unescapes what follows the opening quote to out and returns the end, null if it is malformed.
    char* quoted_name(char* out) noexcept {
        for (;;) {
            if (is_done() || static_cast<unsigned char>(peek()) < 0x20) {
                return nullptr;
            }
            if (take('"')) {
                return out;
            }
            if (!take('\\')) {
                *out++ = path_[at_++];
                continue;
            }
            out = escape(out);
            if (out == nullptr) {
                return nullptr;
            }
        }
    }

private:
    char* escape(char* out) noexcept {
        if (is_done()) {
            return nullptr;
        }
        const char letter = path_[at_];
        if (letter == 'u') {
            std::uint32_t point = 0;
            if (!code_point(&point)) {
                return nullptr;
            }
            return encode_utf8(out, point);
        }
        static constexpr char LETTERS[] = "\"\\/bfnrt";
        static constexpr char MEANINGS[] = "\"\\/\b\f\n\r\t";
        for (std::size_t i = 0; LETTERS[i] != '\0'; ++i) {
            if (LETTERS[i] == letter) {
                ++at_;
                *out++ = MEANINGS[i];
                return out;
            }
        }
        return nullptr;
    }

    // code_point reads uXXXX, or two of them that are a surrogate pair. A member's name never has U+0000.
    bool code_point(std::uint32_t* out) noexcept {
        std::uint32_t unit = 0;
        if (!code_unit(&unit) || unit == 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) {
            return false;
        }
        if (unit >= 0xD800 && unit <= 0xDBFF) {
            std::uint32_t low = 0;
            if (!take('\\') || !code_unit(&low) || low < 0xDC00 || low > 0xDFFF) {
                return false;
            }
            unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        }
        *out = unit;
        return true;
    }

    bool code_unit(std::uint32_t* out) noexcept {
        if (path_.size() - at_ < 5 || path_[at_] != 'u') {
            return false;
        }
        std::uint32_t unit = 0;
        for (std::size_t i = 1; i <= 4; ++i) {
            const int digit = hex_value(path_[at_ + i]);
            if (digit < 0) {
                at_ += i;
                return false;
            }
            unit = unit << 4 | static_cast<std::uint32_t>(digit);
        }
        at_ += 5;
        *out = unit;
        return true;
    }

    Bytes path_;
    std::size_t at_ = 0;
};

} // namespace

std::uint32_t PathSet::member(std::uint32_t parent, Bytes name) const noexcept {
    for (std::uint32_t slot = hash_name(parent, name) & name_mask; names[slot].node != 0;
         slot = (slot + 1) & name_mask) {
        if (names[slot].parent == parent && names[slot].name == name) {
            return names[slot].node;
        }
    }
    return 0;
}

std::size_t PathCompiler::max_names(std::size_t size) noexcept {
    std::size_t slots = 2;
    while (slots < 2 * max_nodes(size)) {
        slots *= 2;
    }
    return slots;
}

PathCompiler::PathCompiler(std::size_t size, PathNode* nodes, PathName* names, char* text) noexcept
    : nodes_(nodes), names_(names), text_(text) {
    const std::size_t slots = max_names(size);
    for (std::size_t i = 0; i < slots; ++i) {
        names[i] = PathName{};
    }
    nodes[0] = PathNode{};
    set_.nodes = nodes;
    set_.names = names;
    set_.name_mask = static_cast<std::uint32_t>(slots - 1);
}

std::uint32_t PathCompiler::new_node() noexcept {
    nodes_[count_] = PathNode{};
    return count_++;
}

std::uint32_t PathCompiler::step_by_name(std::uint32_t parent, Bytes name) noexcept {
    if (const std::uint32_t known = set_.member(parent, name)) {
        return known;
    }
    std::uint32_t slot = hash_name(parent, name) & set_.name_mask;
    while (names_[slot].node != 0) {
        slot = (slot + 1) & set_.name_mask;
    }
    std::memmove(text_, name.data(), name.size()); // a quoted name lies there already
    names_[slot] = {Bytes(text_, name.size()), parent, new_node()};
    text_ += name.size();
    nodes_[parent].has_names = true;
    return names_[slot].node;
}

PathFault PathCompiler::add(Bytes path, PathUse use, std::int32_t scale, std::size_t* at) noexcept {
    Reader reader(path);
    std::uint32_t node = 0;
    bool is_member = false;
    *at = 0;
    if (!reader.take('$')) {
        return PathFault::SYNTAX;
    }
    while (!reader.is_done()) {
        const std::size_t start = reader.at();
        *at = start;
        std::uint8_t leads = PathNode::LEADS_BY_MEMBER;
        std::uint32_t next = 0;
        is_member = true;
        if (reader.take('[')) {
            if (is_digit(reader.peek()) || reader.peek() == '-' || reader.peek() == 'l') {
                return PathFault::INDEX;
            }
            if (!reader.take('*') || !reader.take(']')) {
                *at = reader.at();
                return PathFault::SYNTAX;
            }
            is_member = false;
            leads = PathNode::LEADS_BY_ELEMENT;
            next = nodes_[node].every_element != 0 ? nodes_[node].every_element : new_node();
            nodes_[node].every_element = next;
        } else if (!reader.take('.')) {
            return PathFault::SYNTAX;
        } else if (reader.take('*')) {
            next = nodes_[node].every_member != 0 ? nodes_[node].every_member : new_node();
            nodes_[node].every_member = next;
        } else if (reader.take('"')) {
            // Unescaped in place: where the name is new, it stays there.
            char* const end = reader.quoted_name(text_);
            if (end == nullptr) {
                *at = reader.at();
                return PathFault::SYNTAX;
            }
            next = step_by_name(node, Bytes(text_, static_cast<std::size_t>(end - text_)));
        } else {
            const Bytes name = reader.plain_name();
            if (name.empty()) {
                *at = reader.at();
                return PathFault::SYNTAX;
            }
            next = step_by_name(node, name);
        }
        if (use == PathUse::INTENT) {
            nodes_[node].leads |= leads;
        }
        node = next;
    }
    *at = path.size();
    if (use == PathUse::IGNORE && !is_member) {
        return PathFault::NOT_A_MEMBER;
    }
    if (use == PathUse::ROUND) {
        if (nodes_[node].is(use) && nodes_[node].scale != scale) {
            return PathFault::OTHER_SCALE;
        }
        nodes_[node].scale = scale;
    }
    nodes_[node].uses |= static_cast<std::uint8_t>(use);
    set_.has_intent = set_.has_intent || use == PathUse::INTENT;
    return PathFault::NONE;
}

} // namespace idem::core
