// claim.hpp: acquiring a key, or learning why not.
//
// Purpose: the claim protocol. One attempt is: probe with a dirty snapshot; a committed row is judged
// (core/decision.hpp), an uncommitted rival is waited for; only a speculative insert into all indexes may conclude that
// the key is absent.
//
//   probe ──nothing──▶ speculative insert ──inserted──▶ claimed
//     ▲                      └──somebody was faster──┐
//     ├──────────────────────────────────────────────┘
//     ├──uncommitted rival, or running──▶ wait (bounded, woken by its end) ──▶ probe again, or in_progress
//     ├──answer there, conflict, unknown, expired──▶ that outcome
//     └──free to take over──▶ lock the row without waiting, judge the locked version, update ──▶ claimed, resumed
//
// What is judged is committed or our own; nothing of an uncommitted row is read. In REPEATABLE READ and SERIALIZABLE
// whatever is answered of a row must be what the transaction's snapshot shows, else 40001.
// Locking: while sleeping no row lock, no buffer and no lightweight lock is held that the transaction did not hold
// before; the table locks of any DML are. A deadlock is looked for by the sleeper.
#pragma once

#include "core/policy.hpp"
#include "core/types.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"
#include "pg/key_table.hpp"
#include "pg/table_writer.hpp"

namespace idem::engine {

// NOT_GIVEN stands for a duration argument that was NULL.
inline constexpr core::Duration NOT_GIVEN = -1;

// ClaimRequest is what one call asks; texts in the server encoding, pointers null where the argument was NULL.
struct ClaimRequest {
    const text* actor;
    const text* op;
    const text* key;
    const Jsonb* payload;
    const bytea* payload_bytes;
    const text* target;
    core::Duration wait;
    core::Duration lease;
    core::Duration ttl;
    const pg_uuid_t* attempt_id;
    const pg_uuid_t* parent;
    const text* traceparent;
    std::int32_t capabilities_version; // 0 when null
    const FmgrInfo* call_site;
};

// ClaimSession is what the claims of one call share: policy, open tables, deadline.
struct ClaimSession {
    pg::Installation installation;
    core::Policy policy;
    bool has_policy;
    pg::KeyReader reader;
    pg::TableWriter writer;
    bool writer_open;
    core::Timestamp deadline;
};

// begin_claims opens a session for one op; end_claims gives it back. Raises 25006, in the name of the function that the
// user called, where nothing may be written.
ClaimSession begin_claims(const pg::Installation& installation, const text* op, core::Duration wait,
                          const char* function);
void end_claims(ClaimSession& session);

// rejects tells whether a request cannot be claimed whatever the table says, and answers it.
bool rejects(const ClaimSession& session, const ClaimRequest& request, Result* result);

// operation_id_of derives the operation id of a request whose key is within MAX_KEY_BYTES.
core::OperationId operation_id_of(const ClaimRequest& request);

// claim answers one request that nothing rejects. `id` is its operation_id_of.
Result claim(ClaimSession& session, const ClaimRequest& request, const core::OperationId& id);

} // namespace idem::engine
