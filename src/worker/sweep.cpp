// sweep.cpp: see sweep.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/settings.hpp"
#include "worker/sweep.hpp"

namespace idem::worker {

namespace {

// PLACES_PER_BLOCK is more than any block has lines; idem_sweep_place() in SQL divides by the same number.
constexpr std::int64_t PLACES_PER_BLOCK = 2048;
constexpr std::int64_t USUAL_WIDTH = 1024 * PLACES_PER_BLOCK;

// Task is one kind of thing that ages. Its SQL function is idem_sweep_NAME: ranged ones take (place, width, batch) and
// return (removed, next_place), the others take (batch) and return how many rows they removed.
struct Task {
    const char* name;
    bool ranged;
};

constexpr Task TASKS[] = {
    {"leases", true},  {"keys", true},   {"answers", true},  {"profiles", false},
    {"outbox", false}, {"inbox", false}, {"effects", false}, {"audit", false},
};
constexpr int TASK_COUNT = static_cast<int>(sizeof(TASKS) / sizeof(TASKS[0]));

// Outcome is what the SQL side said of one range.
struct Outcome {
    std::int64_t removed;
    std::int64_t next_place;
    bool finished; // of the task
    bool failed;
};

std::int64_t int8_column(int column, bool* is_null) {
    return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, is_null));
}

Outcome run_range(Oid schema, const Task& task, const SweepCursor& cursor, int batch) {
    Oid types[] = {TEXTOID, BOOLOID, INT8OID, INT8OID, INT4OID};
    Datum values[] = {CStringGetTextDatum(task.name), BoolGetDatum(task.ranged), Int64GetDatum(cursor.place),
                      Int64GetDatum(cursor.width), Int32GetDatum(batch)};
    const char* query = psprintf("SELECT removed, next_place, failed FROM %s.idem_sweep_step($1, $2, $3, $4, $5)",
                                 quote_identifier(get_namespace_name(schema)));
    if (SPI_execute_with_args(query, 5, types, values, nullptr, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
        elog(ERROR, "idem_sweep_step returned no row");
    bool is_null;
    Outcome outcome{};
    outcome.removed = int8_column(1, &is_null);
    outcome.next_place = int8_column(2, &outcome.finished);
    outcome.failed = DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 3, &is_null));
    return outcome;
}

void next_task(SweepCursor& cursor) {
    cursor = SweepCursor{cursor.task + 1, 0, 0};
}

// narrow halves the range that failed, or passes over the one place it has come down to. Returns the rows given up.
std::int64_t narrow(SweepCursor& cursor, const Task& task) {
    if (!task.ranged) {
        next_task(cursor);
        return 1;
    }
    if (cursor.width > 1) {
        cursor.width /= 2;
        return 0;
    }
    cursor.place += 1;
    return 1;
}

void advance(SweepCursor& cursor, const Outcome& outcome) {
    if (outcome.finished) {
        next_task(cursor);
        return;
    }
    cursor.place = outcome.next_place;
    cursor.width = Min(cursor.width * 2, USUAL_WIDTH);
}

} // namespace

int task_count() {
    return TASK_COUNT;
}

const char* task_name(int task) {
    return TASKS[task].name;
}

SweepStep sweep_step(Oid schema, SweepCursor& cursor, int batch) {
    SweepStep step{cursor.task, 0, 0, false};
    const Task& task = TASKS[cursor.task];
    if (cursor.width == 0)
        cursor.width = USUAL_WIDTH;
    SPI_connect();
    const Outcome outcome = run_range(schema, task, cursor, batch);
    SPI_finish();
    if (outcome.failed)
        step.failed_rows = narrow(cursor, task);
    else
        advance(cursor, outcome);
    step.rows = outcome.removed;
    step.pass_done = cursor.task == TASK_COUNT;
    return step;
}

void sweep_pause(std::int64_t rows) {
    if (pg::settings::sweep_rate == 0 || rows == 0)
        return;
    const core::Timestamp until = GetCurrentTimestamp() + rows * core::SECOND / pg::settings::sweep_rate;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        const long left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until);
        if (left <= 0)
            return;
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left, PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
    }
}

} // namespace idem::worker
