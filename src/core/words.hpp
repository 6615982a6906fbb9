// words.hpp: the words of the contract, each in one place: states, outcomes, reasons.
//
// Purpose: SQL, HTTP helper, documentation and tests use the same words; these are the enums behind them. The character
// of a State is what idem_keys stores and is frozen with the table.
#pragma once

#include "core/types.hpp"

namespace idem::core {

// State is what a committed key row says of its operation.
enum class State : char {
    IN_PROGRESS = 'i',
    COMPLETED = 'c',
    FAILED = 'f',
    RELEASED = 'r',
    INDETERMINATE = 'u',
};

// Outcome is what a verb answers.
enum class Outcome : std::uint8_t {
    CLAIMED,
    RESUMED,
    COMPLETED,
    REPLAY,
    IN_PROGRESS,
    CONFLICT,
    INDETERMINATE,
    EXPIRED,
    REJECTED,
    RELEASED,
    STALE, // an event older than what its entity has seen
    GAP,   // an event whose predecessor is missing
};

// state_word names a State as users read it.
constexpr const char* state_word(State state) noexcept {
    switch (state) {
    case State::IN_PROGRESS: return "in_progress";
    case State::COMPLETED: return "completed";
    case State::FAILED: return "failed";
    case State::RELEASED: return "released";
    case State::INDETERMINATE: return "indeterminate";
    }
    return nullptr;
}

// outcome_word names an Outcome as users read it.
constexpr const char* outcome_word(Outcome outcome) noexcept {
    switch (outcome) {
    case Outcome::CLAIMED: return "claimed";
    case Outcome::RESUMED: return "resumed";
    case Outcome::COMPLETED: return "completed";
    case Outcome::REPLAY: return "replay";
    case Outcome::IN_PROGRESS: return "in_progress";
    case Outcome::CONFLICT: return "conflict";
    case Outcome::INDETERMINATE: return "indeterminate";
    case Outcome::EXPIRED: return "expired";
    case Outcome::REJECTED: return "rejected";
    case Outcome::RELEASED: return "released";
    case Outcome::STALE: return "stale";
    case Outcome::GAP: return "gap";
    }
    return nullptr;
}

// proceeds tells whether the caller is to do the work: the one question a client asks.
constexpr bool proceeds(Outcome outcome) noexcept {
    return outcome == Outcome::CLAIMED || outcome == Outcome::RESUMED;
}

// is_state tells whether a stored character is a State; anything else is damage.
constexpr bool is_state(char c) noexcept {
    return state_word(static_cast<State>(c)) != nullptr;
}

// is_terminal tells whether an answer is stored for a State.
constexpr bool is_terminal(State state) noexcept {
    return state == State::COMPLETED || state == State::FAILED;
}

} // namespace idem::core
