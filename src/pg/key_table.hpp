// key_table.hpp: finding, locking and reading rows of idem_keys.
//
// Purpose: the one place that probes the primary key, and the rule for each kind of probe:
//   probe_any      dirty snapshot: sees uncommitted rivals; used by claims. It may MISS a live row that is being
//   updated,
//                  so "not found" is a reason to try an insert, never an answer.
//   probe_latest   latest committed state, for verbs that show a token: a miss is "no such operation".
//   probe_visible  the transaction's own snapshot: in REPEATABLE READ and SERIALIZABLE what was judged must also be
//   what
//                  the transaction may see (this also takes the SIREAD lock).
// Lifetime: a found row lives in a slot that pins its buffer until the KeyReader is closed or probes again. Datums of a
// KeyRow point into it.
#pragma once

#include "core/types.hpp"
#include "core/words.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"

namespace idem::pg {

// KeyReader is idem_keys opened for probing.
struct KeyReader {
    Relation rel;
    Relation index;
    TupleTableSlot* slot;
};

// KeyRow is one row of idem_keys, unpacked. Pointers are null where the column is.
struct KeyRow {
    core::OperationId id;
    core::Token token;
    core::Timestamp created_at;
    core::Timestamp updated_at;
    core::Timestamp lease_until;
    core::Timestamp completed_at; // 0 when null
    core::Timestamp expires_at;   // 0 when null
    std::int32_t ttl_s;           // 0 when null
    std::int32_t attempt;
    std::int32_t profile;
    core::State state;
    const text* actor;
    const text* op;
    const text* key;
    const text* claimed_by;
    core::Digest payload_hash;
    const pg_uuid_t* attempt_id;
    const pg_uuid_t* parent;
    const text* traceparent;
    Jsonb* checkpoint;
    Jsonb* evidence;
    const text* payload;
    ItemPointerData tid;
    TransactionId xmin;
};

// Rival is what an uncommitted transaction is doing to a row.
struct Rival {
    TransactionId inserter;    // the row is not committed yet
    TransactionId updater;     // the row is committed, its next version is not
    std::uint32_t speculation; // the inserter is not even sure: wait for this token, not for the transaction
};

// open_reader opens idem_keys and its primary key index with `lock`; the locks stay to the end of the transaction.
KeyReader open_reader(Oid keys, LOCKMODE lock);
void close_reader(KeyReader& reader);

// probe_any looks for `id` among committed and uncommitted rows.
bool probe_any(KeyReader& reader, const core::OperationId& id, Rival* rival);

// probe_latest looks for `id` as of now.
bool probe_latest(KeyReader& reader, const core::OperationId& id);

// probe_visible tells whether exactly the row version at `tid` is what this transaction's snapshot sees.
bool probe_visible(KeyReader& reader, const core::OperationId& id, const ItemPointerData& tid);

// probe_snapshot looks for `id` with what the transaction's isolation level shows (a fresh snapshot in READ COMMITTED).
bool probe_snapshot(KeyReader& reader, const core::OperationId& id);

// forget_row lets go of the found row and its buffer: a sleeper that kept it would stop vacuum and pruning of the page.
void forget_row(KeyReader& reader);

// read_row unpacks the row a probe found.
KeyRow read_row(KeyReader& reader);

// read_digest reads a hash as it is stored. Raises XX001 where it is longer than any.
core::Digest read_digest(Datum stored);

// LockResult tells how a try at locking a row ended.
enum class LockResult : std::uint8_t { LOCKED, BUSY, CHANGED };

// try_lock_row locks the newest version of the row at `tid` without waiting and leaves it in the reader's slot.
LockResult try_lock_row(KeyReader& reader, ItemPointer tid);

} // namespace idem::pg
