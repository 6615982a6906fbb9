// launcher.cpp: see launcher.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/settings.hpp"
#include "worker/launcher.hpp"
#include "worker/slots.hpp"
#include "worker/sweeper.hpp"

namespace idem::worker {

namespace {

constexpr int RESTART_SECONDS = 5;
constexpr int SWEEPERS_LIMIT = 16; // of the setting
constexpr core::Duration LOG_INTERVAL = 60 * core::SECOND;
constexpr core::Duration PUT_OFF = core::SECOND;
constexpr core::Duration START_RETRY = 5 * core::SECOND;
constexpr core::Duration LONGEST_SLEEP = 60 * core::SECOND;

struct RunningSweeper {
    Oid database; // InvalidOid: free
    BackgroundWorkerHandle* handle;
};

constinit RunningSweeper running[SWEEPERS_LIMIT] = {};
constinit core::Timestamp last_complaint = 0;

bool may_complain(core::Timestamp now) {
    if (last_complaint != 0 && now - last_complaint < LOG_INTERVAL)
        return false;
    last_complaint = now;
    return true;
}

BackgroundWorker describe_worker(const char* function, const char* name) {
    BackgroundWorker worker;
    std::memset(&worker, 0, sizeof worker);
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    strlcpy(worker.bgw_library_name, "idempotency", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, function, sizeof worker.bgw_function_name);
    strlcpy(worker.bgw_name, name, sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, name, sizeof worker.bgw_type);
    return worker;
}

// is_visitable tells a database one may connect to, and that nobody is making others from.
bool is_visitable(const FormData_pg_database* database) {
    constexpr int HALF_DROPPED = -2; // left by an interrupted DROP DATABASE
    return database->datallowconn && !database->datistemplate && database->datconnlimit != HALF_DROPPED;
}

// read_databases returns the databases worth a visit, in the present context.
Oid* read_databases(int* count) {
    MemoryContext kept = CurrentMemoryContext;
    int capacity = 64;
    auto* databases = static_cast<Oid*>(palloc(sizeof(Oid) * static_cast<Size>(capacity)));
    *count = 0;
    StartTransactionCommand();
    (void)GetTransactionSnapshot();
    Relation rel = table_open(DatabaseRelationId, AccessShareLock);
    TableScanDesc scan = table_beginscan_catalog(rel, 0, nullptr);
    for (HeapTuple tuple; (tuple = heap_getnext(scan, ForwardScanDirection)) != nullptr;) {
        const auto* database = reinterpret_cast<const FormData_pg_database*>(GETSTRUCT(tuple));
        if (!is_visitable(database))
            continue;
        if (*count == capacity)
            databases = static_cast<Oid*>(repalloc(databases, sizeof(Oid) * static_cast<Size>(capacity *= 2)));
        databases[(*count)++] = database->oid;
    }
    table_endscan(scan);
    table_close(rel, AccessShareLock);
    CommitTransactionCommand();
    MemoryContextSwitchTo(kept);
    return databases;
}

// collect_sweepers forgets those that have ended. One that ended without a word is given back.
int collect_sweepers(core::Timestamp now) {
    int alive = 0;
    for (RunningSweeper& sweeper : running) {
        if (sweeper.handle == nullptr)
            continue;
        pid_t pid;
        if (GetBackgroundWorkerPid(sweeper.handle, &pid) != BGWH_STOPPED) {
            ++alive;
            continue;
        }
        abandon_visit(sweeper.database, now + rest_after_errors(1));
        pfree(sweeper.handle);
        sweeper = RunningSweeper{};
    }
    return alive;
}

// may_connect tells whether the database is there and nobody drops, renames or copies it: a sweeper would wait for the
// same lock while it connects, and stand in the queue before others.
bool may_connect(Oid database) {
    MemoryContext round = CurrentMemoryContext;
    StartTransactionCommand();
    LOCKTAG tag;
    SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
    const bool connectable = LockAcquire(&tag, RowExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL &&
                             SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database));
    CommitTransactionCommand();
    MemoryContextSwitchTo(round);
    return connectable;
}

bool start_sweeper(Oid database) {
    BackgroundWorker worker = describe_worker("idem_sweeper_main", "idempotency sweeper");
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    for (RunningSweeper& sweeper : running) {
        if (sweeper.handle != nullptr)
            continue;
        MemoryContext round = MemoryContextSwitchTo(TopMemoryContext);
        const bool started = RegisterDynamicBackgroundWorker(&worker, &sweeper.handle);
        MemoryContextSwitchTo(round);
        sweeper.database = started ? database : InvalidOid;
        if (!started)
            sweeper.handle = nullptr;
        return started;
    }
    return false;
}

// start_due starts sweepers up to the limit. Returns when it should be called again.
core::Timestamp start_due(core::Timestamp now) {
    core::Timestamp next = NEVER;
    int alive = collect_sweepers(now);
    while (alive < pg::settings::max_sweepers) {
        const Oid database = begin_visit(now, &next);
        if (!OidIsValid(database))
            return next;
        if (!may_connect(database)) {
            put_off_visit(database, now + PUT_OFF);
            continue;
        }
        if (!start_sweeper(database)) {
            abandon_visit(database, now + START_RETRY);
            if (may_complain(now))
                ereport(LOG, (errmsg("idempotency: no background worker slot is free for a sweeper"),
                              errhint("Consider increasing max_worker_processes.")));
            return now + START_RETRY;
        }
        ++alive;
    }
    return next; // an ending sweeper wakes the launcher
}

void sleep_until(core::Timestamp next) {
    const core::Timestamp now = GetCurrentTimestamp();
    const core::Duration nap = Min(pg::settings::naptime * core::MILLISECOND, LONGEST_SLEEP);
    const core::Timestamp until = Min(next, now + nap);
    const long timeout = Max(TimestampDifferenceMilliseconds(now, until), 1L);
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
}

void look_round() {
    const core::Timestamp now = GetCurrentTimestamp();
    int count;
    const Oid* databases = read_databases(&count);
    const int without_room = keep_databases(databases, count, now);
    if (without_room > 0 && may_complain(now))
        ereport(LOG, (errmsg("idempotency: %d databases are not swept", without_room),
                      errdetail("There is room for %d.", MAX_DATABASES)));
}

void leave(int, Datum) {
    set_launcher_pid(0);
}

} // namespace

void register_launcher() {
    if (IsBinaryUpgrade)
        return;
    BackgroundWorker worker = describe_worker("idem_launcher_main", "idempotency launcher");
    worker.bgw_restart_time = RESTART_SECONDS;
    RegisterBackgroundWorker(&worker);
}

} // namespace idem::worker

using namespace idem;

void idem_launcher_main(Datum) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    worker::set_launcher_pid(MyProcPid);
    before_shmem_exit(worker::leave, Datum{0});
    pgstat_report_appname("idempotency launcher");

    MemoryContext per_round = AllocSetContextCreate(TopMemoryContext, "idempotency round", ALLOCSET_DEFAULT_SIZES);
    core::Timestamp looked_at = 0;
    while (!ShutdownRequestPending) {
        CHECK_FOR_INTERRUPTS();
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
        MemoryContextSwitchTo(per_round);
        const core::Timestamp now = GetCurrentTimestamp();
        if (looked_at == 0 || now - looked_at >= pg::settings::naptime * core::MILLISECOND) {
            worker::look_round();
            looked_at = now;
        }
        const core::Timestamp next = worker::start_due(now);
        MemoryContextReset(per_round);
        pgstat_report_activity(STATE_IDLE, nullptr);
        worker::sleep_until(next);
    }
    proc_exit(1); // not 0: that would tell the postmaster never to start it again
}
