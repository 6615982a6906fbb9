// canonical.cpp: escaping, number pieces and key order of the canonical form.
//
// Strings are copied in windows of 64 or 32 bytes, which are stored before it is known whether anything in them needs
// an escape; if so, they are overwritten from the first such byte on. Room is made per window, so a string may be
// longer than the buffer.
#include "core/canonical.hpp"

namespace idem::core {
namespace {

constexpr std::size_t MAX_ESCAPE = 6; // bytes of \u00xx, the longest form of one input byte

// EscapeTable has the escaped form of each byte in the low bytes of a word, and its size in the top byte.
struct EscapeTable {
    std::uint64_t forms[256];
};

constexpr std::uint64_t escaped_form(unsigned byte) noexcept {
    constexpr char short_forms[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";
    static_assert(sizeof short_forms == 0x20 + 1);
    std::uint64_t form = 0;
    std::uint64_t size = 0;
    const auto put = [&](unsigned char c) { form |= std::uint64_t{c} << (8 * size++); };
    if (byte >= 0x20 && byte != '"' && byte != '\\') {
        put(static_cast<unsigned char>(byte));
    } else if (byte >= 0x20) {
        put('\\');
        put(static_cast<unsigned char>(byte));
    } else {
        put('\\');
        put(static_cast<unsigned char>(short_forms[byte]));
        if (short_forms[byte] == 'u') {
            put('0');
            put('0');
            put(static_cast<unsigned char>('0' + (byte >> 4)));
            put(static_cast<unsigned char>("0123456789abcdef"[byte & 0x0F]));
        }
    }
    return form | size << 56;
}

constexpr EscapeTable make_escapes() noexcept {
    EscapeTable table{};
    for (unsigned byte = 0; byte < 256; ++byte) {
        table.forms[byte] = escaped_form(byte);
    }
    return table;
}

constexpr EscapeTable ESCAPES = make_escapes();

// LARGE is the window that long strings are scanned by: leaving the loop over its escapes is what costs most.
constexpr std::size_t LARGE = 2 * WINDOW;

// WINDOW_ROOM is the space for a large window that is all escapes, and for the text that is stored again behind the
// last.
constexpr std::size_t WINDOW_ROOM = MAX_ESCAPE * LARGE + LARGE;
static_assert(WINDOW_ROOM <= CanonicalWriter::MIN_CAPACITY);

[[gnu::always_inline]] inline char* put_byte(char* at, char byte) noexcept {
    const std::uint64_t form = ESCAPES.forms[static_cast<unsigned char>(byte)];
    store_word(at, form);
    return at + (form >> 56);
}

// store_window copies WINDOW bytes and returns which of them need an escape.
[[gnu::always_inline]] inline std::uint32_t store_window(char* at, const char* from) noexcept {
    const Block first = load_block(from);
    const Block second = load_block(from + BLOCK_SIZE);
    store_block(at, first);
    store_block(at + BLOCK_SIZE, second);
    return escape_mask(first) | escape_mask(second) << BLOCK_SIZE;
}

// put_escapes writes size bytes of text, WINDOW or LARGE, of which at least one needs an escape, as the bits of escapes
// say. As many bytes behind them are readable. The text is stored as it is already; from each escape on it is stored
// again, further back.
template <std::size_t size, class Mask>
[[gnu::always_inline]] inline char* put_escapes(char* at, const char* from, Mask escapes) noexcept {
    static_assert(size <= 8 * sizeof(Mask));
    std::size_t done = 0;
    do {
        const auto next = static_cast<std::size_t>(std::countr_zero(escapes));
        at = put_byte(at + (next - done), from[next]);
        done = next + 1;
        escapes &= escapes - 1;
        copy_window(at, from + done);
        if (size > WINDOW && (escapes == 0 || static_cast<std::size_t>(std::countr_zero(escapes)) > done + WINDOW)) {
            copy_window(at + WINDOW, from + done + WINDOW);
        }
    } while (escapes != 0);
    return at + (size - done);
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
    reserve(1 + PACKED_ROOM);
    separate();
    needs_comma_ = true;
    if (value.count >= 1 && value.count <= MAX_PACKED) {
        PackedDecimal packed{0, 0, value.count, value.weight, value.negative};
        for (std::uint32_t i = 0; i < value.count; ++i) {
            (i < 4 ? packed.low : packed.high) |= std::uint64_t{static_cast<std::uint16_t>(value.digits[i])}
                                                  << (16 * (i % 4));
        }
        if (char* end = print_packed(at_, packed)) {
            at_ = end;
            return;
        }
    }
    DecimalPrinter printer(value);
    do {
        reserve(DecimalPrinter::PIECE);
        at_ += printer.next(at_);
    } while (!printer.is_done());
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
    const char* const end = from + text.size();
    char* at = at_;
    while (from < end) {
        if (static_cast<std::size_t>(end_ - at) < WINDOW_ROOM) {
            at_ = at;
            flush();
            at = at_;
        }
        const auto left = static_cast<std::size_t>(end - from);
        if (left >= 2 * LARGE) {
            const std::uint64_t low = store_window(at, from);
            const std::uint64_t escapes = low | std::uint64_t{store_window(at + WINDOW, from + WINDOW)} << WINDOW;
            at = escapes == 0 ? at + LARGE : put_escapes<LARGE>(at, from, escapes);
            from += LARGE;
            continue;
        }
        if (left >= 2 * WINDOW) {
            const std::uint32_t escapes = store_window(at, from);
            at = escapes == 0 ? at + WINDOW : put_escapes<WINDOW>(at, from, escapes);
            from += WINDOW;
            continue;
        }
        const std::size_t size = left < BLOCK_SIZE ? left : BLOCK_SIZE;
        const Block block = size == BLOCK_SIZE ? load_block(from) : load_partial(from, size);
        store_block(at, block);
        const std::uint32_t escapes = escape_mask(block) & ((1U << size) - 1);
        const std::size_t clean = escapes == 0 ? size : static_cast<std::size_t>(std::countr_zero(escapes));
        at += clean;
        from += clean;
        if (escapes != 0) {
            at = put_byte(at, *from++);
        }
    }
    at_ = at;
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
