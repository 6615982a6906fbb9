// wakeup.hpp: waiting for somebody else's key, and waking those who wait for ours.
//
// Purpose: a rival of a running claim sleeps until its owner's transaction ends, burning no CPU, and never longer than
// it was told to. The lock manager cannot do this: its waits end in data only for ever, or in an error. Data layout
// (shared memory, fixed at start, only when preloaded): an array of condition variables hashed by operation id, a count
// of sleepers beside each, and one WaiterEntry per server process saying which key it waits for and which transaction
// holds it. Ids and numbers only; nothing process-local. Locking: one LWLock guards the waiter entries; a process
// writes only its own. The count is read by committers without the lock: a sleeper counts itself before it probes, a
// committer reads the count after its commit is visible, so one of the two sees the other. Accepted races: keys that
// share a condition variable wake each other; every sleeper probes again anyway. COMMIT PREPARED runs no callback of
// ours, so no sleep is longer than a second. Without preload: the same calls poll with growing pauses; max_waiters and
// deadlock detection do not exist then.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// request_wakeup_memory and attach_wakeup_memory are the two halves of shared memory set-up.
void request_wakeup_memory();
void attach_wakeup_memory();

// wakeup_is_shared tells whether the library was preloaded.
bool wakeup_is_shared();

// touch_key notes that this transaction changes `id`; its waiters are woken when the transaction, or the
// subtransaction, ends. Allocates nothing.
void touch_key(const core::OperationId& id);

// wake_touched wakes the waiters of all touched keys. Safe in commit and abort callbacks.
void wake_touched();

// forget_touched starts the next transaction with nothing touched.
void forget_touched();

// begin_wait makes this process a waiter of `id`, unless `max_waiters` wait for it already, or a quarter of
// max_connections wait for any key.
bool begin_wait(const core::OperationId& id, int max_waiters);

// end_wait undoes begin_wait; harmless when nothing waits. Safe in callbacks.
void end_wait();

// prepare_to_sleep must come before the probe whose answer the sleep depends on.
void prepare_to_sleep();

// sleep_for_change sleeps until the key changes, `until` passes, or a second is over; interruptible. `holder` is the
// transaction waited for, invalid when the holder is a committed claim. Raises 40P01 when that transaction waits for
// us.
void sleep_for_change(core::Timestamp until, TransactionId holder);

} // namespace idem::pg
