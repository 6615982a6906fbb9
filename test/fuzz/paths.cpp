// paths: lines of the input are paths. Which are, and where they lead, is compared with a reference that keeps each
// path as a list of steps and tries them all.
#include "core/paths.hpp"

#include "fuzz.hpp"

#include <optional>

namespace {

using idem::core::PathCompiler;
using idem::core::PathFault;
using idem::core::PathSet;
using idem::core::PathUse;

struct Step {
    enum class Kind { NAME, EVERY_MEMBER, EVERY_ELEMENT } kind;
    std::string name;
};
using Steps = std::vector<Step>;

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || static_cast<signed char>(c) < 0;
}

std::optional<std::uint32_t> unit(const std::string& text) {
    if (text.size() < 6 || text.substr(0, 2) != "\\u" ||
        text.substr(2, 4).find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(std::stoul(text.substr(2, 4), nullptr, 16));
}

// quoted takes a quoted name off the front of rest.
std::optional<std::string> quoted(std::string& rest) {
    std::string name;
    rest.erase(0, 1);
    while (!rest.empty() && rest[0] != '"') {
        if (static_cast<unsigned char>(rest[0]) < 0x20) {
            return std::nullopt;
        }
        if (rest[0] != '\\') {
            name += rest[0];
            rest.erase(0, 1);
            continue;
        }
        const std::string letters = "\"\\/bfnrt";
        const std::size_t known = rest.size() < 2 ? std::string::npos : letters.find(rest[1]);
        if (known != std::string::npos) {
            name += "\"\\/\b\f\n\r\t"[known];
            rest.erase(0, 2);
            continue;
        }
        const auto high = unit(rest);
        if (!high || *high == 0 || (*high >= 0xDC00 && *high < 0xE000)) {
            return std::nullopt;
        }
        rest.erase(0, 6);
        std::uint32_t point = *high;
        if (point >= 0xD800 && point < 0xDC00) {
            const auto low = unit(rest);
            if (!low || *low < 0xDC00 || *low >= 0xE000) {
                return std::nullopt;
            }
            rest.erase(0, 6);
            point = 0x10000 + ((point - 0xD800) << 10) + (*low - 0xDC00);
        }
        reference::append_utf8(name, point);
    }
    if (rest.empty()) {
        return std::nullopt;
    }
    rest.erase(0, 1);
    return name;
}

std::optional<Steps> steps_of(std::string rest) {
    Steps steps;
    if (rest.empty() || rest[0] != '$') {
        return std::nullopt;
    }
    rest.erase(0, 1);
    while (!rest.empty()) {
        if (rest.substr(0, 3) == "[*]") {
            steps.push_back({Step::Kind::EVERY_ELEMENT, ""});
            rest.erase(0, 3);
            continue;
        }
        if (rest[0] != '.') {
            return std::nullopt;
        }
        rest.erase(0, 1);
        if (rest[0] == '*') {
            steps.push_back({Step::Kind::EVERY_MEMBER, ""});
            rest.erase(0, 1);
            continue;
        }
        if (rest[0] == '"') {
            const auto name = quoted(rest);
            if (!name) {
                return std::nullopt;
            }
            steps.push_back({Step::Kind::NAME, *name});
            continue;
        }
        std::size_t size = 0;
        while (size < rest.size() && (is_letter(rest[size]) || (size > 0 && rest[size] >= '0' && rest[size] <= '9'))) {
            ++size;
        }
        if (size == 0) {
            return std::nullopt;
        }
        steps.push_back({Step::Kind::NAME, rest.substr(0, size)});
        rest.erase(0, size);
    }
    return steps;
}

// Place is a concrete way into a value: names, or nothing for an element.
using Place = std::vector<std::optional<std::string>>;

bool leads_to(const Steps& steps, const Place& place) {
    if (steps.size() != place.size()) {
        return false;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool fits = steps[i].kind == Step::Kind::EVERY_ELEMENT  ? !place[i]
                          : steps[i].kind == Step::Kind::EVERY_MEMBER ? place[i].has_value()
                                                                      : place[i] == steps[i].name;
        if (!fits) {
            return false;
        }
    }
    return true;
}

std::uint8_t uses_at(const PathSet& set, const Place& place) {
    std::vector<std::uint32_t> nodes = {0};
    for (const auto& step : place) {
        std::vector<std::uint32_t> next;
        for (const std::uint32_t node : nodes) {
            if (!step) {
                next.push_back(set.nodes[node].every_element);
            } else {
                next.push_back(set.member(node, *step));
                next.push_back(set.nodes[node].every_member);
            }
        }
        std::erase(next, 0U);
        nodes = next;
    }
    std::uint8_t uses = 0;
    for (const std::uint32_t node : nodes) {
        uses |= set.nodes[node].uses;
    }
    return uses;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr PathUse USES[] = {PathUse::INTENT, PathUse::DECIMAL, PathUse::UNORDERED};
    if (size > 400) {
        return 0;
    }
    const std::string text = fuzz::as_utf8(std::string(reinterpret_cast<const char*>(data), size));
    std::vector<std::string> paths(1);
    for (const char c : text) {
        if (c == '\n') {
            paths.emplace_back();
        } else {
            paths.back() += c;
        }
    }
    std::size_t all = 0;
    for (const std::string& path : paths) {
        all += path.size();
    }
    std::vector<idem::core::PathNode> nodes(PathCompiler::max_nodes(all));
    std::vector<idem::core::PathName> names(PathCompiler::max_names(all));
    std::vector<char> room(PathCompiler::max_text(all));
    PathCompiler compiler(all, nodes.data(), names.data(), room.data());

    std::vector<std::pair<Steps, PathUse>> known;
    std::vector<Place> places = {{}, {std::nullopt}, {"a"}};
    for (std::size_t i = 0; i < paths.size(); ++i) {
        const PathUse use = USES[i % 3];
        std::size_t at = 0;
        const PathFault fault = compiler.add(paths[i], use, 0, &at);
        const auto steps = steps_of(paths[i]);
        fuzz::expect(at <= paths[i].size(), "position in " + paths[i]);
        fuzz::expect((fault == PathFault::NONE) == steps.has_value(), "path " + paths[i]);
        if (!steps) {
            return 0; // the set must not be used after a fault
        }
        known.push_back({*steps, use});
        Place place;
        for (const Step& step : *steps) {
            place.push_back(step.kind == Step::Kind::EVERY_ELEMENT ? std::nullopt
                            : step.kind == Step::Kind::NAME        ? std::optional(step.name)
                                                                   : std::optional<std::string>("*"));
        }
        places.push_back(place);
        if (!place.empty()) {
            place.back() = "other";
            places.push_back(place);
        }
    }
    for (const Place& place : places) {
        std::uint8_t expected = 0;
        for (const auto& [steps, use] : known) {
            expected |= leads_to(steps, place) ? static_cast<std::uint8_t>(use) : 0;
        }
        fuzz::expect(uses_at(compiler.set(), place) == expected, "places of " + text);
    }
    return 0;
}
