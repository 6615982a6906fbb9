// key_table.cpp: see key_table.hpp.
#include "core/types.hpp"
#include "core/words.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/key_table.hpp"
#include "pg/varlena.hpp"

namespace idem::pg {

namespace {

bool probe(KeyReader& reader, const core::OperationId& id, Snapshot snapshot) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof uuid.data);
    ScanKeyData condition;
    ScanKeyInit(&condition, 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(&uuid));
    IndexScanDesc scan = begin_index_scan(reader.rel, reader.index, snapshot, 1);
    index_rescan(scan, &condition, 1, nullptr, 0);
    const bool found = index_getnext_slot(scan, ForwardScanDirection, reader.slot);
    index_endscan(scan);
    return found;
}

bool probe_registered(KeyReader& reader, const core::OperationId& id, Snapshot snapshot) {
    Snapshot registered = RegisterSnapshot(snapshot);
    const bool found = probe(reader, id, registered);
    UnregisterSnapshot(registered);
    return found;
}

// Column gives typed access to one column of the slot.
struct Column {
    TupleTableSlot* slot;
    int number;

    bool is_null() const { return slot->tts_isnull[number]; }
    Datum datum() const { return slot->tts_values[number]; }
    core::Timestamp timestamp() const { return is_null() ? 0 : DatumGetTimestampTz(datum()); }
    text* packed_text() const {
        return is_null() ? nullptr : reinterpret_cast<text*>(PG_DETOAST_DATUM_PACKED(datum()));
    }
    pg_uuid_t* uuid() const { return is_null() ? nullptr : DatumGetUUIDP(datum()); }
    Jsonb* jsonb() const { return is_null() ? nullptr : DatumGetJsonbP(datum()); }
};

core::State read_state(const Column& column) {
    const char stored = DatumGetChar(column.datum());
    if (!core::is_state(stored))
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("stored state is unknown")));
    return static_cast<core::State>(stored);
}

} // namespace

core::Digest read_digest(Datum stored) {
    core::Digest digest{};
    const core::Bytes bytes = bytes_of(PG_DETOAST_DATUM_PACKED(stored));
    if (bytes.size() > sizeof digest.bytes)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("stored hash has an unknown size")));
    std::memcpy(digest.bytes, bytes.data(), bytes.size());
    digest.size = static_cast<std::uint8_t>(bytes.size());
    return digest;
}

KeyReader open_reader(Oid keys, LOCKMODE lock) {
    KeyReader reader{};
    reader.rel = table_open(keys, lock);
    const Oid primary_key = primary_key_index(reader.rel);
    if (!OidIsValid(primary_key))
        error_table_shape(RelationGetRelationName(reader.rel), "It has no primary key that is checked at once.");
    reader.index = index_open(primary_key, lock);
    reader.slot = table_slot_create(reader.rel, nullptr);
    return reader;
}

void close_reader(KeyReader& reader) {
    ExecDropSingleTupleTableSlot(reader.slot);
    index_close(reader.index, NoLock);
    table_close(reader.rel, NoLock);
}

bool probe_any(KeyReader& reader, const core::OperationId& id, Rival* rival) {
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    const bool found = probe(reader, id, &dirty);
    *rival = found ? Rival{dirty.xmin, dirty.xmax, dirty.speculativeToken} : Rival{};
    return found;
}

bool probe_latest(KeyReader& reader, const core::OperationId& id) {
    return probe_registered(reader, id, GetLatestSnapshot());
}

bool probe_snapshot(KeyReader& reader, const core::OperationId& id) {
    return probe_registered(reader, id, GetTransactionSnapshot());
}

bool probe_visible(KeyReader& reader, const core::OperationId& id, const ItemPointerData& tid) {
    ItemPointerData judged = tid;
    if (!probe_snapshot(reader, id))
        return false;
    return ItemPointerEquals(&reader.slot->tts_tid, &judged);
}

void forget_row(KeyReader& reader) {
    ExecClearTuple(reader.slot);
}

KeyRow read_row(KeyReader& reader) {
    TupleTableSlot* slot = reader.slot;
    slot_getallattrs(slot);
    const auto column = [slot](int number) { return Column{slot, number}; };
    KeyRow row{};
    std::memcpy(row.id.bytes, column(KEY_OPERATION_ID).uuid()->data, sizeof row.id.bytes);
    row.token = core::Token{DatumGetInt64(column(KEY_TOKEN).datum())};
    row.created_at = column(KEY_CREATED_AT).timestamp();
    row.updated_at = column(KEY_UPDATED_AT).timestamp();
    row.lease_until = column(KEY_LEASE_UNTIL).timestamp();
    row.completed_at = column(KEY_COMPLETED_AT).timestamp();
    row.expires_at = column(KEY_EXPIRES_AT).timestamp();
    row.ttl_s = column(KEY_TTL_S).is_null() ? 0 : DatumGetInt32(column(KEY_TTL_S).datum());
    row.attempt = DatumGetInt32(column(KEY_ATTEMPT).datum());
    row.profile = DatumGetInt32(column(KEY_PROFILE).datum());
    row.state = read_state(column(KEY_STATE));
    row.actor = column(KEY_ACTOR).packed_text();
    row.op = column(KEY_OP).packed_text();
    row.key = column(KEY_KEY).packed_text();
    row.claimed_by = column(KEY_CLAIMED_BY).packed_text();
    row.payload_hash =
        column(KEY_PAYLOAD_HASH).is_null() ? core::Digest{} : read_digest(column(KEY_PAYLOAD_HASH).datum());
    row.attempt_id = column(KEY_ATTEMPT_ID).uuid();
    row.parent = column(KEY_PARENT).uuid();
    row.traceparent = column(KEY_TRACEPARENT).packed_text();
    row.checkpoint = column(KEY_CHECKPOINT).jsonb();
    row.evidence = column(KEY_EVIDENCE).jsonb();
    row.payload = column(KEY_PAYLOAD).packed_text();
    row.tid = slot->tts_tid;
    bool is_null;
    row.xmin = DatumGetTransactionId(slot_getsysattr(slot, MinTransactionIdAttributeNumber, &is_null));
    return row;
}

LockResult try_lock_row(KeyReader& reader, ItemPointer tid) {
    TM_FailureData failure;
    const TM_Result result =
        table_tuple_lock(reader.rel, tid, GetActiveSnapshot(), reader.slot, GetCurrentCommandId(true),
                         LockTupleNoKeyExclusive, LockWaitSkip, TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
    switch (result) {
    case TM_Ok: return LockResult::LOCKED;
    case TM_WouldBlock: return LockResult::BUSY;
    case TM_Updated:
    case TM_Deleted: return LockResult::CHANGED;
    case TM_Invisible:
    case TM_SelfModified:
    case TM_BeingModified: break;
    }
    elog(ERROR, "unexpected result %d of a row lock", static_cast<int>(result));
    pg_unreachable();
}

} // namespace idem::pg
