// canonical_test: the canonical text is exact, ordered by UTF-16, minimally escaped, and the same whatever the buffer.
#include "core/canonical.hpp"
#include "core/fingerprint.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace {

using idem::core::Bytes;
using idem::core::CanonicalWriter;
using idem::core::Member;

void append(void* context, const char* text, std::size_t size) {
    static_cast<std::string*>(context)->append(text, size);
}

// written runs tokens through a writer with the smallest buffer and returns the text.
template <class Tokens>
std::string written(Tokens tokens, std::size_t capacity = CanonicalWriter::MIN_CAPACITY) {
    std::string out;
    std::vector<char> buffer(capacity);
    CanonicalWriter writer(buffer.data(), buffer.size(), append, &out);
    tokens(writer);
    writer.flush();
    EXPECT_TRUE(writer.pending().empty());
    return out;
}

std::string canonical(const std::string& json, std::size_t capacity = CanonicalWriter::MIN_CAPACITY) {
    const reference::Value value = reference::parse(json);
    return written([&](CanonicalWriter& writer) { reference::feed(value, writer); }, capacity);
}

std::string string_token(const std::string& text) {
    return written([&](CanonicalWriter& writer) { writer.string(text); });
}

std::string hex(const idem::core::Digest& digest) {
    std::string out;
    for (std::size_t i = 0; i < digest.size; ++i) {
        char byte[3];
        std::snprintf(byte, sizeof byte, "%02x", digest.bytes[i]);
        out += byte;
    }
    return out;
}

TEST(Canonical, CommasAndBrackets) {
    EXPECT_EQ(canonical("[]"), "[]");
    EXPECT_EQ(canonical("{}"), "{}");
    EXPECT_EQ(canonical("[[],{}]"), "[[],{}]");
    EXPECT_EQ(canonical("[null,true,false,0,\"\",[],{}]"), "[null,true,false,0,\"\",[],{}]");
    EXPECT_EQ(canonical("{\"b\":{\"d\":[1,{\"f\":1,\"e\":2}],\"c\":null},\"a\":0}"),
              "{\"a\":0,\"b\":{\"c\":null,\"d\":[1,{\"e\":2,\"f\":1}]}}");
    EXPECT_EQ(canonical("null"), "null");
}

TEST(Canonical, LineBreakSeparatesRootValues) {
    EXPECT_EQ(written([](CanonicalWriter& writer) {
                  writer.string("a\nb");
                  writer.line_break();
                  writer.begin_array();
                  writer.end_array();
              }),
              "\"a\\nb\"\n[]");
}

TEST(Canonical, EscapesEachControlCharacter) {
    for (int c = 1; c < 0x80; ++c) {
        const std::string text(1, static_cast<char>(c));
        EXPECT_EQ(string_token(text), reference::print_string(text)) << c;
    }
    EXPECT_EQ(string_token("\b\t\n\f\r\"\\/"), "\"\\b\\t\\n\\f\\r\\\"\\\\/\"");
    EXPECT_EQ(string_token("\x01\x0b\x1f\x7f"), "\"\\u0001\\u000b\\u001f\x7f\"");
}

TEST(Canonical, LeavesEveryOtherCodePointRaw) {
    for (std::uint32_t point = 0x80; point <= 0x10FFFF; point += point < 0x3000 ? 1 : 251) {
        if (point >= 0xD800 && point < 0xE000) {
            continue;
        }
        std::string text;
        reference::append_utf8(text, point);
        ASSERT_EQ(string_token(text), "\"" + text + "\"") << point;
    }
}

// An escape at every position of strings around the width of a machine word.
TEST(Canonical, FindsEscapesAtEveryPosition) {
    for (std::size_t size = 1; size <= 40; ++size) {
        for (std::size_t at = 0; at < size; ++at) {
            for (const char special :
                 {'"', '\\', '\x01', '\x1f', '\n', ' ', '!', '#', '[', ']', '\x7f', '\x80', '\xff'}) {
                for (const char around : {'a', ' ', '\xc3', '!'}) {
                    std::string text(size, around);
                    text[at] = special;
                    ASSERT_EQ(string_token(text), reference::print_string(text)) << size << " " << at;
                }
            }
        }
    }
}

TEST(Canonical, KeysCompareAsUtf16) {
    std::vector<std::string> keys = {"", "a", "aa", "ab", "b", "\x01", "\x7f", "abcdefgh", "abcdefghi", "abcdefgi"};
    const std::uint32_t points[] = {0x80,   0x7FF,  0x800,  0xD7FF,  0xE000,  0xFB33,  0xFFFD,
                                    0xFFFF, 0x1000, 0xFFF0, 0x10000, 0x1F600, 0x3FFFF, 0x10FFFF};
    for (const std::uint32_t point : points) {
        std::string text;
        reference::append_utf8(text, point);
        keys.insert(keys.end(), {text, text + "a", "a" + text, "abcdefg" + text, "abcdefgh" + text, text + text});
    }
    for (const std::string& a : keys) {
        for (const std::string& b : keys) {
            const int order = idem::core::compare_keys(a, b);
            const auto wide_a = reference::utf16(a);
            const auto wide_b = reference::utf16(b);
            EXPECT_EQ(order < 0, wide_a < wide_b) << a << " " << b;
            EXPECT_EQ(order == 0, wide_a == wide_b) << a << " " << b;
        }
    }
}

TEST(Canonical, SortsObjectsOfEverySize) {
    std::mt19937 random(7);
    for (std::size_t size = 0; size <= 300; size += size < 40 ? 1 : 13) {
        std::vector<reference::Member> stored;
        for (std::size_t i = 0; i < size; ++i) {
            std::string key;
            for (std::size_t length = random() % 6; length > 0; --length) {
                const std::uint32_t points[] = {'a', 'b', 'Z', 0xE9, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF};
                reference::append_utf8(key, points[random() % std::size(points)]);
            }
            stored.push_back({key + std::to_string(i), {}});
        }
        reference::stored_order(stored);
        std::vector<Member> members;
        for (std::size_t i = 0; i < size; ++i) {
            members.push_back({stored[i].first, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(2 * i)});
        }
        const Member untouched{"untouched", 1, 2};
        std::vector<Member> scratch(size, untouched);
        int ticks = 0;
        idem::core::sort_members(members.data(), scratch.data(), size, [&] { ++ticks; });
        for (std::size_t i = 0; i < size; ++i) {
            ASSERT_EQ(members[i].key, Bytes(stored[members[i].entry].first));
            ASSERT_EQ(members[i].offset, 2 * members[i].entry);
            ASSERT_TRUE(i == 0 || reference::utf16(std::string(members[i - 1].key)) <
                                      reference::utf16(std::string(members[i].key)));
        }
        if (size <= idem::core::INSERTION_LIMIT) {
            EXPECT_EQ(ticks, 0);
            for (const Member& member : scratch) {
                EXPECT_EQ(member.key, untouched.key);
            }
        } else {
            EXPECT_GT(ticks, 0);
        }
    }
}

TEST(Canonical, MatchesTheVectors) {
    std::size_t checked = 0;
    for (const char* file : {"edge_cases.jsonl", "documents.jsonl", "utf16_sort.jsonl"}) {
        for (const std::string& line : reference::lines(file)) {
            const reference::Value row = reference::parse(line);
            const std::string verdict = reference::member(row, "pg15");
            if (!verdict.empty() && verdict != "accepts") {
                continue;
            }
            const std::string text = canonical(reference::member(row, "input"));
            EXPECT_EQ(text, reference::member(row, "canonical")) << line;
            EXPECT_EQ(text, reference::print(reference::parse(reference::member(row, "input")))) << line;
            const std::string hash = reference::member(row, "xxh3_128");
            if (!hash.empty()) {
                EXPECT_EQ(hex(idem::core::xxh3_128(text)), hash) << line;
            }
            ++checked;
        }
    }
    EXPECT_GT(checked, 250U);
}

TEST(Canonical, TextDoesNotDependOnTheBuffer) {
    const std::string json = "{\"text\":\"" + std::string(300, 'x') + "\\u0001\\u0002" + std::string(400, 'y') +
                             "\",\"number\":-1" + std::string(700, '2') + ".5,\"list\":[1,2.5,true,null,\"\\\"" +
                             std::string(90, '\\') + "\"],\"" + std::string(600, 'k') + "\":[[[[{}]]]]}";
    const std::string expected = reference::print(reference::parse(json));
    for (std::size_t capacity = CanonicalWriter::MIN_CAPACITY; capacity < 3000; ++capacity) {
        ASSERT_EQ(canonical(json, capacity), expected) << capacity;
    }
}

TEST(Canonical, FittingTextIsReadInPlace) {
    std::string flushed;
    char buffer[CanonicalWriter::MIN_CAPACITY];
    CanonicalWriter writer(buffer, sizeof buffer, append, &flushed);
    writer.flush();
    writer.begin_object();
    writer.key("a");
    writer.boolean(true);
    writer.end_object();
    EXPECT_FALSE(writer.has_flushed());
    EXPECT_EQ(writer.pending(), "{\"a\":true}");
    EXPECT_EQ(writer.pending().data(), buffer);
    EXPECT_EQ(flushed, "");
    writer.flush();
    EXPECT_TRUE(writer.has_flushed());
    EXPECT_EQ(flushed, "{\"a\":true}");
}

// Random documents in random spelling and member order, against the reference.
std::string random_document(std::mt19937& random, int depth) {
    const auto spaces = [&] { return std::string(random() % 3, " \n\t"[random() % 3]); };
    const auto text = [&] {
        std::string out = "\"";
        for (std::size_t n = random() % 12; n > 0; --n) {
            const char* pieces[] = {
                "a", "Z", "0", "\\n", "\\u001f", "\\\"", "\\\\", "\\/", "\xc3\xa9", "\\ud83d\\ude00", "\\ue000"};
            out += pieces[random() % std::size(pieces)];
        }
        return out + "\"";
    };
    switch (random() % (depth > 3 ? 4 : 6)) {
    case 0: return "null";
    case 1: return random() % 2 == 0 ? "true" : "false";
    case 2:
        return (random() % 2 == 0 ? "-" : "") + std::to_string(random() % 100000) + (random() % 2 == 0 ? ".250" : "") +
               (random() % 3 == 0 ? "e" + std::to_string(static_cast<int>(random() % 50) - 25) : "");
    case 3: return text();
    case 4: {
        std::string out = "[";
        for (std::size_t n = random() % 6; n > 0; --n) {
            out += spaces() + random_document(random, depth + 1) + spaces() + (n > 1 ? "," : "");
        }
        return out + "]";
    }
    default: {
        std::string out = "{";
        for (std::size_t n = random() % 24; n > 0; --n) {
            out += spaces() + text() + spaces() + ":" + random_document(random, depth + 1) + (n > 1 ? "," : "");
        }
        return out + "}";
    }
    }
}

TEST(Canonical, MatchesTheReferenceOnRandomDocuments) {
    std::mt19937 random(42);
    for (int i = 0; i < 2000; ++i) {
        const std::string json = random_document(random, 0);
        const std::string text = canonical(json);
        ASSERT_EQ(text, reference::print(reference::parse(json))) << json;
        ASSERT_EQ(canonical(text), text) << json;
    }
}

TEST(Fingerprint, GoldenHashes) {
    EXPECT_EQ(hex(idem::core::xxh3_128("{}")), "dc7048f8f8747f561349cde127705c16");
    EXPECT_EQ(hex(idem::core::xxh3_128("{\"a\":1}")), "3c8c141663acf5a1b6b7137162fa70fb");
}

TEST(Fingerprint, StreamingEqualsOneShot) {
    std::string data;
    for (std::size_t i = 0; i < 5000; ++i) {
        data += static_cast<char>(i * 31 + i / 7);
    }
    for (std::size_t size = 0; size <= data.size(); size += size < 600 ? 1 : 97) {
        const Bytes whole(data.data(), size);
        for (const std::size_t piece : {1U, 7U, 64U, 512U, 4096U}) {
            if (piece == 1 && size > 600) {
                continue;
            }
            idem::core::Xxh3Stream stream;
            stream.reset();
            for (std::size_t at = 0; at < size; at += piece) {
                stream.update(whole.substr(at, piece));
            }
            ASSERT_EQ(stream.digest(), idem::core::xxh3_128(whole)) << size << " in pieces of " << piece;
        }
    }
}

} // namespace
