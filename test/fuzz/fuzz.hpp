// fuzz.hpp: what the fuzz targets share. A target is a file here with one LLVMFuzzerTestOneInput; scripts/fuzz builds
// and runs it. A finding is a trap, with what was expected and what came on stderr.
#pragma once

#include "canonical_reference.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace fuzz {

// Input hands out the fuzzer's bytes; when they are used up it gives zeros.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

    bool is_empty() const { return at_ == size_; }
    std::uint8_t byte() { return is_empty() ? 0 : data_[at_++]; }
    std::uint16_t word() { return static_cast<std::uint16_t>(byte() << 8 | byte()); }
    std::uint32_t below(std::uint32_t limit) { return (limit <= 256 ? byte() : word()) % limit; }

    std::string rest() {
        std::string out(reinterpret_cast<const char*>(data_) + at_, size_ - at_);
        at_ = size_;
        return out;
    }

    // bytes takes up to count bytes.
    std::string bytes(std::size_t count) {
        std::string out;
        while (out.size() < count && !is_empty()) {
            out += static_cast<char>(byte());
        }
        return out;
    }

private:
    const std::uint8_t* data_;
    std::size_t size_;
    std::size_t at_ = 0;
};

// as_utf8 makes valid UTF-8 of any bytes: a byte that begins no character becomes that of the same number.
inline std::string as_utf8(const std::string& bytes) {
    std::string out;
    for (std::size_t i = 0; i < bytes.size();) {
        const auto at = [&](std::size_t j) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[j])); };
        const std::uint32_t lead = at(i);
        const std::size_t size = lead < 0x80   ? 1
                                 : lead < 0xC2 ? 0
                                 : lead < 0xE0 ? 2
                                 : lead < 0xF0 ? 3
                                 : lead < 0xF5 ? 4
                                               : 0;
        std::uint32_t point = size < 2 ? lead : lead & (0xFFU >> (size + 1));
        bool is_valid = size > 0 && i + size <= bytes.size();
        for (std::size_t j = 1; is_valid && j < size; ++j) {
            is_valid = (at(i + j) & 0xC0) == 0x80;
            point = point << 6 | (at(i + j) & 0x3F);
        }
        is_valid = is_valid && (size < 3 || point >= (size == 3 ? 0x800U : 0x10000U)) && point <= 0x10FFFF &&
                   (point < 0xD800 || point > 0xDFFF);
        reference::append_utf8(out, is_valid ? point : lead);
        i += is_valid ? size : 1;
    }
    return out;
}

inline void expect_equal(const std::string& got, const std::string& expected, const std::string& what) {
    if (got != expected) {
        std::fprintf(stderr, "%s\n got      %s\n expected %s\n", what.c_str(), got.c_str(), expected.c_str());
        std::abort();
    }
}

inline void expect(bool holds, const std::string& what) {
    if (!holds) {
        std::fprintf(stderr, "does not hold: %s\n", what.c_str());
        std::abort();
    }
}

} // namespace fuzz
