// policy_test.cpp: the option table against its own rules, presets, and every text form of an option.
#include "core/policy.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

namespace {

using namespace idem::core;

static_assert(std::is_trivially_copyable_v<Policy>);

constexpr Preset PRESETS[] = {Preset::DEFAULT, Preset::PAYMENT, Preset::ORDER,
                              Preset::WEBHOOK, Preset::MESSAGE, Preset::EPHEMERAL};

OptionFault set(Policy& policy, std::string_view name, std::string_view text) {
    const Option* option = find_option(name);
    EXPECT_NE(option, nullptr) << name;
    return apply_option(policy, *option, text);
}

OptionFault fault(std::string_view name, std::string_view text) {
    Policy policy;
    return set(policy, name, text);
}

std::string formatted(const Policy& policy, const Option& option) {
    char buffer[OPTION_TEXT_MAX];
    return std::string(format_option(policy, option, buffer));
}

Duration duration(std::string_view text) {
    Duration out = -1;
    EXPECT_EQ(parse_duration(text, &out), OptionFault::NONE) << text;
    return out;
}

OptionFault duration_fault(std::string_view text) {
    Duration out = -1;
    return parse_duration(text, &out);
}

TEST(PolicyTable, NamesAreUniqueAndFound) {
    std::set<std::string_view> names;
    for (const Option& option : OPTIONS) {
        EXPECT_TRUE(names.insert(option.name).second) << option.name;
        EXPECT_EQ(find_option(option.name), &option);
        EXPECT_FALSE(option.meaning.empty());
        EXPECT_LE(option.min, option.max);
    }
    EXPECT_EQ(find_option("leese"), nullptr);
    EXPECT_EQ(find_option(""), nullptr);
}

TEST(PolicyTable, EveryDefaultIsWithinItsBoundsAndInItsNormalForm) {
    for (const Option& option : OPTIONS) {
        for (const Preset preset : PRESETS) {
            Policy policy;
            const std::string_view text = option.defaults[static_cast<std::size_t>(preset)];
            EXPECT_EQ(apply_option(policy, option, text), OptionFault::NONE) << option.name << ' ' << text;
            if (!keeps_text(option.id)) {
                EXPECT_EQ(apply_option(policy, option, formatted(policy, option)), OptionFault::NONE);
            }
            if (!keeps_text(option.id) && option.type != OptionType::OBJECT) {
                EXPECT_EQ(formatted(policy, option), text) << option.name;
            }
        }
    }
}

TEST(PolicyTable, AnOpWithoutPolicyHasTheDefaultColumn) {
    EXPECT_TRUE(preset_policy(Preset::DEFAULT) == Policy{});
    EXPECT_EQ(Policy{}.version, 0);
}

TEST(PolicyTable, BoundsAreWrittenForPeople) {
    const auto bound = [](std::string_view name, bool upper) {
        char buffer[SHORT_TEXT_MAX];
        const Option& option = *find_option(name);
        return std::string(format_bound(option, upper ? option.max : option.min, buffer));
    };
    EXPECT_EQ(bound("key_min", false), "1 byte");
    EXPECT_EQ(bound("key_min", true), "255 bytes");
    EXPECT_EQ(bound("max_waiters", true), "10000 sessions");
    EXPECT_EQ(bound("wait", false), "0 seconds");
    EXPECT_EQ(bound("ttl", true), "90 days");
    EXPECT_EQ(bound("mode", true), "");
    EXPECT_EQ(bound("on_status", true), "");
}

TEST(PolicyTable, PresetNames) {
    for (const Preset preset : PRESETS) {
        Preset found{};
        EXPECT_TRUE(find_preset(preset_name(preset), &found));
        EXPECT_EQ(found, preset);
    }
    Preset found{};
    EXPECT_FALSE(find_preset("", &found));
    EXPECT_FALSE(find_preset("Payment", &found));
    EXPECT_FALSE(find_preset("pay", &found));
    EXPECT_FALSE(find_preset("default,payment", &found));
}

TEST(PolicyTable, PresetsOfTheDesign) {
    const Policy payment = preset_policy(Preset::PAYMENT);
    EXPECT_EQ(payment.mode, Mode::LEASE);
    EXPECT_EQ(payment.key_min, 16);
    EXPECT_TRUE(payment.payload_required);
    EXPECT_EQ(payment.hash_algorithm, HashAlgorithm::SHA256);
    EXPECT_EQ(payment.lease, 3 * MINUTE);
    EXPECT_EQ(payment.ttl, 72 * HOUR);
    EXPECT_EQ(payment.tombstone_ttl, 7 * DAY);
    EXPECT_EQ(payment.on_status.of(500), StatusVerdict::INDETERMINATE);
    EXPECT_EQ(payment.body_max, 65536);
    EXPECT_TRUE(payment.synchronous_commit);

    const Policy order = preset_policy(Preset::ORDER);
    EXPECT_EQ(order.mode, Mode::TRANSACTION);
    EXPECT_EQ(order.on_status.of(503), StatusVerdict::RELEASE);
    EXPECT_EQ(order.on_status.timeout, StatusVerdict::RELEASE);
    EXPECT_EQ(order.conflict_detail, ConflictDetail::FULL);
    EXPECT_EQ(order.store_payload, StorePayload::CANONICAL);
    EXPECT_TRUE(order.synchronous_commit);

    const Policy webhook = preset_policy(Preset::WEBHOOK);
    EXPECT_FALSE(webhook.compare_payload);
    EXPECT_EQ(webhook.wait, 0);
    EXPECT_EQ(webhook.on_stale, OnStale::RETRY);
    EXPECT_EQ(webhook.ttl, 30 * DAY);
    EXPECT_EQ(webhook.body_max, 0);

    const Policy message = preset_policy(Preset::MESSAGE);
    EXPECT_EQ(message.grace, MINUTE);
    EXPECT_EQ(message.on_status.timeout, StatusVerdict::INDETERMINATE);

    const Policy ephemeral = preset_policy(Preset::EPHEMERAL);
    EXPECT_EQ(ephemeral.grace, 0);
    EXPECT_EQ(ephemeral.ttl, 30 * MINUTE);
    EXPECT_EQ(ephemeral.conflict_detail, ConflictDetail::NONE);
}

TEST(PolicyOption, Enumerations) {
    Policy policy;
    EXPECT_EQ(set(policy, "mode", "lease"), OptionFault::NONE);
    EXPECT_EQ(policy.mode, Mode::LEASE);
    for (const char* bad : {"", "Lease", "lease ", "leas", "lease,transaction", "any,lease"}) {
        EXPECT_EQ(fault("mode", bad), OptionFault::MALFORMED) << bad;
    }
    EXPECT_EQ(set(policy, "conflict_status", "422"), OptionFault::NONE);
    EXPECT_EQ(policy.conflict_status, 422);
    EXPECT_EQ(fault("conflict_status", "425"), OptionFault::MALFORMED);
    EXPECT_EQ(set(policy, "in_progress_status", "425"), OptionFault::NONE);
    EXPECT_EQ(policy.in_progress_status, 425);
}

TEST(PolicyOption, Integers) {
    Policy policy;
    EXPECT_EQ(set(policy, "max_waiters", "10000"), OptionFault::NONE);
    EXPECT_EQ(policy.max_waiters, 10000);
    EXPECT_EQ(fault("max_waiters", "10001"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("max_waiters", "-1"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("max_waiters", "99999999999999999999999999"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("max_waiters", "1.5"), OptionFault::MALFORMED);
    EXPECT_EQ(fault("max_waiters", "1e3"), OptionFault::MALFORMED);
    EXPECT_EQ(fault("max_waiters", ""), OptionFault::MALFORMED);
    EXPECT_EQ(fault("max_waiters", "-"), OptionFault::MALFORMED);
    EXPECT_EQ(fault("key_min", "0"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("key_max", "256"), OptionFault::OUT_OF_RANGE);
}

TEST(PolicyOption, IntervalsKeepTheirLimits) {
    EXPECT_EQ(fault("wait", "1 min"), OptionFault::NONE);
    EXPECT_EQ(fault("wait", "60001 ms"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("lease", "24 h"), OptionFault::NONE);
    EXPECT_EQ(fault("lease", "24:00:01"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("ttl", "90 d"), OptionFault::NONE);
    EXPECT_EQ(fault("ttl", "999 ms"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("ttl", "91 days"), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("ttl", "3 months"), OptionFault::UNSTEADY_UNIT);
    EXPECT_EQ(fault("ttl", "86400"), OptionFault::NO_UNIT);
}

TEST(PolicyOption, BooleansAndTexts) {
    EXPECT_EQ(fault("payload_compare", "false"), OptionFault::NONE);
    EXPECT_EQ(fault("payload_compare", "f"), OptionFault::MALFORMED);
    EXPECT_EQ(fault("intent", std::string(1000, 'x')), OptionFault::NONE);
    EXPECT_EQ(fault("intent", std::string(1001, 'x')), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("intent", "two\nlines"), OptionFault::NONE);
    EXPECT_EQ(fault("intent", "a\x1b[31m"), OptionFault::MALFORMED);
}

TEST(PolicyOption, HandlersAreSchemaQualified) {
    Policy policy;
    EXPECT_EQ(set(policy, "handler", "shop.place_order"), OptionFault::NONE);
    EXPECT_STREQ(policy.handler, "shop.place_order");
    for (const char* good : {"", "\"My Shop\".\"place\"\"order\"", "a$1._b2", "sch\xc3\xa9ma.f"}) {
        EXPECT_EQ(fault("handler", good), OptionFault::NONE) << good;
    }
    for (const char* bad : {"f", "a.", ".f", "a.b.c", "a. f", "1a.f", "a.f(jsonb)", "\"a.f", "\"\".f", "a.\"f\"x"}) {
        EXPECT_EQ(fault("handler", bad), OptionFault::MALFORMED) << bad;
    }
    EXPECT_EQ(set(policy, "handler", ""), OptionFault::NONE);
    EXPECT_TRUE(policy == Policy{});
}

TEST(PolicyOption, ReplayHeaders) {
    Policy policy;
    EXPECT_TRUE(replays_header(policy, "Content-Type"));
    EXPECT_TRUE(replays_header(policy, "ETAG"));
    EXPECT_FALSE(replays_header(policy, "X-Request-Id"));
    EXPECT_FALSE(replays_header(policy, "content-type,etag"));
    EXPECT_FALSE(replays_header(policy, ""));
    EXPECT_EQ(set(policy, "replay_headers", "X-Request-Id, content-type,x-request-ID"), OptionFault::NONE);
    EXPECT_STREQ(policy.replay_headers, "x-request-id,content-type");
    EXPECT_TRUE(replays_header(policy, "x-request-id"));
    EXPECT_FALSE(replays_header(policy, "ETag"));
    EXPECT_EQ(set(policy, "replay_headers", ""), OptionFault::NONE);
    EXPECT_FALSE(replays_header(policy, "content-type"));
    EXPECT_FALSE(replays_header(policy, ""));
    for (const char* refused : {"Set-Cookie", "www-authenticate", "etag,SET-COOKIE2", "proxy-authenticate"}) {
        EXPECT_EQ(fault("replay_headers", refused), OptionFault::FORBIDDEN) << refused;
    }
    for (const char* bad : {"a b", "a:", ",", "a,,b", "caf\xc3\xa9"}) {
        EXPECT_EQ(fault("replay_headers", bad), OptionFault::MALFORMED) << bad;
    }
    EXPECT_EQ(fault("replay_headers", std::string(600, 'x')), OptionFault::OUT_OF_RANGE);
    EXPECT_EQ(fault("replay_headers", std::string(300, 'x') + "," + std::string(300, 'y')), OptionFault::OUT_OF_RANGE);
}

TEST(PolicyStatus, DefaultVerdicts) {
    const StatusMap map;
    for (const int status : {200, 201, 204, 299, 301, 400, 404, 422, 499}) {
        EXPECT_EQ(map.of(status), StatusVerdict::STORE) << status;
    }
    for (const int status : {408, 409, 425, 429}) {
        EXPECT_EQ(map.of(status), StatusVerdict::RELEASE) << status;
    }
    for (const int status : {-1, 0, 99, 100, 199, 500, 599, 600, 1000}) {
        EXPECT_EQ(map.of(status), StatusVerdict::INDETERMINATE) << status;
    }
    EXPECT_EQ(map.timeout, StatusVerdict::INDETERMINATE);
}

TEST(PolicyStatus, AStatusBeatsItsClassInAnyOrder) {
    for (const char* text : {"5xx=release,503=store", "503=store,5xx=release"}) {
        Policy policy;
        EXPECT_EQ(set(policy, "on_status", text), OptionFault::NONE);
        EXPECT_EQ(policy.on_status.of(500), StatusVerdict::RELEASE);
        EXPECT_EQ(policy.on_status.of(503), StatusVerdict::STORE);
        EXPECT_EQ(policy.on_status.of(429), StatusVerdict::RELEASE);
        EXPECT_EQ(policy.on_status.timeout, StatusVerdict::INDETERMINATE);
    }
}

TEST(PolicyStatus, AClassReplacesTheWholeClass) {
    Policy policy;
    EXPECT_EQ(set(policy, "on_status", "4xx=store"), OptionFault::NONE);
    EXPECT_EQ(policy.on_status.of(429), StatusVerdict::STORE);
}

TEST(PolicyStatus, NormalFormSurvivesARoundTrip) {
    const Option& option = *find_option("on_status");
    Policy policy;
    unsigned seed = 7;
    for (int round = 0; round < 50; round++) {
        for (int status = 200; status <= STATUS_LAST; status++) {
            seed = seed * 1103515245u + 12345u;
            policy.on_status.set_range(status, status, static_cast<StatusVerdict>((seed >> 16) % 3));
        }
        policy.on_status.timeout = static_cast<StatusVerdict>(round % 3);
        const std::string text = formatted(policy, option);
        ASSERT_LT(text.size(), OPTION_TEXT_MAX);
        Policy again;
        EXPECT_EQ(apply_option(again, option, text), OptionFault::NONE);
        EXPECT_TRUE(again.on_status == policy.on_status);
        EXPECT_EQ(formatted(again, option), text);
    }
}

TEST(PolicyStatus, FaultsAreTold) {
    for (const char* bad : {"6xx=store", "1xx=store", "100=store", "20=store", "2000=store", "2x4=store", "5XX=store",
                            "503", "503=", "503=Store", "503=drop", "=store", "timeouts=store"}) {
        EXPECT_EQ(fault("on_status", bad), OptionFault::MALFORMED) << bad;
    }
}

TEST(PolicyDuration, Forms) {
    EXPECT_EQ(duration("0"), 0);
    EXPECT_EQ(duration("5 s"), 5 * SECOND);
    EXPECT_EQ(duration("5s"), 5 * SECOND);
    EXPECT_EQ(duration(" 5  Seconds "), 5 * SECOND);
    EXPECT_EQ(duration("@ 1 hour 30 mins"), 90 * MINUTE);
    EXPECT_EQ(duration("1.5 hours"), 90 * MINUTE);
    EXPECT_EQ(duration(".25 s"), 250 * MILLISECOND);
    EXPECT_EQ(duration("0.000001 s"), 1);
    EXPECT_EQ(duration("00:00:05"), 5 * SECOND);
    EXPECT_EQ(duration("3 days 04:05:06.7"), 3 * DAY + 4 * HOUR + 5 * MINUTE + 6700 * MILLISECOND);
    EXPECT_EQ(duration("72:00"), 72 * HOUR);
    EXPECT_EQ(duration("PT5M"), 5 * MINUTE);
    EXPECT_EQ(duration("P3DT4H5M6.5S"), 3 * DAY + 4 * HOUR + 5 * MINUTE + 6500 * MILLISECOND);
    EXPECT_EQ(duration("P1W"), 7 * DAY);
    EXPECT_EQ(duration("2 weeks"), 14 * DAY);
    EXPECT_EQ(duration("250 ms"), 250 * MILLISECOND);
}

TEST(PolicyDuration, Faults) {
    for (const char* bad : {"", " ", "soon", "5 parsecs", "s", "P", "PT", "P5", "PT5X", "P5H", "1:2", "00:60:00",
                            "00:00:60", ":05:00", "5,s", "1..5 s", ". s", "5 s!", "P3DT"}) {
        EXPECT_EQ(duration_fault(bad), OptionFault::MALFORMED) << bad;
    }
    for (const char* bare : {"5", "1.5", "5 s 3"}) {
        EXPECT_EQ(duration_fault(bare), OptionFault::NO_UNIT) << bare;
    }
    for (const char* unsteady : {"1 month", "1 year 2 days", "2 mons", "P1M", "P1Y"}) {
        EXPECT_EQ(duration_fault(unsteady), OptionFault::UNSTEADY_UNIT) << unsteady;
    }
    for (const char* range : {"-5 s", "9999999999999999999 s", "999999999999999 weeks", "-00:00:05"}) {
        EXPECT_EQ(duration_fault(range), OptionFault::OUT_OF_RANGE) << range;
    }
}

TEST(PolicyDuration, NormalForm) {
    const auto normal = [](Duration value) {
        char buffer[SHORT_TEXT_MAX];
        return std::string(format_duration(value, buffer));
    };
    EXPECT_EQ(normal(0), "0 seconds");
    EXPECT_EQ(normal(SECOND), "1 second");
    EXPECT_EQ(normal(90 * SECOND), "90 seconds");
    EXPECT_EQ(normal(72 * HOUR), "3 days");
    EXPECT_EQ(normal(25 * HOUR), "25 hours");
    EXPECT_EQ(normal(1500 * MILLISECOND), "1500 milliseconds");
    EXPECT_EQ(normal(1), "1 microsecond");
    for (const Duration value : {Duration{1}, 1234567 * SECOND, 90 * DAY, 61 * MINUTE, Duration{86399999999}}) {
        EXPECT_EQ(duration(normal(value)), value);
    }
}

// contents lists the bytes of a class; "!" where the class is refused.
std::string contents(std::string_view text) {
    ByteSet set_of_bytes;
    if (!parse_byte_class(text, &set_of_bytes)) {
        return "!";
    }
    std::string out;
    for (int byte = 0; byte < 256; byte++) {
        if (set_of_bytes.contains(static_cast<std::uint8_t>(byte))) {
            out += static_cast<char>(byte);
        }
    }
    return out;
}

TEST(PolicyKeyChars, Classes) {
    EXPECT_EQ(contents("abc"), "abc");
    EXPECT_EQ(contents("a-e"), "abcde");
    EXPECT_EQ(contents("-a"), "-a");
    EXPECT_EQ(contents("a-"), "-a");
    EXPECT_EQ(contents("a-c-"), "-abc");
    EXPECT_EQ(contents("\\-\\]\\\\"), "-\\]");
    EXPECT_EQ(contents(" -\""), " !\"");
    EXPECT_EQ(contents("A-Za-z0-9_.:-").size(), 66u);
    EXPECT_EQ(contents("").size(), 256u);
}

TEST(PolicyKeyChars, Faults) {
    for (const char* bad : {"z-a", "[a-z]", "^a", "a^", "\\", "\\d", "a-\\d", "\x1f", "\x7f", "caf\xc3\xa9", "a--b"}) {
        EXPECT_EQ(contents(bad), "!") << bad;
    }
}

TEST(PolicyKeyChars, KeysAreBytesOfTheClass) {
    const Policy payment = preset_policy(Preset::PAYMENT);
    EXPECT_TRUE(key_has_only(payment.key_chars, "pay_0123.4:5-6"));
    EXPECT_FALSE(key_has_only(payment.key_chars, "pay 1"));
    EXPECT_FALSE(key_has_only(payment.key_chars, std::string_view("a\0b", 3)));
    EXPECT_FALSE(key_has_only(payment.key_chars, "caf\xc3\xa9"));
    EXPECT_TRUE(key_has_only(Policy{}.key_chars, "any \xff\x01 byte"));
}

} // namespace
