// nfc: trimming and NFC of any text, in pieces of any size and with no byte more than what is promised to be enough,
// against the definitions.
#include "core/unicode.hpp"

#include "fuzz.hpp"
#include "unicode_reference.hpp"

namespace {

std::string nfc(const std::string& text, std::size_t min) {
    std::string out;
    for (idem::core::Bytes rest = text; !rest.empty();) {
        const std::size_t size = idem::core::nfc_piece(rest, min);
        fuzz::expect(size > 0 && size <= rest.size(), "size of a piece");
        const std::string piece(rest.substr(0, size));
        std::vector<char> room(size * idem::core::NFC_GROWTH);
        std::vector<std::uint32_t> scratch(size * idem::core::NFC_SCRATCH);
        out.append(room.data(), idem::core::nfc(piece, room.data(), scratch.data()));
        rest.remove_prefix(size);
    }
    return out;
}

std::string trim(const std::string& text) {
    const std::u32string spaces =
        U"\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
        U"\u200a\u2028\u2029\u202f\u205f\u3000";
    auto points = reference::code_points(text);
    const auto is_space = [&](std::uint32_t point) { return spaces.find(point) != std::u32string::npos; };
    while (!points.empty() && is_space(points.back())) {
        points.pop_back();
    }
    while (!points.empty() && is_space(points.front())) {
        points.erase(points.begin());
    }
    std::string out;
    for (const std::uint32_t point : points) {
        reference::append_utf8(out, point);
    }
    return out;
}

// interesting are the code points of which the tables say something.
const std::vector<std::uint32_t>& interesting() {
    static const auto all = [] {
        std::vector<std::uint32_t> out;
        for (std::uint32_t point = 0; point < reference::tables::TABLES_END; ++point) {
            const auto record = reference::record(point);
            if (record.combining != 0 || record.may_change != 0 || record.size != 0) {
                out.push_back(point);
            }
        }
        return out;
    }();
    return all;
}

std::uint32_t point_of(fuzz::Input& input) {
    switch (input.below(8)) {
    case 0: return 'A' + input.below(58);
    case 1:
    case 2: return 0x300 + input.below(0x70);
    case 3: return 0x1100 + input.below(256);
    case 4: return 0xAC00 + input.below(11172);
    case 5: return input.below(3) << 16 | input.word();
    default: return interesting()[input.below(static_cast<std::uint32_t>(interesting().size()))];
    }
}

// text_of takes the input as UTF-8, or as choices among code points, which meets the interesting ones more often.
std::string text_of(fuzz::Input& input) {
    if (input.below(2) == 0) {
        return fuzz::as_utf8(input.rest());
    }
    std::string out;
    while (!input.is_empty()) {
        const std::uint32_t point = point_of(input);
        if (point < 0xD800 || point > 0xDFFF) {
            reference::append_utf8(out, point);
        }
    }
    return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 600) {
        return 0;
    }
    fuzz::Input input(data, size);
    const std::size_t min = 1 + input.below(40);
    const std::string text = text_of(input);
    const std::string expected = reference::nfc(text);
    const std::string got = nfc(text, min);
    fuzz::expect_equal(got, expected, "nfc in pieces");
    fuzz::expect_equal(nfc(text, 4096), expected, "nfc");
    fuzz::expect_equal(nfc(got, min), got, "nfc twice");
    fuzz::expect(!idem::core::is_surely_nfc(text) || text == expected, "quick check");

    const std::string trimmed(idem::core::trim(text));
    fuzz::expect_equal(trimmed, trim(text), "trim");
    fuzz::expect_equal(nfc(trimmed, min), std::string(idem::core::trim(got)), "trim and nfc commute");

    bool has_noncharacter = false;
    for (const std::uint32_t point : reference::code_points(text)) {
        has_noncharacter = has_noncharacter || (point >= 0xFDD0 && point <= 0xFDEF) || point % 0x10000 >= 0xFFFE;
    }
    fuzz::expect(idem::core::has_noncharacter(text) == has_noncharacter, "noncharacters");
    return 0;
}
