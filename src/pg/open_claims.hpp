// open_claims.hpp: the claims this transaction has made, and what must happen to them at its end.
//
// Purpose: three rules need to know which claims are this transaction's own: completing a lease-mode claim before it is
// committed is refused (ID003), a transaction-mode claim left open at commit is refused (ID004), and what mode `any`
// leaves open at commit gets its lease hint. A tuple cannot tell: a heartbeat makes xmin current too. Data layout: a
// hash by operation id, and a journal of what was opened and closed in which subtransaction, so that a rolled back
// savepoint forgets its claims and opens again what it had closed. Only the journal's tail is ever scanned. Lifetime:
// both live in TopTransactionContext and vanish with it. At commit: callbacks run last registered first, so ours is
// registered anew at the first claim of each transaction; what can fail then fails before a foreign data wrapper used
// earlier commits its remote side. Whatever else can fail happens at claim time. In COMMIT and ABORT only fixed memory
// is touched: an error there would take the server down.
#pragma once

#include "core/policy.hpp"
#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// OpenClaim is one acquisition made by the current transaction.
struct OpenClaim {
    core::OperationId id;
    char status; // for the hash table
    bool open;
    core::Mode mode;
    core::Token token;
    core::Timestamp lease_until;
    Oid leases;
    CommandId statement;       // of the statement that claimed
    const FmgrInfo* call_site; // within that statement
};

// enter_transaction makes sure that this module hears how the current transaction ends. Call it before anything that
// must be undone or announced: claims, waits, touched keys.
void enter_transaction();

// remember_claim notes an acquisition; a second one of the same key (after a release) replaces the first.
void remember_claim(const OpenClaim& claim);

// find_claim returns this transaction's claim of `id`, open or ended, or null.
const OpenClaim* find_claim(const core::OperationId& id);

// end_claim notes that this transaction has ended its own claim of `id`; nothing happens if it made none.
void end_claim(const core::OperationId& id);

} // namespace idem::pg
