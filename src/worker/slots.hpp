// slots.hpp: what the launcher, the sweepers and everybody's first claims tell each other.
//
// Purpose: the launcher knows databases by pg_database only; whether one has the extension is known after a visit, or
// when a claim is made there. Data layout (shared memory, fixed at start, only when preloaded): one DatabaseSlot a
// database, in no order. Numbers only; nothing process-local. Locking: one LWLock guards all slots; whoever changes or
// copies one holds it and calls nothing meanwhile. note_claim reads one field without it: a stale look costs a lock, no
// visit. Lifetime: as the server's; a crash restart begins with nothing, and every database is visited once again.
// Accepted races: over MAX_DATABASES the rest is not served, which the launcher logs.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"
#include "worker/sweep.hpp"

namespace idem::worker {

inline constexpr int MAX_DATABASES = 1024;

// NEVER is the next run of a database that nothing is known to be done in.
inline constexpr core::Timestamp NEVER = PG_INT64_MAX;

// Visit is what the sweeper of a database is doing, or did last.
enum class Visit : std::uint8_t { NONE, STARTING, RUNNING, DONE, FAILED };

// DatabaseSlot is one database.
struct DatabaseSlot {
    Oid database; // InvalidOid: free
    bool served;  // has the extension, or a claim was made since the last visit
    Visit visit;
    int pid;                    // of the sweeper, 0: none
    int errors;                 // failed visits in a row
    core::Timestamp started_at; // of the last visit; 0: never
    core::Timestamp ended_at;
    core::Timestamp next_run;
    core::Timestamp pass_started_at;
    core::Duration pass_took;    // in visits, without the gaps between them
    core::Timestamp clean_until; // start of the last finished pass: what was due then is gone
    SweepCursor cursor;          // where the pass goes on
    int last_error;              // packed SQLSTATE of the last failed visit, 0: none
    std::int64_t passes;
    std::int64_t rows;        // removed or changed since the server started
    std::int64_t failed_rows; // in the present pass, or the last one
    std::int64_t last_rows;   // of the last visit
};

// request_slot_memory and attach_slot_memory are the two halves of shared memory set-up.
void request_slot_memory();
void attach_slot_memory();

// slots_are_shared tells whether the library was preloaded.
bool slots_are_shared();

// note_claim makes sure that this database will be visited. Cheap when it was noted before.
void note_claim();

// launcher_pid is the running launcher's, 0 where none is alive. set_launcher_pid is for the launcher.
int launcher_pid();
void set_launcher_pid(int pid);

// keep_databases adds slots for databases that are new, due at once, and frees those of databases that are gone.
// Returns how many found no room.
int keep_databases(const Oid* databases, int count, core::Timestamp now);

// begin_visit picks the database that is due longest and marks it as starting (a start that nothing came of in
// START_TIMEOUT counts as failed, for its launcher may be gone); InvalidOid when none is due. `next` is
// when one will be.
Oid begin_visit(core::Timestamp now, core::Timestamp* next);

// abandon_visit gives a database back whose sweeper did not start, or is gone without a word.
void abandon_visit(Oid database, core::Timestamp next_run);

// put_off_visit gives a database back that may not be connected to now. That is no failure.
void put_off_visit(Oid database, core::Timestamp next_run);

// copy_slot returns a copy of a database's slot; false when it has none. copy_slots returns all, palloc'd.
bool copy_slot(Oid database, DatabaseSlot* slot);
DatabaseSlot* copy_slots(int* count);

// put_slot stores what the sweeper of `slot.database` found; harmless when the database has lost its slot.
void put_slot(const DatabaseSlot& slot);

} // namespace idem::worker
