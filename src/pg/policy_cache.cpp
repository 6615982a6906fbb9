// policy_cache.cpp: see policy_cache.hpp.
#include <cstring>
#include <string_view>

#include "core/policy.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/policy_cache.hpp"
#include "pg/policy_options.hpp"

namespace idem::pg {

namespace {

using core::MAX_OP_BYTES;
using core::Policy;

constexpr long MAX_ENTRIES = 1000;

// Under a storm of invalidations the row is read this often; the last reading is used and not kept.
constexpr int MAX_READINGS = 3;

struct CacheKey {
    char op[MAX_OP_BYTES]; // zero-padded; an op has no zero byte
};

struct CacheEntry {
    CacheKey key;
    bool exists;
    Policy policy;
};

constinit MemoryContext cache_context = nullptr;
constinit HTAB* cache = nullptr;
constinit Oid cached_relid = InvalidOid;
constinit bool cache_valid = false;

// forget_policies is the relcache callback; it can run at any lock call and so touches nothing but the flag.
void forget_policies(Datum, Oid relid) {
    if (relid == InvalidOid || relid == cached_relid) {
        cache_valid = false;
    }
}

// create_cache makes the context and registers the callback together, so that no cache can miss a message.
void create_cache() {
    cache_context = AllocSetContextCreateInternal(CacheMemoryContext, "idempotency policies", ALLOCSET_DEFAULT_SIZES);
    CacheRegisterRelcacheCallback(forget_policies, 0);
}

// empty_cache starts over for a table. The flag is set last: a failure in between leaves an invalid cache.
void empty_cache(Oid relid) {
    cache_valid = false;
    cache = nullptr;
    MemoryContextReset(cache_context);
    HASHCTL control{};
    control.keysize = sizeof(CacheKey);
    control.entrysize = sizeof(CacheEntry);
    control.hcxt = cache_context;
    cache = hash_create("idempotency policies", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    cached_relid = relid;
    cache_valid = true;
}

// column returns the number of a column of the expected type.
int column(Relation rel, const char* name, Oid type) {
    const TupleDesc desc = RelationGetDescr(rel);
    const int number = SPI_fnumber(desc, name);
    if (number <= 0 || TupleDescAttr(desc, number - 1)->atttypid != type) {
        error_table_shape(RelationGetRelationName(rel),
                          psprintf("Column \"%s\" is missing or has another type.", name));
    }
    return number;
}

Datum column_value(Relation rel, HeapTuple tuple, int number) {
    bool isnull = false;
    const Datum value = heap_getattr(tuple, number, RelationGetDescr(rel), &isnull);
    if (isnull) {
        error_table_shape(RelationGetRelationName(rel), psprintf("Column %d is null.", number));
    }
    return value;
}

// read_policy reads the row of an op with a fresh snapshot, which sees what this transaction changed and what others
// committed, in every isolation level. systable_beginscan falls back to a sequential scan where the key was dropped.
bool read_policy(Oid relid, std::string_view op, Policy* out) {
    const Relation rel = table_open(relid, AccessShareLock);
    const int op_column = column(rel, "op", TEXTOID);
    const int options_column = column(rel, "options", JSONBOID);
    const int version_column = column(rel, "version", INT4OID);
    const int updated_column = column(rel, "updated_at", TIMESTAMPTZOID);
    const int profile_column = column(rel, "profile", INT4OID);
    const Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    const Oid primary_key = primary_key_index(rel);

    ScanKeyData key;
    ScanKeyInit(&key, static_cast<AttrNumber>(op_column), BTEqualStrategyNumber, F_TEXTEQ,
                PointerGetDatum(cstring_to_text_with_len(op.data(), static_cast<int>(op.size()))));
    const SysScanDesc scan = systable_beginscan(rel, primary_key, OidIsValid(primary_key), snapshot, 1, &key);
    const HeapTuple tuple = systable_getnext(scan);
    const bool found = HeapTupleIsValid(tuple);
    *out = Policy{};
    if (found) {
        parse_policy(DatumGetJsonbP(column_value(rel, tuple, options_column)), out);
        out->version = DatumGetInt32(column_value(rel, tuple, version_column));
        out->updated_at = DatumGetTimestampTz(column_value(rel, tuple, updated_column));
        out->profile = DatumGetInt32(column_value(rel, tuple, profile_column));
    }
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    table_close(rel, AccessShareLock);
    return found;
}

bool begins_with(std::string_view text, std::string_view word) {
    return text.size() >= word.size() && std::memcmp(text.data(), word.data(), word.size()) == 0;
}

// read_family gives an op that has no row what its family has.
void read_family(Oid relid, std::string_view op, Policy* out) {
    if (begins_with(op, MESSAGE_OPS))
        *out = core::preset_policy(core::Preset::MESSAGE);
    if (begins_with(op, INBOX_OPS) || begins_with(op, INTENT_OPS))
        *out = core::preset_policy(core::Preset::WEBHOOK);
    if (!begins_with(op, INTENT_OPS))
        return;
    char source_op[MAX_OP_BYTES];
    const std::string_view source = std::string_view(op.data() + INTENT_OPS.size(), op.size() - INTENT_OPS.size());
    std::memcpy(source_op, INBOX_OPS.data(), INBOX_OPS.size());
    std::memcpy(source_op + INBOX_OPS.size(), source.data(), source.size());
    Policy of_source;
    if (!read_policy(relid, std::string_view(source_op, INBOX_OPS.size() + source.size()), &of_source))
        return;
    *out = of_source;
    out->version = 0;
    out->profile = 0;
    out->hash_key = core::HashKey::NONE;
}

// fill_entry reads a policy and keeps it, unless the table changed each time it was read.
bool fill_entry(Oid relid, const CacheKey& key, std::string_view op, Policy* out) {
    const MemoryContext scratch =
        AllocSetContextCreateInternal(CurrentMemoryContext, "idempotency policy row", ALLOCSET_SMALL_SIZES);
    const MemoryContext caller = MemoryContextSwitchTo(scratch);
    bool found = false;
    for (int reading = 0; reading < MAX_READINGS; reading++) {
        CHECK_FOR_INTERRUPTS();
        if (!cache_valid || hash_get_num_entries(cache) >= MAX_ENTRIES) {
            empty_cache(relid);
        }
        found = read_policy(relid, op, out);
        if (!found)
            read_family(relid, op, out);
        if (cache_valid) {
            auto* entry = static_cast<CacheEntry*>(hash_search(cache, &key, HASH_ENTER, nullptr));
            entry->exists = found;
            entry->policy = *out;
            break;
        }
    }
    MemoryContextSwitchTo(caller);
    MemoryContextDelete(scratch);
    return found;
}

} // namespace

bool load_policy(Oid policies_relid, std::string_view op, Policy* out) {
    if (op.empty() || op.size() > MAX_OP_BYTES) {
        *out = Policy{};
        return false;
    }
    CacheKey key{};
    std::memcpy(key.op, op.data(), op.size());
    if (cache_context == nullptr) {
        create_cache();
    }
    if (cached_relid != policies_relid) {
        cache_valid = false;
    }
    if (cache_valid) {
        const auto* entry = static_cast<const CacheEntry*>(hash_search(cache, &key, HASH_FIND, nullptr));
        if (entry != nullptr) {
            *out = entry->policy;
            return entry->exists;
        }
    }
    return fill_entry(policies_relid, key, op, out);
}

} // namespace idem::pg
