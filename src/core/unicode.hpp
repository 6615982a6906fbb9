// unicode.hpp: trimming and NFC with tables of the library's own.
//
// Purpose: what a string becomes under a profile must not depend on the server's version, its locale or ICU, because
// its hash is stored; so the tables of one stated Unicode version are compiled in (unicode_tables.inc). Data layout:
// two stages of tables for the properties, a sorted array for the pairs that compose, about 60 kB, constant. Contract:
// all text is valid UTF-8. Limits: no function allocates; normalization works on pieces that do not depend on each
// other, so the scratch grows with the longest run of combining marks and not with the text.
#pragma once

#include "core/types.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace idem::core {

// UNICODE_VERSION is the version of the tables.
inline constexpr std::string_view UNICODE_VERSION = "17.0.0";

// decode_utf8 returns the code point at text and sets *size to its size in bytes.
std::uint32_t decode_utf8(const char* text, std::size_t* size) noexcept;

// encode_utf8 writes a code point, at most 4 bytes, and returns the end of what it wrote.
char* encode_utf8(char* out, std::uint32_t point) noexcept;

// is_noncharacter tells whether a code point is one of the 66 that I-JSON forbids.
constexpr bool is_noncharacter(std::uint32_t point) noexcept {
    return (point & 0xFFFE) == 0xFFFE || (point >= 0xFDD0 && point <= 0xFDEF);
}

// has_noncharacter tells whether any code point of text is one.
bool has_noncharacter(Bytes text) noexcept;

// trim returns text without the white space at its ends: the 25 code points of White_Space, and no other.
Bytes trim(Bytes text) noexcept;

// is_surely_nfc tells quickly that normalization would change nothing. A false says nothing.
bool is_surely_nfc(Bytes text) noexcept;

// NFC_GROWTH is how much longer a text can become, in bytes per byte; NFC_SCRATCH is the scratch for a piece, in words
// per byte.
inline constexpr std::size_t NFC_GROWTH = 3;
inline constexpr std::size_t NFC_SCRATCH = 3;

// nfc_piece returns the size in bytes of the first piece of text that can be normalized alone: at least min bytes, or
// all of text. min is not zero.
std::size_t nfc_piece(Bytes text, std::size_t min) noexcept;

// nfc writes a piece in Normalization Form C to out (room for NFC_GROWTH * size bytes) and returns the size in bytes.
// scratch has NFC_SCRATCH * size words.
std::size_t nfc(Bytes piece, char* out, std::uint32_t* scratch) noexcept;

} // namespace idem::core
