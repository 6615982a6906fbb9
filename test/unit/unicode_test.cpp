// unicode_test: strings are trimmed of the 25 white space characters and put into NFC, whatever the pieces. Covers B11.
#include "core/unicode.hpp"

#include "unicode_reference.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace {

using idem::core::Bytes;

std::string utf8(std::initializer_list<std::uint32_t> points) {
    std::string out;
    for (const std::uint32_t point : points) {
        reference::append_utf8(out, point);
    }
    return out;
}

std::uint32_t random_mark(std::mt19937& random) {
    return 0x300 + static_cast<std::uint32_t>(random() % 0x70);
}

// nfc normalizes piece by piece as callers do, with exactly the memory that is promised to be enough.
std::string nfc(const std::string& text, std::size_t min) {
    std::string out;
    for (Bytes rest = text; !rest.empty();) {
        const std::size_t size = idem::core::nfc_piece(rest, min);
        EXPECT_GT(size, 0U);
        const std::string piece(rest.substr(0, size));
        std::vector<char> room(size * idem::core::NFC_GROWTH);
        std::vector<std::uint32_t> scratch(size * idem::core::NFC_SCRATCH);
        out.append(room.data(), idem::core::nfc(piece, room.data(), scratch.data()));
        rest.remove_prefix(size);
    }
    return out;
}

std::string trim(const std::string& text) {
    return std::string(idem::core::trim(text));
}

TEST(Unicode, CodePointsThereAndBack) {
    for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
        if (point >= 0xD800 && point < 0xE000) {
            continue;
        }
        const std::string text = utf8({point});
        std::size_t size = 0;
        ASSERT_EQ(idem::core::decode_utf8(text.data(), &size), point);
        ASSERT_EQ(size, text.size());
        char out[4];
        ASSERT_EQ(std::string(out, idem::core::encode_utf8(out, point)), text);
    }
}

TEST(Unicode, SixtySixNoncharacters) {
    int count = 0;
    for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
        count += idem::core::is_noncharacter(point) ? 1 : 0;
    }
    EXPECT_EQ(count, 66);
    EXPECT_TRUE(idem::core::has_noncharacter(utf8({'a', 0x1FFFE})));
    EXPECT_TRUE(idem::core::has_noncharacter(utf8({0xFDEF, 'a'})));
    EXPECT_FALSE(idem::core::has_noncharacter(utf8({'a', 0xFFFD, 0xFDF0, 0x10FFFD})));
}

TEST(Unicode, TrimsTwentyFiveCodePointsAndNoOther) {
    int count = 0;
    for (std::uint32_t point = 1; point <= 0x10FFFF; ++point) {
        if (point >= 0xD800 && point < 0xE000) {
            continue;
        }
        const std::string text = utf8({point, 'a', point, 'b', point});
        const std::string trimmed = trim(text);
        if (trimmed == text) {
            continue;
        }
        ++count;
        EXPECT_EQ(trimmed, utf8({'a', point, 'b'})) << point;
        EXPECT_EQ(trim(utf8({point, point})), "") << point;
    }
    EXPECT_EQ(count, 25);
    EXPECT_EQ(trim(""), "");
    EXPECT_EQ(trim(utf8({' ', 0x1F600, ' '})), utf8({0x1F600}));
}

TEST(Unicode, KnownForms) {
    const std::pair<std::string, std::string> cases[] = {
        {"", ""},
        {utf8({0x212B}), utf8({0xC5})},
        {utf8({'A', 0x30A}), utf8({0xC5})},
        {utf8({0xAC00, 0x11A8}), utf8({0xAC01})},
        {utf8({0x1100, 0x1161, 0x11A8}), utf8({0xAC01})},
        {utf8({0xAC01, 0x11A8}), utf8({0xAC01, 0x11A8})},
        {utf8({0xAC00, 0x11A7}), utf8({0xAC00, 0x11A7})},
        {utf8({0x344}), utf8({0x308, 0x301})},
        {utf8({0x958}), utf8({0x915, 0x93C})},
        {utf8({0xFB01}), utf8({0xFB01})},
        {utf8({'a', 0x301, 0x327}), utf8({0xE1, 0x327})},
        {utf8({0x1E0A, 0x323}), utf8({0x1E0C, 0x307})},
        {utf8({0x1D15E}), utf8({0x1D157, 0x1D165})},
        {utf8({0x16D67, 0x16D67}), utf8({0x16D68})}, // since Unicode 16
        {utf8({0x16D63, 0x16D67, 0x16D67}), utf8({0x16D6A})},
        {utf8({0x2F800}), utf8({0x4E3D})},
        {utf8({0x301, 'a'}), utf8({0x301, 'a'})},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(nfc(text, 1), expected);
        EXPECT_EQ(nfc(text, 4096), expected);
        EXPECT_EQ(reference::nfc(text), expected);
        EXPECT_TRUE(text == expected || !idem::core::is_surely_nfc(text));
    }
}

TEST(Unicode, EveryCodePointAsTheDefinitionSays) {
    for (std::uint32_t point = 1; point <= 0x30000; ++point) {
        if ((point >= 0xD800 && point < 0xE000) || (point > 0xAC40 && point < 0xD780)) {
            continue;
        }
        for (const std::string& text : {utf8({point}), utf8({'e', point, 0x301}), utf8({point, 0x345})}) {
            const std::string expected = reference::nfc(text);
            ASSERT_EQ(nfc(text, 1), expected) << point;
            ASSERT_TRUE(text == expected || !idem::core::is_surely_nfc(text)) << point;
        }
    }
}

// Every piece size gives the same, and a second time changes nothing.
TEST(Unicode, RandomTextsAsTheDefinitionSays) {
    std::mt19937 random(21);
    std::vector<std::uint32_t> interesting = {'a', 'e', 'o', 'A', ' ', 0x1100, 0x1161, 0x11A8, 0xAC00, 0xAC01, 0x16D67};
    for (std::uint32_t point = 0x80; point < 0x30000; ++point) {
        const auto record = reference::record(point);
        if (record.combining != 0 || record.may_change != 0 || record.size != 0) {
            interesting.push_back(point);
        }
    }
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (std::size_t size = random() % 12; size > 0; --size) {
            const bool is_mark = random() % 2 == 0;
            reference::append_utf8(text, is_mark ? random_mark(random) : interesting[random() % interesting.size()]);
        }
        const std::string expected = reference::nfc(text);
        ASSERT_EQ(nfc(text, 1), expected);
        ASSERT_EQ(nfc(text, 7), expected);
        ASSERT_EQ(nfc(text, 4096), expected);
        ASSERT_EQ(nfc(expected, 4096), expected);
        ASSERT_TRUE(text == expected || !idem::core::is_surely_nfc(text));
    }
}

TEST(Unicode, ManyMarksOnOneLetter) {
    std::mt19937 random(22);
    for (const int count : {31, 32, 33, 40, 300}) {
        std::string text = "a";
        for (int i = 0; i < count; ++i) {
            reference::append_utf8(text, random_mark(random));
        }
        ASSERT_EQ(nfc(text, 1), reference::nfc(text)) << count;
    }
}

// As long as a text is long, no step may take more than its share.
TEST(Unicode, AMillionMarksInNoTime) {
    std::string text = "a";
    for (int i = 0; i < 1000000; ++i) {
        reference::append_utf8(text, i % 2 == 0 ? 0x301 : 0x327);
    }
    const std::string once = nfc(text, 1024);
    EXPECT_LE(once.size(), text.size());
    EXPECT_EQ(nfc(once, 1024), once);
}

TEST(Unicode, OptionVectors) {
    int count = 0;
    for (const std::string& line : reference::lines("options.jsonl")) {
        const reference::Value row = reference::parse(line);
        bool trims = false;
        bool normalizes = false;
        bool other = false;
        for (const auto& [name, value] : row.members.front().second.members) {
            (name == "trim" ? trims : name == "nfc" ? normalizes : other) = true;
        }
        const reference::Value input = reference::parse(reference::member(row, "input"));
        if (other || input.kind != reference::Value::Kind::STRING) {
            continue;
        }
        ++count;
        std::string text = trims ? trim(input.text) : input.text;
        text = normalizes ? nfc(text, 1) : text;
        EXPECT_EQ(reference::print_string(text), reference::member(row, "canonical")) << line;
    }
    EXPECT_GT(count, 20);
}

} // namespace
