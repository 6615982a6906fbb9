// inbox.cpp: see inbox.hpp.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/claim.hpp"
#include "engine/detail.hpp"
#include "engine/finish.hpp"
#include "engine/inbox.hpp"
#include "pg/server.hpp"
#include "pg/helpers.hpp"
#include "pg/policy_cache.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

namespace {

constexpr Oid ADVANCE_TYPES[] = {TEXTOID, TEXTOID, TEXTOID, INT8OID,     BOOLOID,
                                 BOOLOID, TEXTOID, TEXTOID, INTERVALOID, JSONBOID};
constexpr Oid SETTLE_TYPES[] = {TEXTOID, TEXTOID, TEXTOID, TEXTOID};

bool in_order(const core::Policy& policy) {
    return policy.entity_order == core::EntityOrder::STRICT;
}

pg::Helper prepare_settle(const pg::Installation& installation) {
    return pg::prepare_helper(installation.schema, "idem_inbox_settle", SETTLE_TYPES, lengthof(SETTLE_TYPES));
}

// settle moves the mark past an event that ended, and takes it out of the parked ones.
void settle(const pg::Helper& helper, const Event& event) {
    const NullableDatum arguments[] = {pg::given(event.claim.actor), pg::given(event.source), pg::given(event.event_id),
                                       pg::given(event.dedup_id)};
    (void)pg::call_helper(helper, arguments);
}

// advance moves the entity's mark where the event may pass, parks it where it may not, and returns the mark before.
std::int64_t advance(const Inbox& inbox, const Event& event) {
    const NullableDatum arguments[] = {pg::given(event.claim.actor),
                                       pg::given(event.source),
                                       pg::given(event.entity),
                                       {Int64GetDatum(event.seq), false},
                                       {BoolGetDatum(in_order(inbox.claims.policy)), false},
                                       {BoolGetDatum(inbox.leased), false},
                                       pg::given(event.event_id),
                                       pg::given(event.dedup_id),
                                       event.dedup_window,
                                       pg::given(event.claim.payload)};
    return DatumGetInt64(pg::call_helper(inbox.advance, arguments).value);
}

Jsonb* place_of(const Event& event, std::int64_t mark, const char* outcome) {
    Detail detail;
    if (outcome != nullptr)
        add_text(detail, "outcome", core::Bytes{outcome});
    add_integer(detail, "seq", event.seq);
    add_integer(detail, "watermark", mark);
    return finish(detail);
}

GivenAnswer received() {
    GivenAnswer given{};
    given.has_status = true;
    given.status = 200;
    return given;
}

Result stale(const Inbox& inbox, const Event& event, const core::OperationId& id, core::Token token,
             std::int64_t mark) {
    Jsonb* evidence = place_of(event, mark, core::outcome_word(core::Outcome::STALE));
    Result result = complete(inbox.claims.installation, id, token, received(), evidence);
    result.outcome = core::Outcome::STALE;
    result.detail = place_of(event, mark, nullptr);
    return result;
}

Result parked(const Inbox& inbox, const Event& event, const core::OperationId& id, core::Token token,
              std::int64_t mark) {
    Result result = release(inbox.claims.installation, id, token);
    result.outcome = core::Outcome::GAP;
    result.detail = place_of(event, mark, nullptr);
    return result;
}

} // namespace

Inbox open_inbox(const pg::Installation& installation, const text* op, bool leased, const char* function) {
    Inbox inbox{};
    inbox.claims = begin_claims(installation, op, NOT_GIVEN, function);
    inbox.claims.policy.mode = leased ? core::Mode::LEASE : core::Mode::TRANSACTION;
    inbox.leased = leased;
    if (inbox.claims.policy.entity_order != core::EntityOrder::NONE)
        inbox.advance =
            pg::prepare_helper(installation.schema, "idem_inbox_advance", ADVANCE_TYPES, lengthof(ADVANCE_TYPES));
    if (in_order(inbox.claims.policy))
        inbox.settle = prepare_settle(installation);
    return inbox;
}

void close_inbox(Inbox& inbox) {
    end_claims(inbox.claims);
}

Result claim_event(Inbox& inbox, const Event& event, const core::OperationId& id) {
    const Result result = claim(inbox.claims, event.claim, id);
    // It ended otherwise than by idem_inbox_complete; what comes after it must not wait for ever.
    if (result.outcome == core::Outcome::REPLAY && event.entity != nullptr && in_order(inbox.claims.policy))
        settle(inbox.settle, event);
    return result;
}

Result put_in_order(Inbox& inbox, const Event& event, const core::OperationId& id, const Result& claimed) {
    if (event.entity != nullptr && inbox.claims.policy.entity_order != core::EntityOrder::NONE) {
        const std::int64_t mark = advance(inbox, event);
        if (event.seq <= mark)
            return stale(inbox, event, id, claimed.token, mark);
        if (in_order(inbox.claims.policy) && event.seq - 1 > mark)
            return parked(inbox, event, id, claimed.token, mark);
    }
    if (inbox.leased)
        return claimed;
    Result result = complete(inbox.claims.installation, id, claimed.token, received());
    result.outcome = claimed.outcome;
    result.token = claimed.token;
    return result;
}

Result complete_event(const pg::Installation& installation, const Event& event, const core::OperationId& id,
                      core::Token token, text* effect_ref) {
    GivenAnswer given = received();
    given.body_ref = effect_ref;
    check_answer(given);
    const Result result = complete(installation, id, token, given);
    core::Policy policy;
    (void)pg::load_policy(installation.policies, pg::bytes_of(event.claim.op), &policy);
    if (in_order(policy))
        settle(prepare_settle(installation), event);
    return result;
}

} // namespace idem::engine
