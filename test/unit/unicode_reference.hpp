// unicode_reference.hpp: NFC as the standard defines it, slow and obvious, to hold the fast one against. It shares the
// tables with src/core, which are checked elsewhere, and no code.
#pragma once

#include "canonical_reference.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reference {
namespace tables {

struct Record {
    std::uint8_t combining;
    std::uint8_t may_change;
    std::uint16_t start;
    std::uint8_t size;
};
struct Pair {
    std::uint32_t first;
    std::uint32_t second;
    std::uint32_t composite;
};
#include "core/unicode_tables.inc"

} // namespace tables

inline std::vector<std::uint32_t> code_points(const std::string& utf8) {
    std::vector<std::uint32_t> out;
    const std::u16string units = utf16(utf8);
    for (std::size_t i = 0; i < units.size(); ++i) {
        std::uint32_t point = units[i];
        if (point >= 0xD800 && point < 0xDC00) {
            point = 0x10000 + ((point - 0xD800) << 10) + (units[++i] - 0xDC00U);
        }
        out.push_back(point);
    }
    return out;
}

inline tables::Record record(std::uint32_t point) {
    if (point >= tables::TABLES_END) {
        return {};
    }
    return tables::RECORDS[tables::RECORD_OF[tables::BLOCK_OF[point / tables::BLOCK]][point % tables::BLOCK]];
}

inline std::uint32_t combining(std::uint32_t point) {
    return record(point).combining;
}

// composites maps each pair that composes to what it composes to, Hangul spelled out.
inline const std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& composites() {
    static const auto all = [] {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> out;
        for (const auto& pair : tables::PAIRS) {
            out[{pair.first, pair.second}] = pair.composite;
        }
        std::uint32_t syllable = 0xAC00;
        for (std::uint32_t lead = 0x1100; lead <= 0x1112; ++lead) {
            for (std::uint32_t vowel = 0x1161; vowel <= 0x1175; ++vowel) {
                out[{lead, vowel}] = syllable;
                for (std::uint32_t trail = 0x11A8; trail <= 0x11C2; ++trail) {
                    out[{syllable, trail}] = syllable + trail - 0x11A7;
                }
                syllable += 28;
            }
        }
        return out;
    }();
    return all;
}

inline std::vector<std::uint32_t> decompose(std::uint32_t point) {
    static const auto syllables = [] {
        std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> out;
        for (const auto& [pair, composite] : composites()) {
            if (composite >= 0xAC00 && composite <= 0xD7A3) {
                out[composite] = pair;
            }
        }
        return out;
    }();
    if (const auto syllable = syllables.find(point); syllable != syllables.end()) {
        auto out = decompose(syllable->second.first);
        out.push_back(syllable->second.second);
        return out;
    }
    const tables::Record entry = record(point);
    if (entry.size == 0) {
        return {point};
    }
    const auto* first = tables::DECOMPOSITIONS + entry.start;
    return {first, first + entry.size};
}

inline std::string nfc(const std::string& utf8) {
    std::vector<std::uint32_t> points;
    for (const std::uint32_t point : code_points(utf8)) {
        const auto parts = decompose(point);
        points.insert(points.end(), parts.begin(), parts.end());
    }
    // Canonical ordering: exchange neighbours until nothing moves.
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t i = 1; i < points.size(); ++i) {
            if (combining(points[i]) != 0 && combining(points[i - 1]) > combining(points[i])) {
                std::swap(points[i - 1], points[i]);
                moved = true;
            }
        }
    }
    // Canonical composition: each character looks back for the last starter and for what blocks it.
    for (std::size_t i = 1; i < points.size();) {
        std::size_t starter = i;
        bool found = false;
        while (starter > 0 && !found) {
            found = combining(points[--starter]) == 0;
        }
        bool blocked = !found;
        for (std::size_t j = starter + 1; j < i; ++j) {
            blocked = blocked || combining(points[j]) == 0 || combining(points[j]) >= combining(points[i]);
        }
        const auto whole = composites().find({points[starter], points[i]});
        if (!blocked && whole != composites().end()) {
            points[starter] = whole->second;
            points.erase(points.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
    std::string out;
    for (const std::uint32_t point : points) {
        append_utf8(out, point);
    }
    return out;
}

} // namespace reference
