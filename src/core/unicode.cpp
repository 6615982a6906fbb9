// unicode.cpp: see unicode.hpp. Normalization follows chapter 3.11 of the Unicode standard: decompose each code point
// fully, order the marks between two starters by their class, then join pairs.
#include "core/unicode.hpp"

namespace idem::core {
namespace {

// Record is what NFC has to know of a code point: canonical combining class, whether NFC may change it or join it with
// what is before it, and its full decomposition.
struct Record {
    std::uint8_t combining;
    std::uint8_t may_change;
    std::uint16_t start;
    std::uint8_t size;
};

// Pair is a primary composite, in the order of first, then second.
struct Pair {
    std::uint32_t first;
    std::uint32_t second;
    std::uint32_t composite;
};

#include "core/unicode_tables.inc"

static_assert(std::string_view(TABLES_VERSION) == UNICODE_VERSION);

constexpr std::size_t PAIR_COUNT = sizeof PAIRS / sizeof PAIRS[0];

// Hangul syllables: a leading consonant, a vowel, and perhaps a trailing consonant.
constexpr std::uint32_t SYLLABLES = 0xAC00;
constexpr std::uint32_t LEADS = 0x1100;
constexpr std::uint32_t VOWELS = 0x1161;
constexpr std::uint32_t TRAILS = 0x11A7; // one below the first
constexpr std::uint32_t LEAD_COUNT = 19;
constexpr std::uint32_t VOWEL_COUNT = 21;
constexpr std::uint32_t TRAIL_COUNT = 28;
constexpr std::uint32_t SYLLABLE_COUNT = LEAD_COUNT * VOWEL_COUNT * TRAIL_COUNT;

constexpr std::uint32_t POINT_MASK = 0x1FFFFF; // a code point in a scratch word; its class is above
constexpr int CLASS_SHIFT = 24;
constexpr std::size_t FEW_MARKS = 32; // up to here marks are ordered by insertion

const Record& record_of(std::uint32_t point) noexcept {
    return point >= TABLES_END ? RECORDS[0] : RECORDS[RECORD_OF[BLOCK_OF[point / BLOCK]][point % BLOCK]];
}

bool is_space(std::uint32_t point) noexcept {
    switch (point) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000: return true;
    default: return (point >= 0x09 && point <= 0x0D) || (point >= 0x2000 && point <= 0x200A);
    }
}

bool is_continuation(char byte) noexcept {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

bool is_ascii(char byte) noexcept {
    return static_cast<unsigned char>(byte) < 0x80;
}

std::uint32_t with_class(std::uint32_t point) noexcept {
    return point | static_cast<std::uint32_t>(record_of(point).combining) << CLASS_SHIFT;
}

std::uint32_t class_of(std::uint32_t word) noexcept {
    return word >> CLASS_SHIFT;
}

// put_decomposition appends the full decomposition of a code point.
std::uint32_t* put_decomposition(std::uint32_t* out, std::uint32_t point) noexcept {
    const std::uint32_t syllable = point - SYLLABLES;
    if (syllable < SYLLABLE_COUNT) {
        *out++ = LEADS + syllable / (VOWEL_COUNT * TRAIL_COUNT);
        *out++ = VOWELS + syllable / TRAIL_COUNT % VOWEL_COUNT;
        if (syllable % TRAIL_COUNT != 0) {
            *out++ = TRAILS + syllable % TRAIL_COUNT;
        }
        return out;
    }
    const Record& record = record_of(point);
    if (record.size == 0) {
        *out++ = point | static_cast<std::uint32_t>(record.combining) << CLASS_SHIFT;
        return out;
    }
    for (std::uint32_t i = 0; i < record.size; ++i) {
        *out++ = with_class(DECOMPOSITIONS[record.start + i]);
    }
    return out;
}

// order_marks sorts a run of marks by class and keeps the order within a class; spare has room for the run.
void order_marks(std::uint32_t* run, std::size_t count, std::uint32_t* spare) noexcept {
    if (count <= FEW_MARKS) {
        for (std::size_t i = 1; i < count; ++i) {
            const std::uint32_t moving = run[i];
            std::size_t hole = i;
            for (; hole > 0 && class_of(run[hole - 1]) > class_of(moving); --hole) {
                run[hole] = run[hole - 1];
            }
            run[hole] = moving;
        }
        return;
    }
    std::size_t starts[256] = {};
    for (std::size_t i = 0; i < count; ++i) {
        ++starts[class_of(run[i])];
    }
    std::size_t sum = 0;
    for (std::size_t& start : starts) {
        const std::size_t size = start;
        start = sum;
        sum += size;
    }
    for (std::size_t i = 0; i < count; ++i) {
        spare[starts[class_of(run[i])]++] = run[i];
    }
    std::memcpy(run, spare, count * sizeof *run);
}

// composed returns the primary composite of two code points, 0 if there is none.
std::uint32_t composed(std::uint32_t first, std::uint32_t second) noexcept {
    if (first - LEADS < LEAD_COUNT && second - VOWELS < VOWEL_COUNT) {
        return SYLLABLES + ((first - LEADS) * VOWEL_COUNT + (second - VOWELS)) * TRAIL_COUNT;
    }
    if (first - SYLLABLES < SYLLABLE_COUNT && (first - SYLLABLES) % TRAIL_COUNT == 0 &&
        second - TRAILS - 1 < TRAIL_COUNT - 1) {
        return first + (second - TRAILS);
    }
    std::size_t low = 0;
    std::size_t high = PAIR_COUNT;
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        const Pair& pair = PAIRS[middle];
        if (pair.first < first || (pair.first == first && pair.second < second)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < PAIR_COUNT && PAIRS[low].first == first && PAIRS[low].second == second ? PAIRS[low].composite : 0;
}

// compose joins what can be joined, in place, and returns the new number of words. A mark is joined with the last
// starter if nothing between them has the same or a higher class.
std::size_t compose(std::uint32_t* words, std::size_t count) noexcept {
    std::size_t size = 0;
    std::size_t starter = SIZE_MAX;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t word = words[i];
        if (starter != SIZE_MAX && (size == starter + 1 || class_of(words[size - 1]) < class_of(word))) {
            if (const std::uint32_t whole = composed(words[starter], word & POINT_MASK)) {
                words[starter] = whole;
                continue;
            }
        }
        if (class_of(word) == 0) {
            starter = size;
        }
        words[size++] = word;
    }
    return size;
}

} // namespace

std::uint32_t decode_utf8(const char* text, std::size_t* size) noexcept {
    const auto byte = [text](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) {
        *size = 1;
        return lead;
    }
    if (lead < 0xE0) {
        *size = 2;
        return (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    }
    if (lead < 0xF0) {
        *size = 3;
        return (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    }
    *size = 4;
    return (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

char* encode_utf8(char* out, std::uint32_t point) noexcept {
    if (point < 0x80) {
        *out++ = static_cast<char>(point);
        return out;
    }
    if (point < 0x800) {
        *out++ = static_cast<char>(0xC0 | point >> 6);
    } else {
        if (point < 0x10000) {
            *out++ = static_cast<char>(0xE0 | point >> 12);
        } else {
            *out++ = static_cast<char>(0xF0 | point >> 18);
            *out++ = static_cast<char>(0x80 | (point >> 12 & 0x3F));
        }
        *out++ = static_cast<char>(0x80 | (point >> 6 & 0x3F));
    }
    *out++ = static_cast<char>(0x80 | (point & 0x3F));
    return out;
}

bool has_noncharacter(Bytes text) noexcept {
    for (std::size_t i = 0; i < text.size();) {
        if (is_ascii(text[i])) {
            ++i;
            continue;
        }
        std::size_t size;
        if (is_noncharacter(decode_utf8(text.data() + i, &size))) {
            return true;
        }
        i += size;
    }
    return false;
}

Bytes trim(Bytes text) noexcept {
    const char* begin = text.data();
    const char* end = begin + text.size();
    while (begin < end) {
        std::size_t size;
        if (!is_space(decode_utf8(begin, &size))) {
            break;
        }
        begin += size;
    }
    while (begin < end) {
        const char* last = end - 1;
        while (is_continuation(*last)) {
            --last;
        }
        std::size_t size;
        if (!is_space(decode_utf8(last, &size))) {
            break;
        }
        end = last;
    }
    return {begin, static_cast<std::size_t>(end - begin)};
}

bool is_surely_nfc(Bytes text) noexcept {
    std::uint32_t last_class = 0;
    for (std::size_t i = 0; i < text.size();) {
        if (is_ascii(text[i])) {
            ++i;
            last_class = 0;
            continue;
        }
        std::size_t size;
        const Record& record = record_of(decode_utf8(text.data() + i, &size));
        if (record.may_change != 0 || (record.combining != 0 && record.combining < last_class)) {
            return false;
        }
        last_class = record.combining;
        i += size;
    }
    return true;
}

std::size_t nfc_piece(Bytes text, std::size_t min) noexcept {
    std::size_t i = min < text.size() ? min : text.size();
    while (i < text.size() && is_continuation(text[i])) {
        ++i;
    }
    while (i < text.size()) {
        std::size_t size;
        const Record& record = record_of(decode_utf8(text.data() + i, &size));
        if (record.may_change == 0 && record.combining == 0) {
            break;
        }
        i += size;
    }
    return i;
}

std::size_t nfc(Bytes piece, char* out, std::uint32_t* scratch) noexcept {
    std::uint32_t* end = scratch;
    for (std::size_t i = 0; i < piece.size();) {
        std::size_t size;
        end = put_decomposition(end, decode_utf8(piece.data() + i, &size));
        i += size;
    }
    auto count = static_cast<std::size_t>(end - scratch);
    for (std::size_t i = 0; i < count;) {
        if (class_of(scratch[i]) == 0) {
            ++i;
            continue;
        }
        const std::size_t first = i;
        while (i < count && class_of(scratch[i]) != 0) {
            ++i;
        }
        order_marks(scratch + first, i - first, end);
    }
    count = compose(scratch, count);
    char* at = out;
    for (std::size_t i = 0; i < count; ++i) {
        at = encode_utf8(at, scratch[i] & POINT_MASK);
    }
    return static_cast<std::size_t>(at - out);
}

} // namespace idem::core
