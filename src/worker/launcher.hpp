// launcher.hpp: the one background worker that is always there.
//
// Purpose: it looks at pg_database each naptime and starts a sweeper for each database that is due, at most
// idempotency.max_sweepers at a time: once for each database there is, and again and again for those that turn out to
// have the extension, or in which a claim is made. Connections: shared catalogs only, so that it stands in no
// database's way. Lifetime: from the end of recovery; ended by an error or pg_terminate_backend it is started again
// after RESTART_SECONDS. It holds no snapshot, lock or transaction while it sleeps, and its memory is reset each round.
// Logging: what it cannot do (no worker slot, too many databases) is logged at most once a minute.
#pragma once

#include "pg/boundary.hpp"
#include "pg/server.hpp"

namespace idem::worker {

// register_launcher registers it with the postmaster, but for pg_upgrade's servers.
void register_launcher();

} // namespace idem::worker

extern "C" {
// idem_launcher_main is the entry point of the launcher.
IDEM_EXPORT void idem_launcher_main(Datum unused);
}
