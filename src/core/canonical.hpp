// canonical.hpp: the canonical text of a JSON value, form 1.
//
// Purpose: turn a stream of tokens into one UTF-8 text per value: RFC 8785 (JCS) with exact numbers. Equal values give
// equal bytes, different values different bytes. The form is frozen: hashes of it are stored, so a change would be a
// new form with a new name. Data layout: the writer fills a buffer of the caller and hands it to a flush function
// whenever it is full; it never allocates and keeps no state per nesting level, so depth costs nothing here. A text
// that fits the buffer is never flushed and can be read in place. Contract: tokens come in document order, members of
// an object already in canonical order (sort_members, order_keys). Strings and keys are valid UTF-8 and unescaped. The
// writer trusts its caller; it does not check nesting. A walker that needs the last bit of speed borrows the buffer's
// free end (borrow, give_back) and puts text there itself, with the functions below the writer.
#pragma once

#include "core/decimal.hpp"
#include "core/simd.hpp"
#include "core/types.hpp"

#include <cstddef>
#include <cstdint>

namespace idem::core {

// CanonicalWriter writes the canonical text of one value after another.
class CanonicalWriter {
public:
    // Flush takes over size bytes of finished text; the buffer is reused when it returns. It may leave by longjmp.
    using Flush = void (*)(void* context, const char* text, std::size_t size);

    // MIN_CAPACITY is the smallest buffer the writer works with, in bytes.
    static constexpr std::size_t MIN_CAPACITY = 512;

    CanonicalWriter(char* buffer, std::size_t capacity, Flush sink, void* context) noexcept
        : begin_(buffer), at_(buffer), end_(buffer + capacity), flush_(sink), context_(context) {}

    void begin_object() noexcept { open('{'); }
    void end_object() noexcept { close('}'); }
    void begin_array() noexcept { open('['); }
    void end_array() noexcept { close(']'); }

    // key writes a member's name (UTF-8, unescaped); its value comes next.
    void key(Bytes name) noexcept {
        quoted(name);
        reserve(1);
        *at_++ = ':';
        needs_comma_ = false;
    }

    // string writes a string value (UTF-8, unescaped).
    void string(Bytes value) noexcept {
        quoted(value);
        needs_comma_ = true;
    }

    // number writes a decimal exactly.
    void number(const Decimal& value) noexcept;

    void boolean(bool value) noexcept { literal(value ? Bytes("true") : Bytes("false")); }
    void null() noexcept { literal(Bytes("null")); }

    // raw writes a value whose canonical text is there already, of any size.
    void raw(Bytes text) noexcept;

    // line_break ends a root value with a line feed; another root value may follow. No canonical text contains a raw
    // line feed, so the two stay apart.
    void line_break() noexcept {
        reserve(1);
        *at_++ = '\n';
        needs_comma_ = false;
    }

    // pending is the text that has not been flushed yet: the whole text, if has_flushed() is false.
    Bytes pending() const noexcept { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }
    bool has_flushed() const noexcept { return has_flushed_; }

    // flush hands the pending text to the flush function, if there is any.
    void flush() noexcept;

    // borrow returns where the next text goes, with room for at least size bytes (up to MIN_CAPACITY) and up to
    // limit().
    char* borrow(std::size_t size) noexcept {
        reserve(size);
        return at_;
    }
    const char* limit() const noexcept { return end_; }
    bool needs_comma() const noexcept { return needs_comma_; }

    // give_back takes over the text that was put there, up to at. needs_comma: the next value has a comma before it.
    void give_back(char* at, bool needs_comma) noexcept {
        at_ = at;
        needs_comma_ = needs_comma;
    }

private:
    void reserve(std::size_t size) noexcept {
        if (static_cast<std::size_t>(end_ - at_) < size) {
            flush();
        }
    }
    void separate() noexcept {
        if (needs_comma_) {
            *at_++ = ',';
        }
    }
    void open(char bracket) noexcept {
        reserve(2);
        separate();
        *at_++ = bracket;
        needs_comma_ = false;
    }
    void close(char bracket) noexcept {
        reserve(1);
        *at_++ = bracket;
        needs_comma_ = true;
    }
    void literal(Bytes word) noexcept {
        reserve(1 + word.size());
        separate();
        std::memcpy(at_, word.data(), word.size());
        at_ += word.size();
        needs_comma_ = true;
    }
    void quoted(Bytes text) noexcept;

    char* begin_;
    char* at_;
    char* end_;
    Flush flush_;
    void* context_;
    bool needs_comma_ = false;
    bool has_flushed_ = false;
};

// STRING_ROOM is the room that put_short_string needs; SHORT_STRING the longest text it takes.
inline constexpr std::size_t SHORT_STRING = 2 * BLOCK_SIZE;
inline constexpr std::size_t STRING_ROOM = SHORT_STRING + 2;

// put_short_string writes text of at most SHORT_STRING bytes in quotes and returns the end, or NULL if something in it
// needs an escape. SHORT_STRING bytes of text have to be readable; STRING_ROOM bytes may be written. There is no branch
// on the size: strings of objects that are new are of any size.
[[gnu::always_inline]] inline char* put_short_string(char* at, const char* text, std::size_t size) noexcept {
    const Block first = load_block(text);
    const Block second = load_block(text + BLOCK_SIZE);
    at[0] = '"';
    store_block(at + 1, first);
    store_block(at + 1 + BLOCK_SIZE, second);
    at[1 + size] = '"';
    const std::uint64_t escapes = escape_mask(first) | escape_mask(second) << BLOCK_SIZE;
    return (escapes & ((std::uint64_t{1} << size) - 1)) == 0 ? at + size + 2 : nullptr;
}

// put_clean_string writes text of any size in quotes and returns the end, or NULL if something in it needs an escape.
// The next multiple of BLOCK_SIZE bytes of text has to be readable, and two more than that may be written.
[[gnu::always_inline]] inline char* put_clean_string(char* at, const char* text, std::size_t size) noexcept {
    *at = '"';
    std::uint32_t escapes = 0;
    std::size_t i = 0;
    for (; size - i > BLOCK_SIZE; i += BLOCK_SIZE) {
        const Block block = load_block(text + i);
        store_block(at + 1 + i, block);
        escapes |= escape_mask(block);
    }
    const Block last = load_block(text + i);
    store_block(at + 1 + i, last);
    escapes |= escape_mask(last) & ((1U << (size - i)) - 1);
    at[1 + size] = '"';
    return escapes == 0 ? at + size + 2 : nullptr;
}

// put_block_string is put_short_string for text of less than BLOCK_SIZE bytes, of which it reads none beyond.
inline char* put_block_string(char* at, Bytes text) noexcept {
    const Block block = load_partial(text.data(), text.size());
    *at = '"';
    store_block(at + 1, block);
    at[1 + text.size()] = '"';
    return (escape_mask(block) & ((1U << text.size()) - 1)) == 0 ? at + text.size() + 2 : nullptr;
}

// Member is one member of an object while its keys are being ordered. entry and offset are the caller's: sorting
// carries them along and never looks at them.
struct Member {
    Bytes key;
    std::uint32_t entry;
    std::uint32_t offset;
};

// compare_keys compares two keys (valid UTF-8) as sequences of UTF-16 code units: negative, zero or positive.
int compare_keys(Bytes a, Bytes b) noexcept;

// INSERTION_LIMIT is the most members that sort_members orders without using scratch.
inline constexpr std::size_t INSERTION_LIMIT = 16;

// sort_few orders members by key in place, fit for a few or for nearly ordered ones.
void sort_few(Member* members, std::size_t count) noexcept;

// merge_pass merges each pair of neighbouring ascending runs of from into to (count members each) and returns whether
// to is now one run.
bool merge_pass(const Member* from, Member* to, std::size_t count) noexcept;

// sort_members orders members by key; scratch has room for count members and is not touched up to INSERTION_LIMIT.
// tick() is called before each pass over a large object and may leave by longjmp. Members that arrive in long ascending
// runs, as jsonb stores them (by length, then bytes), need few passes.
template <class Tick>
void sort_members(Member* members, Member* scratch, std::size_t count, Tick tick) noexcept {
    if (count <= INSERTION_LIMIT) {
        sort_few(members, count);
        return;
    }
    Member* from = members;
    Member* to = scratch;
    for (bool is_sorted = false; !is_sorted;) {
        tick();
        is_sorted = merge_pass(from, to, count);
        Member* const swapped = from;
        from = to;
        to = swapped;
    }
    if (from != members) {
        std::memcpy(static_cast<void*>(members), from, count * sizeof(Member));
    }
}

} // namespace idem::core
