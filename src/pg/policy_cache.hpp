// policy_cache.hpp: the policies of idem_policies, ready to read, once per backend.
//
// Purpose: a claim needs its op's policy; reading and parsing the row each time would cost more than the claim.
// Data layout: one hash table by op for one idem_policies table, in a memory context named "idempotency policies". Ops
// without a policy are remembered as well. A full table is emptied.
// Invalidation: the table's trigger sends a relcache message for the table, whoever changes it and however. The
// callback may run inside any lock call, so it only clears a flag; the next load_policy empties the table. Commit,
// rollback and ROLLBACK TO of the backend's own changes reach the callback the same way. Accepted: a policy another
// session commits counts from this session's next transaction, or its next new table lock.
#pragma once

#include <string_view>

#include "core/policy.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// An op of a family that has no policy of its own has the family's: events and intents of the inbox ("inbox:SOURCE",
// "intent:SOURCE") preset webhook, messages ("message:CHANNEL") preset message. Intents follow the policy of their
// source, under payload rules of version 0: those of a policy belong to its own op.
inline constexpr std::string_view INBOX_OPS = "inbox:";
inline constexpr std::string_view INTENT_OPS = "intent:";
inline constexpr std::string_view MESSAGE_OPS = "message:";

// load_policy copies the policy of an op as it is committed now (or set by this transaction) and returns true; without
// one it gives the default policy (version 0) and returns false. policies_relid is the idem_policies table to read.
// Raises 22023 where somebody wrote an invalid policy into the table by hand.
bool load_policy(Oid policies_relid, std::string_view op, core::Policy* out);

} // namespace idem::pg
