// paths_test: which paths are paths, and where they lead.
#include "core/paths.hpp"

#include "canonical_reference.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

using idem::core::PathCompiler;
using idem::core::PathFault;
using idem::core::PathName;
using idem::core::PathNode;
using idem::core::PathSet;
using idem::core::PathUse;

// Compiled owns a set.
struct Compiled {
    explicit Compiled(const std::vector<std::string>& paths, PathUse use = PathUse::DECIMAL) {
        std::size_t size = 0;
        for (const std::string& path : paths) {
            size += path.size();
        }
        nodes.resize(PathCompiler::max_nodes(size));
        names.resize(PathCompiler::max_names(size));
        text.resize(PathCompiler::max_text(size));
        compiler = std::make_unique<PathCompiler>(size, nodes.data(), names.data(), text.data());
        for (const std::string& path : paths) {
            if (fault == PathFault::NONE) {
                fault = compiler->add(path, use, 0, &at);
            }
        }
    }

    // leads tells whether steps (".name", "[]") lead to a place in use.
    bool leads(const std::vector<std::string>& steps, PathUse use = PathUse::DECIMAL) const {
        const PathSet set = compiler->set();
        std::vector<std::uint32_t> at_nodes = {0};
        for (const std::string& step : steps) {
            std::vector<std::uint32_t> next;
            for (const std::uint32_t node : at_nodes) {
                if (step == "[]") {
                    next.push_back(set.nodes[node].every_element);
                } else {
                    next.push_back(set.member(node, step.substr(1)));
                    next.push_back(set.nodes[node].every_member);
                }
            }
            std::erase(next, 0U);
            at_nodes = next;
        }
        for (const std::uint32_t node : at_nodes) {
            if (set.nodes[node].is(use)) {
                return true;
            }
        }
        return false;
    }

    std::vector<PathNode> nodes;
    std::vector<PathName> names;
    std::vector<char> text;
    std::unique_ptr<PathCompiler> compiler;
    PathFault fault = PathFault::NONE;
    std::size_t at = 0;
};

TEST(Paths, LeadWhereTheySay) {
    const std::pair<const char*, std::vector<std::string>> cases[] = {
        {"$", {}},
        {"$.a", {".a"}},
        {"$.a.b", {".a", ".b"}},
        {"$.a[*].t", {".a", "[]", ".t"}},
        {"$[*]", {"[]"}},
        {"$[*][*].x", {"[]", "[]", ".x"}},
        {"$.\"b c\"", {".b c"}},
        {"$.\"\"", {"."}},
        {"$.\"*\"", {".*"}},
        {"$.\"a.b[*]\"", {".a.b[*]"}},
        {"$.\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", {".\"\\/\b\f\n\r\t"}},
        {"$.\"\\u00e9\\uD83D\\ude00\"", {".\xC3\xA9\xF0\x9F\x98\x80"}},
        {"$.\xC3\xA9_$1", {".\xC3\xA9_$1"}},
        {"$.$", {".$"}},
        {"$.null.true.last", {".null", ".true", ".last"}},
        {"$.*", {".anything"}},
        {"$.*.x", {".a", ".x"}},
    };
    for (const auto& [path, steps] : cases) {
        const Compiled compiled({path});
        EXPECT_EQ(compiled.fault, PathFault::NONE) << path;
        EXPECT_TRUE(compiled.leads(steps)) << path;
        auto other = steps;
        other.push_back(".a");
        EXPECT_FALSE(compiled.leads(other)) << path;
        other.back() = "[]";
        EXPECT_FALSE(compiled.leads(other)) << path;
        EXPECT_FALSE(compiled.leads(steps, PathUse::IGNORE)) << path;
    }
    EXPECT_FALSE(Compiled({"$.\"*\""}).leads({".a"}));
    EXPECT_FALSE(Compiled({"$.*"}).leads({"[]"}));
    EXPECT_FALSE(Compiled({"$.a.b"}).leads({".a", "[]", ".b"}));
}

TEST(Paths, SetsOfPaths) {
    const Compiled compiled({"$.a.b", "$.a.c", "$.*.d", "$.a.\"b\"", "$.x[*].b"});
    EXPECT_EQ(compiled.fault, PathFault::NONE);
    for (const char* name : {".b", ".c", ".d"}) {
        EXPECT_TRUE(compiled.leads({".a", name}));
    }
    EXPECT_TRUE(compiled.leads({".q", ".d"}));
    EXPECT_FALSE(compiled.leads({".q", ".b"}));
    EXPECT_FALSE(compiled.leads({".x", ".b"}));
    EXPECT_TRUE(compiled.leads({".x", "[]", ".b"}));
}

TEST(Paths, FaultsAndWhereTheyAre) {
    const std::tuple<const char*, PathFault, std::size_t> cases[] = {
        {"", PathFault::SYNTAX, 0},
        {"a", PathFault::SYNTAX, 0},
        {".a", PathFault::SYNTAX, 0},
        {"$a", PathFault::SYNTAX, 1},
        {"$.", PathFault::SYNTAX, 2},
        {"$..a", PathFault::SYNTAX, 2},
        {"$.a.", PathFault::SYNTAX, 4},
        {"$.a b", PathFault::SYNTAX, 3},
        {"$ .a", PathFault::SYNTAX, 1},
        {"$.a ", PathFault::SYNTAX, 3},
        {"$.1", PathFault::SYNTAX, 2},
        {"$.a-b", PathFault::SYNTAX, 3},
        {"$.a[", PathFault::SYNTAX, 4},
        {"$.a[*", PathFault::SYNTAX, 5},
        {"$.a[]", PathFault::SYNTAX, 4},
        {"$.a[\"b\"]", PathFault::SYNTAX, 4},
        {"$.a[0]", PathFault::INDEX, 3},
        {"$.a[-1].b", PathFault::INDEX, 3},
        {"$.a[last]", PathFault::INDEX, 3},
        {"$.a[1 to 2]", PathFault::INDEX, 3},
        {"$.**", PathFault::SYNTAX, 3},
        {"$.\"a", PathFault::SYNTAX, 4},
        {"$.\"a\\", PathFault::SYNTAX, 5},
        {"$.\"\\q\"", PathFault::SYNTAX, 4},
        {"$.\"\\u12\"", PathFault::SYNTAX, 4},
        {"$.\"\\ud800\"", PathFault::SYNTAX, 9},
        {"$.\"\\udc00\"", PathFault::SYNTAX, 9},
        {"$.\"\\u0000\"", PathFault::SYNTAX, 9},
        {"$.\"a\nb\"", PathFault::SYNTAX, 4},
        {"$.a ? (@ > 1)", PathFault::SYNTAX, 3},
        {"$.a.size()", PathFault::SYNTAX, 8},
        {"strict $.a", PathFault::SYNTAX, 0},
        {"/a/b", PathFault::SYNTAX, 0},
    };
    for (const auto& [path, fault, at] : cases) {
        const Compiled compiled({path});
        EXPECT_EQ(compiled.fault, fault) << path;
        EXPECT_EQ(compiled.at, at) << path;
    }
    EXPECT_EQ(Compiled({"$"}, PathUse::IGNORE).fault, PathFault::NOT_A_MEMBER);
    EXPECT_EQ(Compiled({"$.a[*]"}, PathUse::IGNORE).fault, PathFault::NOT_A_MEMBER);
    EXPECT_EQ(Compiled({"$.a[*].b"}, PathUse::IGNORE).fault, PathFault::NONE);
}

TEST(Paths, OnePlaceHasOneScale) {
    Compiled compiled({"$.aaaaaaaaaa"});
    std::size_t at = 0;
    EXPECT_EQ(compiled.compiler->add("$.a", PathUse::ROUND, 2, &at), PathFault::NONE);
    EXPECT_EQ(compiled.compiler->add("$.\"a\"", PathUse::ROUND, 2, &at), PathFault::NONE);
    EXPECT_EQ(compiled.compiler->add("$.a", PathUse::ROUND, 3, &at), PathFault::OTHER_SCALE);
}

TEST(Paths, IntentPathsLeadOn) {
    const Compiled compiled({"$.a[*].b"}, PathUse::INTENT);
    const PathSet set = compiled.compiler->set();
    EXPECT_TRUE(set.has_intent);
    EXPECT_EQ(set.nodes[0].leads, PathNode::LEADS_BY_MEMBER);
    EXPECT_EQ(set.nodes[set.member(0, "a")].leads, PathNode::LEADS_BY_ELEMENT);
    EXPECT_FALSE(Compiled({"$.a"}).compiler->set().has_intent);
}

// As many names as a policy may have, and each is found.
TEST(Paths, ManyNames) {
    std::vector<std::string> paths;
    for (int i = 0; i < 5000; ++i) {
        paths.push_back("$.k" + std::to_string(i) + (i % 2 == 0 ? ".x" : ""));
    }
    const Compiled compiled(paths);
    for (int i = 0; i < 5000; ++i) {
        const std::string name = ".k" + std::to_string(i);
        EXPECT_EQ(compiled.leads({name}), i % 2 == 1);
        EXPECT_EQ(compiled.leads({name, ".x"}), i % 2 == 0);
    }
    EXPECT_FALSE(compiled.leads({".k5000"}));
}

// The shortest steps there are need the most nodes for their size.
TEST(Paths, BoundsAreEnough) {
    for (const std::string step : {".a", ".*", "[*]", ".\"\""}) {
        std::string path = "$";
        for (int i = 0; i < 200; ++i) {
            path += step;
        }
        EXPECT_EQ(Compiled({path}).fault, PathFault::NONE);
        EXPECT_EQ(Compiled({path, "$", "$"}).fault, PathFault::NONE);
    }
}

} // namespace
