// slots.cpp: see slots.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "worker/slots.hpp"

namespace idem::worker {

namespace {

constexpr core::Duration START_TIMEOUT = 60 * core::SECOND;

struct SharedSlots {
    int launcher;
    DatabaseSlot slots[MAX_DATABASES];
};

constinit SharedSlots* shared = nullptr;
constinit LWLock* lock = nullptr;
constinit int my_slot = -1; // where note_claim found this database

DatabaseSlot* find_slot(Oid database) {
    for (DatabaseSlot& slot : shared->slots)
        if (slot.database == database)
            return &slot;
    return nullptr;
}

DatabaseSlot* find_or_add_slot(Oid database, core::Timestamp now) {
    DatabaseSlot* slot = find_slot(database);
    if (slot != nullptr)
        return slot;
    slot = find_slot(InvalidOid);
    if (slot != nullptr) {
        *slot = DatabaseSlot{};
        slot->database = database;
        slot->next_run = now;
    }
    return slot;
}

bool is_listed(Oid database, const Oid* databases, int count) {
    for (int i = 0; i < count; ++i)
        if (databases[i] == database)
            return true;
    return false;
}

bool is_visited(const DatabaseSlot& slot) {
    return slot.visit == Visit::STARTING || slot.visit == Visit::RUNNING;
}

} // namespace

void request_slot_memory() {
    RequestAddinShmemSpace(sizeof(SharedSlots));
    RequestNamedLWLockTranche("idempotency_slots", 1);
}

void attach_slot_memory() {
    bool found;
    shared = static_cast<SharedSlots*>(ShmemInitStruct("idempotency slots", sizeof(SharedSlots), &found));
    if (!found)
        std::memset(static_cast<void*>(shared), 0, sizeof(SharedSlots));
    lock = &GetNamedLWLockTranche("idempotency_slots")->lock;
}

bool slots_are_shared() {
    return shared != nullptr;
}

void note_claim() {
    if (shared == nullptr)
        return;
    if (my_slot >= 0 && shared->slots[my_slot].database == MyDatabaseId && shared->slots[my_slot].served)
        return;
    LWLockAcquire(lock, LW_EXCLUSIVE);
    DatabaseSlot* slot = find_or_add_slot(MyDatabaseId, 0);
    if (slot != nullptr) {
        my_slot = static_cast<int>(slot - shared->slots);
        if (!slot->served)
            slot->next_run = 0;
        slot->served = true;
    }
    LWLockRelease(lock);
}

int launcher_pid() {
    return shared == nullptr ? 0 : shared->launcher;
}

void set_launcher_pid(int pid) {
    shared->launcher = pid;
}

int keep_databases(const Oid* databases, int count, core::Timestamp now) {
    int without_room = 0;
    LWLockAcquire(lock, LW_EXCLUSIVE);
    for (DatabaseSlot& slot : shared->slots)
        if (OidIsValid(slot.database) && !is_listed(slot.database, databases, count))
            slot = DatabaseSlot{};
    for (int i = 0; i < count; ++i)
        if (find_or_add_slot(databases[i], now) == nullptr)
            ++without_room;
    LWLockRelease(lock);
    return without_room;
}

Oid begin_visit(core::Timestamp now, core::Timestamp* next) {
    DatabaseSlot* due = nullptr;
    *next = NEVER;
    LWLockAcquire(lock, LW_EXCLUSIVE);
    for (DatabaseSlot& slot : shared->slots) {
        if (slot.visit == Visit::STARTING && now - slot.started_at > START_TIMEOUT)
            slot.visit = Visit::FAILED;
        if (!OidIsValid(slot.database) || is_visited(slot))
            continue;
        if (slot.next_run > now)
            *next = Min(*next, slot.next_run);
        else if (due == nullptr || slot.next_run < due->next_run)
            due = &slot;
    }
    const Oid database = due == nullptr ? InvalidOid : due->database;
    if (due != nullptr) {
        due->visit = Visit::STARTING;
        due->started_at = now;
    }
    LWLockRelease(lock);
    return database;
}

void abandon_visit(Oid database, core::Timestamp next_run) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    DatabaseSlot* slot = find_slot(database);
    if (slot != nullptr && is_visited(*slot)) {
        slot->visit = Visit::FAILED;
        slot->pid = 0;
        slot->errors += 1;
        slot->next_run = next_run;
    }
    LWLockRelease(lock);
}

void put_off_visit(Oid database, core::Timestamp next_run) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    DatabaseSlot* slot = find_slot(database);
    if (slot != nullptr && slot->visit == Visit::STARTING) {
        slot->visit = slot->ended_at == 0 ? Visit::NONE : Visit::DONE;
        slot->next_run = next_run;
    }
    LWLockRelease(lock);
}

bool copy_slot(Oid database, DatabaseSlot* copy) {
    LWLockAcquire(lock, LW_SHARED);
    const DatabaseSlot* slot = find_slot(database);
    if (slot != nullptr)
        *copy = *slot;
    LWLockRelease(lock);
    return slot != nullptr;
}

DatabaseSlot* copy_slots(int* count) {
    auto* copies = static_cast<DatabaseSlot*>(palloc(sizeof(shared->slots)));
    *count = 0;
    LWLockAcquire(lock, LW_SHARED);
    for (const DatabaseSlot& slot : shared->slots)
        if (OidIsValid(slot.database))
            copies[(*count)++] = slot;
    LWLockRelease(lock);
    return copies;
}

void put_slot(const DatabaseSlot& given) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    DatabaseSlot* slot = find_slot(given.database);
    if (slot != nullptr)
        *slot = given;
    LWLockRelease(lock);
}

} // namespace idem::worker
