// sweeper.hpp: a short visit to one database.
//
// Purpose: the launcher starts one for each database that is due. It connects, takes steps of the sweep until the pass
// is done or idempotency.max_connected_time is over, writes down where it was, and exits; the next visit goes on from
// there. So DROP, RENAME and CREATE DATABASE ... TEMPLATE never wait long for it. Settings: what ALTER DATABASE or ROLE
// made of them is overridden. Rights: as the owner of idem_keys, in a security-restricted operation, as autovacuum
// works. Locking: each step first takes its table locks without waiting, or ends the visit: nothing of ours waits in a
// queue in front of DDL, and DROP EXTENSION cannot deadlock with it. Errors: one ends the process with exit code 1,
// which the postmaster takes for no crash; the visit counts as failed and the database rests, twice as long each time.
#pragma once

#include "core/types.hpp"
#include "pg/boundary.hpp"
#include "pg/server.hpp"

namespace idem::worker {

// rest_after_errors is how long a database rests after so many failed visits in a row.
core::Duration rest_after_errors(int errors);

} // namespace idem::worker

extern "C" {
// idem_sweeper_main is the entry point of a sweeper; `database` is the OID.
IDEM_EXPORT void idem_sweeper_main(Datum database);
}
