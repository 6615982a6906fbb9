// lookup.cpp: see lookup.hpp.
#include "core/decision.hpp"
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/detail.hpp"
#include "engine/lookup.hpp"
#include "engine/rules.hpp"
#include "pg/server.hpp"
#include "pg/key_table.hpp"
#include "pg/policy_cache.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

namespace {

Result unknown() {
    Result result{};
    result.known = false;
    return result;
}

Result with_evidence(const pg::KeyRow& row, core::Outcome outcome, core::State state) {
    Result result = result_of_row(row, outcome, state);
    result.checkpoint = copy_jsonb(row.checkpoint);
    Detail detail;
    add_json(detail, "evidence", row.evidence);
    result.detail = finish(detail);
    return result;
}

Result look(const pg::Installation& installation, pg::KeyReader& reader, const core::OperationId& id);

Result describe(const pg::Installation& installation, pg::KeyReader& reader, const pg::KeyRow& row) {
    core::Policy policy;
    (void)pg::load_policy(installation.policies, pg::bytes_of(row.op), &policy);
    const core::RowFacts facts{.state = row.state,
                               .token = row.token,
                               .lease_until = row.lease_until,
                               .expires_at = row.expires_at,
                               .payload_matches = true,
                               .attempt_matches = false};
    switch (core::judge_claim(facts, claim_rules(policy), GetCurrentTimestamp())) {
    case core::ClaimVerdict::EXPIRED: return result_of_row(row, core::Outcome::EXPIRED, row.state);
    case core::ClaimVerdict::REPLAY: {
        Result result{};
        if (replay_result(installation, row, false, &result))
            return result;
        check_answer_gone(reader, row);
        return look(installation, reader, row.id);
    }
    case core::ClaimVerdict::NEW_LIFE: return unknown();
    case core::ClaimVerdict::RECLAIM: return with_evidence(row, core::Outcome::RELEASED, row.state);
    case core::ClaimVerdict::TAKE_OVER:
    case core::ClaimVerdict::INDETERMINATE: {
        Result result = with_evidence(row, core::Outcome::INDETERMINATE, core::State::INDETERMINATE);
        result.reason = reason_unknown(row);
        return result;
    }
    case core::ClaimVerdict::RUNNING:
    case core::ClaimVerdict::RESUME:
    case core::ClaimVerdict::CONFLICT: break;
    }
    Result result = with_evidence(row, core::Outcome::IN_PROGRESS, row.state);
    result.retry_after_s = RETRY_AFTER_S;
    return result;
}

// look asks again where the answer was swept between the look at the key and the look for the answer.
Result look(const pg::Installation& installation, pg::KeyReader& reader, const core::OperationId& id) {
    return pg::probe_snapshot(reader, id) ? describe(installation, reader, pg::read_row(reader)) : unknown();
}

} // namespace

Result lookup(const pg::Installation& installation, const core::OperationId& id) {
    pg::KeyReader reader = pg::open_reader(installation.keys, AccessShareLock);
    const Result result = look(installation, reader, id);
    pg::close_reader(reader);
    return result;
}

} // namespace idem::engine
