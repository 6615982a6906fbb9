// claim.cpp: see claim.hpp.
#include "core/decision.hpp"
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/claim.hpp"
#include "engine/detail.hpp"
#include "engine/identity.hpp"
#include "engine/payload.hpp"
#include "engine/rules.hpp"
#include "pg/server.hpp"
#include "pg/children.hpp"
#include "pg/errors.hpp"
#include "pg/lease_queue.hpp"
#include "pg/open_claims.hpp"
#include "pg/policy_cache.hpp"
#include "pg/profile_cache.hpp"
#include "pg/settings.hpp"
#include "pg/varlena.hpp"
#include "pg/wakeup.hpp"

namespace idem::engine {

using pg::bytes_of;

namespace {

constexpr std::size_t PAYLOAD_MAX = 1024 * 1024;
constexpr int INSERT_ROUNDS_MAX = 1000;
constexpr core::Duration WAIT_WITHOUT_PRELOAD = 2 * core::SECOND;
constexpr core::Duration ROW_LOCK_POLL = 5 * core::MILLISECOND;
constexpr std::size_t WINNER_TEXT_MAX = 16 * 1024;

// Hashed is the digest of a request under the version that was last asked for.
struct Hashed {
    core::Digest digest;
    std::int32_t version;
    bool known;
};

// Attempt is one claim under way. The request is hashed when it is first compared or kept, and only under the version
// that needs it: a retry depends on no other rules than its key's own.
struct Attempt {
    ClaimSession& session;
    const ClaimRequest& request;
    const core::OperationId& id;
    Hashed& hashed;
    core::Timestamp now;
};

// Step is what one look at the key came to.
enum class Step : std::uint8_t { ANSWER, WAIT, AGAIN };

struct Look {
    Step step;
    Result result;         // for ANSWER, and for WAIT when the time is over
    TransactionId holder;  // for WAIT: the transaction waited for, if any
    core::Timestamp until; // for WAIT: look again then at the latest
};

const pg::ProfileRules& rules_of(const ClaimSession& session, const ClaimRequest& request, std::int32_t version) {
    return pg::find_profile(session.installation.profiles, session.installation.secrets, bytes_of(request.op), version);
}

core::Digest digest_under(const Attempt& attempt, std::int32_t version) {
    Hashed& hashed = attempt.hashed;
    if (!hashed.known || hashed.version != version) {
        const ClaimRequest& request = attempt.request;
        const Payload payload{request.payload, request.payload_bytes, request.target};
        hashed.digest = digest_payload(payload, request.actor, rules_of(attempt.session, request, version));
        hashed.version = version;
        hashed.known = true;
    }
    return hashed.digest;
}

// payload_matches compares under the version the key was hashed under, so that a changed policy makes no conflicts.
bool payload_matches(const Attempt& attempt, const pg::KeyRow& row) {
    return row.payload_hash == digest_under(attempt, row.profile);
}

bool attempt_matches(const ClaimRequest& request, const pg::KeyRow& row) {
    return request.attempt_id != nullptr && row.attempt_id != nullptr &&
           std::memcmp(request.attempt_id->data, row.attempt_id->data, UUID_LEN) == 0;
}

core::ClaimVerdict judge(const Attempt& attempt, const pg::KeyRow& row) {
    const core::RowFacts facts{.state = row.state,
                               .token = row.token,
                               .lease_until = row.lease_until,
                               .expires_at = row.expires_at,
                               .payload_matches = payload_matches(attempt, row),
                               .attempt_matches = attempt_matches(attempt.request, row)};
    return core::judge_claim(facts, claim_rules(attempt.session.policy), attempt.now);
}

void check_identity(const Attempt& attempt, const pg::KeyRow& row) {
    if (bytes_of(row.actor) != bytes_of(attempt.request.actor) || bytes_of(row.op) != bytes_of(attempt.request.op) ||
        bytes_of(row.key) != bytes_of(attempt.request.key))
        pg::error_identity_mismatch(attempt.id);
}

std::uint16_t random_step() {
    return static_cast<std::uint16_t>(pg_prng_uint32(&pg_global_prng_state));
}

// claimed_by names this session for people: application name (or user) and process id.
text* claimed_by() {
    const char* name = application_name != nullptr && application_name[0] != '\0'
                           ? application_name
                           : GetUserNameFromId(GetSessionUserId(), true);
    return cstring_to_text(psprintf("%s/%d", name == nullptr ? "unknown" : name, MyProcPid));
}

// --- answers -------------------------------------------------------------------------------------------------------

Result answer_without_row(const Attempt& attempt, core::Outcome outcome, const char* reason) {
    Result result{};
    result.outcome = outcome;
    result.id = attempt.id;
    result.has_id = true;
    result.key = attempt.request.key;
    result.reason = reason;
    return result;
}

Result in_progress(const Attempt& attempt, const char* reason) {
    Result result = answer_without_row(attempt, core::Outcome::IN_PROGRESS, reason);
    result.state = core::state_word(core::State::IN_PROGRESS);
    result.retry_after_s = RETRY_AFTER_S;
    if (attempt.session.policy.in_progress_status != 409) {
        Detail detail;
        add_integer(detail, "http_status", attempt.session.policy.in_progress_status);
        result.detail = finish(detail);
    }
    return result;
}

// add_bounded adds a text of the winner's, or says that it is too long to be told. The texts are what was stored: a
// stored number such as 1e131071 is short, and so is what is sent.
void add_bounded(Detail& detail, const char* name, const char* omitted, core::Bytes value) {
    if (value.size() <= WINNER_TEXT_MAX)
        add_text(detail, name, value);
    else
        add_bool(detail, omitted, true);
}

// add_answer adds the winner's answer.
void add_answer(Detail& winner, const pg::Installation& installation, const pg::KeyRow& row) {
    pg::Answer answer{};
    if (!pg::read_answer(installation.responses, row.id, row.token, &answer))
        return;
    add_time(winner, "completed_at", row.completed_at);
    add_integer(winner, "status", answer.status);
    add_json(winner, "headers", answer.headers);
    if (answer.body != nullptr)
        add_bounded(winner, "body", "body_omitted", bytes_of(answer.body));
    if (answer.body_bytes != nullptr && bytes_of(answer.body_bytes).size() <= WINNER_TEXT_MAX)
        add_hex(winner, "body_hex", bytes_of(answer.body_bytes));
    else if (answer.body_bytes != nullptr)
        add_bool(winner, "body_omitted", true);
    add_text(winner, "body_ref", answer.body_ref);
}

// winner_of describes the row a conflicting request met, as far as the policy lets the client see.
Jsonb* winner_of(const Attempt& attempt, const pg::KeyRow& row) {
    const core::ConflictDetail level = attempt.session.policy.conflict_detail;
    if (level == core::ConflictDetail::NONE)
        return nullptr;
    Detail winner;
    add_text(winner, "state", core::Bytes{core::state_word(row.state)});
    add_time(winner, "claimed_at", row.created_at);
    add_hex(winner, "payload_hash",
            core::Bytes{reinterpret_cast<const char*>(row.payload_hash.bytes), row.payload_hash.size});
    if (level >= core::ConflictDetail::RESPONSE && core::is_terminal(row.state))
        add_answer(winner, attempt.session.installation, row);
    if (level == core::ConflictDetail::FULL && row.payload != nullptr)
        add_bounded(winner, "payload", "payload_omitted", bytes_of(row.payload));
    return finish(winner);
}

Result conflict(const Attempt& attempt, const pg::KeyRow& row) {
    Result result = answer_without_row(attempt, core::Outcome::CONFLICT, "payload_differs");
    Detail detail;
    if (attempt.session.policy.conflict_status != 409)
        add_integer(detail, "http_status", attempt.session.policy.conflict_status);
    if (attempt.session.policy.conflict_detail != core::ConflictDetail::NONE) {
        const core::Digest digest = digest_under(attempt, row.profile);
        add_hex(detail, "payload_hash", core::Bytes{reinterpret_cast<const char*>(digest.bytes), digest.size});
    }
    add_json(detail, "winner", winner_of(attempt, row));
    result.detail = finish(detail);
    return result;
}

bool replay(const Attempt& attempt, const pg::KeyRow& row, Result* result) {
    const bool differs = !attempt.session.policy.compare_payload && !payload_matches(attempt, row);
    return replay_result(attempt.session.installation, row, differs, result);
}

Result indeterminate(const pg::KeyRow& row) {
    Result result = result_of_row(row, core::Outcome::INDETERMINATE, core::State::INDETERMINATE);
    result.reason = reason_unknown(row);
    return result;
}

Result expired(const pg::KeyRow& row) {
    return result_of_row(row, core::Outcome::EXPIRED, row.state);
}

// --- acquiring -----------------------------------------------------------------------------------------------------

void open_session_writer(ClaimSession& session) {
    if (session.writer_open)
        return;
    session.writer = pg::open_writer_on(session.reader.rel, session.reader.index);
    session.writer_open = true;
}

core::Duration lease_of(const Attempt& attempt) {
    return attempt.request.lease == NOT_GIVEN ? attempt.session.policy.lease : attempt.request.lease;
}

void set_or_null(pg::TableWriter& writer, int column, const void* value) {
    writer.row->tts_values[column] = PointerGetDatum(value);
    writer.row->tts_isnull[column] = value == nullptr;
}

void set_digest(pg::TableWriter& writer, const core::Digest& digest) {
    if (digest.size == 0) {
        set_or_null(writer, pg::KEY_PAYLOAD_HASH, nullptr);
        return;
    }
    set_or_null(writer, pg::KEY_PAYLOAD_HASH,
                cstring_to_text_with_len(reinterpret_cast<const char*>(digest.bytes), digest.size));
}

bool is_traceparent(core::Bytes value) {
    constexpr core::Bytes FORM = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    if (value.size() != FORM.size())
        return false;
    for (std::size_t i = 0; i < value.size(); ++i) {
        const char c = value[i];
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (FORM[i] == '-' ? c != '-' : !hex)
            return false;
    }
    return true;
}

// set_life writes the columns that belong to one life of a key: set by an insert, and again after expiry.
void set_life(const Attempt& attempt, pg::TableWriter& writer) {
    const ClaimRequest& request = attempt.request;
    pg::set_column(writer, pg::KEY_CREATED_AT, TimestampTzGetDatum(attempt.now));
    pg::set_column(writer, pg::KEY_PROFILE, Int32GetDatum(attempt.session.policy.profile));
    set_digest(writer, digest_under(attempt, attempt.session.policy.profile));
    set_or_null(writer, pg::KEY_PARENT, request.parent);
    const bool traced = request.traceparent != nullptr && is_traceparent(bytes_of(request.traceparent));
    set_or_null(writer, pg::KEY_TRACEPARENT, traced ? request.traceparent : nullptr);
    set_or_null(writer, pg::KEY_CHECKPOINT, nullptr);
    set_or_null(writer, pg::KEY_EVIDENCE, nullptr);
    const bool keep =
        attempt.session.policy.store_payload == core::StorePayload::CANONICAL && request.payload != nullptr;
    set_or_null(
        writer, pg::KEY_PAYLOAD,
        keep ? canonical_payload(request.payload, rules_of(attempt.session, request, attempt.session.policy.profile))
             : nullptr);
}

// set_attempt writes what an attempt asks for; one that resumes is still the same attempt. A fraction of a second of
// ttl counts as a whole one.
void set_attempt(const Attempt& attempt, pg::TableWriter& writer) {
    const core::Duration ttl = attempt.request.ttl;
    writer.row->tts_isnull[pg::KEY_TTL_S] = ttl == NOT_GIVEN;
    if (ttl != NOT_GIVEN)
        pg::set_column(writer, pg::KEY_TTL_S,
                       Int32GetDatum(static_cast<std::int32_t>((ttl + core::SECOND - 1) / core::SECOND)));
}

// set_acquisition writes the columns that change with every acquisition.
void set_acquisition(const Attempt& attempt, pg::TableWriter& writer, core::Token token, std::int32_t number) {
    pg::set_column(writer, pg::KEY_TOKEN, Int64GetDatum(token.value));
    pg::set_column(writer, pg::KEY_UPDATED_AT, TimestampTzGetDatum(attempt.now));
    pg::set_column(writer, pg::KEY_LEASE_UNTIL, TimestampTzGetDatum(attempt.now + lease_of(attempt)));
    pg::set_column(writer, pg::KEY_ATTEMPT, Int32GetDatum(number));
    pg::set_column(writer, pg::KEY_STATE, CharGetDatum(static_cast<char>(core::State::IN_PROGRESS)));
    pg::set_column(writer, pg::KEY_CLAIMED_BY, PointerGetDatum(claimed_by()));
    set_or_null(writer, pg::KEY_ATTEMPT_ID, attempt.request.attempt_id);
    set_or_null(writer, pg::KEY_COMPLETED_AT, nullptr);
    set_or_null(writer, pg::KEY_EXPIRES_AT, nullptr);
}

// after_acquisition does what every acquisition owes the rest of its transaction. What is resumed in mode lease was
// committed before, so it is not held to ID003.
void after_acquisition(const Attempt& attempt, core::Token token, core::Outcome outcome) {
    const core::Policy& policy = attempt.session.policy;
    const core::Timestamp lease_until = attempt.now + lease_of(attempt);
    const bool resumed_lease = outcome == core::Outcome::RESUMED && policy.mode == core::Mode::LEASE;
    if (policy.mode == core::Mode::LEASE && !resumed_lease)
        (void)pg::insert_lease_hint(attempt.session.installation.leases, attempt.id, token, lease_until);
    if (attempt.request.parent != nullptr)
        pg::insert_child(attempt.session.installation.children, attempt.request.parent, attempt.id);
    if (policy.mode == core::Mode::ANY)
        pg::lock_lease_queue(attempt.session.installation.leases);
    pg::remember_claim(pg::OpenClaim{.id = attempt.id,
                                     .status = 0,
                                     .open = true,
                                     .mode = resumed_lease ? core::Mode::ANY : policy.mode,
                                     .token = token,
                                     .lease_until = lease_until,
                                     .leases = attempt.session.installation.leases,
                                     .statement = current_statement(),
                                     .call_site = attempt.request.call_site});
    pg::touch_key(attempt.id);
    if (policy.synchronous_commit)
        ForceSyncCommit();
    CommandCounterIncrement();
}

Result acquired(const Attempt& attempt, core::Outcome outcome, core::Token token, std::int32_t number) {
    Result result = answer_without_row(attempt, outcome, nullptr);
    result.state = core::state_word(core::State::IN_PROGRESS);
    result.token = token;
    result.attempt = number;
    result.claimed_at = attempt.now;
    return result;
}

// insert_key tries to be the first. False when a rival was faster.
bool insert_key(const Attempt& attempt, Result* result) {
    pg::enter_transaction();
    open_session_writer(attempt.session);
    pg::TableWriter& writer = attempt.session.writer;
    const core::Token token = core::next_token(core::Token{0}, random_step(), attempt.now);
    pg_uuid_t uuid;
    std::memcpy(uuid.data, attempt.id.bytes, sizeof uuid.data);
    pg::clear_row(writer);
    pg::set_column(writer, pg::KEY_OPERATION_ID, UUIDPGetDatum(&uuid));
    pg::set_column(writer, pg::KEY_ACTOR, PointerGetDatum(attempt.request.actor));
    pg::set_column(writer, pg::KEY_OP, PointerGetDatum(attempt.request.op));
    pg::set_column(writer, pg::KEY_KEY, PointerGetDatum(attempt.request.key));
    set_life(attempt, writer);
    set_attempt(attempt, writer);
    set_acquisition(attempt, writer, token, 1);
    pg::store_row(writer);
    if (pg::insert_row_speculatively(writer) == pg::InsertResult::CONFLICT)
        return false;
    after_acquisition(attempt, token, core::Outcome::CLAIMED);
    *result = acquired(attempt, core::Outcome::CLAIMED, token, 1);
    return true;
}

// update_key acquires an existing, locked key as its verdict allows.
Result update_key(const Attempt& attempt, const pg::KeyRow& row, core::ClaimVerdict verdict) {
    open_session_writer(attempt.session);
    pg::TableWriter& writer = attempt.session.writer;
    const core::Token token = core::next_token(row.token, random_step(), attempt.now);
    const bool resumes = verdict == core::ClaimVerdict::RESUME;
    const bool new_life = verdict == core::ClaimVerdict::NEW_LIFE;
    const std::int32_t number = new_life ? 1 : row.attempt + (resumes ? 0 : 1);
    Result result = acquired(attempt, resumes ? core::Outcome::RESUMED : core::Outcome::CLAIMED, token, number);
    if (!new_life) {
        result.claimed_at = row.created_at;
        result.checkpoint = copy_jsonb(row.checkpoint);
        result.reason = verdict == core::ClaimVerdict::TAKE_OVER ? "stale" : nullptr;
    }
    ItemPointerData tid = row.tid;
    pg::copy_row(writer, attempt.session.reader.slot);
    if (new_life)
        set_life(attempt, writer);
    if (!resumes)
        set_attempt(attempt, writer);
    set_acquisition(attempt, writer, token, number);
    pg::store_row(writer);
    if (pg::update_row(writer, &tid) != TM_Ok)
        elog(ERROR, "a locked key was updated by another transaction");
    after_acquisition(attempt, token, result.outcome);
    return result;
}

// --- looking -------------------------------------------------------------------------------------------------------

Look answer(const Result& result) {
    return Look{Step::ANSWER, result, InvalidTransactionId, 0};
}

Look wait_for(const Attempt& attempt, TransactionId holder, core::Timestamp until) {
    return Look{Step::WAIT, in_progress(attempt, "running"), holder, until};
}

Look again() {
    return Look{Step::AGAIN, Result{}, InvalidTransactionId, 0};
}

// acquire takes a committed key that its verdict lets us have. The row is locked without waiting and judged again.
Look acquire(Attempt& attempt, const pg::KeyRow& judged) {
    pg::enter_transaction();
    ItemPointerData tid = judged.tid;
    ItemPointerData judged_tid = judged.tid;
    if (!TransactionIdIsCurrentTransactionId(judged.xmin)) {
        switch (pg::try_lock_row(attempt.session.reader, &tid)) {
        case pg::LockResult::BUSY:
            return wait_for(attempt, InvalidTransactionId, GetCurrentTimestamp() + ROW_LOCK_POLL);
        case pg::LockResult::CHANGED: return again();
        case pg::LockResult::LOCKED: break;
        }
    }
    const pg::KeyRow row = pg::read_row(attempt.session.reader);
    if (IsolationUsesXactSnapshot() && !ItemPointerEquals(&judged_tid, &attempt.session.reader.slot->tts_tid))
        pg::error_serialization();
    const core::ClaimVerdict verdict = judge(attempt, row);
    if (!core::acquires(verdict))
        return again();
    return answer(update_key(attempt, row, verdict));
}

Look answer_replay(Attempt& attempt, const pg::KeyRow& row) {
    Result result{};
    if (replay(attempt, row, &result))
        return answer(result);
    check_answer_gone(attempt.session.reader, row);
    return again();
}

Look answer_of(Attempt& attempt, const pg::KeyRow& row, core::ClaimVerdict verdict) {
    switch (verdict) {
    case core::ClaimVerdict::EXPIRED: return answer(expired(row));
    case core::ClaimVerdict::CONFLICT: return answer(conflict(attempt, row));
    case core::ClaimVerdict::REPLAY: return answer_replay(attempt, row);
    case core::ClaimVerdict::INDETERMINATE: return answer(indeterminate(row));
    case core::ClaimVerdict::RUNNING:
        return wait_for(attempt, InvalidTransactionId, row.lease_until + attempt.session.policy.grace);
    case core::ClaimVerdict::RESUME:
    case core::ClaimVerdict::TAKE_OVER:
    case core::ClaimVerdict::RECLAIM:
    case core::ClaimVerdict::NEW_LIFE: return acquire(attempt, row);
    }
    pg_unreachable();
}

// look_at_row judges a row that a probe found and that is not an uncommitted insert of somebody else.
Look look_at_row(Attempt& attempt, TransactionId updater) {
    pg::KeyRow row = pg::read_row(attempt.session.reader);
    check_identity(attempt, row);
    const pg::OpenClaim* own = pg::find_claim(attempt.id);
    if (own != nullptr && own->statement == current_statement() && own->call_site != attempt.request.call_site)
        pg::error_claimed_twice_in_statement(attempt.id);
    if (own != nullptr && own->open && row.state == core::State::IN_PROGRESS && own->token == row.token)
        return answer(in_progress(attempt, "own_transaction"));
    const core::ClaimVerdict verdict = judge(attempt, row);
    // Before the rival is considered, because in_progress too is an answer that the snapshot must bear.
    if (IsolationUsesXactSnapshot()) {
        if (!pg::probe_visible(attempt.session.reader, attempt.id, row.tid))
            pg::error_serialization();
        row = pg::read_row(attempt.session.reader);
    }
    if (TransactionIdIsValid(updater)) {
        const bool final = core::is_terminal(row.state) &&
                           (verdict == core::ClaimVerdict::REPLAY || verdict == core::ClaimVerdict::CONFLICT);
        if (!final)
            return wait_for(attempt, updater, attempt.session.deadline);
    }
    return answer_of(attempt, row, verdict);
}

// look is one round of the protocol.
Look look(Attempt& attempt, int* insert_rounds) {
    attempt.now = GetCurrentTimestamp();
    pg::Rival rival;
    if (!pg::probe_any(attempt.session.reader, attempt.id, &rival)) {
        Result result;
        if (insert_key(attempt, &result))
            return answer(result);
        if (++*insert_rounds > INSERT_ROUNDS_MAX)
            pg::error_retries_exhausted();
        return again();
    }
    if (!TransactionIdIsValid(rival.inserter))
        return look_at_row(attempt, rival.updater);
    if (rival.speculation != 0) {
        SpeculativeInsertionWait(rival.inserter, rival.speculation);
        return again();
    }
    // Of the rival's row the snapshot shows nothing; to have looked is what SERIALIZABLE remembers.
    if (IsolationUsesXactSnapshot() && pg::probe_snapshot(attempt.session.reader, attempt.id))
        pg::error_serialization();
    return wait_for(attempt, rival.inserter, attempt.session.deadline);
}

core::Timestamp earlier(core::Timestamp a, core::Timestamp b) {
    return a < b ? a : b;
}

// reason_to_reject names what is wrong with a request whatever the table says, or null.
const char* reason_to_reject(const ClaimSession& session, const ClaimRequest& request) {
    const core::Policy& policy = session.policy;
    const core::Bytes key = bytes_of(request.key);
    if (!session.has_policy && pg::settings::require_policy)
        return "unknown_op";
    if (key.size() < policy.key_min || key.size() > policy.key_max || !core::key_has_only(policy.key_chars, key))
        return "key_format";
    if (request.capabilities_version < policy.capabilities_min)
        return "capabilities";
    const bool has_payload = request.payload != nullptr || request.payload_bytes != nullptr;
    if (policy.payload_required && !has_payload)
        return "payload_required";
    const std::size_t size = request.payload != nullptr         ? VARSIZE_ANY_EXHDR(request.payload)
                             : request.payload_bytes != nullptr ? VARSIZE_ANY_EXHDR(request.payload_bytes)
                                                                : 0;
    return size > PAYLOAD_MAX ? "payload_too_large" : nullptr;
}

// detail_of_rejection names the rule that was broken, where knowing its name is not enough.
Jsonb* detail_of_rejection(core::Bytes reason, const core::Policy& policy) {
    Detail detail;
    if (reason == "capabilities")
        add_integer(detail, "capabilities_min", policy.capabilities_min);
    if (reason == "key_format") {
        add_integer(detail, "key_min", policy.key_min);
        add_integer(detail, "key_max", policy.key_max);
        add_text(detail, "rule",
                 core::Bytes{"The key is shorter, longer, or has a character outside the policy's key_chars."});
    }
    return finish(detail);
}

} // namespace

ClaimSession begin_claims(const pg::Installation& installation, const text* op, core::Duration wait,
                          const char* function) {
    PreventCommandIfReadOnly(function);
    PreventCommandDuringRecovery(function);
    PreventCommandIfParallelMode(function);
    ClaimSession session{};
    session.installation = installation;
    pg::begin_profiles(installation.profiles);
    session.has_policy = pg::load_policy(installation.policies, bytes_of(op), &session.policy);
    core::Duration bound = wait == NOT_GIVEN ? session.policy.wait : wait;
    if (LockTimeout > 0)
        bound = earlier(bound, LockTimeout * core::MILLISECOND);
    if (!pg::wakeup_is_shared())
        bound = earlier(bound, WAIT_WITHOUT_PRELOAD);
    session.deadline = GetCurrentTimestamp() + bound;
    session.reader = pg::open_reader(installation.keys, RowExclusiveLock);
    return session;
}

void end_claims(ClaimSession& session) {
    if (session.writer_open)
        pg::close_writer(session.writer);
    pg::close_reader(session.reader);
}

core::OperationId operation_id_of(const ClaimRequest& request) {
    return derive_operation_id(bytes_of(request.actor), bytes_of(request.op), bytes_of(request.key));
}

bool rejects(const ClaimSession& session, const ClaimRequest& request, Result* result) {
    const char* reason = reason_to_reject(session, request);
    if (reason == nullptr)
        return false;
    *result = Result{};
    result->outcome = core::Outcome::REJECTED;
    result->key = request.key;
    result->has_id = bytes_of(request.key).size() <= core::MAX_KEY_BYTES;
    if (result->has_id)
        result->id = operation_id_of(request);
    result->reason = reason;
    result->detail = detail_of_rejection(reason, session.policy);
    return true;
}

Result claim(ClaimSession& session, const ClaimRequest& request, const core::OperationId& id) {
    Hashed hashed{};
    Attempt attempt{session, request, id, hashed, 0};
    bool waiting = false;
    int insert_rounds = 0;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        pg::prepare_to_sleep();
        Look seen = look(attempt, &insert_rounds);
        if (seen.step == Step::AGAIN)
            continue;
        const bool time_over = seen.step == Step::WAIT && GetCurrentTimestamp() >= session.deadline;
        if (seen.step == Step::ANSWER || time_over) {
            pg::end_wait();
            return seen.result;
        }
        if (!waiting) {
            pg::enter_transaction();
            if (!pg::begin_wait(id, session.policy.max_waiters)) {
                seen.result.reason = "too_many_waiters";
                return seen.result;
            }
            waiting = true;
            continue;
        }
        pg::forget_row(session.reader);
        pg::sleep_for_change(earlier(seen.until, session.deadline), seen.holder);
    }
}

} // namespace idem::engine
