// http_key_test.cpp: the Idempotency-Key field, as the IETF draft spells it and as most clients do.
#include "core/http_key.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace {

// parsed returns the key, or "<none>". The buffer is exactly as large as promised, so that a sanitizer sees one byte
// more.
std::string parsed(std::string_view field) {
    std::unique_ptr<char[]> out(new char[field.size()]);
    std::size_t size = 99;
    if (!idem::core::parse_http_key(field, out.get(), &size)) {
        EXPECT_EQ(size, 0u);
        return "<none>";
    }
    EXPECT_LE(size, field.size());
    return std::string(out.get(), size);
}

TEST(HttpKey, BothSpellingsGiveTheSameKey) {
    EXPECT_EQ(parsed("\"8e03978e-40d5-43e8-bc93-6894a57f9324\""), "8e03978e-40d5-43e8-bc93-6894a57f9324");
    EXPECT_EQ(parsed("8e03978e-40d5-43e8-bc93-6894a57f9324"), "8e03978e-40d5-43e8-bc93-6894a57f9324");
}

TEST(HttpKey, BlanksAroundAreNotPartOfIt) {
    EXPECT_EQ(parsed("  \"a b\"  "), "a b");
    EXPECT_EQ(parsed(" \t abc\t "), "abc");
}

TEST(HttpKey, NothingInsideQuotesIsTrimmedOrFolded) {
    EXPECT_EQ(parsed("\" Ab \""), " Ab ");
    EXPECT_EQ(parsed("\" \""), " ");
    EXPECT_EQ(parsed("\"a,b\""), "a,b");
}

TEST(HttpKey, EscapesAreUndone) {
    EXPECT_EQ(parsed(R"("a\"b\\c")"), R"(a"b\c)");
    EXPECT_EQ(parsed(R"("\"")"), "\"");
    EXPECT_EQ(parsed(R"("\n")"), "<none>");
    EXPECT_EQ(parsed(R"("a\)"), "<none>");
    EXPECT_EQ(parsed(R"("a\")"), "<none>");
}

TEST(HttpKey, EmptyIsAbsent) {
    EXPECT_EQ(parsed(""), "<none>");
    EXPECT_EQ(parsed(" \t "), "<none>");
    EXPECT_EQ(parsed("\"\""), "<none>");
    EXPECT_EQ(parsed("\"\";a=1"), "<none>");
    EXPECT_EQ(parsed(std::string_view()), "<none>");
}

TEST(HttpKey, ParametersAreCheckedAndIgnored) {
    for (const char* tail : {";a", ";a;b", "; a=1", ";a=?1", ";a=?0;b=tok/en:x", ";a=\"x;\\\"y\"",
                             ";a=:aGVsbG8=:", ";a=::", ";*x-1._=-12.345", ";a=999999999999999", ";a=*", ";a=A  "})
        EXPECT_EQ(parsed(std::string("\"k\"") + tail), "k") << tail;
    for (const char* tail :
         {";", "; ", ";A", ";1=2", ";a=", ";a= 1", ";a=?2", ";a=\"x", ";a=:x", ";a=-", ";a=1.", ";a=1.1234",
          ";a=1234567890123.1", ";a=1234567890123456", ";\ta", " ;a", ";a ;b", ";a=(1 2)", ";a=.5"})
        EXPECT_EQ(parsed(std::string("\"k\"") + tail), "<none>") << tail;
}

TEST(HttpKey, SeveralValuesAreNoKey) {
    EXPECT_EQ(parsed("\"a\", \"b\""), "<none>");
    EXPECT_EQ(parsed("\"a\",\"a\""), "<none>");
    EXPECT_EQ(parsed("\"a\" \"b\""), "<none>");
    EXPECT_EQ(parsed("a, b"), "<none>");
    EXPECT_EQ(parsed("a,a"), "<none>");
    EXPECT_EQ(parsed("a,"), "<none>");
    EXPECT_EQ(parsed(",a"), "<none>");
    EXPECT_EQ(parsed("a b"), "<none>");
    EXPECT_EQ(parsed("a\tb"), "<none>");
}

TEST(HttpKey, BrokenQuotingIsNoKey) {
    for (const char* field : {"\"", "\"a", "a\"", "\"a\"b", "a\"b\"", "\"a\"\"", "\\\"a\\\"", "\"\"\""})
        EXPECT_EQ(parsed(field), "<none>") << field;
}

TEST(HttpKey, BareWordIsTakenAsItIs) {
    EXPECT_EQ(parsed("order:42/retry;x=1"), "order:42/retry;x=1");
    EXPECT_EQ(parsed("a\\b"), "a\\b");
    EXPECT_EQ(parsed("'a'"), "'a'");
    EXPECT_EQ(parsed(":aGk=:"), ":aGk=:");
    EXPECT_EQ(parsed("?1"), "?1");
    EXPECT_EQ(parsed("(a)"), "(a)");
}

TEST(HttpKey, EveryByteIsJudged) {
    for (int byte = 0; byte < 256; ++byte) {
        char c = static_cast<char>(byte);
        std::string bare = std::string("a") + c + "b";
        std::string quoted = std::string("\"a") + c + "b\"";
        bool printable = byte >= 0x20 && byte <= 0x7e;
        bool in_bare = printable && c != ' ' && c != ',' && c != '"';
        bool in_quotes = printable && c != '"' && c != '\\';
        EXPECT_EQ(parsed(bare), in_bare ? bare : "<none>") << byte;
        EXPECT_EQ(parsed(quoted), in_quotes ? std::string("a") + c + "b" : "<none>") << byte;
    }
}

TEST(HttpKey, NonAsciiIsNoKey) {
    EXPECT_EQ(parsed("\"caf\xc3\xa9\""), "<none>");
    EXPECT_EQ(parsed("caf\xe9"), "<none>");
    EXPECT_EQ(parsed(std::string_view("a\0", 2)), "<none>");
    EXPECT_EQ(parsed(std::string_view("\"a\"\0", 4)), "<none>");
}

TEST(HttpKey, LongFieldsAreLinear) {
    std::string word(1 << 20, 'x');
    EXPECT_EQ(parsed(word), word);
    EXPECT_EQ(parsed("\"" + word + "\""), word);
    EXPECT_EQ(parsed("\"" + word), "<none>");
    std::string escapes = "\"";
    for (int i = 0; i < 100000; ++i)
        escapes += "\\\\";
    EXPECT_EQ(parsed(escapes + "\""), std::string(100000, '\\'));
}

} // namespace
