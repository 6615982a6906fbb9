// finish.cpp: see finish.hpp.
#include "core/decision.hpp"
#include "core/fingerprint.hpp"
#include "core/policy.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/claim.hpp"
#include "engine/detail.hpp"
#include "engine/finish.hpp"
#include "engine/rules.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/headers.hpp"
#include "pg/key_table.hpp"
#include "pg/lease_queue.hpp"
#include "pg/open_claims.hpp"
#include "pg/policy_cache.hpp"
#include "pg/sha256.hpp"
#include "pg/table_writer.hpp"
#include "pg/varlena.hpp"
#include "pg/wakeup.hpp"

namespace idem::engine {

using pg::bytes_of;

namespace {

constexpr std::size_t CHECKPOINT_MAX = 64 * 1024;
constexpr std::size_t EVIDENCE_MAX = 64 * 1024;
constexpr std::size_t BODY_REF_MAX = 2048;
constexpr std::int32_t STATUS_OF_SUCCESS = 200;
constexpr std::int32_t STATUS_OF_FAILURE = 500;

// Held is a key row in hand, as of now, with the policy of its op.
struct Held {
    const pg::Installation& installation;
    pg::KeyRow row;
    core::Policy policy;
    core::Timestamp now;
};

// Change is the next version of a key row, as far as a verb changes it.
struct Change {
    core::State state;
    core::Token token;
    core::Timestamp lease_until;
    core::Timestamp completed_at; // 0: null
    core::Timestamp expires_at;   // 0: null
    Jsonb* checkpoint;
    Jsonb* evidence;
};

Change unchanged(const pg::KeyRow& row) {
    return Change{row.state,      row.token,      row.lease_until, row.completed_at,
                  row.expires_at, row.checkpoint, row.evidence};
}

void set_time_or_null(pg::TableWriter& writer, int column, core::Timestamp time) {
    writer.row->tts_values[column] = TimestampTzGetDatum(time);
    writer.row->tts_isnull[column] = time == 0;
}

void set_jsonb_or_null(pg::TableWriter& writer, int column, const Jsonb* value) {
    writer.row->tts_values[column] = PointerGetDatum(value);
    writer.row->tts_isnull[column] = value == nullptr;
}

// write_change updates the row; false when a rival was faster and the verb must look again.
bool write_change(const Held& held, pg::KeyReader& reader, const Change& change) {
    pg::enter_transaction();
    pg::TableWriter writer = pg::open_writer_on(reader.rel, reader.index);
    pg::copy_row(writer, reader.slot);
    pg::set_column(writer, pg::KEY_STATE, CharGetDatum(static_cast<char>(change.state)));
    pg::set_column(writer, pg::KEY_TOKEN, Int64GetDatum(change.token.value));
    pg::set_column(writer, pg::KEY_UPDATED_AT, TimestampTzGetDatum(held.now));
    pg::set_column(writer, pg::KEY_LEASE_UNTIL, TimestampTzGetDatum(change.lease_until));
    set_time_or_null(writer, pg::KEY_COMPLETED_AT, change.completed_at);
    set_time_or_null(writer, pg::KEY_EXPIRES_AT, change.expires_at);
    set_jsonb_or_null(writer, pg::KEY_CHECKPOINT, change.checkpoint);
    set_jsonb_or_null(writer, pg::KEY_EVIDENCE, change.evidence);
    pg::store_row(writer);
    ItemPointerData tid = held.row.tid;
    const bool written = pg::update_row(writer, &tid) == TM_Ok;
    pg::close_writer(writer);
    if (!written && IsolationUsesXactSnapshot())
        pg::error_serialization();
    if (written) {
        pg::touch_key(held.row.id);
        if (held.policy.synchronous_commit)
            ForceSyncCommit();
        CommandCounterIncrement();
    }
    return written;
}

// Result of one round of a verb: done, or look again.
struct Round {
    bool done;
    Result result;
};

// with_row runs `verb` on the latest version of the row until a round is done.
template <typename Verb>
Result with_row(const pg::Installation& installation, const core::OperationId& id, const char* name, Verb verb) {
    PreventCommandIfReadOnly(name);
    PreventCommandDuringRecovery(name);
    PreventCommandIfParallelMode(name);
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        pg::KeyReader reader = pg::open_reader(installation.keys, RowExclusiveLock);
        if (!pg::probe_latest(reader, id))
            pg::error_no_operation(id);
        Held held{installation, pg::read_row(reader), core::Policy{}, GetCurrentTimestamp()};
        if (IsolationUsesXactSnapshot()) {
            if (!pg::probe_visible(reader, id, held.row.tid))
                pg::error_serialization();
            held.row = pg::read_row(reader);
        }
        (void)pg::load_policy(installation.policies, bytes_of(held.row.op), &held.policy);
        const Round round = verb(held, reader);
        pg::close_reader(reader);
        if (round.done)
            return round.result;
    }
}

core::HolderVerdict judge_or_raise(const Held& held, core::Token token) {
    const core::HolderVerdict verdict = core::judge_holder(held.row.state, held.row.token, token);
    if (verdict == core::HolderVerdict::STALE)
        pg::error_stale_token(held.row.id);
    return verdict;
}

// refuse_finished raises where the token does not hold the key any more, or has ended it with an answer.
void refuse_finished(const Held& held, core::Token token) {
    if (judge_or_raise(held, token) == core::HolderVerdict::REPEAT)
        pg::error_other_response(held.row.id);
}

// --- answers -------------------------------------------------------------------------------------------------------

text* json_as_text(Jsonb* value) {
    StringInfoData out;
    initStringInfo(&out);
    (void)JsonbToCString(&out, &value->root, static_cast<int>(VARSIZE(value)));
    return cstring_to_text_with_len(out.data, out.len);
}

// omit_body drops a body that is over the policy's limit and keeps its sha256, so that a repeat can be told from
// another answer.
void omit_body(pg::Answer& answer) {
    const core::Digest digest = pg::sha256(bytes_of(answer.body != nullptr ? answer.body : answer.body_bytes));
    answer.body_sha256 = cstring_to_text_with_len(reinterpret_cast<const char*>(digest.bytes), digest.size);
    answer.body = nullptr;
    answer.body_bytes = nullptr;
    answer.body_omitted = true;
}

// with_json_type adds the content type of a JSON body. Most answers have no other header, so that list is made once.
Jsonb* with_json_type(Jsonb* headers) {
    static constinit Jsonb* alone = nullptr;
    if (headers != nullptr)
        return pg::headers_append(headers, "Content-Type", "application/json");
    if (alone == nullptr) {
        const MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
        alone = pg::headers_append(nullptr, "Content-Type", "application/json");
        (void)MemoryContextSwitchTo(caller);
    }
    return alone;
}

void add_part(core::Xxh3Stream& hash, std::uint8_t kind, const void* value) {
    if (value == nullptr)
        return;
    const core::Bytes bytes = bytes_of(value);
    const std::uint64_t size = bytes.size();
    hash.update(core::Bytes{reinterpret_cast<const char*>(&kind), sizeof kind});
    hash.update(core::Bytes{reinterpret_cast<const char*>(&size), sizeof size});
    hash.update(bytes);
}

// digest_of_given is the identity of an answer as the caller gave it, but for the headers: by it a repeated complete is
// told from another answer, whatever the policies of then and now keep of the body. It is compared on this server only,
// so integers are hashed as they lie.
core::Digest digest_of_given(const GivenAnswer& given, std::int32_t status) {
    core::Xxh3Stream hash;
    hash.reset();
    hash.update(core::Bytes{reinterpret_cast<const char*>(&status), sizeof status});
    add_part(hash, 't', given.body);
    add_part(hash, 'j', given.body_json);
    add_part(hash, 'b', given.body_bytes);
    add_part(hash, 'r', given.body_ref);
    add_part(hash, 's', given.body_sha256);
    return hash.digest();
}

// kept_headers is what of the given headers is stored when the names of allow_list are.
Jsonb* kept_headers(const GivenAnswer& given, const char* allow_list) {
    Jsonb* headers = pg::normalise_headers(given.headers, allow_list);
    if (given.body_json != nullptr && core::lists_header(allow_list, "content-type") &&
        !pg::headers_have(headers, "content-type"))
        headers = with_json_type(headers);
    return headers;
}

bool same_list(const Jsonb* a, const Jsonb* b) {
    return a == nullptr || b == nullptr ? a == b : bytes_of(a) == bytes_of(b);
}

// same_headers tells whether the headers that were stored are given again. Those the policy does not keep do not count:
// a Date or a cookie is new each time. Where the policy has changed since, the names that were stored are the ones to
// keep.
bool same_headers(const Held& held, Jsonb* stored, Jsonb* kept_now, const GivenAnswer& given) {
    if (same_list(stored, kept_now))
        return true;
    if (held.policy.updated_at <= held.row.completed_at)
        return false;
    return stored == nullptr || same_list(stored, kept_headers(given, pg::header_names(stored)));
}

// stored_form is what of a given answer is stored and replayed under a policy.
pg::Answer stored_form(const GivenAnswer& given, const core::Policy& policy, std::int32_t default_status) {
    pg::Answer answer{};
    answer.status = given.has_status ? given.status : default_status;
    answer.given = digest_of_given(given, answer.status);
    answer.headers = kept_headers(given, policy.replay_headers);
    answer.body = given.body;
    answer.body_bytes = given.body_bytes;
    answer.body_ref = given.body_ref;
    answer.body_sha256 = given.body_sha256;
    if (given.body_json != nullptr)
        answer.body = json_as_text(given.body_json);
    const void* body = answer.body != nullptr ? static_cast<const void*>(answer.body) : answer.body_bytes;
    if (body != nullptr && bytes_of(body).size() > static_cast<std::size_t>(policy.body_max))
        omit_body(answer);
    return answer;
}

core::Timestamp expiry(const Held& held) {
    return held.now + (held.row.ttl_s != 0 ? held.row.ttl_s * core::SECOND : held.policy.ttl);
}

Result with_answer(const Held& held, const Change& change, const pg::Answer& answer) {
    Result result = result_of_row(held.row, core::Outcome::COMPLETED, change.state);
    result.completed_at = change.completed_at;
    result.expires_at = change.expires_at;
    result.has_answer = true;
    result.answer = answer;
    result.detail = detail_of_answer(held.row, change.evidence, answer, false);
    return result;
}

// repeat_answer serves a repeated complete or fail: the same answer again, or ID002.
Result repeat_answer(const Held& held, core::State state, const pg::Answer& answer, const GivenAnswer& given) {
    pg::Answer stored{};
    if (!pg::read_answer(held.installation.responses, held.row.id, held.row.token, &stored))
        pg::error_answer_missing(held.row.id);
    if (held.row.state != state || !(stored.given == answer.given) ||
        !same_headers(held, stored.headers, answer.headers, given))
        pg::error_other_response(held.row.id);
    return with_answer(held, unchanged(held.row), stored);
}

// refuse_uncommitted raises ID003 for a lease-mode claim of this very transaction: the outside world would be called
// before anybody else can see the claim.
void refuse_uncommitted(const Held& held) {
    const pg::OpenClaim* own = pg::find_claim(held.row.id);
    if (own != nullptr && own->mode == core::Mode::LEASE && own->token == held.row.token)
        pg::error_not_committed(held.row.id);
}

Round store_answer(const Held& held, pg::KeyReader& reader, core::State state, const pg::Answer& answer,
                   Jsonb* evidence) {
    Change change = unchanged(held.row);
    change.state = state;
    change.completed_at = held.now;
    change.expires_at = expiry(held);
    change.checkpoint = nullptr;
    if (evidence != nullptr)
        change.evidence = evidence;
    const Result result = with_answer(held, change, answer);
    if (!write_change(held, reader, change))
        return Round{false, Result{}};
    pg::insert_answer(held.installation.responses, held.row.id, held.row.token, answer);
    CommandCounterIncrement();
    pg::end_claim(held.row.id);
    return Round{true, result};
}

Round finish_with_answer(const Held& held, pg::KeyReader& reader, core::Token token, core::State state,
                         const pg::Answer& answer, const GivenAnswer& given, Jsonb* evidence) {
    if (judge_or_raise(held, token) == core::HolderVerdict::REPEAT)
        return Round{true, repeat_answer(held, state, answer, given)};
    refuse_uncommitted(held);
    return store_answer(held, reader, state, answer, evidence);
}

// without_answer describes a key for which no answer is stored; `status`, 0 for none, is what the client may be sent.
Result without_answer(const Held& held, core::Outcome outcome, const Change& change, std::int32_t status) {
    Result result = result_of_row(held.row, outcome, change.state);
    result.expires_at = change.expires_at;
    result.checkpoint = copy_jsonb(change.checkpoint);
    Detail detail;
    if (status != 0)
        add_integer(detail, "http_status", status);
    add_json(detail, "evidence", change.evidence);
    result.detail = finish(detail);
    return result;
}

// give_back frees the key. The token moves on, so that whoever gave it back holds nothing any more.
Round give_back(const Held& held, pg::KeyReader& reader, Jsonb* evidence, std::int32_t status) {
    Change change = unchanged(held.row);
    change.state = core::State::RELEASED;
    change.token =
        core::next_token(held.row.token, static_cast<std::uint16_t>(pg_prng_uint32(&pg_global_prng_state)), held.now);
    change.completed_at = 0;
    change.expires_at = expiry(held);
    if (evidence != nullptr)
        change.evidence = evidence;
    const Result result = without_answer(held, core::Outcome::RELEASED, change, status);
    if (!write_change(held, reader, change))
        return Round{false, Result{}};
    pg::end_claim(held.row.id);
    return Round{true, result};
}

Round declare_unknown(const Held& held, pg::KeyReader& reader, Jsonb* evidence) {
    Change change = unchanged(held.row);
    change.state = core::State::INDETERMINATE;
    if (evidence != nullptr)
        change.evidence = evidence;
    const Result result = without_answer(held, core::Outcome::INDETERMINATE, change, 0);
    if (!write_change(held, reader, change))
        return Round{false, Result{}};
    if (pg::find_claim(held.row.id) != nullptr)
        (void)pg::insert_lease_hint(held.installation.leases, held.row.id, held.row.token, held.row.lease_until);
    pg::end_claim(held.row.id);
    return Round{true, result};
}

Failure failure_of_status(const core::Policy& policy, const GivenAnswer& given) {
    const core::StatusVerdict verdict = given.has_status ? policy.on_status.of(given.status) : policy.on_status.timeout;
    switch (verdict) {
    case core::StatusVerdict::STORE: return Failure::FAILED;
    case core::StatusVerdict::RELEASE: return Failure::RELEASED;
    case core::StatusVerdict::INDETERMINATE: return Failure::INDETERMINATE;
    }
    return Failure::INDETERMINATE;
}

// hold changes a running claim without ending it.
Round hold(const Held& held, pg::KeyReader& reader, core::Token token, const Change& change) {
    (void)judge_or_raise(held, token);
    if (held.row.state != core::State::IN_PROGRESS)
        pg::error_not_running(held.row.id, core::state_word(held.row.state));
    Result result = without_answer(held, core::Outcome::CLAIMED, change, 0);
    result.token = token;
    if (!write_change(held, reader, change))
        return Round{false, Result{}};
    return Round{true, result};
}

} // namespace

void check_evidence(const Jsonb* evidence) {
    if (evidence != nullptr && VARSIZE(evidence) > EVIDENCE_MAX)
        pg::error_too_large("evidence", VARSIZE(evidence), EVIDENCE_MAX);
}

void check_answer(const GivenAnswer& given) {
    if (given.has_status && (given.status < core::STATUS_FIRST || given.status > core::STATUS_LAST))
        pg::error_status_range(given.status);
    const int bodies = (given.body != nullptr ? 1 : 0) + (given.body_json != nullptr ? 1 : 0) +
                       (given.body_bytes != nullptr ? 1 : 0) + (given.body_ref != nullptr ? 1 : 0);
    if (bodies > 1)
        pg::error_two_bodies();
    if (given.body_ref != nullptr && bytes_of(given.body_ref).size() > BODY_REF_MAX)
        pg::error_too_large("body_ref", bytes_of(given.body_ref).size(), BODY_REF_MAX);
    if (given.body_sha256 != nullptr &&
        (given.body_ref == nullptr || bytes_of(given.body_sha256).size() != pg::SHA256_SIZE))
        pg::error_body_sha256_size();
}

Result complete(const pg::Installation& installation, const core::OperationId& id, core::Token token,
                const GivenAnswer& given, Jsonb* evidence) {
    return with_row(installation, id, "idem_complete()", [&](const Held& held, pg::KeyReader& reader) {
        const pg::Answer answer = stored_form(given, held.policy, STATUS_OF_SUCCESS);
        return finish_with_answer(held, reader, token, core::State::COMPLETED, answer, given, evidence);
    });
}

Result fail(const pg::Installation& installation, const core::OperationId& id, core::Token token, Failure failure,
            const GivenAnswer& given, Jsonb* evidence) {
    return with_row(installation, id, "idem_fail()", [&](const Held& held, pg::KeyReader& reader) {
        const Failure kind = failure == Failure::BY_STATUS ? failure_of_status(held.policy, given) : failure;
        if (kind == Failure::FAILED) {
            const pg::Answer answer = stored_form(given, held.policy, STATUS_OF_FAILURE);
            return finish_with_answer(held, reader, token, core::State::FAILED, answer, given, evidence);
        }
        refuse_finished(held, token);
        return kind == Failure::RELEASED ? give_back(held, reader, evidence, given.status)
                                         : declare_unknown(held, reader, evidence);
    });
}

Result release(const pg::Installation& installation, const core::OperationId& id, core::Token token) {
    return with_row(installation, id, "idem_release()", [&](const Held& held, pg::KeyReader& reader) {
        refuse_finished(held, token);
        return give_back(held, reader, nullptr, 0);
    });
}

Result extend(const pg::Installation& installation, const core::OperationId& id, core::Token token,
              core::Duration lease) {
    return with_row(installation, id, "idem_extend()", [&](const Held& held, pg::KeyReader& reader) {
        Change change = unchanged(held.row);
        change.lease_until = held.now + (lease == NOT_GIVEN ? held.policy.lease : lease);
        return hold(held, reader, token, change);
    });
}

Result checkpoint(const pg::Installation& installation, const core::OperationId& id, core::Token token,
                  Jsonb* checkpoint) {
    if (checkpoint != nullptr && VARSIZE(checkpoint) > CHECKPOINT_MAX)
        pg::error_too_large("checkpoint", VARSIZE(checkpoint), CHECKPOINT_MAX);
    return with_row(installation, id, "idem_checkpoint()", [&](const Held& held, pg::KeyReader& reader) {
        Change change = unchanged(held.row);
        change.checkpoint = checkpoint;
        return hold(held, reader, token, change);
    });
}

Result resolve(const pg::Installation& installation, const core::OperationId& id, core::State state,
               const GivenAnswer& given, Jsonb* evidence) {
    return with_row(installation, id, "idem_resolve()", [&](const Held& held, pg::KeyReader& reader) {
        const bool unknown = held.row.state == core::State::INDETERMINATE ||
                             core::is_lapsed(held.row.state, held.row.lease_until, held.policy.grace, held.now);
        if (!unknown)
            pg::error_not_resolvable(held.row.id, core::state_word(held.row.state),
                                     held.row.state == core::State::IN_PROGRESS);
        if (state == core::State::RELEASED)
            return give_back(held, reader, evidence, 0);
        refuse_uncommitted(held);
        const std::int32_t status = state == core::State::COMPLETED ? STATUS_OF_SUCCESS : STATUS_OF_FAILURE;
        return store_answer(held, reader, state, stored_form(given, held.policy, status), evidence);
    });
}

Result reopen(const pg::Installation& installation, const core::OperationId& id, Jsonb* evidence) {
    return with_row(installation, id, "idem_message_force()", [&](const Held& held, pg::KeyReader& reader) {
        const bool ended = core::is_terminal(held.row.state) || held.row.state == core::State::INDETERMINATE ||
                           core::is_lapsed(held.row.state, held.row.lease_until, held.policy.grace, held.now);
        if (!ended)
            pg::error_not_reopenable(held.row.id, core::state_word(held.row.state));
        return give_back(held, reader, evidence, 0);
    });
}

} // namespace idem::engine
