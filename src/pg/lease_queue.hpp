// lease_queue.hpp: hints at committed, unfinished claims.
//
// Purpose: stale claims must be found in time proportional to what was claimed and not finished. idem_leases has no
// index and is only inserted into: a hint may be stale (the claim was finished, or was extended), never missing.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// insert_lease_hint adds one hint. False when the table is gone: its extension was dropped in this transaction.
bool insert_lease_hint(Oid leases, const core::OperationId& id, core::Token token, core::Timestamp lease_until);

// lock_lease_queue takes now the table lock that insert_lease_hint will need at commit, where nothing may block.
void lock_lease_queue(Oid leases);

} // namespace idem::pg
