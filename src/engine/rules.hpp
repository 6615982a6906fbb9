// rules.hpp: small questions that several verbs ask of a policy, a row or the session.
#pragma once

#include "core/decision.hpp"
#include "core/policy.hpp"
#include "core/types.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"
#include "pg/key_table.hpp"

namespace idem::engine {

// RETRY_AFTER_S is what a client that must come back is told: soon, because work that runs may end at any moment.
inline constexpr std::int32_t RETRY_AFTER_S = 1;

// claim_rules is the part of a policy that decides what a claim finds.
inline core::ClaimRules claim_rules(const core::Policy& policy) {
    return core::ClaimRules{.grace = policy.grace,
                            .tombstone_ttl = policy.tombstone_ttl,
                            .retry_stale = policy.on_stale == core::OnStale::RETRY,
                            .compare_payload = policy.compare_payload};
}

// current_statement tells statements of one transaction apart, also inside functions.
inline CommandId current_statement() {
    return ActiveSnapshotSet() ? GetActiveSnapshot()->curcid : InvalidCommandId;
}

// reason_unknown says why the fate of an operation is unknown: somebody reported it so, or its lease ran out, which the
// sweep writes down as evidence.
const char* reason_unknown(const pg::KeyRow& row);

// detail_of_answer says of a stored answer what the frozen columns cannot: the same for the first answer and each
// replay, but for payload_differs. Null where there is nothing to say.
Jsonb* detail_of_answer(const pg::KeyRow& row, Jsonb* evidence, const pg::Answer& answer, bool payload_differs);

// replay_result answers with the stored answer of a completed or failed key. False when it is not there.
bool replay_result(const pg::Installation& installation, const pg::KeyRow& row, bool payload_differs, Result* result);

// check_answer_gone is for a key that was found answered and whose answer was not there then: it may have ended in
// between and been swept, and the caller looks again. Raises XX001 where the key is still the same.
void check_answer_gone(pg::KeyReader& reader, const pg::KeyRow& row);

} // namespace idem::engine
