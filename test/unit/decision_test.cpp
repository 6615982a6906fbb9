// decision_test.cpp: judge_claim, judge_holder and next_token over every state and input that can differ.
// Covers A08 A09 A11 A14 A15 A32 B08 at the level of the decision.
#include "core/decision.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace idem::core {
namespace {

constexpr Timestamp NOW = 800'000'000 * SECOND;
const std::vector<State> STATES = {State::IN_PROGRESS, State::COMPLETED, State::FAILED, State::RELEASED,
                                   State::INDETERMINATE};

RowFacts row(State state) {
    return RowFacts{.state = state,
                    .token = Token{7},
                    .lease_until = NOW + SECOND,
                    .expires_at = NOW + HOUR,
                    .payload_matches = true,
                    .attempt_matches = false};
}

constexpr ClaimRules RULES{.grace = 10 * SECOND, .tombstone_ttl = 0, .retry_stale = false, .compare_payload = true};

// expected answers judge_claim from the text of the contract, one sentence after the other, as slowly as it is written.
ClaimVerdict expected(const RowFacts& r, const ClaimRules& rules, Timestamp now) {
    const bool can_expire = r.state == State::COMPLETED || r.state == State::FAILED || r.state == State::RELEASED;
    if (can_expire && r.expires_at <= now) {
        if (r.state != State::RELEASED && rules.tombstone_ttl > 0 && now < r.expires_at + rules.tombstone_ttl)
            return ClaimVerdict::EXPIRED;
        return ClaimVerdict::NEW_LIFE;
    }
    if (rules.compare_payload && !r.payload_matches)
        return ClaimVerdict::CONFLICT;
    if (r.state == State::COMPLETED || r.state == State::FAILED)
        return ClaimVerdict::REPLAY;
    const bool alive = r.state == State::IN_PROGRESS && now < r.lease_until + rules.grace;
    if (alive && r.attempt_matches)
        return ClaimVerdict::RESUME;
    if (alive)
        return ClaimVerdict::RUNNING;
    if (r.state == State::IN_PROGRESS && rules.retry_stale)
        return ClaimVerdict::TAKE_OVER;
    if (r.state == State::IN_PROGRESS || r.state == State::INDETERMINATE)
        return ClaimVerdict::INDETERMINATE;
    return ClaimVerdict::RECLAIM;
}

TEST(JudgeClaim, EveryStateAndInput) {
    int cases = 0;
    for (State state : STATES)
        for (Duration lease : {-HOUR, -10 * SECOND, -10 * SECOND + 1, Duration{0}, SECOND})
            for (Duration expiry : {-HOUR, Duration{-1}, Duration{0}, Duration{1}, HOUR})
                for (bool payload : {false, true})
                    for (bool attempt : {false, true})
                        for (Duration tombstone : {Duration{0}, MINUTE, DAY})
                            for (bool retry : {false, true})
                                for (bool compare : {false, true}) {
                                    RowFacts r = row(state);
                                    r.lease_until = NOW + lease;
                                    r.expires_at = NOW + expiry;
                                    r.payload_matches = payload;
                                    r.attempt_matches = attempt;
                                    ClaimRules rules = RULES;
                                    rules.tombstone_ttl = tombstone;
                                    rules.retry_stale = retry;
                                    rules.compare_payload = compare;
                                    ASSERT_EQ(judge_claim(r, rules, NOW), expected(r, rules, NOW))
                                        << state_word(state) << " lease " << lease << " expiry " << expiry;
                                    ++cases;
                                }
    EXPECT_EQ(cases, 5 * 5 * 5 * 2 * 2 * 3 * 2 * 2);
}

TEST(JudgeClaim, ConflictOnEveryPathThatIsNotExpired) {
    for (State state : STATES) {
        RowFacts r = row(state);
        r.payload_matches = false;
        EXPECT_EQ(judge_claim(r, RULES, NOW), ClaimVerdict::CONFLICT) << state_word(state);
    }
}

TEST(JudgeClaim, LiveOrUnknownWorkNeverExpiresIntoAbsent) {
    for (State state : {State::IN_PROGRESS, State::INDETERMINATE}) {
        RowFacts r = row(state);
        r.expires_at = NOW - HOUR;
        r.lease_until = NOW - DAY;
        const ClaimVerdict verdict = judge_claim(r, RULES, NOW);
        EXPECT_FALSE(acquires(verdict)) << state_word(state);
    }
}

TEST(JudgeClaim, IndeterminateIsNeverRetriedEvenUnderRetry) {
    RowFacts r = row(State::INDETERMINATE);
    ClaimRules rules = RULES;
    rules.retry_stale = true;
    EXPECT_EQ(judge_claim(r, rules, NOW), ClaimVerdict::INDETERMINATE);
}

TEST(JudgeClaim, LeaseEndsExactlyAtLeasePlusGrace) {
    RowFacts r = row(State::IN_PROGRESS);
    EXPECT_EQ(judge_claim(r, RULES, r.lease_until + RULES.grace - 1), ClaimVerdict::RUNNING);
    EXPECT_EQ(judge_claim(r, RULES, r.lease_until + RULES.grace), ClaimVerdict::INDETERMINATE);
}

TEST(JudgeHolder, EveryState) {
    for (State state : STATES) {
        EXPECT_EQ(judge_holder(state, Token{7}, Token{6}), HolderVerdict::STALE) << state_word(state);
        EXPECT_EQ(judge_holder(state, Token{7}, Token{8}), HolderVerdict::STALE) << state_word(state);
    }
    EXPECT_EQ(judge_holder(State::IN_PROGRESS, Token{7}, Token{7}), HolderVerdict::ACCEPT);
    EXPECT_EQ(judge_holder(State::INDETERMINATE, Token{7}, Token{7}), HolderVerdict::ACCEPT);
    EXPECT_EQ(judge_holder(State::COMPLETED, Token{7}, Token{7}), HolderVerdict::REPEAT);
    EXPECT_EQ(judge_holder(State::FAILED, Token{7}, Token{7}), HolderVerdict::REPEAT);
    EXPECT_EQ(judge_holder(State::RELEASED, Token{7}, Token{7}), HolderVerdict::STALE);
}

TEST(NextToken, GreaterThanOldAndNotBehindTheClock) {
    for (std::int64_t old : {std::int64_t{0}, NOW - 1, NOW, NOW + DAY})
        for (std::uint16_t random : {std::uint16_t{0}, std::uint16_t{1}, std::uint16_t{65535}}) {
            const Token next = next_token(Token{old}, random, NOW);
            EXPECT_GT(next.value, old);
            EXPECT_GE(next.value, NOW);
            EXPECT_LT(next.value, std::int64_t{1} << 53);
        }
}

TEST(Words, EveryStateHasOneAndNothingElseIsOne) {
    int states = 0;
    for (int c = 0; c < 128; ++c)
        states += is_state(static_cast<char>(c)) ? 1 : 0;
    EXPECT_EQ(states, 5);
}

TEST(Words, OnlyClaimedAndResumedProceed) {
    for (int o = 0; o <= static_cast<int>(Outcome::RELEASED); ++o) {
        const auto outcome = static_cast<Outcome>(o);
        EXPECT_EQ(proceeds(outcome), outcome == Outcome::CLAIMED || outcome == Outcome::RESUMED);
        EXPECT_NE(outcome_word(outcome), nullptr);
    }
}

} // namespace
} // namespace idem::core
