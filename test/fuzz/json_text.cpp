// json_text: any text is JSON or not, and means the same, as a reader by recursive descent finds.
#include "core/json_text.hpp"

#include "fuzz.hpp"

#include <optional>

namespace {

using idem::core::JsonReader;
using idem::core::JsonToken;

constexpr int MAX_DEPTH = 300;

// Slow reads JSON by recursive descent and writes down tokens; every member function returns false where it is not
// JSON.
class Slow {
public:
    explicit Slow(const std::string& json) : json_(json) {}

    std::optional<std::string> tokens() {
        space();
        if (!value(0)) {
            return std::nullopt;
        }
        space();
        return at_ == json_.size() ? std::optional(out_) : std::nullopt;
    }

    bool is_too_deep() const { return is_too_deep_; }

private:
    bool is_at(char c) const { return at_ < json_.size() && json_[at_] == c; }
    void space() { at_ = std::min(json_.find_first_not_of(" \t\r\n", at_), json_.size()); }

    bool value(int depth) {
        if (depth > MAX_DEPTH) {
            is_too_deep_ = true;
            return false;
        }
        for (const auto& [word, token] : {std::pair("true", 't'), std::pair("false", 'f'), std::pair("null", '0')}) {
            if (json_.compare(at_, std::string(word).size(), word) == 0) {
                at_ += std::string(word).size();
                out_ += token;
                return true;
            }
        }
        if (is_at('"')) {
            out_ += 's';
            return string();
        }
        if (is_at('[')) {
            return list('[', ']', [&] { return value(depth + 1); });
        }
        if (is_at('{')) {
            return list('{', '}', [&] {
                out_ += 'k';
                if (!is_at('"') || !string()) {
                    return false;
                }
                space();
                if (!is_at(':')) {
                    return false;
                }
                ++at_;
                space();
                return value(depth + 1);
            });
        }
        return number();
    }

    template <class Item>
    bool list(char begin, char end, Item item) {
        out_ += begin;
        ++at_;
        space();
        for (bool is_first = true; !is_at(end); is_first = false) {
            if (!is_first) {
                if (!is_at(',')) {
                    return false;
                }
                ++at_;
                space();
            }
            if (!item()) {
                return false;
            }
            space();
        }
        // A comma before the end would have asked for an item.
        ++at_;
        out_ += end;
        return true;
    }

    bool digits() {
        const std::size_t first = at_;
        while (at_ < json_.size() && json_[at_] >= '0' && json_[at_] <= '9') {
            ++at_;
        }
        return at_ > first;
    }

    bool number() {
        const std::size_t first = at_;
        at_ += is_at('-') ? 1 : 0;
        if (is_at('0')) {
            ++at_;
        } else if (!digits()) {
            return false;
        }
        if (is_at('.')) {
            ++at_;
            if (!digits()) {
                return false;
            }
        }
        if (is_at('e') || is_at('E')) {
            ++at_;
            at_ += is_at('+') || is_at('-') ? 1 : 0;
            if (!digits()) {
                return false;
            }
        }
        out_ += "n(" + json_.substr(first, at_ - first) + ")";
        return true;
    }

    std::optional<std::uint32_t> unit() {
        const std::string digits = at_ + 6 <= json_.size() ? json_.substr(at_, 6) : "";
        if (digits.compare(0, 2, "\\u") != 0 ||
            digits.substr(2).find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
            return std::nullopt;
        }
        at_ += 6;
        return static_cast<std::uint32_t>(std::stoul(digits.substr(2), nullptr, 16));
    }

    bool string() {
        std::string text;
        ++at_;
        while (!is_at('"')) {
            if (at_ == json_.size() || static_cast<unsigned char>(json_[at_]) < 0x20) {
                return false;
            }
            if (json_[at_] != '\\') {
                text += json_[at_++];
                continue;
            }
            const std::string letters = "\"\\/bfnrt";
            const std::size_t known = at_ + 1 < json_.size() ? letters.find(json_[at_ + 1]) : std::string::npos;
            if (known != std::string::npos) {
                text += "\"\\/\b\f\n\r\t"[known];
                at_ += 2;
                continue;
            }
            auto point = unit();
            if (!point || *point == 0 || (*point >= 0xDC00 && *point < 0xE000)) {
                return false;
            }
            if (*point >= 0xD800 && *point < 0xDC00) {
                const auto low = unit();
                if (!low || *low < 0xDC00 || *low >= 0xE000) {
                    return false;
                }
                point = 0x10000 + ((*point - 0xD800) << 10) + (*low - 0xDC00);
            }
            reference::append_utf8(text, *point);
        }
        ++at_;
        out_ += "(" + text + ")";
        for (std::size_t i = 0; i + 2 < text.size(); ++i) {
            const auto byte = [&](std::size_t j) { return static_cast<unsigned char>(text[i + j]); };
            const bool is_fdd0 = byte(0) == 0xEF && byte(1) == 0xB7 && byte(2) >= 0x90 && byte(2) <= 0xAF;
            const bool is_last = byte(0) == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE;
            const bool is_last_of_plane = byte(0) >= 0xF0 && (byte(1) & 0x0F) == 0x0F && byte(2) == 0xBF &&
                                          i + 3 < text.size() && byte(3) >= 0xBE;
            if (is_fdd0 || is_last || is_last_of_plane) {
                out_ += '!';
                break;
            }
        }
        return true;
    }

    const std::string& json_;
    std::size_t at_ = 0;
    std::string out_;
    bool is_too_deep_ = false;
};

std::optional<std::string> fast(const std::string& json) {
    std::vector<std::uint8_t> nesting(JsonReader::nesting_size(json.size()), 0xFF);
    JsonReader reader(json, nesting.data());
    std::string out;
    const auto string = [&] {
        std::string text(reader.inner());
        if (reader.has_escape()) {
            text.resize(idem::core::unescape(reader.inner(), text.data()));
            std::size_t at = 0;
            std::size_t escapes = 0;
            while (idem::core::next_escape(reader.inner(), &at) != 0) {
                ++escapes;
            }
            fuzz::expect(at == reader.inner().size() && escapes <= text.size(), "escapes of " + text);
        }
        return "(" + text + ")" + (reader.has_noncharacter() ? "!" : "");
    };
    for (;;) {
        const JsonToken token = reader.next();
        fuzz::expect(reader.position() <= json.size(), "position");
        switch (token) {
        case JsonToken::BEGIN_OBJECT: out += '{'; break;
        case JsonToken::END_OBJECT: out += '}'; break;
        case JsonToken::BEGIN_ARRAY: out += '['; break;
        case JsonToken::END_ARRAY: out += ']'; break;
        case JsonToken::KEY: out += "k" + string(); break;
        case JsonToken::STRING: out += "s" + string(); break;
        case JsonToken::NUMBER: out += "n(" + std::string(reader.inner()) + ")"; break;
        case JsonToken::TRUE: out += 't'; break;
        case JsonToken::FALSE: out += 'f'; break;
        case JsonToken::NOTHING: out += '0'; break;
        case JsonToken::END: return out;
        case JsonToken::FAULT: fuzz::expect(reader.next() == JsonToken::FAULT, "a fault lasts"); return std::nullopt;
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string json = fuzz::as_utf8(std::string(reinterpret_cast<const char*>(data), size));
    const auto got = fast(json);
    Slow slow(json);
    const auto expected = slow.tokens();
    if (slow.is_too_deep()) {
        return 0;
    }
    fuzz::expect_equal(got.value_or("no JSON"), expected.value_or("no JSON"), json);
    return 0;
}
