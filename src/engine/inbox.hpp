// inbox.hpp: an event that came from outside, perhaps again, perhaps out of order.
//
// Purpose: an event is a key of idem_keys (actor = the tenant that receives, op = inbox:SOURCE, key = event id, or
// op = intent:SOURCE and key = dedup id), so whatever holds for keys holds for events. Two things come on top. Without
// a lease the key is completed at once: the commit of the transaction that received the event is its completion, its
// abort leaves no trace. And events of one entity are put in order by a watermark, as entity_order of the op says:
//
//   claim the key ──replay, in_progress, …──▶ that
//        └─claimed─▶ lock the entity, look at its mark ──newer (latest), next (strict)──▶ claimed
//                         ├──not newer──▶ complete the key ──▶ stale
//                         └──not next (strict)──▶ park the event, release the key ──▶ gap
//
// Locking: the key first, then the entity's row, for the rest of the transaction. A batch claims its keys in the order
// of operation ids and then takes entities in their order. With a lease and strict order the mark moves when the event
// is completed; until then the event lies parked, so that idem_inbox_ready finds it again after a crash.
#pragma once

#include "core/types.hpp"
#include "engine/claim.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/helpers.hpp"
#include "pg/installation.hpp"

namespace idem::engine {

// Event is one delivery. `claim` asks for its key.
struct Event {
    ClaimRequest claim;
    const text* source;
    const text* event_id;
    const text* dedup_id;
    const text* entity; // null: not ordered
    std::int64_t seq;
    NullableDatum dedup_window;
};

// Inbox is what the events of one call share.
struct Inbox {
    ClaimSession claims;
    bool leased;
    pg::Helper advance;
    pg::Helper settle;
};

// open_inbox opens a session for events of one op. close_inbox gives it back.
Inbox open_inbox(const pg::Installation& installation, const text* op, bool leased, const char* function);
void close_inbox(Inbox& inbox);

// claim_event is the first half of receiving an event: its key. put_in_order is the second half, for what proceeds.
Result claim_event(Inbox& inbox, const Event& event, const core::OperationId& id);
Result put_in_order(Inbox& inbox, const Event& event, const core::OperationId& id, const Result& claimed);

// complete_event ends the work on an event that was claimed with a lease.
Result complete_event(const pg::Installation& installation, const Event& event, const core::OperationId& id,
                      core::Token token, text* effect_ref);

} // namespace idem::engine
