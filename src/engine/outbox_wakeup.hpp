// outbox_wakeup.hpp: relays that wait for messages.
//
// Purpose: a relay that finds nothing sleeps on one condition of its database, which every commit that queues or frees
// messages wakes. The rest is pg/wakeup: without preload, or where too many wait already, sleepers poll. Accepted: each
// such commit wakes all sleepers of the database, and those whose topics it does not concern sleep again.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/open_claims.hpp"
#include "pg/wakeup.hpp"

namespace idem::engine {

// outbox_condition is what the relays of this database wait for.
inline core::OperationId outbox_condition() {
    const std::uint32_t hash = MyDatabaseId * 2654435761u;
    core::OperationId id{};
    std::memcpy(id.bytes, &hash, sizeof hash);
    std::memcpy(id.bytes + 8, "outbox", 6);
    return id;
}

// touch_outbox wakes the relays when the transaction ends.
inline void touch_outbox() {
    pg::enter_transaction();
    pg::touch_key(outbox_condition());
}

} // namespace idem::engine
