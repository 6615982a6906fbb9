// policy.hpp: what an op promises, and the one table of every option there is.
//
// Purpose: Policy is the form the claim path reads: fixed size, no pointer, copied by value. OPTIONS is the form people
// read: name, type, default per preset, bounds and meaning of every option. Validation, presets, the stored form and
// the view idem_policy_options are all driven by OPTIONS, so they cannot disagree. Data layout: every option has a text
// form: the enum's word; a duration with its unit ("5 seconds"); decimal digits; true or false; the text itself; for an
// object "name=word,..."; for an array "item,...". Text forms travel between this file and the jsonb of
// pg/policy_options. target, intent, effect and description are for people and have no field here. Lifetime: everything
// is constant or the caller's. A Policy without a version (0) is the default of an op that has none. Accepted: key and
// header classes are sets of bytes, so a class option can name ASCII only; the empty class is any byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/types.hpp"

namespace idem::core {

// Mode is what an op promises about its transactions: nothing, claim committed before the work, or all in one.
enum class Mode : std::uint8_t { ANY, LEASE, TRANSACTION };

// OnStale is what a claim answers when lease and grace of another are over.
enum class OnStale : std::uint8_t { INDETERMINATE, RETRY };

// StatusVerdict is what becomes of a key whose work ended with a status.
enum class StatusVerdict : std::uint8_t { STORE, RELEASE, INDETERMINATE };

// EntityOrder is what an inbox does with the sequence numbers of one entity: nothing, let only newer events pass, or
// let each pass after its predecessor.
enum class EntityOrder : std::uint8_t { NONE, LATEST, STRICT };

// HandlerError is what idem_execute does with an error of its handler.
enum class HandlerError : std::uint8_t { PROPAGATE, STORE };

// ConflictDetail is how much of the winner a conflict shows; each step includes the ones before.
enum class ConflictDetail : std::uint8_t { NONE, HASH, RESPONSE, FULL };

// HashKey is whether a payload hash depends on a secret and the actor, so that it cannot be guessed from outside.
enum class HashKey : std::uint8_t { NONE, PER_ACTOR };

// StorePayload is whether the winner's payload is kept in canonical form.
enum class StorePayload : std::uint8_t { NO, CANONICAL };

inline constexpr std::size_t MAX_OP_BYTES = 128;
inline constexpr std::size_t MAX_KEY_BYTES = 255;
inline constexpr Duration MAX_WAIT = 60 * SECOND;
inline constexpr Duration MIN_LEASE = SECOND;
inline constexpr Duration MAX_LEASE = 24 * HOUR;
inline constexpr Duration MIN_TTL = SECOND;
inline constexpr Duration MAX_TTL = 90 * DAY;

inline constexpr int STATUS_FIRST = 100;
inline constexpr int STATUS_LAST = 599;
inline constexpr std::size_t HANDLER_SIZE = 264;
inline constexpr std::size_t REPLAY_HEADERS_SIZE = 512;

// OPTION_TEXT_MAX is enough for the text form of any option of any Policy, in bytes.
inline constexpr std::size_t OPTION_TEXT_MAX = 8192;

// SHORT_TEXT_MAX is enough for a duration or a bound, in bytes.
inline constexpr std::size_t SHORT_TEXT_MAX = 64;

// ByteSet is a set of byte values.
struct ByteSet {
    std::uint64_t words[4] = {~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}};

    constexpr bool contains(std::uint8_t byte) const noexcept { return ((words[byte >> 6] >> (byte & 63)) & 1) != 0; }
    constexpr void insert(std::uint8_t byte) noexcept { words[byte >> 6] |= std::uint64_t{1} << (byte & 63); }
    constexpr void clear() noexcept { words[0] = words[1] = words[2] = words[3] = 0; }
    friend constexpr bool operator==(const ByteSet&, const ByteSet&) noexcept = default;
};

// StatusMap gives each status its verdict; what is no final status (1xx) has said nothing and is INDETERMINATE.
struct StatusMap {
    StatusVerdict verdicts[STATUS_LAST - STATUS_FIRST + 1] = {};
    StatusVerdict timeout = StatusVerdict::INDETERMINATE;

    // StatusMap makes the map of an op without a policy.
    constexpr StatusMap() noexcept {
        set_range(100, 199, StatusVerdict::INDETERMINATE);
        set_range(200, 499, StatusVerdict::STORE);
        set_range(500, 599, StatusVerdict::INDETERMINATE);
        for (int status : {408, 409, 425, 429}) {
            set_range(status, status, StatusVerdict::RELEASE);
        }
    }

    constexpr void set_range(int first, int last, StatusVerdict verdict) noexcept {
        for (int status = first; status <= last; status++) {
            verdicts[status - STATUS_FIRST] = verdict;
        }
    }

    // of returns the verdict of a status; one outside 100 to 599 is INDETERMINATE.
    constexpr StatusVerdict of(int status) const noexcept {
        return status >= STATUS_FIRST && status <= STATUS_LAST ? verdicts[status - STATUS_FIRST]
                                                               : StatusVerdict::INDETERMINATE;
    }
    friend constexpr bool operator==(const StatusMap&, const StatusMap&) noexcept = default;
};

// Policy is everything an op's policy decides at run time. Its initial values are those of an op without a policy.
struct Policy {
    std::int32_t version = 0; // from 1; 0: the op has no policy
    Timestamp updated_at = 0; // when it was last changed

    Mode mode = Mode::ANY;
    std::uint16_t key_min = 1;   // bytes
    std::uint16_t key_max = 255; // bytes
    ByteSet key_chars;

    bool payload_required = false;
    bool compare_payload = true; // false: another payload under the key is told in detail, and is no conflict
    HashAlgorithm hash_algorithm = HashAlgorithm::XXH3_128;
    HashKey hash_key = HashKey::NONE;
    std::int32_t profile = 0; // version of the rules payloads are hashed under, from 1; 0: the op has no policy

    Duration wait = 5 * SECOND;
    Duration lease = 30 * SECOND;
    Duration grace = 10 * SECOND;
    OnStale on_stale = OnStale::INDETERMINATE;
    Duration ttl = 24 * HOUR;
    Duration tombstone_ttl = 0; // 0: no tombstone

    EntityOrder entity_order = EntityOrder::LATEST;

    StatusMap on_status;
    HandlerError handler_error = HandlerError::PROPAGATE;
    std::int32_t body_max = 1048576; // bytes; 0: no body is stored

    ConflictDetail conflict_detail = ConflictDetail::HASH;
    StorePayload store_payload = StorePayload::NO;
    std::uint16_t conflict_status = 409;
    std::uint16_t in_progress_status = 409;

    std::int32_t max_waiters = 64;
    std::int32_t capabilities_min = 0; // 0: a claim need not say its capabilities_version
    bool synchronous_commit = false;   // true: a claim's commit waits for the disk whatever the session says

    char handler[HANDLER_SIZE] = {}; // schema-qualified and zero-terminated; empty: none
    // Lower-case names joined by commas, zero-terminated; ask with replays_header.
    char replay_headers[REPLAY_HEADERS_SIZE] =
        "content-type,content-language,location,content-location,etag,last-modified,link,cache-control";

    friend bool operator==(const Policy&, const Policy&) noexcept = default;
};

// Preset numbers the columns of OPTIONS; DEFAULT is what an op without a policy has.
enum class Preset : std::uint8_t { DEFAULT, PAYMENT, ORDER, WEBHOOK, MESSAGE, EPHEMERAL };
inline constexpr std::size_t PRESET_COUNT = 6;

// OptionId numbers the options, in the order of OPTIONS.
enum class OptionId : std::uint8_t {
    MODE,
    KEY_MIN,
    KEY_MAX,
    KEY_CHARS,
    PAYLOAD_REQUIRED,
    PAYLOAD_COMPARE,
    HASH_ALGORITHM,
    HASH_KEY,
    PROFILE,
    WAIT,
    LEASE,
    GRACE,
    ON_STALE,
    TTL,
    TOMBSTONE_TTL,
    ENTITY_ORDER,
    ON_STATUS,
    HANDLER,
    HANDLER_ERROR,
    BODY_MAX,
    REPLAY_HEADERS,
    CONFLICT_DETAIL,
    STORE_PAYLOAD,
    CONFLICT_STATUS,
    IN_PROGRESS_STATUS,
    MAX_WAITERS,
    CAPABILITIES_MIN,
    SYNCHRONOUS_COMMIT,
    TARGET,
    INTENT,
    EFFECT,
    DESCRIPTION,
};
inline constexpr std::size_t OPTION_COUNT = 32;

// OptionType is how an option is written in JSON: a word, an interval string, a number, true or false, a string, an
// object of words, an array of strings, an object with a structure of its own, which has no text form.
enum class OptionType : std::uint8_t { ENUMERATION, INTERVAL, INTEGER, BOOLEAN, TEXT, OBJECT, ARRAY, DOCUMENT };

// Option is one line of the table. min and max count microseconds for an interval, the number itself for an integer,
// and bytes for a text; words are the choices of an enumeration, separated by commas.
struct Option {
    OptionId id;
    OptionType type;
    std::string_view name;
    std::string_view defaults[PRESET_COUNT];
    std::int64_t min;
    std::int64_t max;
    std::string_view unit;
    std::string_view words;
    std::string_view meaning;
};

extern const Option OPTIONS[OPTION_COUNT];

// OptionFault is what is wrong with the text form of a value. NO_UNIT is a duration without one; UNSTEADY_UNIT a month
// or a year, which have no fixed length; FORBIDDEN a name that is refused for a reason of its own.
enum class OptionFault : std::uint8_t { NONE, MALFORMED, OUT_OF_RANGE, NO_UNIT, UNSTEADY_UNIT, FORBIDDEN };

// find_preset returns whether the name is a preset, and which.
bool find_preset(std::string_view name, Preset* out) noexcept;

// preset_name returns the preset's name as SQL spells it.
std::string_view preset_name(Preset preset) noexcept;

// find_option returns the option of that name, or nullptr.
const Option* find_option(std::string_view name) noexcept;

// option_type_name returns the type as idem_policy_options shows it.
std::string_view option_type_name(OptionType type) noexcept;

// has_field tells whether the option lives in Policy; the others are texts for people.
bool has_field(OptionId id) noexcept;

// keeps_text tells whether the stored value is the text as it was given, and not format_option's.
bool keeps_text(OptionId id) noexcept;

// apply_option sets one option of the policy from its text form. On a fault the policy is undefined.
// on_status changes only the classes and statuses it names: first the classes, each as a whole, then single statuses.
OptionFault apply_option(Policy& policy, const Option& option, std::string_view text) noexcept;

// preset_policy returns the policy a preset stands for, with version 0.
Policy preset_policy(Preset preset) noexcept;

// format_option writes the normal text form of an option into buffer, which has OPTION_TEXT_MAX bytes. Options that
// keep their text or have no field give "".
std::string_view format_option(const Policy& policy, const Option& option, char* buffer) noexcept;

// format_bound writes min (or max) of an option as people write it; buffer has SHORT_TEXT_MAX bytes. "" where none.
std::string_view format_bound(const Option& option, std::int64_t bound, char* buffer) noexcept;

// parse_duration reads "5 seconds", "1 h 30 min", "3 days 04:05:06.7", "PT5M" or "0" into microseconds, whatever the
// session's IntervalStyle is. Negative and bare numbers, months and years are faults.
OptionFault parse_duration(std::string_view text, Duration* out) noexcept;

// format_duration writes a duration with the largest unit that divides it, as in "90 seconds" or "3 days"; buffer has
// 40 bytes.
std::string_view format_duration(Duration duration, char* buffer) noexcept;

// parse_byte_class reads the body of a character class, as in "A-Za-z0-9_.:-": printable ASCII, ranges, a hyphen first
// or last for itself, a backslash before any punctuation for itself. "" is every byte.
bool parse_byte_class(std::string_view text, ByteSet* out) noexcept;

// key_has_only tells whether every byte of the key is in the class.
bool key_has_only(const ByteSet& allowed, Bytes key) noexcept;

// lists_header tells whether a name is among names joined by commas; case does not matter.
bool lists_header(std::string_view list, std::string_view name) noexcept;

// replays_header tells whether the policy stores and replays the header; the case of the name does not matter.
bool replays_header(const Policy& policy, std::string_view name) noexcept;

// is_refused_header tells whether a header may never be replayed, whatever a policy says; case does not matter.
bool is_refused_header(std::string_view name) noexcept;

} // namespace idem::core
