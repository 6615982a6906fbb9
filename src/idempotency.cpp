// idempotency.cpp: the library's front door: the magic block and a table of contents.
//
// Loaded by shared_preload_libraries it also asks for shared memory, so that waiters are woken instead of polling,
// and starts a background worker that removes what is over.
// Loaded later, by the first call of a function, everything else works the same.
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/settings.hpp"
#include "pg/wakeup.hpp"
#include "worker/launcher.hpp"
#include "worker/slots.hpp"

extern "C" {
IDEM_EXPORT const Pg_magic_struct* Pg_magic_func(void);
PG_MODULE_MAGIC;
IDEM_EXPORT void _PG_init(void);
}

namespace {

constinit shmem_request_hook_type previous_request_hook = nullptr;
constinit shmem_startup_hook_type previous_startup_hook = nullptr;

void request_memory() {
    if (previous_request_hook != nullptr)
        previous_request_hook();
    idem::pg::request_wakeup_memory();
    idem::worker::request_slot_memory();
}

void attach_memory() {
    if (previous_startup_hook != nullptr)
        previous_startup_hook();
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    idem::pg::attach_wakeup_memory();
    idem::worker::attach_slot_memory();
    LWLockRelease(AddinShmemInitLock);
}

} // namespace

void _PG_init(void) {
    idem::pg::define_settings();
    if (!process_shared_preload_libraries_in_progress)
        return;
    previous_request_hook = shmem_request_hook;
    shmem_request_hook = request_memory;
    previous_startup_hook = shmem_startup_hook;
    shmem_startup_hook = attach_memory;
    idem::worker::register_launcher();
}
