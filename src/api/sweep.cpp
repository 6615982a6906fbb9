// sweep.cpp: idem_admin_sweep(), the worker's work by hand or from pg_cron: a step, a commit, until done or out of
// time.
//
// Purpose: unpack, call, commit, return. Each step runs in a READ COMMITTED transaction of its own, whatever the
// session's default is, because the steps re-judge rows that changed meanwhile.
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/claim.hpp"
#include "engine/detail.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"
#include "pg/settings.hpp"
#include "worker/sweep.hpp"

namespace idem::api {

namespace {

constexpr core::Duration BUDGET_DEFAULT = 10 * core::SECOND;
constexpr core::Duration BUDGET_MAX = 24 * 3600 * core::SECOND;
constexpr int TASKS_MAX = 32;

enum SweepArgument : int { ARG_BUDGET };
enum SweepColumn : int { COLUMN_REMOVED, COLUMN_FAILED, COLUMN_FINISHED, COLUMN_DETAIL, SWEEP_COLUMNS };

struct Report {
    std::int64_t removed;
    std::int64_t failed;
    bool finished;
    std::int64_t by_task[TASKS_MAX];
};

bool may_commit(FunctionCallInfo fcinfo) {
    return fcinfo->context != nullptr && IsA(fcinfo->context, CallContext) &&
           !reinterpret_cast<CallContext*>(fcinfo->context)->atomic;
}

Report run_pass(Oid schema, core::Timestamp deadline) {
    Report report{};
    worker::SweepCursor cursor{};
    while (!report.finished) {
        SPI_commit();
        XactIsoLevel = XACT_READ_COMMITTED;
        const worker::SweepStep step = worker::sweep_step(schema, cursor, pg::settings::batch_size);
        report.removed += step.rows;
        report.failed += step.failed_rows;
        report.by_task[step.task] += step.rows;
        report.finished = step.pass_done;
        if (GetCurrentTimestamp() >= deadline)
            break;
        SPI_commit();
        worker::sweep_pause(step.rows);
    }
    return report;
}

Datum report_datum(FunctionCallInfo fcinfo, const Report& report) {
    TupleDesc desc;
    if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "idem_admin_sweep returns a row");
    engine::Detail detail;
    for (int task = 0; task < worker::task_count(); ++task)
        engine::add_integer(detail, worker::task_name(task), report.by_task[task]);
    Datum values[SWEEP_COLUMNS];
    bool nulls[SWEEP_COLUMNS] = {};
    values[COLUMN_REMOVED] = Int64GetDatum(report.removed);
    values[COLUMN_FAILED] = Int64GetDatum(report.failed);
    values[COLUMN_FINISHED] = BoolGetDatum(report.finished);
    values[COLUMN_DETAIL] = JsonbPGetDatum(engine::finish(detail));
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

} // namespace

} // namespace idem::api

using namespace idem;

IDEM_FUNCTION(idem_admin_sweep_v1) {
    core::Duration budget = api::optional_duration(fcinfo, api::ARG_BUDGET, "budget", 0, api::BUDGET_MAX, "0", "1 day");
    if (budget == engine::NOT_GIVEN)
        budget = api::BUDGET_DEFAULT;
    if (!api::may_commit(fcinfo))
        pg::error_sweep_in_transaction();
    PreventCommandIfReadOnly("idem_admin_sweep()");
    PreventCommandDuringRecovery("idem_admin_sweep()");
    const pg::Installation installation = pg::installation_of(fcinfo);
    const core::Timestamp deadline = GetCurrentTimestamp() + budget;
    SPI_connect_ext(SPI_OPT_NONATOMIC);
    const api::Report report = api::run_pass(installation.schema, deadline);
    SPI_finish();
    PG_RETURN_DATUM(api::report_datum(fcinfo, report));
}
