// installation.cpp: finds, checks and caches the extension's objects. See installation.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/installation.hpp"

namespace idem::pg {

namespace {

// The version of the SQL script this library serves.
constexpr const char* SCRIPT_VERSION = "1.0";

struct ColumnShape {
    const char* name;
    Oid type;
    bool required;
};

constexpr ColumnShape KEY_SHAPE[KEY_COLUMNS] = {
    {"operation_id", UUIDOID, true},
    {"token", INT8OID, true},
    {"created_at", TIMESTAMPTZOID, true},
    {"updated_at", TIMESTAMPTZOID, true},
    {"lease_until", TIMESTAMPTZOID, true},
    {"attempt", INT4OID, true},
    {"profile", INT4OID, true},
    {"state", CHAROID, true},
    {"actor", TEXTOID, true},
    {"op", TEXTOID, true},
    {"key", TEXTOID, true},
    {"claimed_by", TEXTOID, true},
    {"payload_hash", BYTEAOID, false},
    {"completed_at", TIMESTAMPTZOID, false},
    {"expires_at", TIMESTAMPTZOID, false},
    {"ttl_s", INT4OID, false},
    {"attempt_id", UUIDOID, false},
    {"parent", UUIDOID, false},
    {"traceparent", TEXTOID, false},
    {"checkpoint", JSONBOID, false},
    {"evidence", JSONBOID, false},
    {"payload", TEXTOID, false},
};

constexpr ColumnShape RESPONSE_SHAPE[RESPONSE_COLUMNS] = {
    {"operation_id", UUIDOID, true},  {"token", INT8OID, true},        {"status", INT4OID, true},
    {"body_omitted", BOOLOID, true},  {"given_hash", BYTEAOID, true},  {"headers", JSONBOID, false},
    {"body", TEXTOID, false},         {"body_bytes", BYTEAOID, false}, {"body_ref", TEXTOID, false},
    {"body_sha256", BYTEAOID, false},
};

constexpr ColumnShape LEASE_SHAPE[LEASE_COLUMNS] = {
    {"operation_id", UUIDOID, true}, {"token", INT8OID, true}, {"lease_until", TIMESTAMPTZOID, true}};

constexpr ColumnShape MESSAGE_SHAPE[MESSAGE_COLUMNS] = {
    {"id", UUIDOID, true},
    {"created_at", TIMESTAMPTZOID, true},
    {"deliver_at", TIMESTAMPTZOID, true},
    {"operation_id", UUIDOID, false},
    {"aggregatetype", TEXTOID, true},
    {"aggregateid", TEXTOID, false},
    {"type", TEXTOID, true},
    {"actor", TEXTOID, true},
    {"dedup_id", TEXTOID, false},
    {"headers", JSONBOID, true},
    {"payload", JSONBOID, false},
    {"payload_bytes", BYTEAOID, false},
};

constexpr ColumnShape QUEUE_SHAPE[QUEUE_COLUMNS] = {
    {"message_id", UUIDOID, true},      {"seq", INT8OID, true},         {"lane", INT8OID, true},
    {"ready_at", TIMESTAMPTZOID, true}, {"token", INT8OID, true},       {"attempt", INT4OID, true},
    {"state", CHAROID, true},           {"topic", TEXTOID, true},       {"actor", TEXTOID, true},
    {"relay", TEXTOID, false},          {"last_error", TEXTOID, false},
};

constexpr ColumnShape TOPIC_SHAPE[TOPIC_COLUMNS] = {
    {"topic", TEXTOID, true}, {"max_attempts", INT4OID, true}, {"on_dead_letter", TEXTOID, true}};

constexpr ColumnShape CHILD_SHAPE[CHILD_COLUMNS] = {{"parent", UUIDOID, true}, {"operation_id", UUIDOID, true}};

constinit Installation cached{};
constinit bool cached_valid = false;
constinit bool callback_registered = false;
constinit bool invalidated_while_loading = false;

// forget_installation only clears flags: it may run inside any lock call.
void forget_installation(Datum, Oid relid) {
    invalidated_while_loading = true;
    if (relid == InvalidOid || relid == cached.keys || relid == cached.responses || relid == cached.leases ||
        relid == cached.policies || relid == cached.profiles || relid == cached.secrets || relid == cached.outbox ||
        relid == cached.outbox_queue || relid == cached.outbox_topics || relid == cached.outbox_seq ||
        relid == cached.children)
        cached_valid = false;
}

// Extension is the row of pg_extension: schema InvalidOid when there is none; version palloc'd.
struct Extension {
    Oid schema;
    const char* version;
};

Extension read_extension() {
    Extension found{InvalidOid, ""};
    Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
    ScanKeyData condition;
    ScanKeyInit(&condition, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum("idempotency"));
    SysScanDesc scan = systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &condition);
    HeapTuple tuple = systable_getnext(scan);
    if (HeapTupleIsValid(tuple)) {
        bool is_null;
        const Datum version = heap_getattr(tuple, Anum_pg_extension_extversion, RelationGetDescr(extensions), &is_null);
        found.version = is_null ? "" : TextDatumGetCString(version);
        found.schema = reinterpret_cast<const FormData_pg_extension*>(GETSTRUCT(tuple))->extnamespace;
    }
    systable_endscan(scan);
    table_close(extensions, AccessShareLock);
    return found;
}

void check_version() {
    const Extension extension = read_extension();
    if (OidIsValid(extension.schema) && std::strcmp(extension.version, SCRIPT_VERSION) != 0)
        error_version(extension.version, SCRIPT_VERSION);
}

void check_column(const char* relation, const FormData_pg_attribute* column, const ColumnShape& shape) {
    if (column->attisdropped || std::strcmp(NameStr(column->attname), shape.name) != 0)
        error_table_shape(relation, psprintf("Column \"%s\" is missing or not in its place.", shape.name));
    if (column->atttypid != shape.type)
        error_table_shape(relation, psprintf("Column \"%s\" has another type.", shape.name));
    if (column->attnotnull && !shape.required)
        error_table_shape(relation, psprintf("Column \"%s\" must be nullable.", shape.name));
}

// check_primary_key: the key must be the first columns, immediately enforced, or two rows of one operation could live.
void check_primary_key(Relation rel, int columns) {
    const char* name = RelationGetRelationName(rel);
    const Oid primary = primary_key_index(rel);
    if (!OidIsValid(primary))
        error_table_shape(name, "It has no primary key that is enforced at once.");
    Relation index = index_open(primary, AccessShareLock);
    bool same = index->rd_index->indnkeyatts == columns;
    for (int i = 0; same && i < columns; ++i)
        same = index->rd_index->indkey.values[i] == i + 1;
    index_close(index, NoLock);
    if (!same)
        error_table_shape(name, "Its primary key is on other columns.");
}

void check_shape(Relation rel, const ColumnShape* shape, int columns) {
    const char* name = RelationGetRelationName(rel);
    const TupleDesc desc = RelationGetDescr(rel);
    if (rel->rd_rel->relam != HEAP_TABLE_AM_OID || rel->rd_rel->relkind != RELKIND_RELATION)
        error_table_shape(name, "It is not a heap table.");
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        error_table_shape(name, "It is not a permanent table.");
    if (desc->natts < columns)
        error_table_shape(name, "A column is missing.");
    for (int i = 0; i < columns; ++i)
        check_column(name, TupleDescAttr(desc, i), shape[i]);
    for (int i = columns; i < desc->natts; ++i) {
        const FormData_pg_attribute* added = TupleDescAttr(desc, i);
        if (!added->attisdropped && (added->attnotnull || added->atthasdef || added->atthasmissing))
            error_table_shape(name, psprintf("Added column \"%s\" needs a value.", NameStr(added->attname)));
    }
}

Oid find_table(Oid schema, const char* name, const ColumnShape* shape, int columns, int key_columns) {
    const Oid relid = get_relname_relid(name, schema);
    if (!OidIsValid(relid))
        error_not_installed(name);
    if (shape != nullptr) {
        Relation rel = table_open(relid, AccessShareLock);
        check_shape(rel, shape, columns);
        if (key_columns > 0)
            check_primary_key(rel, key_columns);
        table_close(rel, NoLock);
    }
    return relid;
}

Installation load_installation(Oid schema) {
    check_version();
    Installation found{};
    found.schema = schema;
    found.keys = find_table(schema, "idem_keys", KEY_SHAPE, KEY_COLUMNS, 1);
    found.responses = find_table(schema, "idem_responses", RESPONSE_SHAPE, RESPONSE_COLUMNS, 2);
    found.leases = find_table(schema, "idem_leases", LEASE_SHAPE, LEASE_COLUMNS, 0);
    found.policies = find_table(schema, "idem_policies", nullptr, 0, 0);
    found.profiles = find_table(schema, "idem_profiles", nullptr, 0, 0);
    found.secrets = find_table(schema, "idem_secrets", nullptr, 0, 0);
    found.outbox = find_table(schema, "idem_outbox", MESSAGE_SHAPE, MESSAGE_COLUMNS, 1);
    found.outbox_queue = find_table(schema, "idem_outbox_queue", QUEUE_SHAPE, QUEUE_COLUMNS, 1);
    found.outbox_topics = find_table(schema, "idem_outbox_topics", TOPIC_SHAPE, TOPIC_COLUMNS, 1);
    found.outbox_seq = find_table(schema, "idem_outbox_seq", nullptr, 0, 0);
    found.children = find_table(schema, "idem_children", CHILD_SHAPE, CHILD_COLUMNS, 2);
    found.result_type =
        GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("idem_result"), ObjectIdGetDatum(schema));
    if (!OidIsValid(found.result_type))
        error_not_installed("idem_result");
    return found;
}

} // namespace

Installation installation_of(FunctionCallInfo fcinfo) {
    const Oid schema = get_func_namespace(fcinfo->flinfo->fn_oid);
    if (cached_valid && cached.schema == schema)
        return cached;
    if (!callback_registered) {
        CacheRegisterRelcacheCallback(forget_installation, 0);
        callback_registered = true;
    }
    cached_valid = false;
    do {
        invalidated_while_loading = false;
        cached = load_installation(schema);
    } while (invalidated_while_loading);
    cached_valid = true;
    return cached;
}

bool find_installation(Installation* found, Oid* owner) {
    const Extension extension = read_extension();
    if (!OidIsValid(extension.schema) || std::strcmp(extension.version, SCRIPT_VERSION) != 0)
        return false;
    *found = Installation{};
    found->schema = extension.schema;
    found->keys = get_relname_relid("idem_keys", extension.schema);
    found->responses = get_relname_relid("idem_responses", extension.schema);
    found->leases = get_relname_relid("idem_leases", extension.schema);
    found->policies = get_relname_relid("idem_policies", extension.schema);
    found->profiles = get_relname_relid("idem_profiles", extension.schema);
    HeapTuple keys = SearchSysCache1(RELOID, ObjectIdGetDatum(found->keys));
    if (!HeapTupleIsValid(keys))
        return false;
    *owner = reinterpret_cast<const FormData_pg_class*>(GETSTRUCT(keys))->relowner;
    ReleaseSysCache(keys);
    return OidIsValid(found->responses) && OidIsValid(found->leases) && OidIsValid(found->policies) &&
           OidIsValid(found->profiles);
}

} // namespace idem::pg
