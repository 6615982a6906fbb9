// policy.cpp: the option table, and text to policy and back. See policy.hpp.
//
// Normal forms: format_option(apply_option(x)) is a fixed point, so that two ways to write the same policy are stored
// as the same jsonb and setting it again makes no new version.
#include "core/policy.hpp"

namespace idem::core {

namespace {

constexpr std::string_view KEY_CLASS = "A-Za-z0-9_.:-";
constexpr std::string_view DEFAULT_HEADERS =
    "content-type,content-language,location,content-location,etag,last-modified,link,cache-control";
constexpr std::string_view STATUS_UNSURE =
    "2xx=store,3xx=store,4xx=store,408=release,409=release,425=release,429=release,5xx=indeterminate,"
    "timeout=indeterminate";
constexpr std::string_view STATUS_FREE =
    "2xx=store,3xx=store,4xx=store,408=release,409=release,425=release,429=release,5xx=release,timeout=release";
constexpr std::string_view VERDICTS = "store,release,indeterminate";
constexpr std::string_view REFUSED_HEADERS = "set-cookie,set-cookie2,www-authenticate,proxy-authenticate";
constexpr std::string_view PRESET_NAMES = "default,payment,order,webhook,message,ephemeral";
constexpr std::string_view TYPE_NAMES = "enum,interval,integer,boolean,text,object,array,document";
constexpr std::int64_t TEXT_LIMIT = 1000;

} // namespace

// Columns of defaults: no policy, payment, order, webhook, message, ephemeral.
// clang-format off
constexpr Option OPTIONS[OPTION_COUNT] = {
    {OptionId::MODE, OptionType::ENUMERATION, "mode",
     {"any", "lease", "transaction", "transaction", "lease", "any"}, 0, 0, "", "any,lease,transaction",
     "lease: the claim is committed before the work, completing it in the claiming transaction is refused (ID003). "
     "transaction: claim, work and complete commit together, a claim left open at commit is refused (ID004). "
     "any: neither is checked"},
    {OptionId::KEY_MIN, OptionType::INTEGER, "key_min",
     {"1", "16", "16", "1", "1", "1"}, 1, MAX_KEY_BYTES, "bytes", "",
     "shortest key a client may send; a shorter one is rejected"},
    {OptionId::KEY_MAX, OptionType::INTEGER, "key_max",
     {"255", "255", "255", "255", "255", "255"}, 1, MAX_KEY_BYTES, "bytes", "",
     "longest key a client may send; a longer one is rejected"},
    {OptionId::KEY_CHARS, OptionType::TEXT, "key_chars",
     {"", KEY_CLASS, KEY_CLASS, "", "", ""}, 0, 128, "bytes", "",
     "characters a key may have, as in A-Za-z0-9_.:- (ASCII; a backslash before punctuation means itself); "
     "empty: any"},
    {OptionId::PAYLOAD_REQUIRED, OptionType::BOOLEAN, "payload_required",
     {"false", "true", "true", "false", "true", "false"}, 0, 0, "", "",
     "a claim without a payload is rejected"},
    {OptionId::PAYLOAD_COMPARE, OptionType::BOOLEAN, "payload_compare",
     {"true", "true", "true", "false", "true", "true"}, 0, 0, "", "",
     "another payload under the same key is a conflict; false: it is only told in detail, for providers that change "
     "the body on redelivery"},
    {OptionId::HASH_ALGORITHM, OptionType::ENUMERATION, "hash_algorithm",
     {"xxh3-128", "sha256", "sha256", "xxh3-128", "sha256", "xxh3-128"}, 0, 0, "", "xxh3-128,sha256",
     "hash of the canonical payload; sha256 where somebody could gain from a collision"},
    {OptionId::HASH_KEY, OptionType::ENUMERATION, "hash_key",
     {"none", "none", "none", "none", "none", "none"}, 0, 0, "", "none,per_actor",
     "per_actor: the hash is an HMAC-SHA-256 with a secret of this database and the actor, whatever hash_algorithm says"},
    {OptionId::PROFILE, OptionType::DOCUMENT, "profile",
     {"", "", "", "", "", ""}, 0, 0, "", "",
     "what may differ in payloads that mean the same: trim_strings, nfc_strings, strip_nulls, numbers, ignore_paths, "
     "intent_paths, decimal_paths, round_paths, unordered_paths; see docs/payloads.md"},
    {OptionId::WAIT, OptionType::INTERVAL, "wait",
     {"5 seconds", "5 seconds", "5 seconds", "0 seconds", "0 seconds", "1 second"}, 0, MAX_WAIT, "", "",
     "how long a claim waits for a running rival before it answers in_progress, where the caller does not say"},
    {OptionId::LEASE, OptionType::INTERVAL, "lease",
     {"30 seconds", "3 minutes", "30 seconds", "5 minutes", "2 minutes", "15 seconds"}, MIN_LEASE, MAX_LEASE, "", "",
     "how long a committed claim is believed alive without idem_extend, where the caller does not say"},
    {OptionId::GRACE, OptionType::INTERVAL, "grace",
     {"10 seconds", "30 seconds", "10 seconds", "30 seconds", "1 minute", "0 seconds"}, 0, MAX_LEASE, "", "",
     "what is added to the lease before the claim is judged dead"},
    {OptionId::ON_STALE, OptionType::ENUMERATION, "on_stale",
     {"indeterminate", "indeterminate", "indeterminate", "retry", "indeterminate", "retry"}, 0, 0, "",
     "indeterminate,retry",
     "what follows a claim judged dead. indeterminate: nothing runs twice, somebody calls idem_resolve. "
     "retry: the next claim takes over with attempt + 1"},
    {OptionId::TTL, OptionType::INTERVAL, "ttl",
     {"1 day", "3 days", "3 days", "30 days", "1 day", "30 minutes"}, MIN_TTL, MAX_TTL, "", "",
     "how long the answer is replayed, counted from completion, where the caller does not say"},
    {OptionId::TOMBSTONE_TTL, OptionType::INTERVAL, "tombstone_ttl",
     {"0 seconds", "7 days", "7 days", "0 seconds", "0 seconds", "0 seconds"}, 0, MAX_TTL, "", "",
     "how long after the ttl the key is still known as used (expired); 0: not at all"},
    {OptionId::ENTITY_ORDER, OptionType::ENUMERATION, "entity_order",
     {"latest", "latest", "latest", "latest", "latest", "latest"}, 0, 0, "", "none,latest,strict",
     "inbox events with entity and seq. latest: an event that is not newer than the newest one seen is stale. "
     "strict: an event waits, parked, until its predecessor was handled. none: seq is ignored"},
    {OptionId::ON_STATUS, OptionType::OBJECT, "on_status",
     {STATUS_UNSURE, STATUS_UNSURE, STATUS_FREE, STATUS_FREE, STATUS_UNSURE, STATUS_FREE}, 0, 0, "", VERDICTS,
     "what becomes of the key by status: a class (\"5xx\"), a status (\"503\") or \"timeout\" to store, release or "
     "indeterminate. A class replaces the whole class, a status beats its class, what is not named stays as in the "
     "preset"},
    {OptionId::HANDLER, OptionType::TEXT, "handler",
     {"", "", "", "", "", ""}, 0, HANDLER_SIZE - 1, "bytes", "",
     "schema-qualified function that idem_execute calls where the caller names none; empty: none"},
    {OptionId::HANDLER_ERROR, OptionType::ENUMERATION, "handler_error",
     {"propagate", "propagate", "propagate", "propagate", "propagate", "propagate"}, 0, 0, "", "propagate,store",
     "an error in the handler of idem_execute. propagate: it is raised and the key is free again. "
     "store: it is stored as the failed answer"},
    {OptionId::BODY_MAX, OptionType::INTEGER, "body_max",
     {"1048576", "65536", "1048576", "0", "8192", "65536"}, 0, 16777216, "bytes", "",
     "longest body that is stored; of a longer one the replay has status and headers and detail.body_omitted. "
     "0: no body is stored"},
    {OptionId::REPLAY_HEADERS, OptionType::ARRAY, "replay_headers",
     {DEFAULT_HEADERS, DEFAULT_HEADERS, DEFAULT_HEADERS, DEFAULT_HEADERS, DEFAULT_HEADERS, DEFAULT_HEADERS},
     0, REPLAY_HEADERS_SIZE - 1, "bytes", "",
     "headers that are stored and replayed, all others are dropped; Set-Cookie and WWW-Authenticate are refused"},
    {OptionId::CONFLICT_DETAIL, OptionType::ENUMERATION, "conflict_detail",
     {"hash", "response", "full", "none", "hash", "none"}, 0, 0, "", "none,hash,response,full",
     "what a conflict shows of the winner in detail; full also shows its payload, where store_payload keeps it"},
    {OptionId::STORE_PAYLOAD, OptionType::ENUMERATION, "store_payload",
     {"no", "no", "canonical", "no", "no", "no"}, 0, 0, "", "no,canonical",
     "canonical: the winner's payload is kept in canonical form"},
    {OptionId::CONFLICT_STATUS, OptionType::ENUMERATION, "conflict_status",
     {"409", "409", "409", "409", "409", "409"}, 0, 0, "", "409,422",
     "HTTP status of a conflict; 422 for the IETF draft"},
    {OptionId::IN_PROGRESS_STATUS, OptionType::ENUMERATION, "in_progress_status",
     {"409", "409", "409", "409", "409", "409"}, 0, 0, "", "409,425",
     "HTTP status of in_progress"},
    {OptionId::MAX_WAITERS, OptionType::INTEGER, "max_waiters",
     {"64", "64", "64", "64", "64", "64"}, 0, 10000, "sessions", "",
     "how many sessions may wait on one key, the next is told in_progress at once; needs shared_preload_libraries"},
    {OptionId::CAPABILITIES_MIN, OptionType::INTEGER, "capabilities_min",
     {"0", "0", "0", "0", "0", "0"}, 0, 2147483647, "", "",
     "lowest capabilities_version a claim may show, a lower or absent one is rejected; 0 asks for none"},
    {OptionId::SYNCHRONOUS_COMMIT, OptionType::BOOLEAN, "synchronous_commit",
     {"false", "true", "true", "false", "false", "false"}, 0, 0, "", "",
     "a transaction with a claim waits at commit for the disk, also where the session's synchronous_commit is off"},
    {OptionId::TARGET, OptionType::TEXT, "target",
     {"", "", "", "", "", ""}, 0, TEXT_LIMIT, "bytes", "",
     "for people: the resource the op changes"},
    {OptionId::INTENT, OptionType::TEXT, "intent",
     {"", "", "", "", "", ""}, 0, TEXT_LIMIT, "bytes", "",
     "for people: what the caller wants"},
    {OptionId::EFFECT, OptionType::TEXT, "effect",
     {"", "", "", "", "", ""}, 0, TEXT_LIMIT, "bytes", "",
     "for people: what must not happen twice"},
    {OptionId::DESCRIPTION, OptionType::TEXT, "description",
     {"", "", "", "", "", ""}, 0, TEXT_LIMIT, "bytes", "",
     "for people: everything else worth knowing"},
};
// clang-format on

namespace {

constexpr bool ids_are_positions() noexcept {
    for (std::size_t i = 0; i < OPTION_COUNT; i++) {
        if (static_cast<std::size_t>(OPTIONS[i].id) != i) {
            return false;
        }
    }
    return true;
}

static_assert(ids_are_positions(), "OPTIONS is in the order of OptionId");
static_assert(static_cast<std::size_t>(OptionId::DESCRIPTION) + 1 == OPTION_COUNT);
static_assert(DEFAULT_HEADERS.size() < REPLAY_HEADERS_SIZE);

constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

constexpr bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr bool is_blank(char c) noexcept {
    return c == ' ' || c == '\t';
}

constexpr char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool same_ignoring_case(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); i++) {
        if (lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

std::string_view trimmed(std::string_view text) noexcept {
    while (!text.empty() && is_blank(text.front())) {
        text.remove_prefix(1);
    }
    while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
    }
    return text;
}

// next_item cuts the part before the next comma off the list; false when nothing is left.
bool next_item(std::string_view& rest, std::string_view* item) noexcept {
    if (rest.empty()) {
        return false;
    }
    std::size_t end = 0;
    while (end < rest.size() && rest[end] != ',') {
        end++;
    }
    *item = std::string_view(rest.data(), end);
    rest.remove_prefix(end < rest.size() ? end + 1 : end);
    return true;
}

// word_at returns the word of that number in a comma-separated list.
std::string_view word_at(std::string_view words, std::size_t number) noexcept {
    std::string_view word;
    for (std::size_t i = 0; next_item(words, &word); i++) {
        if (i == number) {
            return word;
        }
    }
    return {};
}

// index_of returns the number of a word in a comma-separated list, or -1.
int index_of(std::string_view words, std::string_view wanted) noexcept {
    std::string_view word;
    for (int i = 0; next_item(words, &word); i++) {
        if (word == wanted) {
            return i;
        }
    }
    return -1;
}

// Writer appends to a buffer that is known to be large enough, and drops what would not fit.
struct Writer {
    char* begin;
    std::size_t capacity;
    std::size_t used = 0;

    void add(char c) noexcept {
        if (used < capacity) {
            begin[used++] = c;
        }
    }
    void add(std::string_view text) noexcept {
        for (char c : text) {
            add(c);
        }
    }
    void add_number(std::int64_t number) noexcept {
        char digits[20];
        std::size_t count = 0;
        std::uint64_t rest = static_cast<std::uint64_t>(number < 0 ? -number : number);
        do {
            digits[count++] = static_cast<char>('0' + rest % 10);
            rest /= 10;
        } while (rest != 0);
        if (number < 0) {
            add('-');
        }
        while (count > 0) {
            add(digits[--count]);
        }
    }
    std::string_view text() const noexcept { return {begin, used}; }
};

// parse_digits reads 1 to 15 decimal digits and nothing else.
bool parse_digits(std::string_view text, std::int64_t* out) noexcept {
    if (text.empty() || text.size() > 15) {
        return false;
    }
    std::int64_t number = 0;
    for (char c : text) {
        if (!is_digit(c)) {
            return false;
        }
        number = number * 10 + (c - '0');
    }
    *out = number;
    return true;
}

template <typename Enum>
OptionFault take_word(const Option& option, std::string_view text, Enum* out) noexcept {
    const int number = index_of(option.words, text);
    if (number < 0) {
        return OptionFault::MALFORMED;
    }
    *out = static_cast<Enum>(number);
    return OptionFault::NONE;
}

OptionFault take_status_word(const Option& option, std::string_view text, std::uint16_t* out) noexcept {
    std::int64_t number = 0;
    if (index_of(option.words, text) < 0 || !parse_digits(text, &number)) {
        return OptionFault::MALFORMED;
    }
    *out = static_cast<std::uint16_t>(number);
    return OptionFault::NONE;
}

template <typename Integer>
OptionFault take_integer(const Option& option, std::string_view text, Integer* out) noexcept {
    bool negative = false;
    if (!text.empty() && text.front() == '-') {
        negative = true;
        text.remove_prefix(1);
    }
    for (char c : text) {
        if (!is_digit(c)) {
            return OptionFault::MALFORMED;
        }
    }
    if (text.empty()) {
        return OptionFault::MALFORMED;
    }
    std::int64_t number = 0;
    if (!parse_digits(text, &number)) {
        return OptionFault::OUT_OF_RANGE;
    }
    number = negative ? -number : number;
    if (number < option.min || number > option.max) {
        return OptionFault::OUT_OF_RANGE;
    }
    *out = static_cast<Integer>(number);
    return OptionFault::NONE;
}

OptionFault take_boolean(std::string_view text, bool* out) noexcept {
    if (text != "true" && text != "false") {
        return OptionFault::MALFORMED;
    }
    *out = text == "true";
    return OptionFault::NONE;
}

OptionFault take_interval(const Option& option, std::string_view text, Duration* out) noexcept {
    const OptionFault fault = parse_duration(text, out);
    if (fault != OptionFault::NONE) {
        return fault;
    }
    return *out < option.min || *out > option.max ? OptionFault::OUT_OF_RANGE : OptionFault::NONE;
}

OptionFault check_text(const Option& option, std::string_view text) noexcept {
    if (static_cast<std::int64_t>(text.size()) > option.max) {
        return OptionFault::OUT_OF_RANGE;
    }
    for (char c : text) {
        const auto byte = static_cast<std::uint8_t>(c);
        if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
            return OptionFault::MALFORMED;
        }
    }
    return OptionFault::NONE;
}

OptionFault take_byte_class(const Option& option, std::string_view text, ByteSet* out) noexcept {
    const OptionFault fault = check_text(option, text);
    if (fault != OptionFault::NONE) {
        return fault;
    }
    return parse_byte_class(text, out) ? OptionFault::NONE : OptionFault::MALFORMED;
}

// skip_identifier takes one plain or quoted SQL identifier off the text.
bool skip_identifier(std::string_view& text) noexcept {
    if (text.empty()) {
        return false;
    }
    if (text.front() != '"') {
        std::size_t end = 0;
        while (end < text.size() &&
               (is_letter(text[end]) || text[end] == '_' || static_cast<std::uint8_t>(text[end]) >= 0x80 ||
                (end > 0 && (is_digit(text[end]) || text[end] == '$')))) {
            end++;
        }
        text.remove_prefix(end);
        return end > 0;
    }
    std::size_t end = 1;
    while (end < text.size()) {
        if (text[end] != '"') {
            end++;
        } else if (end + 1 < text.size() && text[end + 1] == '"') {
            end += 2;
        } else {
            break;
        }
    }
    if (end == 1 || end >= text.size()) {
        return false;
    }
    text.remove_prefix(end + 1);
    return true;
}

OptionFault take_handler(const Option& option, std::string_view text, char* out) noexcept {
    const OptionFault fault = check_text(option, text);
    if (fault != OptionFault::NONE) {
        return fault;
    }
    if (!text.empty()) {
        std::string_view rest = text;
        if (!skip_identifier(rest) || rest.empty() || rest.front() != '.') {
            return OptionFault::MALFORMED;
        }
        rest.remove_prefix(1);
        if (!skip_identifier(rest) || !rest.empty()) {
            return OptionFault::MALFORMED;
        }
    }
    // The whole field is written, so that equal policies are equal bytes.
    std::memset(out, 0, HANDLER_SIZE);
    if (!text.empty()) {
        std::memcpy(out, text.data(), text.size());
    }
    return OptionFault::NONE;
}

constexpr bool is_header_char(char c) noexcept {
    return is_letter(c) || is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos; // token of RFC 9110
}

OptionFault take_headers(const Option& option, std::string_view text, char* out) noexcept {
    Writer list{out, static_cast<std::size_t>(option.max)};
    std::string_view item;
    std::memset(out, 0, REPLAY_HEADERS_SIZE);
    while (next_item(text, &item)) {
        const std::string_view name = trimmed(item);
        if (name.empty()) {
            return OptionFault::MALFORMED;
        }
        for (char c : name) {
            if (!is_header_char(c)) {
                return OptionFault::MALFORMED;
            }
        }
        if (is_refused_header(name)) {
            return OptionFault::FORBIDDEN;
        }
        char folded[REPLAY_HEADERS_SIZE];
        Writer fold{folded, sizeof folded};
        for (char c : name) {
            fold.add(lower(c));
        }
        if (fold.used < name.size() || list.used + name.size() + 1 > list.capacity) {
            return OptionFault::OUT_OF_RANGE;
        }
        if (index_of(list.text(), fold.text()) >= 0) {
            continue;
        }
        if (list.used > 0) {
            list.add(',');
        }
        list.add(fold.text());
    }
    return OptionFault::NONE;
}

// StatusPlace is where one name of on_status points; a class is a range.
struct StatusPlace {
    int first;
    int last;
    bool timeout;
};

bool find_status_place(std::string_view name, StatusPlace* out) noexcept {
    if (name == "timeout") {
        *out = {0, 0, true};
        return true;
    }
    if (name.size() != 3 || name[0] < '2' || name[0] > '5') {
        return false;
    }
    const int hundred = (name[0] - '0') * 100;
    if (name[1] == 'x' && name[2] == 'x') {
        *out = {hundred, hundred + 99, false};
        return true;
    }
    if (!is_digit(name[1]) || !is_digit(name[2])) {
        return false;
    }
    const int status = hundred + (name[1] - '0') * 10 + (name[2] - '0');
    *out = {status, status, false};
    return true;
}

OptionFault take_status_map(const Option& option, std::string_view text, StatusMap* out) noexcept {
    // Two passes, so that a single status beats its class in whatever order they are written.
    for (const bool classes : {true, false}) {
        std::string_view rest = text;
        std::string_view item;
        while (next_item(rest, &item)) {
            const std::size_t equals = item.find('=');
            if (equals == std::string_view::npos) {
                return OptionFault::MALFORMED;
            }
            const std::string_view name = trimmed({item.data(), equals});
            const std::string_view word = trimmed({item.data() + equals + 1, item.size() - equals - 1});
            StatusPlace place{};
            StatusVerdict verdict{};
            if (!find_status_place(name, &place) || take_word(option, word, &verdict) != OptionFault::NONE) {
                return OptionFault::MALFORMED;
            }
            if (place.timeout) {
                out->timeout = verdict;
            } else if ((place.first != place.last) == classes) {
                out->set_range(place.first, place.last, verdict);
            }
        }
    }
    return OptionFault::NONE;
}

// format_status_map writes each class with its most frequent verdict and then the statuses that differ from it.
void format_status_map(const StatusMap& map, Writer& out) noexcept {
    for (int hundred = 200; hundred <= 500; hundred += 100) {
        int counts[3] = {0, 0, 0};
        for (int status = hundred; status < hundred + 100; status++) {
            counts[static_cast<int>(map.of(status))]++;
        }
        int most = 0;
        for (int verdict = 1; verdict < 3; verdict++) {
            most = counts[verdict] > counts[most] ? verdict : most;
        }
        out.add(hundred == 200 ? "" : ",");
        out.add_number(hundred / 100);
        out.add("xx=");
        out.add(word_at(VERDICTS, static_cast<std::size_t>(most)));
        for (int status = hundred; status < hundred + 100; status++) {
            if (static_cast<int>(map.of(status)) != most) {
                out.add(',');
                out.add_number(status);
                out.add('=');
                out.add(word_at(VERDICTS, static_cast<std::size_t>(map.of(status))));
            }
        }
    }
    out.add(",timeout=");
    out.add(word_at(VERDICTS, static_cast<std::size_t>(map.timeout)));
}

// Unit is a word for a length of time; length 0 is one without a fixed length.
struct Unit {
    std::string_view names;
    Duration length;
};

constexpr Unit UNITS[] = {
    {"us,usec,usecs,microsecond,microseconds", 1},
    {"ms,msec,msecs,millisecond,milliseconds", MILLISECOND},
    {"s,sec,secs,second,seconds", SECOND},
    {"m,min,mins,minute,minutes", MINUTE},
    {"h,hr,hrs,hour,hours", HOUR},
    {"d,day,days", DAY},
    {"w,week,weeks", 7 * DAY},
    {"mon,mons,month,months,y,yr,yrs,year,years,decade,decades,century,centuries", 0},
};

// add_amount adds whole.fraction units; false on overflow.
bool add_amount(Duration* total, std::string_view whole, std::string_view fraction, Duration unit) noexcept {
    std::int64_t number = 0;
    Duration part = 0;
    if ((!whole.empty() && !parse_digits(whole, &number)) || __builtin_mul_overflow(number, unit, &part) ||
        __builtin_add_overflow(*total, part, total)) {
        return false;
    }
    Duration scale = unit;
    Duration rest = 0;
    for (char c : fraction) {
        // Each step keeps what a digit's place is worth, down to the microsecond.
        const Duration digit = c - '0';
        rest += scale * digit / 10;
        scale /= 10;
    }
    return !__builtin_add_overflow(*total, rest, total);
}

std::string_view take_while_digits(std::string_view& text) noexcept {
    std::size_t end = 0;
    while (end < text.size() && is_digit(text[end])) {
        end++;
    }
    const std::string_view digits(text.data(), end);
    text.remove_prefix(end);
    return digits;
}

std::string_view take_while_letters(std::string_view& text) noexcept {
    std::size_t end = 0;
    while (end < text.size() && is_letter(text[end])) {
        end++;
    }
    const std::string_view letters(text.data(), end);
    text.remove_prefix(end);
    return letters;
}

// find_unit returns the unit of a word in any case, or nullptr.
const Unit* find_unit(std::string_view word) noexcept {
    for (const Unit& unit : UNITS) {
        std::string_view rest = unit.names;
        std::string_view name;
        while (next_item(rest, &name)) {
            if (same_ignoring_case(name, word)) {
                return &unit;
            }
        }
    }
    return nullptr;
}

// take_clock reads the rest of hh:mm or hh:mm:ss.ffffff after the hours.
OptionFault take_clock(std::string_view hours, std::string_view& rest, Duration* total) noexcept {
    rest.remove_prefix(1);
    const std::string_view minutes = take_while_digits(rest);
    std::string_view seconds;
    std::string_view fraction;
    if (!rest.empty() && rest.front() == ':') {
        rest.remove_prefix(1);
        seconds = take_while_digits(rest);
        if (seconds.size() != 2 || seconds[0] > '5') {
            return OptionFault::MALFORMED;
        }
        if (!rest.empty() && rest.front() == '.') {
            rest.remove_prefix(1);
            fraction = take_while_digits(rest);
        }
    }
    if (hours.empty() || minutes.size() != 2 || minutes[0] > '5') {
        return OptionFault::MALFORMED;
    }
    if (!add_amount(total, hours, {}, HOUR) || !add_amount(total, minutes, {}, MINUTE) ||
        !add_amount(total, seconds, fraction, SECOND)) {
        return OptionFault::OUT_OF_RANGE;
    }
    return OptionFault::NONE;
}

// parse_iso_duration reads what follows the P of ISO 8601: weeks and days, then hours, minutes and seconds after a T.
OptionFault parse_iso_duration(std::string_view rest, Duration* out) noexcept {
    bool after_t = false;
    bool any = false;
    Duration total = 0;
    while (!rest.empty()) {
        if (lower(rest.front()) == 't' && !after_t) {
            after_t = true;
            any = false;
            rest.remove_prefix(1);
            continue;
        }
        const std::string_view whole = take_while_digits(rest);
        std::string_view fraction;
        if (!rest.empty() && rest.front() == '.') {
            rest.remove_prefix(1);
            fraction = take_while_digits(rest);
        }
        if (whole.empty() || rest.empty()) {
            return OptionFault::MALFORMED;
        }
        const char letter = lower(rest.front());
        rest.remove_prefix(1);
        if (!after_t && (letter == 'm' || letter == 'y')) {
            return OptionFault::UNSTEADY_UNIT;
        }
        if (std::string_view(after_t ? "hms" : "dw").find(letter) == std::string_view::npos) {
            return OptionFault::MALFORMED;
        }
        if (!add_amount(&total, whole, fraction, find_unit({&letter, 1})->length)) {
            return OptionFault::OUT_OF_RANGE;
        }
        any = true;
    }
    *out = total;
    return any ? OptionFault::NONE : OptionFault::MALFORMED;
}

} // namespace

OptionFault parse_duration(std::string_view text, Duration* out) noexcept {
    text = trimmed(text);
    *out = 0;
    if (!text.empty() && text.front() == '@') {
        text.remove_prefix(1);
        text = trimmed(text);
    }
    if (text == "0") {
        return OptionFault::NONE;
    }
    if (!text.empty() && lower(text.front()) == 'p') {
        text.remove_prefix(1);
        return parse_iso_duration(text, out);
    }
    if (text.empty()) {
        return OptionFault::MALFORMED;
    }
    while (!text.empty()) {
        if (text.front() == '-') {
            return OptionFault::OUT_OF_RANGE;
        }
        const std::string_view whole = take_while_digits(text);
        std::string_view fraction;
        if (!text.empty() && text.front() == ':') {
            const OptionFault fault = take_clock(whole, text, out);
            if (fault != OptionFault::NONE) {
                return fault;
            }
        } else {
            if (!text.empty() && text.front() == '.') {
                text.remove_prefix(1);
                fraction = take_while_digits(text);
            }
            if (whole.empty() && fraction.empty()) {
                return OptionFault::MALFORMED;
            }
            text = trimmed(text);
            const std::string_view word = take_while_letters(text);
            if (word.empty()) {
                return text.empty() ? OptionFault::NO_UNIT : OptionFault::MALFORMED;
            }
            const Unit* unit = find_unit(word);
            if (unit == nullptr) {
                return OptionFault::MALFORMED;
            }
            if (unit->length == 0) {
                return OptionFault::UNSTEADY_UNIT;
            }
            if (!add_amount(out, whole, fraction, unit->length)) {
                return OptionFault::OUT_OF_RANGE;
            }
        }
        text = trimmed(text);
    }
    return OptionFault::NONE;
}

std::string_view format_duration(Duration duration, char* buffer) noexcept {
    struct Named {
        std::string_view name;
        Duration length;
    };
    constexpr Named NAMED[] = {
        {"day", DAY},      {"hour", HOUR}, {"minute", MINUTE}, {"second", SECOND}, {"millisecond", MILLISECOND},
        {"microsecond", 1}};
    Writer out{buffer, SHORT_TEXT_MAX};
    for (const Named& unit : NAMED) {
        if ((duration == 0 && unit.length == SECOND) || (duration != 0 && duration % unit.length == 0)) {
            out.add_number(duration / unit.length);
            out.add(' ');
            out.add(unit.name);
            out.add(duration == unit.length ? "" : "s");
            break;
        }
    }
    return out.text();
}

bool parse_byte_class(std::string_view text, ByteSet* out) noexcept {
    *out = ByteSet{};
    if (text.empty()) {
        return true;
    }
    out->clear();
    // take_byte reads one character; hyphen tells a bare one, which makes a range unless it is first or last.
    const auto take_byte = [&text](std::uint8_t* byte, bool* hyphen) noexcept {
        char c = text.front();
        text.remove_prefix(1);
        *hyphen = c == '-';
        if (c == '\\') {
            if (text.empty() || is_letter(text.front()) || is_digit(text.front())) {
                return false;
            }
            c = text.front();
            text.remove_prefix(1);
        } else if (c == '[' || c == ']' || c == '^') {
            // A bracket or a leading ^ means another syntax than ours; nobody shall guess which.
            return false;
        }
        *byte = static_cast<std::uint8_t>(c);
        return c >= 0x20 && c < 0x7f;
    };
    while (!text.empty()) {
        std::uint8_t first = 0;
        std::uint8_t last = 0;
        bool hyphen = false;
        if (!take_byte(&first, &hyphen)) {
            return false;
        }
        last = first;
        if (!hyphen && text.size() >= 2 && text.front() == '-') {
            text.remove_prefix(1);
            if (!take_byte(&last, &hyphen) || hyphen || last < first) {
                return false;
            }
        }
        for (unsigned byte = first; byte <= last; byte++) {
            out->insert(static_cast<std::uint8_t>(byte));
        }
    }
    return true;
}

bool key_has_only(const ByteSet& allowed, Bytes key) noexcept {
    for (char c : key) {
        if (!allowed.contains(static_cast<std::uint8_t>(c))) {
            return false;
        }
    }
    return true;
}

bool lists_header(std::string_view list, std::string_view name) noexcept {
    std::string_view item;
    while (next_item(list, &item)) {
        if (same_ignoring_case(item, name)) {
            return true;
        }
    }
    return false;
}

bool replays_header(const Policy& policy, std::string_view name) noexcept {
    return lists_header({policy.replay_headers, ::strnlen(policy.replay_headers, REPLAY_HEADERS_SIZE)}, name) &&
           !is_refused_header(name);
}

bool is_refused_header(std::string_view name) noexcept {
    return lists_header(REFUSED_HEADERS, name);
}

bool find_preset(std::string_view name, Preset* out) noexcept {
    const int number = name.empty() ? -1 : index_of(PRESET_NAMES, name);
    if (number < 0) {
        return false;
    }
    *out = static_cast<Preset>(number);
    return true;
}

std::string_view preset_name(Preset preset) noexcept {
    return word_at(PRESET_NAMES, static_cast<std::size_t>(preset));
}

const Option* find_option(std::string_view name) noexcept {
    for (const Option& option : OPTIONS) {
        if (option.name == name) {
            return &option;
        }
    }
    return nullptr;
}

std::string_view option_type_name(OptionType type) noexcept {
    return word_at(TYPE_NAMES, static_cast<std::size_t>(type));
}

bool has_field(OptionId id) noexcept {
    return id < OptionId::TARGET && id != OptionId::PROFILE;
}

bool keeps_text(OptionId id) noexcept {
    return id == OptionId::KEY_CHARS || id == OptionId::HANDLER || !has_field(id);
}

OptionFault apply_option(Policy& policy, const Option& option, std::string_view text) noexcept {
    switch (option.id) {
    case OptionId::MODE: return take_word(option, text, &policy.mode);
    case OptionId::KEY_MIN: return take_integer(option, text, &policy.key_min);
    case OptionId::KEY_MAX: return take_integer(option, text, &policy.key_max);
    case OptionId::KEY_CHARS: return take_byte_class(option, text, &policy.key_chars);
    case OptionId::PAYLOAD_REQUIRED: return take_boolean(text, &policy.payload_required);
    case OptionId::PAYLOAD_COMPARE: return take_boolean(text, &policy.compare_payload);
    case OptionId::HASH_ALGORITHM: return take_word(option, text, &policy.hash_algorithm);
    case OptionId::HASH_KEY: return take_word(option, text, &policy.hash_key);
    case OptionId::PROFILE: return OptionFault::NONE; // pg/profile_walk reads it
    case OptionId::WAIT: return take_interval(option, text, &policy.wait);
    case OptionId::LEASE: return take_interval(option, text, &policy.lease);
    case OptionId::GRACE: return take_interval(option, text, &policy.grace);
    case OptionId::ON_STALE: return take_word(option, text, &policy.on_stale);
    case OptionId::TTL: return take_interval(option, text, &policy.ttl);
    case OptionId::TOMBSTONE_TTL: return take_interval(option, text, &policy.tombstone_ttl);
    case OptionId::ENTITY_ORDER: return take_word(option, text, &policy.entity_order);
    case OptionId::ON_STATUS: return take_status_map(option, text, &policy.on_status);
    case OptionId::HANDLER: return take_handler(option, text, policy.handler);
    case OptionId::HANDLER_ERROR: return take_word(option, text, &policy.handler_error);
    case OptionId::BODY_MAX: return take_integer(option, text, &policy.body_max);
    case OptionId::REPLAY_HEADERS: return take_headers(option, text, policy.replay_headers);
    case OptionId::CONFLICT_DETAIL: return take_word(option, text, &policy.conflict_detail);
    case OptionId::STORE_PAYLOAD: return take_word(option, text, &policy.store_payload);
    case OptionId::CONFLICT_STATUS: return take_status_word(option, text, &policy.conflict_status);
    case OptionId::IN_PROGRESS_STATUS: return take_status_word(option, text, &policy.in_progress_status);
    case OptionId::MAX_WAITERS: return take_integer(option, text, &policy.max_waiters);
    case OptionId::CAPABILITIES_MIN: return take_integer(option, text, &policy.capabilities_min);
    case OptionId::SYNCHRONOUS_COMMIT: return take_boolean(text, &policy.synchronous_commit);
    case OptionId::TARGET:
    case OptionId::INTENT:
    case OptionId::EFFECT:
    case OptionId::DESCRIPTION: return check_text(option, text);
    }
    return OptionFault::MALFORMED;
}

Policy preset_policy(Preset preset) noexcept {
    Policy policy;
    for (const Option& option : OPTIONS) {
        // The unit tests prove that no default of the table is at fault.
        (void)apply_option(policy, option, option.defaults[static_cast<std::size_t>(preset)]);
    }
    return policy;
}

std::string_view format_option(const Policy& policy, const Option& option, char* buffer) noexcept {
    Writer out{buffer, OPTION_TEXT_MAX};
    const auto word = [&option](auto value) noexcept { return word_at(option.words, static_cast<std::size_t>(value)); };
    const auto truth = [](bool value) noexcept { return std::string_view(value ? "true" : "false"); };
    const auto number = [&out](std::int64_t value) noexcept {
        out.add_number(value);
        return out.text();
    };
    switch (option.id) {
    case OptionId::MODE: return word(policy.mode);
    case OptionId::KEY_MIN: return number(policy.key_min);
    case OptionId::KEY_MAX: return number(policy.key_max);
    case OptionId::PAYLOAD_REQUIRED: return truth(policy.payload_required);
    case OptionId::PAYLOAD_COMPARE: return truth(policy.compare_payload);
    case OptionId::HASH_ALGORITHM: return word(policy.hash_algorithm);
    case OptionId::HASH_KEY: return word(policy.hash_key);
    case OptionId::WAIT: return format_duration(policy.wait, buffer);
    case OptionId::LEASE: return format_duration(policy.lease, buffer);
    case OptionId::GRACE: return format_duration(policy.grace, buffer);
    case OptionId::ON_STALE: return word(policy.on_stale);
    case OptionId::TTL: return format_duration(policy.ttl, buffer);
    case OptionId::TOMBSTONE_TTL: return format_duration(policy.tombstone_ttl, buffer);
    case OptionId::ENTITY_ORDER: return word(policy.entity_order);
    case OptionId::ON_STATUS: format_status_map(policy.on_status, out); return out.text();
    case OptionId::HANDLER_ERROR: return word(policy.handler_error);
    case OptionId::BODY_MAX: return number(policy.body_max);
    case OptionId::REPLAY_HEADERS: out.add(std::string_view(policy.replay_headers)); return out.text();
    case OptionId::CONFLICT_DETAIL: return word(policy.conflict_detail);
    case OptionId::STORE_PAYLOAD: return word(policy.store_payload);
    case OptionId::CONFLICT_STATUS: return number(policy.conflict_status);
    case OptionId::IN_PROGRESS_STATUS: return number(policy.in_progress_status);
    case OptionId::MAX_WAITERS: return number(policy.max_waiters);
    case OptionId::CAPABILITIES_MIN: return number(policy.capabilities_min);
    case OptionId::SYNCHRONOUS_COMMIT: return truth(policy.synchronous_commit);
    case OptionId::KEY_CHARS:
    case OptionId::PROFILE:
    case OptionId::HANDLER:
    case OptionId::TARGET:
    case OptionId::INTENT:
    case OptionId::EFFECT:
    case OptionId::DESCRIPTION: return {};
    }
    return {};
}

std::string_view format_bound(const Option& option, std::int64_t bound, char* buffer) noexcept {
    switch (option.type) {
    case OptionType::INTERVAL: return format_duration(bound, buffer);
    case OptionType::INTEGER:
    case OptionType::TEXT:
    case OptionType::ARRAY: {
        Writer out{buffer, SHORT_TEXT_MAX};
        out.add_number(bound);
        if (!option.unit.empty()) {
            out.add(' ');
            out.add(bound == 1 ? std::string_view(option.unit.data(), option.unit.size() - 1) : option.unit);
        }
        return out.text();
    }
    case OptionType::ENUMERATION:
    case OptionType::BOOLEAN:
    case OptionType::OBJECT:
    case OptionType::DOCUMENT: return {};
    }
    return {};
}

} // namespace idem::core
