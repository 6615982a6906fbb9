// paths.hpp: paths to members and elements, compiled for a walk.
//
// Purpose: tell, while a JSON value is walked member by member, which options hold where. The syntax is the member
// subset of jsonpath: `$`, then steps `.name`, `."any name"`, `.*` (every member) and `[*]` (every element). A name
// without quotes has letters, digits, `_`, `$` and what is beyond ASCII, and does not begin with a digit; in quotes
// JSON's escapes hold. Paths are strict: a step that does not fit the kind of value leads nowhere. Elements cannot be
// named by index, for an index means another element as soon as one before it goes. Data layout: a trie of nodes; the
// step by name goes through one hash table of (node, name). A walk holds a set of nodes, which is empty nearly
// everywhere and has more than one node only below `.*`. All memory is the caller's; the bounds below are never
// exceeded.
#pragma once

#include "core/types.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// PathUse is what a path says of the place it leads to; a node has a set of them.
enum class PathUse : std::uint8_t { IGNORE = 1, INTENT = 2, DECIMAL = 4, ROUND = 8, UNORDERED = 16 };

// PathNode is a place. LEADS_* tell that an intent path goes on from here.
struct PathNode {
    static constexpr std::uint8_t LEADS_BY_MEMBER = 1;
    static constexpr std::uint8_t LEADS_BY_ELEMENT = 2;

    std::uint32_t every_member = 0;  // node of `.*`, 0 if there is none
    std::uint32_t every_element = 0; // node of `[*]`, 0 if there is none
    std::int32_t scale = 0;          // of ROUND
    std::uint8_t uses = 0;           // PathUse bits
    std::uint8_t leads = 0;          // LEADS_* bits
    bool has_names = false;          // some step by name goes on from here

    constexpr bool is(PathUse use) const noexcept { return (uses & static_cast<std::uint8_t>(use)) != 0; }
};

// PathName is a slot of the hash table; node 0 is an empty slot.
struct PathName {
    Bytes name;
    std::uint32_t parent = 0;
    std::uint32_t node = 0;
};

// PathFault is what is wrong with a path. INDEX names an element by number; NOT_A_MEMBER is an ignore path to the root
// or to elements; OTHER_SCALE gives the same place a second scale.
enum class PathFault : std::uint8_t { NONE, SYNTAX, INDEX, NOT_A_MEMBER, OTHER_SCALE };

// PathSet is a compiled set of paths; node 0 is the root. Without any path it has no nodes.
struct PathSet {
    const PathNode* nodes = nullptr;
    const PathName* names = nullptr;
    std::uint32_t name_mask = 0;
    bool has_intent = false;

    constexpr bool is_empty() const noexcept { return nodes == nullptr; }

    // member returns the node that the step to a member of that name (UTF-8) leads to, 0 for none; `.*` is apart.
    std::uint32_t member(std::uint32_t parent, Bytes name) const noexcept;
};

// PathCompiler adds paths to a PathSet, one by one.
class PathCompiler {
public:
    // Bounds for paths of size bytes all together: nodes, slots of the name table, bytes of names.
    static constexpr std::size_t max_nodes(std::size_t size) noexcept { return size / 2 + 2; }
    static std::size_t max_names(std::size_t size) noexcept;
    static constexpr std::size_t max_text(std::size_t size) noexcept { return size + 1; }

    // PathCompiler takes memory of the sizes above; nodes and names are overwritten.
    PathCompiler(std::size_t size, PathNode* nodes, PathName* names, char* text) noexcept;

    // add compiles one path (UTF-8). On a fault *at is its position in bytes and the set must not be used. scale is
    // read for ROUND only.
    PathFault add(Bytes path, PathUse use, std::int32_t scale, std::size_t* at) noexcept;

    // set returns what has been compiled so far.
    PathSet set() const noexcept { return set_; }

private:
    std::uint32_t new_node() noexcept;
    std::uint32_t step_by_name(std::uint32_t parent, Bytes name) noexcept;

    PathSet set_;
    PathNode* nodes_;
    PathName* names_;
    char* text_;
    std::uint32_t count_ = 1;
};

} // namespace idem::core
