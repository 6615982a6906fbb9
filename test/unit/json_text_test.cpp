// json_text_test: JSON text is read to the letter of RFC 8259, and what I-JSON forbids is seen. Covers A33.
#include "core/json_text.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using idem::core::JsonFault;
using idem::core::JsonReader;
using idem::core::JsonToken;

// read prints the tokens of a text, and the fault with its position.
std::string read(const std::string& text) {
    std::vector<std::uint8_t> nesting(JsonReader::nesting_size(text.size()));
    JsonReader reader(text, nesting.data());
    std::string out;
    const auto value = [&reader] {
        std::string room(reader.inner());
        if (reader.has_escape()) {
            room.resize(idem::core::unescape(reader.inner(), room.data()));
        }
        return room + (reader.has_noncharacter() ? "!" : "");
    };
    for (;;) {
        switch (reader.next()) {
        case JsonToken::BEGIN_OBJECT: out += '{'; break;
        case JsonToken::END_OBJECT: out += '}'; break;
        case JsonToken::BEGIN_ARRAY: out += '['; break;
        case JsonToken::END_ARRAY: out += ']'; break;
        case JsonToken::KEY: out += "k(" + value() + ")"; break;
        case JsonToken::STRING: out += "s(" + value() + ")"; break;
        case JsonToken::NUMBER: out += "n(" + std::string(reader.inner()) + ")"; break;
        case JsonToken::TRUE: out += 't'; break;
        case JsonToken::FALSE: out += 'f'; break;
        case JsonToken::NOTHING: out += '0'; break;
        case JsonToken::END: return out;
        case JsonToken::FAULT:
            return "fault " + std::to_string(static_cast<int>(reader.fault())) + " at " +
                   std::to_string(reader.position());
        }
    }
}

std::string fault(JsonFault fault, std::size_t at) {
    return "fault " + std::to_string(static_cast<int>(fault)) + " at " + std::to_string(at);
}

TEST(JsonText, Tokens) {
    EXPECT_EQ(read(" null "), "0");
    EXPECT_EQ(read("[true,false,null,-1.50e+3,\"a\"]"), "[tf0n(-1.50e+3)s(a)]");
    EXPECT_EQ(read("{\"a\" : {} ,\r\n\t\"b\\n\":[ ]}"), "{k(a){}k(b\n)[]}");
    EXPECT_EQ(read("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\ud83d\\uDE00\""), "s(\"\\/\b\f\n\r\tA\xF0\x9F\x98\x80)");
    EXPECT_EQ(read("\"\\uffff\""), "s(\xEF\xBF\xBF!)");
    EXPECT_EQ(read("\"\xEF\xBF\xBE\""), "s(\xEF\xBF\xBE!)");
    EXPECT_EQ(read("{\"\\ufdd0\":\"\xEF\xBF\xBD\"}"), "{k(\xEF\xB7\x90!)s(\xEF\xBF\xBD)}");
    EXPECT_EQ(read("0"), "n(0)");
}

TEST(JsonText, Faults) {
    const std::tuple<std::string, JsonFault, std::size_t> cases[] = {
        {"", JsonFault::UNFINISHED, 0},
        {"  ", JsonFault::UNFINISHED, 2},
        {"{", JsonFault::UNFINISHED, 1},
        {"[1,", JsonFault::UNFINISHED, 3},
        {"[1", JsonFault::UNFINISHED, 2},
        {"{\"a\"", JsonFault::UNFINISHED, 4},
        {"{\"a\":", JsonFault::UNFINISHED, 5},
        {"\"a", JsonFault::UNFINISHED, 2},
        {"tru", JsonFault::UNFINISHED, 3},
        {"-", JsonFault::UNFINISHED, 1},
        {"1.", JsonFault::UNFINISHED, 2},
        {"1e+", JsonFault::UNFINISHED, 3},
        {"\"\\u12", JsonFault::UNFINISHED, 5},
        {"\"\\", JsonFault::UNFINISHED, 2},
        {"01", JsonFault::SYNTAX, 1},
        {"+1", JsonFault::SYNTAX, 0},
        {".5", JsonFault::SYNTAX, 0},
        {"1.e5", JsonFault::SYNTAX, 2},
        {"-a", JsonFault::SYNTAX, 1},
        {"1e5.5", JsonFault::SYNTAX, 3},
        {"nul", JsonFault::UNFINISHED, 3},
        {"nulL", JsonFault::SYNTAX, 0},
        {"NaN", JsonFault::SYNTAX, 0},
        {"[1,]", JsonFault::SYNTAX, 3},
        {"[,1]", JsonFault::SYNTAX, 1},
        {"[1 2]", JsonFault::SYNTAX, 3},
        {"{\"a\":1,}", JsonFault::SYNTAX, 7},
        {"{a:1}", JsonFault::SYNTAX, 1},
        {"{\"a\" 1}", JsonFault::SYNTAX, 5},
        {"[1}", JsonFault::SYNTAX, 2},
        {"{\"a\":1]", JsonFault::SYNTAX, 6},
        {"1 1", JsonFault::SYNTAX, 2},
        {"]", JsonFault::SYNTAX, 0},
        {"'a'", JsonFault::SYNTAX, 0},
        {"\xEF\xBB\xBF"
         "1",
         JsonFault::SYNTAX, 0},
        {"\v1", JsonFault::SYNTAX, 0},
        {"\"a\tb\"", JsonFault::CONTROL, 2},
        {"\"\\q\"", JsonFault::ESCAPE, 1},
        {"\"\\u12g4\"", JsonFault::ESCAPE, 1},
        {"\"\\U0041\"", JsonFault::ESCAPE, 1},
        {"\"\\u0000\"", JsonFault::ZERO, 1},
        {"\"\\ud800\"", JsonFault::SURROGATE, 1},
        {"\"\\udc00\"", JsonFault::SURROGATE, 1},
        {"\"\\udc00\\ud800\"", JsonFault::SURROGATE, 1},
        {"\"a\\ud800\\u0041\"", JsonFault::SURROGATE, 2},
        {"\"\\ud800\\n\"", JsonFault::SURROGATE, 1},
    };
    for (const auto& [text, expected, at] : cases) {
        EXPECT_EQ(read(text), fault(expected, at)) << text;
    }
}

// Every vector that PostgreSQL takes is JSON, and the others are not (or need U+0000, or a larger number).
TEST(JsonText, EdgeCases) {
    for (const std::string& line : reference::lines("edge_cases.jsonl")) {
        const reference::Value row = reference::parse(line);
        const std::string answer = read(reference::member(row, "input"));
        const bool is_accepted = reference::member(row, "pg15") == "accepts";
        const bool is_too_large = reference::member(row, "pg15").find("22003") != std::string::npos;
        EXPECT_EQ(answer.substr(0, 5) != "fault", is_accepted || is_too_large) << line;
    }
}

TEST(JsonText, DepthCostsNoStack) {
    const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
    EXPECT_EQ(read(deep), deep);
    EXPECT_EQ(read(std::string(1000000, '[')), fault(JsonFault::UNFINISHED, 1000000));
}

TEST(JsonText, EscapesBeyondAscii) {
    const std::string inner = "a\\n\\u0041\\u00e9\\\\u00e9\\ud83d\\ude00";
    std::size_t at = 0;
    EXPECT_EQ(idem::core::next_escape(inner, &at), 0xE9U);
    EXPECT_EQ(idem::core::next_escape(inner, &at), 0x1F600U);
    EXPECT_EQ(idem::core::next_escape(inner, &at), 0U);
    EXPECT_EQ(at, inner.size());
}

} // namespace
