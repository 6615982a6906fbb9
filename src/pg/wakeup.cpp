// wakeup.cpp: see wakeup.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/wakeup.hpp"

namespace idem::pg {

namespace {

constexpr int CONDITIONS = 1024;
constexpr int TOUCH_WORDS = CONDITIONS / 64;
constexpr core::Duration LONGEST_SLEEP = core::SECOND;
constexpr core::Duration FIRST_PAUSE = core::MILLISECOND;
constexpr core::Duration LONGEST_PAUSE = 100 * core::MILLISECOND;

struct Condition {
    ConditionVariable changed;
    pg_atomic_uint32 sleepers;
};

struct WaiterEntry {
    core::OperationId id;
    Oid database;
    int pid; // 0: not waiting
    TransactionId holder;
    bool can_be_victim; // somebody may wait for it
};

struct SharedWakeups {
    int entry_count;
    Condition conditions[CONDITIONS];
    WaiterEntry entries[FLEXIBLE_ARRAY_MEMBER];
};

constinit SharedWakeups* shared = nullptr;
constinit LWLock* entries_lock = nullptr;

constinit std::uint64_t touched[TOUCH_WORDS] = {};

// This process's wait.
constinit bool waiting = false;
constinit core::OperationId waited_for{};
constinit core::Timestamp wait_began = 0;
constinit core::Timestamp next_deadlock_check = 0;
constinit core::Duration pause = FIRST_PAUSE;

int condition_of(const core::OperationId& id) {
    std::uint32_t hash;
    std::memcpy(&hash, id.bytes, sizeof hash);
    return static_cast<int>(hash % CONDITIONS);
}

int entry_capacity() {
    return MaxBackends + NUM_AUXILIARY_PROCS;
}

Size memory_size() {
    return add_size(offsetof(SharedWakeups, entries),
                    mul_size(static_cast<Size>(entry_capacity()), sizeof(WaiterEntry)));
}

// admit enters the waiter table unless it is full for this key or at all.
bool admit(const core::OperationId& id, int max_waiters) {
    const int server_limit = MaxConnections / 4 > 0 ? MaxConnections / 4 : 1;
    int same_key = 0;
    int all = 0;
    LWLockAcquire(entries_lock, LW_EXCLUSIVE);
    for (int i = 0; i < shared->entry_count; ++i) {
        const WaiterEntry& entry = shared->entries[i];
        if (entry.pid == 0)
            continue;
        ++all;
        same_key += entry.database == MyDatabaseId && entry.id == id ? 1 : 0;
    }
    const bool admitted = same_key < max_waiters && all < server_limit;
    if (admitted)
        shared->entries[my_proc_number()] = WaiterEntry{id, MyDatabaseId, MyProcPid, InvalidTransactionId, false};
    LWLockRelease(entries_lock);
    return admitted;
}

// may_be_waited_for tells whether this transaction may hold what others wait for. In a transaction block that is so
// even without a transaction id: table and advisory locks need none.
bool may_be_waited_for() {
    return TransactionIdIsValid(GetTopTransactionIdIfAny()) || IsTransactionBlock();
}

void publish_holder(TransactionId holder) {
    WaiterEntry& mine = shared->entries[my_proc_number()];
    const bool can_be_victim = may_be_waited_for();
    if (mine.holder == holder && mine.can_be_victim == can_be_victim)
        return;
    LWLockAcquire(entries_lock, LW_EXCLUSIVE);
    mine.holder = holder;
    mine.can_be_victim = can_be_victim;
    LWLockRelease(entries_lock);
}

int pid_of_transaction(TransactionId xid) {
    return TransactionIdIsValid(xid) ? BackendXidGetPid(SubTransGetTopmostTransaction(xid)) : 0;
}

// WaitGraph is a breadth-first walk over processes, each visited once.
struct WaitGraph {
    int* pids;
    int count;
    int capacity;
};

WaitGraph new_graph() {
    const int capacity = shared->entry_count;
    return WaitGraph{static_cast<int*>(palloc(sizeof(int) * static_cast<Size>(capacity))), 0, capacity};
}

bool includes(const WaitGraph& graph, int pid) {
    for (int i = 0; i < graph.count; ++i)
        if (graph.pids[i] == pid)
            return true;
    return false;
}

void visit(WaitGraph& graph, int pid) {
    if (pid > 0 && graph.count < graph.capacity && !includes(graph, pid))
        graph.pids[graph.count++] = pid;
}

// waiter_of returns what process `pid` waits for, if it waits for a key.
WaiterEntry waiter_of(int pid) {
    WaiterEntry found{};
    LWLockAcquire(entries_lock, LW_SHARED);
    for (int i = 0; i < shared->entry_count; ++i)
        if (shared->entries[i].pid == pid)
            found = shared->entries[i];
    LWLockRelease(entries_lock);
    return found;
}

void visit_lock_holders(WaitGraph& graph, int pid) {
    ArrayType* blockers = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(pid)));
    const int count = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));
    const std::int32_t* pids = reinterpret_cast<const std::int32_t*>(ARR_DATA_PTR(blockers));
    for (int i = 0; i < count; ++i)
        visit(graph, pids[i]);
}

// walk visits `start` and everybody it waits for: through keys, which the lock manager does not know, and through
// locks.
void walk(WaitGraph& graph, int start) {
    graph.count = 0;
    visit(graph, start);
    for (int i = 0; i < graph.count; ++i) {
        visit(graph, pid_of_transaction(waiter_of(graph.pids[i]).holder));
        visit_lock_holders(graph, graph.pids[i]);
    }
}

// check_deadlock looks whether `holder` waits for us. Of the waiters for a key in such a circle the one with the
// greatest pid gives up, so that exactly one does; whoever is met beside the circle does not count.
void check_deadlock(TransactionId holder) {
    if (!may_be_waited_for())
        return;
    WaitGraph ours = new_graph();
    walk(ours, pid_of_transaction(holder));
    if (includes(ours, MyProcPid)) {
        WaitGraph theirs = new_graph();
        bool other_gives_up = false;
        for (int i = 0; i < ours.count && !other_gives_up; ++i) {
            if (ours.pids[i] <= MyProcPid || !waiter_of(ours.pids[i]).can_be_victim)
                continue;
            walk(theirs, ours.pids[i]);
            other_gives_up = includes(theirs, MyProcPid);
        }
        if (!other_gives_up)
            error_deadlock();
        pfree(theirs.pids);
    }
    pfree(ours.pids);
}

long sleep_milliseconds(core::Timestamp until, core::Duration longest) {
    core::Duration left = until - GetCurrentTimestamp();
    if (left > longest)
        left = longest;
    return left <= 0 ? 0 : static_cast<long>((left + core::MILLISECOND - 1) / core::MILLISECOND);
}

void sleep_polling(core::Timestamp until) {
    const long timeout = sleep_milliseconds(until, pause);
    pause = pause * 2 > LONGEST_PAUSE ? LONGEST_PAUSE : pause * 2;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

} // namespace

void request_wakeup_memory() {
    RequestAddinShmemSpace(memory_size());
    RequestNamedLWLockTranche("idempotency", 1);
}

void attach_wakeup_memory() {
    bool found;
    shared = static_cast<SharedWakeups*>(ShmemInitStruct("idempotency wakeups", memory_size(), &found));
    entries_lock = &GetNamedLWLockTranche("idempotency")->lock;
    if (found)
        return;
    std::memset(static_cast<void*>(shared), 0, memory_size());
    shared->entry_count = entry_capacity();
    for (Condition& condition : shared->conditions) {
        ConditionVariableInit(&condition.changed);
        pg_atomic_init_u32(&condition.sleepers, 0);
    }
}

bool wakeup_is_shared() {
    return shared != nullptr;
}

void touch_key(const core::OperationId& id) {
    const auto condition = static_cast<unsigned>(condition_of(id));
    touched[condition / 64] |= std::uint64_t{1} << (condition % 64);
}

void wake_touched() {
    if (shared == nullptr)
        return;
    pg_memory_barrier();
    for (unsigned word = 0; word < TOUCH_WORDS; ++word) {
        for (std::uint64_t bits = touched[word]; bits != 0; bits &= bits - 1) {
            Condition& condition = shared->conditions[word * 64 + static_cast<unsigned>(pg_rightmost_one_pos64(bits))];
            if (pg_atomic_read_u32(&condition.sleepers) > 0)
                ConditionVariableBroadcast(&condition.changed);
        }
    }
}

void forget_touched() {
    std::memset(touched, 0, sizeof touched);
}

bool begin_wait(const core::OperationId& id, int max_waiters) {
    if (waiting) // a trigger on the way of one claim makes another
        return false;
    if (shared != nullptr) {
        if (!admit(id, max_waiters))
            return false;
        pg_atomic_fetch_add_u32(&shared->conditions[condition_of(id)].sleepers, 1);
    }
    waiting = true;
    waited_for = id;
    wait_began = GetCurrentTimestamp();
    next_deadlock_check = wait_began + DeadlockTimeout * core::MILLISECOND;
    pause = FIRST_PAUSE;
    return true;
}

void end_wait() {
    if (!waiting)
        return;
    waiting = false;
    if (shared == nullptr)
        return;
    ConditionVariableCancelSleep();
    pg_atomic_fetch_sub_u32(&shared->conditions[condition_of(waited_for)].sleepers, 1);
    LWLockAcquire(entries_lock, LW_EXCLUSIVE);
    shared->entries[my_proc_number()].pid = 0;
    LWLockRelease(entries_lock);
}

void prepare_to_sleep() {
    if (waiting && shared != nullptr)
        ConditionVariablePrepareToSleep(&shared->conditions[condition_of(waited_for)].changed);
}

void sleep_for_change(core::Timestamp until, TransactionId holder) {
    if (shared == nullptr) {
        sleep_polling(until);
        return;
    }
    publish_holder(holder);
    core::Timestamp wake_at = until;
    if (TransactionIdIsValid(holder) && next_deadlock_check < wake_at)
        wake_at = next_deadlock_check;
    (void)ConditionVariableTimedSleep(&shared->conditions[condition_of(waited_for)].changed,
                                      sleep_milliseconds(wake_at, LONGEST_SLEEP), PG_WAIT_EXTENSION);
    if (TransactionIdIsValid(holder) && GetCurrentTimestamp() >= next_deadlock_check) {
        next_deadlock_check = GetCurrentTimestamp() + core::SECOND;
        check_deadlock(holder);
    }
}

} // namespace idem::pg
