// profile_cache.cpp: see profile_cache.hpp.
#include <string_view>

#include "core/policy.hpp"
#include "core/profile.hpp"
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/payload_hash.hpp"
#include "pg/profile_cache.hpp"
#include "pg/profile_options.hpp"
#include "pg/varlena.hpp"

namespace idem::pg {

namespace {

constexpr long MAX_VERSIONS = 1000;

// Columns of idem_profiles and idem_secrets, in table order.
enum ProfileColumn : int {
    PROFILE_OP,
    PROFILE_VERSION,
    PROFILE_ALGORITHM,
    PROFILE_SECRET_VERSION,
    PROFILE_OPTIONS,
    PROFILE_COLUMNS = 6
};
enum SecretColumn : int { SECRET_VERSION, SECRET_BYTES, SECRET_COLUMNS = 3 };

struct VersionKey {
    char op[core::MAX_OP_BYTES];
    std::int32_t version;
};

struct CachedVersion {
    VersionKey key;
    ProfileRules rules;
};

constexpr ProfileRules PLAIN{.algorithm = core::HashAlgorithm::XXH3_128, .profile = {}, .keyed = false, .secret = {}};

constinit MemoryContext context = nullptr;
constinit HTAB* cache = nullptr;
constinit Oid cached_relid = InvalidOid;

void empty_cache(Oid relid) {
    if (context == nullptr)
        context = AllocSetContextCreate(CacheMemoryContext, "idempotency profiles", ALLOCSET_SMALL_SIZES);
    cache = nullptr;
    MemoryContextReset(context);
    HASHCTL control{};
    control.keysize = sizeof(VersionKey);
    control.entrysize = sizeof(CachedVersion);
    control.hcxt = context;
    cache = hash_create("idempotency profiles", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    cached_relid = relid;
}

// Row is one row found by its primary key, deformed; values live as long as the current memory context.
struct Row {
    bool found;
    bool own; // written by this transaction, so it may yet be rolled back and its version number given to other rules
    Datum values[PROFILE_COLUMNS];
    bool isnull[PROFILE_COLUMNS];
};

Row find_row(Oid relid, ScanKeyData* conditions, int count, int columns) {
    Row row{};
    Relation rel = table_open(relid, AccessShareLock);
    if (RelationGetDescr(rel)->natts != columns)
        error_table_shape(RelationGetRelationName(rel), "It has other columns than the script gave it.");
    const Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    const Oid primary_key = primary_key_index(rel);
    SysScanDesc scan = systable_beginscan(rel, primary_key, OidIsValid(primary_key), snapshot, count, conditions);
    HeapTuple tuple = systable_getnext(scan);
    row.found = HeapTupleIsValid(tuple);
    if (row.found) {
        row.own = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
        heap_deform_tuple(heap_copytuple(tuple), RelationGetDescr(rel), row.values, row.isnull);
    }
    systable_endscan(scan);
    UnregisterSnapshot(snapshot);
    table_close(rel, AccessShareLock);
    return row;
}

void read_secret(Oid relid, Datum version, std::uint8_t* secret) {
    ScanKeyData condition;
    ScanKeyInit(&condition, SECRET_VERSION + 1, BTEqualStrategyNumber, F_INT4EQ, version);
    const Row row = find_row(relid, &condition, 1, SECRET_COLUMNS);
    if (!row.found)
        error_secret_missing(DatumGetInt32(version));
    const core::Bytes bytes = bytes_of(PG_DETOAST_DATUM_PACKED(row.values[SECRET_BYTES]));
    if (bytes.size() != sizeof ProfileRules{}.secret)
        error_secret_missing(DatumGetInt32(version));
    std::memcpy(secret, bytes.data(), bytes.size());
}

Row find_version(Oid profiles, std::string_view op, std::int32_t version) {
    ScanKeyData conditions[2];
    ScanKeyInit(&conditions[0], PROFILE_OP + 1, BTEqualStrategyNumber, F_TEXTEQ,
                PointerGetDatum(cstring_to_text_with_len(op.data(), static_cast<int>(op.size()))));
    ScanKeyInit(&conditions[1], PROFILE_VERSION + 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(version));
    const Row row = find_row(profiles, conditions, 2, PROFILE_COLUMNS);
    if (!row.found)
        error_profile_missing(version);
    return row;
}

// rules_of compiles a row; paths are palloc'd in `home`.
ProfileRules rules_of(const Row& row, Oid secrets, MemoryContext home) {
    ProfileRules rules = PLAIN;
    (void)hash_algorithm_from_name(bytes_of(PG_DETOAST_DATUM_PACKED(row.values[PROFILE_ALGORITHM])), &rules.algorithm);
    rules.keyed = !row.isnull[PROFILE_SECRET_VERSION];
    if (rules.keyed)
        read_secret(secrets, row.values[PROFILE_SECRET_VERSION], rules.secret);
    const MemoryContext caller = MemoryContextSwitchTo(home);
    compile_profile(DatumGetJsonbP(row.values[PROFILE_OPTIONS]), &rules.profile);
    (void)MemoryContextSwitchTo(caller);
    return rules;
}

} // namespace

void begin_profiles(Oid profiles_relid) {
    if (cache == nullptr || cached_relid != profiles_relid || hash_get_num_entries(cache) >= MAX_VERSIONS)
        empty_cache(profiles_relid);
}

const ProfileRules& find_profile(Oid profiles_relid, Oid secrets_relid, std::string_view op, std::int32_t version) {
    if (version == 0)
        return PLAIN;
    VersionKey key{};
    std::memcpy(key.op, op.data(), op.size());
    key.version = version;
    const auto* known = static_cast<const CachedVersion*>(hash_search(cache, &key, HASH_FIND, nullptr));
    if (known != nullptr)
        return known->rules;
    const Row row = find_version(profiles_relid, op, version);
    if (row.own) {
        auto* own = static_cast<ProfileRules*>(palloc(sizeof(ProfileRules)));
        *own = rules_of(row, secrets_relid, CurrentMemoryContext);
        return *own;
    }
    const ProfileRules rules = rules_of(row, secrets_relid, context);
    auto* entry = static_cast<CachedVersion*>(hash_search(cache, &key, HASH_ENTER, nullptr));
    entry->rules = rules;
    return entry->rules;
}

} // namespace idem::pg
