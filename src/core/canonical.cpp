// canonical.cpp: escaping, number pieces and key order of the canonical form.
//
// Strings are copied eight bytes at a time while nothing in them needs an escape. A string that might not fit the rest
// of the buffer even if every byte took six is written in portions, with flushes between them.
#include "core/canonical.hpp"

namespace idem::core {
namespace {

constexpr std::size_t MAX_ESCAPE = 6; // bytes of \u00xx, the longest form of one input byte

// SHORT_ESCAPES has the letter after the backslash for each control character, 'u' where there is no short form.
constexpr char SHORT_ESCAPES[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";
static_assert(sizeof SHORT_ESCAPES == 0x20 + 1);

constexpr std::uint64_t ONES = 0x0101010101010101;

constexpr bool needs_escape(unsigned char byte) noexcept {
    return byte < 0x20 || byte == '"' || byte == '\\';
}

// has_escape tells whether any of the eight bytes needs an escape. Borrows between bytes can only arise where one does.
constexpr bool has_escape(std::uint64_t word) noexcept {
    const std::uint64_t quote = word ^ (ONES * '"');
    const std::uint64_t backslash = word ^ (ONES * '\\');
    const std::uint64_t hit =
        ((word - ONES * 0x20) & ~word) | ((quote - ONES) & ~quote) | ((backslash - ONES) & ~backslash);
    return (hit & (ONES * 0x80)) != 0;
}

char* put_escape(char* out, unsigned char byte) noexcept {
    *out++ = '\\';
    if (byte >= 0x20) {
        *out++ = static_cast<char>(byte);
        return out;
    }
    const char letter = SHORT_ESCAPES[byte];
    *out++ = letter;
    if (letter == 'u') {
        *out++ = '0';
        *out++ = '0';
        *out++ = static_cast<char>('0' + (byte >> 4));
        *out++ = "0123456789abcdef"[byte & 0x0F];
    }
    return out;
}

// put_escaped writes size bytes of text, escaped, and returns the end of what it wrote: at most MAX_ESCAPE * size
// bytes.
char* put_escaped(char* out, const char* text, std::size_t size) noexcept {
    std::size_t i = 0;
    while (i < size) {
        while (size - i >= sizeof(std::uint64_t)) {
            std::uint64_t word;
            std::memcpy(&word, text + i, sizeof word);
            if (has_escape(word)) {
                break;
            }
            std::memcpy(out, &word, sizeof word);
            out += sizeof word;
            i += sizeof word;
        }
        const std::size_t stop = size - i < sizeof(std::uint64_t) ? size : i + sizeof(std::uint64_t);
        for (; i < stop; ++i) {
            const auto byte = static_cast<unsigned char>(text[i]);
            if (needs_escape(byte)) {
                out = put_escape(out, byte);
            } else {
                *out++ = static_cast<char>(byte);
            }
        }
    }
    return out;
}

// utf16_rank makes lead bytes comparable: EE and EF start U+E000 to U+FFFF, which UTF-16 puts above the surrogates of
// F0 to F4. Lead bytes of valid UTF-8 end at F4, and bytes below EE keep their order.
constexpr int utf16_rank(unsigned char byte) noexcept {
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
}

// run_end returns the end of the ascending run that starts at start.
std::size_t run_end(const Member* members, std::size_t start, std::size_t count) noexcept {
    std::size_t end = start + 1;
    while (end < count && compare_keys(members[end - 1].key, members[end].key) <= 0) {
        ++end;
    }
    return end;
}

} // namespace

void CanonicalWriter::flush() noexcept {
    if (at_ == begin_) {
        return;
    }
    flush_(context_, begin_, static_cast<std::size_t>(at_ - begin_));
    has_flushed_ = true;
    at_ = begin_;
}

void CanonicalWriter::number(const Decimal& value) noexcept {
    reserve(1);
    separate();
    DecimalPrinter printer(value);
    do {
        reserve(DecimalPrinter::PIECE);
        at_ += printer.next(at_);
    } while (!printer.is_done());
    needs_comma_ = true;
}

void CanonicalWriter::raw(Bytes text) noexcept {
    reserve(1);
    separate();
    while (!text.empty()) {
        reserve(1);
        const auto room = static_cast<std::size_t>(end_ - at_);
        const Bytes portion(text.data(), text.size() < room ? text.size() : room);
        std::memcpy(at_, portion.data(), portion.size());
        at_ += portion.size();
        text.remove_prefix(portion.size());
    }
    needs_comma_ = true;
}

void CanonicalWriter::quoted(Bytes text) noexcept {
    reserve(2);
    separate();
    *at_++ = '"';
    const char* from = text.data();
    std::size_t left = text.size();
    while (left > 0) {
        std::size_t portion = static_cast<std::size_t>(end_ - at_) / MAX_ESCAPE;
        if (portion < left && portion < MIN_CAPACITY / (2 * MAX_ESCAPE)) {
            flush();
            portion = static_cast<std::size_t>(end_ - at_) / MAX_ESCAPE;
        }
        if (portion > left) {
            portion = left;
        }
        at_ = put_escaped(at_, from, portion);
        from += portion;
        left -= portion;
    }
    reserve(1);
    *at_++ = '"';
}

int compare_keys(Bytes a, Bytes b) noexcept {
    const std::size_t common = a.size() < b.size() ? a.size() : b.size();
    std::size_t i = 0;
    for (; common - i >= sizeof(std::uint64_t); i += sizeof(std::uint64_t)) {
        std::uint64_t left;
        std::uint64_t right;
        std::memcpy(&left, a.data() + i, sizeof left);
        std::memcpy(&right, b.data() + i, sizeof right);
        if (left != right) {
            break;
        }
    }
    for (; i < common; ++i) {
        const auto left = static_cast<unsigned char>(a[i]);
        const auto right = static_cast<unsigned char>(b[i]);
        if (left != right) {
            return utf16_rank(left) - utf16_rank(right);
        }
    }
    return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

void sort_few(Member* members, std::size_t count) noexcept {
    for (std::size_t i = 1; i < count; ++i) {
        const Member moving = members[i];
        std::size_t hole = i;
        while (hole > 0 && compare_keys(moving.key, members[hole - 1].key) < 0) {
            members[hole] = members[hole - 1];
            --hole;
        }
        if (hole != i) {
            members[hole] = moving;
        }
    }
}

bool merge_pass(const Member* from, Member* to, std::size_t count) noexcept {
    bool is_one_run = true;
    std::size_t start = 0;
    while (start < count) {
        const std::size_t middle = run_end(from, start, count);
        const std::size_t end = middle < count ? run_end(from, middle, count) : count;
        std::size_t left = start;
        std::size_t right = middle;
        for (std::size_t i = start; i < end; ++i) {
            const bool takes_left =
                right == end || (left < middle && compare_keys(from[left].key, from[right].key) <= 0);
            to[i] = takes_left ? from[left++] : from[right++];
        }
        is_one_run = is_one_run && start == 0 && end == count;
        start = end;
    }
    return is_one_run;
}

} // namespace idem::core
