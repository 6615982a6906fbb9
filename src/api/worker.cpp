// worker.cpp: idem_worker_rows(), what the background worker did and will do, one row a database.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "worker/slots.hpp"

namespace idem::api {

namespace {

enum WorkerColumn : int {
    WORKER_DATABASE,
    WORKER_LAUNCHER,
    WORKER_STATE,
    WORKER_PID,
    WORKER_STARTED_AT,
    WORKER_ENDED_AT,
    WORKER_NEXT_RUN,
    WORKER_PASSES,
    WORKER_ROWS,
    WORKER_LAST_ROWS,
    WORKER_FAILED_ROWS,
    WORKER_ERRORS,
    WORKER_TASK,
    WORKER_BLOCK,
    WORKER_CLEAN_UNTIL,
    WORKER_LAST_ERROR,
    WORKER_COLUMNS,
};

constexpr std::int64_t PLACES_PER_BLOCK = 2048;

const char* state_of(const worker::DatabaseSlot& slot) {
    switch (slot.visit) {
    case worker::Visit::STARTING: return "starting";
    case worker::Visit::RUNNING: return "sweeping";
    case worker::Visit::FAILED: return "failed";
    case worker::Visit::DONE: return slot.served ? "idle" : "not served";
    case worker::Visit::NONE: break;
    }
    return "not visited";
}

void put_time(Datum* values, bool* nulls, int column, core::Timestamp time) {
    values[column] = TimestampTzGetDatum(time);
    nulls[column] = time == 0 || time == worker::NEVER;
}

void fill_row(const worker::DatabaseSlot& slot, int launcher, Datum* values, bool* nulls) {
    const bool sweeping = slot.visit == worker::Visit::RUNNING;
    values[WORKER_DATABASE] = ObjectIdGetDatum(slot.database);
    values[WORKER_LAUNCHER] = Int32GetDatum(launcher);
    nulls[WORKER_LAUNCHER] = launcher == 0;
    values[WORKER_STATE] = CStringGetTextDatum(state_of(slot));
    values[WORKER_PID] = Int32GetDatum(slot.pid);
    nulls[WORKER_PID] = slot.pid == 0;
    put_time(values, nulls, WORKER_STARTED_AT, slot.started_at);
    put_time(values, nulls, WORKER_ENDED_AT, slot.ended_at);
    put_time(values, nulls, WORKER_NEXT_RUN, sweeping ? 0 : slot.next_run);
    values[WORKER_PASSES] = Int64GetDatum(slot.passes);
    values[WORKER_ROWS] = Int64GetDatum(slot.rows);
    values[WORKER_LAST_ROWS] = Int64GetDatum(slot.last_rows);
    values[WORKER_FAILED_ROWS] = Int64GetDatum(slot.failed_rows);
    values[WORKER_ERRORS] = Int32GetDatum(slot.errors);
    put_time(values, nulls, WORKER_CLEAN_UNTIL, slot.clean_until);
    nulls[WORKER_LAST_ERROR] = slot.last_error == 0;
    values[WORKER_LAST_ERROR] = CStringGetTextDatum(unpack_sql_state(slot.last_error));
    nulls[WORKER_TASK] = !sweeping || slot.cursor.task >= worker::task_count();
    nulls[WORKER_BLOCK] = nulls[WORKER_TASK];
    if (!nulls[WORKER_TASK]) {
        values[WORKER_TASK] = CStringGetTextDatum(worker::task_name(slot.cursor.task));
        values[WORKER_BLOCK] = Int64GetDatum(slot.cursor.place / PLACES_PER_BLOCK);
    }
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_worker_rows_v1) {
    if (!worker::slots_are_shared())
        pg::error_not_preloaded("idem_worker_status()");
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    if (result->setDesc->natts != api::WORKER_COLUMNS)
        elog(ERROR, "idem_worker_rows has %d columns", result->setDesc->natts);
    int count;
    const worker::DatabaseSlot* slots = worker::copy_slots(&count);
    for (int i = 0; i < count; ++i) {
        Datum values[api::WORKER_COLUMNS] = {};
        bool nulls[api::WORKER_COLUMNS] = {};
        api::fill_row(slots[i], worker::launcher_pid(), values, nulls);
        tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
    }
    return Datum{0};
}
