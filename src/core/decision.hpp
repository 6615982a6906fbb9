// decision.hpp: what a committed key row means for whoever asks. The whole policy of the contract, in three functions.
//
// Purpose: no clock, no lock, no table; the caller brings the row, the request, the rules and `now`, and gets one
// verdict. Everything about concurrency (uncommitted rivals, waiting, re-reading) happens before a row gets here: a
// judged row is committed, or written by the caller's own transaction.
#pragma once

#include "core/types.hpp"
#include "core/words.hpp"

namespace idem::core {

// RowFacts is the part of a key row that decides.
struct RowFacts {
    State state;
    Token token;
    Timestamp lease_until;
    Timestamp expires_at; // only for states that expire: completed, failed, released
    bool payload_matches; // under the row's own algorithm and profile
    bool attempt_matches; // the asker shows the attempt_id that claimed it
};

// ClaimRules is the part of a policy that decides; durations in microseconds.
struct ClaimRules {
    Duration grace;
    Duration tombstone_ttl;
    bool retry_stale;
    bool compare_payload;
};

// ClaimVerdict is what a claim finds. The last four let the asker acquire the key with a greater token.
enum class ClaimVerdict : std::uint8_t {
    EXPIRED,
    CONFLICT,
    REPLAY,
    RUNNING,
    INDETERMINATE,
    RESUME,
    TAKE_OVER,
    RECLAIM,
    NEW_LIFE,
};

// acquires tells whether a verdict ends in a new acquisition of the key.
constexpr bool acquires(ClaimVerdict verdict) noexcept {
    return verdict >= ClaimVerdict::RESUME;
}

// is_lapsed tells whether a running claim is judged dead: lease and grace are over.
constexpr bool is_lapsed(State state, Timestamp lease_until, Duration grace, Timestamp now) noexcept {
    return state == State::IN_PROGRESS && now >= lease_until + grace;
}

// is_expired tells whether the answer (or the memory of a release) has outlived its ttl.
constexpr bool is_expired(State state, Timestamp expires_at, Timestamp now) noexcept {
    return (is_terminal(state) || state == State::RELEASED) && now >= expires_at;
}

// judge_claim decides what a claim of an existing key is answered, in the order of the contract: ttl, payload, answer,
// running, stale, released.
constexpr ClaimVerdict judge_claim(const RowFacts& row, const ClaimRules& rules, Timestamp now) noexcept {
    if (is_expired(row.state, row.expires_at, now)) {
        const bool remembered = is_terminal(row.state) && now < row.expires_at + rules.tombstone_ttl;
        return remembered ? ClaimVerdict::EXPIRED : ClaimVerdict::NEW_LIFE;
    }
    if (rules.compare_payload && !row.payload_matches)
        return ClaimVerdict::CONFLICT;
    switch (row.state) {
    case State::COMPLETED:
    case State::FAILED: return ClaimVerdict::REPLAY;
    case State::RELEASED: return ClaimVerdict::RECLAIM;
    case State::INDETERMINATE: return ClaimVerdict::INDETERMINATE;
    case State::IN_PROGRESS: break;
    }
    if (is_lapsed(row.state, row.lease_until, rules.grace, now))
        return rules.retry_stale ? ClaimVerdict::TAKE_OVER : ClaimVerdict::INDETERMINATE;
    return row.attempt_matches ? ClaimVerdict::RESUME : ClaimVerdict::RUNNING;
}

// HolderVerdict is what a verb that shows a token finds.
enum class HolderVerdict : std::uint8_t {
    ACCEPT, // the token holds the key
    REPEAT, // the key already ended under this very token: compare the answers
    STALE,  // somebody else holds or ended it
};

// judge_holder decides whether a token may still end the work. A lapsed or indeterminate claim still belongs to its
// last token: a late answer is better than none.
constexpr HolderVerdict judge_holder(State state, Token held, Token shown) noexcept {
    if (!(held == shown))
        return HolderVerdict::STALE;
    switch (state) {
    case State::IN_PROGRESS:
    case State::INDETERMINATE: return HolderVerdict::ACCEPT;
    case State::COMPLETED:
    case State::FAILED: return HolderVerdict::REPEAT;
    case State::RELEASED: return HolderVerdict::STALE;
    }
    return HolderVerdict::STALE;
}

// next_token makes the token of a new acquisition: greater than the old one and not behind the clock. `random` widens
// the step, so that an acquisition lost in a failover does not come again with the same number, and a time that is
// shown does not give the token away.
constexpr Token next_token(Token old, std::uint16_t random, Timestamp now) noexcept {
    const std::int64_t least = old.value + 1 > now ? old.value + 1 : now;
    return Token{least + random};
}

} // namespace idem::core
