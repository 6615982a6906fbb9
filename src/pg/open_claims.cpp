// open_claims.cpp: see open_claims.hpp.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/lease_queue.hpp"
#include "pg/open_claims.hpp"
#include "pg/wakeup.hpp"

namespace idem::pg {

namespace {

// The id is the end of a SHA-256, so its first bytes are the hash.
std::uint32_t hash_of(const core::OperationId& id) {
    std::uint32_t hash;
    std::memcpy(&hash, id.bytes, sizeof hash);
    return hash;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#define SH_PREFIX claims
#define SH_ELEMENT_TYPE OpenClaim
#define SH_KEY_TYPE core::OperationId
#define SH_KEY id
#define SH_HASH_KEY(table, key) hash_of(key)
#define SH_EQUAL(table, a, b) ((a) == (b))
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
extern "C++" {
#include "lib/simplehash.h"
}
#pragma GCC diagnostic pop

enum class Action : std::uint8_t { OPENED, CLOSED };

struct JournalEntry {
    core::OperationId id;
    SubTransactionId subtransaction;
    Action action;
    OpenClaim* replaced; // for OPENED: the claim of the same key that this one took the place of, or null
};

struct Journal {
    JournalEntry* entries;
    std::size_t count;
    std::size_t capacity;
};

constinit claims_hash* table = nullptr;
constinit Journal journal{};
constinit bool entered = false;

void append(const core::OperationId& id, Action action, OpenClaim* replaced) {
    if (journal.count == journal.capacity) {
        const std::size_t capacity = journal.capacity == 0 ? 16 : journal.capacity * 2;
        const Size bytes = capacity * sizeof(JournalEntry);
        journal.entries =
            static_cast<JournalEntry*>(journal.entries == nullptr ? MemoryContextAlloc(TopTransactionContext, bytes)
                                                                  : repalloc_huge(journal.entries, bytes));
        journal.capacity = capacity;
    }
    journal.entries[journal.count++] = JournalEntry{id, GetCurrentSubTransactionId(), action, replaced};
}

void undo(const JournalEntry& entry) {
    OpenClaim* claim = claims_lookup(table, entry.id);
    if (claim == nullptr)
        return;
    switch (entry.action) {
    case Action::OPENED:
        if (entry.replaced != nullptr)
            *claim = *entry.replaced;
        else
            claims_delete_item(table, claim);
        return;
    case Action::CLOSED: claim->open = true; return;
    }
}

void forget_all() {
    table = nullptr;
    journal = Journal{};
    entered = false;
    forget_touched();
}

// add_hint adds a lease hint at commit, when no snapshot is left and deferred triggers have run: triggers that somebody
// put on the queue need both.
void add_hint(const OpenClaim& claim) {
    PushActiveSnapshot(GetTransactionSnapshot());
    (void)insert_lease_hint(claim.leases, claim.id, claim.token, claim.lease_until);
    PopActiveSnapshot();
}

// settle checks and registers what is still open. It may raise; the transaction is then rolled back.
void settle() {
    bool hints = false;
    for (std::size_t i = 0; i < journal.count; ++i) {
        if (journal.entries[i].action != Action::OPENED)
            continue;
        OpenClaim* claim = claims_lookup(table, journal.entries[i].id);
        if (claim == nullptr || !claim->open)
            continue;
        if (claim->mode == core::Mode::TRANSACTION)
            error_left_open(claim->id);
        claim->open = false; // one hint is enough, however often it was opened
        if (claim->mode == core::Mode::ANY) {
            add_hint(OpenClaim{*claim}); // a copy: a trigger may claim, and so move the table's entries
            hints = true;
        }
    }
    if (hints)
        AfterTriggerFireDeferred();
}

void at_transaction_event(XactEvent event, void*) {
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
    case XACT_EVENT_PRE_PREPARE: settle(); return;
    case XACT_EVENT_COMMIT:
    case XACT_EVENT_ABORT:
    case XACT_EVENT_PREPARE:
        end_wait();
        wake_touched();
        forget_all();
        return;
    case XACT_EVENT_PARALLEL_PRE_COMMIT:
    case XACT_EVENT_PARALLEL_COMMIT:
    case XACT_EVENT_PARALLEL_ABORT: return;
    }
}

void at_subtransaction_event(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void*) {
    switch (event) {
    case SUBXACT_EVENT_ABORT_SUB:
        end_wait();
        while (journal.count > 0 && journal.entries[journal.count - 1].subtransaction == mine)
            undo(journal.entries[--journal.count]);
        wake_touched();
        return;
    case SUBXACT_EVENT_COMMIT_SUB:
        for (std::size_t i = journal.count; i > 0 && journal.entries[i - 1].subtransaction == mine; --i)
            journal.entries[i - 1].subtransaction = parent;
        return;
    case SUBXACT_EVENT_START_SUB:
    case SUBXACT_EVENT_PRE_COMMIT_SUB: return;
    }
}

} // namespace

void enter_transaction() {
    if (entered)
        return;
    UnregisterXactCallback(at_transaction_event, nullptr);
    RegisterXactCallback(at_transaction_event, nullptr);
    UnregisterSubXactCallback(at_subtransaction_event, nullptr);
    RegisterSubXactCallback(at_subtransaction_event, nullptr);
    entered = true;
}

void remember_claim(const OpenClaim& claim) {
    if (table == nullptr)
        table = claims_create(TopTransactionContext, 8, nullptr);
    bool found;
    OpenClaim* entry = claims_insert(table, claim.id, &found);
    OpenClaim* replaced = nullptr;
    if (found) {
        replaced = static_cast<OpenClaim*>(MemoryContextAlloc(TopTransactionContext, sizeof(OpenClaim)));
        *replaced = *entry;
    }
    const char status = entry->status;
    *entry = claim;
    entry->status = status;
    append(claim.id, Action::OPENED, replaced);
}

const OpenClaim* find_claim(const core::OperationId& id) {
    return table == nullptr ? nullptr : claims_lookup(table, id);
}

void end_claim(const core::OperationId& id) {
    OpenClaim* claim = table == nullptr ? nullptr : claims_lookup(table, id);
    if (claim == nullptr || !claim->open)
        return;
    claim->open = false;
    append(id, Action::CLOSED, nullptr);
}

} // namespace idem::pg
