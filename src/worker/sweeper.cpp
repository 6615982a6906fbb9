// sweeper.cpp: see sweeper.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"
#include "pg/settings.hpp"
#include "worker/slots.hpp"
#include "worker/sweep.hpp"
#include "worker/sweeper.hpp"

namespace idem::worker {

namespace {

// A database is not visited again sooner, so that who waits for it to be left alone gets his turn.
constexpr core::Duration GAP = core::SECOND;
// A pass may take a twentieth of the time.
constexpr core::Duration SHARE_OF_TIME = 20;
constexpr core::Duration LONGEST_REST = 3600 * core::SECOND;

struct Override {
    const char* name;
    const char* value;
};

// What the steps rely on, whatever a database or a role sets for its sessions. A lost commit is made up for by the next
// pass, so nobody waits for the disk or a standby.
constexpr Override OVERRIDES[] = {
    {"default_transaction_isolation", "read committed"},
    {"default_transaction_read_only", "off"},
    {"default_transaction_deferrable", "off"},
    {"search_path", "pg_catalog, pg_temp"},
    {"session_replication_role", "origin"},
    {"row_security", "off"},
    {"synchronous_commit", "off"},
    {"statement_timeout", "0"},
    {"lock_timeout", "100ms"},
    {"idle_in_transaction_session_timeout", "0"},
    {"idle_session_timeout", "0"},
    {"default_table_access_method", "heap"},
    {"application_name", "idempotency sweeper"},
    {"jit", "off"},
};

void override_settings() {
    for (const Override& setting : OVERRIDES)
        SetConfigOption(setting.name, setting.value, PGC_SUSET, PGC_S_OVERRIDE);
    // From PostgreSQL 17 on.
    if (GetConfigOption("transaction_timeout", true, false) != nullptr)
        SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

constinit DatabaseSlot visit_slot{};
constinit bool visit_over = false;
constinit core::Duration rate_owed = 0; // by idempotency.sweep_rate, not yet waited for
constinit emit_log_hook_type previous_log_hook = nullptr;

// note_error remembers what a visit ends with, for idem_worker_status().
void note_error(ErrorData* error) {
    if (error->elevel >= ERROR)
        visit_slot.last_error = error->sqlerrcode;
    if (previous_log_hook != nullptr)
        previous_log_hook(error);
}

// leave_slot runs at exit. A visit that has not said that it is over has failed.
void leave_slot(int, Datum) {
    if (visit_over)
        return;
    visit_slot.visit = Visit::FAILED;
    visit_slot.pid = 0;
    visit_slot.errors += 1;
    visit_slot.ended_at = GetCurrentTimestamp();
    visit_slot.next_run = visit_slot.ended_at + rest_after_errors(visit_slot.errors);
    // What failed may be the range where the pass was.
    visit_slot.cursor = SweepCursor{};
    put_slot(visit_slot);
}

// lock_tables takes the locks that a step's statements will ask for. False when one is not to be had at once.
bool lock_tables(const pg::Installation& tables) {
    const Oid relations[] = {tables.keys, tables.responses, tables.leases, tables.policies, tables.profiles};
    for (const Oid relation : relations)
        if (!ConditionalLockRelationOid(relation, RowExclusiveLock) ||
            !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation)))
            return false;
    return true;
}

enum class StepEnd : std::uint8_t { MORE, PASS_DONE, NO_EXTENSION, BUSY };

// step_as_owner takes one step with the rights of the tables' owner.
SweepStep step_as_owner(const pg::Installation& tables, Oid owner) {
    Oid user;
    int context;
    GetUserIdAndSecContext(&user, &context);
    SetUserIdAndSecContext(owner, context | SECURITY_RESTRICTED_OPERATION | SECURITY_LOCAL_USERID_CHANGE);
    const SweepStep step = sweep_step(tables.schema, visit_slot.cursor, pg::settings::batch_size);
    SetUserIdAndSecContext(user, context);
    return step;
}

StepEnd step_in_transaction() {
    StepEnd end = StepEnd::MORE;
    SetCurrentStatementStartTimestamp();
    StartTransactionCommand();
    PushActiveSnapshot(GetTransactionSnapshot());
    pg::Installation tables;
    Oid owner;
    if (!pg::find_installation(&tables, &owner))
        end = StepEnd::NO_EXTENSION;
    else if (!lock_tables(tables))
        end = StepEnd::BUSY;
    else {
        pgstat_report_activity(STATE_RUNNING, psprintf("idempotency: sweeping %s", task_name(visit_slot.cursor.task)));
        const SweepStep step = step_as_owner(tables, owner);
        visit_slot.rows += step.rows;
        visit_slot.last_rows += step.rows;
        visit_slot.failed_rows += step.failed_rows;
        if (step.pass_done)
            end = StepEnd::PASS_DONE;
    }
    PopActiveSnapshot();
    CommitTransactionCommand();
    pgstat_report_stat(false);
    pgstat_report_activity(STATE_IDLE, nullptr);
    return end;
}

void begin_visit_of(Oid database) {
    if (!copy_slot(database, &visit_slot))
        proc_exit(0);
    visit_slot.visit = Visit::RUNNING;
    visit_slot.pid = MyProcPid;
    visit_slot.last_rows = 0;
    visit_slot.started_at = GetCurrentTimestamp();
    if (visit_slot.cursor.task == 0 && visit_slot.cursor.place == 0) {
        visit_slot.pass_started_at = visit_slot.started_at;
        visit_slot.pass_took = 0;
        visit_slot.failed_rows = 0;
    }
    put_slot(visit_slot);
    before_shmem_exit(leave_slot, Datum{0});
    previous_log_hook = emit_log_hook;
    emit_log_hook = note_error;
}

core::Duration naptime() {
    return pg::settings::naptime * core::MILLISECOND;
}

// was_marked tells whether a claim was noted before this visit or in it.
bool was_marked() {
    DatabaseSlot now{};
    return visit_slot.served || (copy_slot(visit_slot.database, &now) && now.served);
}

// next_run_after says when to come again.
core::Timestamp next_run_after(StepEnd end) {
    const core::Timestamp now = visit_slot.ended_at;
    switch (end) {
    // Whoever marked it may not have committed CREATE EXTENSION yet: one more look.
    case StepEnd::NO_EXTENSION: return was_marked() ? now + Max(naptime(), GAP) : NEVER;
    case StepEnd::MORE: return now + Max(GAP, rate_owed);
    case StepEnd::BUSY: return now + GAP;
    case StepEnd::PASS_DONE: break;
    }
    return now + Max(Max(naptime(), GAP), SHARE_OF_TIME * visit_slot.pass_took);
}

void end_visit(StepEnd end) {
    visit_slot.ended_at = GetCurrentTimestamp();
    visit_slot.pass_took += visit_slot.ended_at - visit_slot.started_at;
    visit_slot.next_run = next_run_after(end);
    visit_slot.served = end != StepEnd::NO_EXTENSION;
    visit_slot.visit = Visit::DONE;
    visit_slot.pid = 0;
    visit_slot.errors = 0;
    if (end == StepEnd::PASS_DONE) {
        visit_slot.passes += 1;
        visit_slot.clean_until = visit_slot.pass_started_at;
        if (visit_slot.failed_rows > 0)
            ereport(
                LOG,
                (errmsg("idempotency: %lld rows could not be removed", static_cast<long long>(visit_slot.failed_rows)),
                 errdetail("A trigger or a foreign key refused, in the database with OID %u.", visit_slot.database)));
    }
    if (end == StepEnd::PASS_DONE || end == StepEnd::NO_EXTENSION)
        visit_slot.cursor = SweepCursor{};
    visit_over = true;
    put_slot(visit_slot);
}

// keep_rate sleeps as idempotency.sweep_rate asks after `rows`. What would take longer than the visit may last is owed
// to the next one. False: leave now.
bool keep_rate(std::int64_t rows, core::Timestamp until) {
    if (pg::settings::sweep_rate == 0)
        return true;
    rate_owed = rows * core::SECOND / pg::settings::sweep_rate;
    if (GetCurrentTimestamp() + rate_owed >= until)
        return false;
    sweep_pause(rows);
    rate_owed = 0;
    return true;
}

} // namespace

core::Duration rest_after_errors(int errors) {
    core::Duration rest = Max(pg::settings::naptime * core::MILLISECOND, GAP);
    for (int i = 0; i < errors && rest < LONGEST_REST; ++i)
        rest *= 2;
    return Min(rest, LONGEST_REST);
}

} // namespace idem::worker

using namespace idem;

void idem_sweeper_main(Datum database) {
    pqsignal(SIGTERM, die);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
    worker::begin_visit_of(DatumGetObjectId(database));
    BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
    worker::override_settings();

    const core::Timestamp until = GetCurrentTimestamp() + pg::settings::max_connected_time * core::MILLISECOND;
    worker::StepEnd end = worker::StepEnd::MORE;
    MemoryContext per_step = AllocSetContextCreate(TopMemoryContext, "idempotency step", ALLOCSET_DEFAULT_SIZES);
    while (end == worker::StepEnd::MORE && GetCurrentTimestamp() < until) {
        CHECK_FOR_INTERRUPTS();
        MemoryContextSwitchTo(per_step);
        const std::int64_t before = worker::visit_slot.rows;
        end = worker::step_in_transaction();
        MemoryContextReset(per_step);
        worker::put_slot(worker::visit_slot);
        if (!worker::keep_rate(worker::visit_slot.rows - before, until))
            break;
    }
    worker::end_visit(end);
}
