// sweep.hpp: removing what no promise needs any more, a bounded step at a time.
//
// Purpose: one mechanism for everything that ages: keys, answers, lease hints, versions of payload rules, and whatever
// a later table adds as one line in TASKS. The background worker and idem_admin_sweep() both call sweep_step in
// transactions of their own and commit after each. What a step does is SQL (idem_sweep_*): deleting is the executor's
// work, so that triggers and foreign keys of users hold. Data layout: a pass goes through TASKS in order; tasks over a
// table go through it in ranges of places, where a place is block * PLACES_PER_BLOCK + line. Locking: rows are taken
// with SKIP LOCKED, so a step waits for nobody's row. Bad rows: a step that fails is undone in a subtransaction and
// asked again for half the range, until the one row is found that cannot go; it is counted and passed over, and all
// others are served. Lifetime: the cursor is the caller's; nothing is kept here. Accepted races: a key that is locked,
// or expires, behind the cursor goes in the next pass.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::worker {

// SweepCursor is where a pass is. It starts as {}.
struct SweepCursor {
    int task;
    std::int64_t place;
    std::int64_t width; // 0: the usual one
};

// SweepStep is what one step did.
struct SweepStep {
    int task; // index for task_name
    std::int64_t rows;
    std::int64_t failed_rows;
    bool pass_done;
};

// task_count and task_name tell what a pass consists of.
int task_count();
const char* task_name(int task);

// sweep_step does the next step of a pass in the current transaction, which should be READ COMMITTED and must be
// committed before the next step. `schema` is the extension's; at most `batch` rows change.
SweepStep sweep_step(Oid schema, SweepCursor& cursor, int batch);

// sweep_pause sleeps as idempotency.sweep_rate asks after `rows`. Call it between transactions.
void sweep_pause(std::int64_t rows);

} // namespace idem::worker
