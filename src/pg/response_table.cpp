// response_table.cpp: see response_table.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/installation.hpp"
#include "pg/key_table.hpp"
#include "pg/response_table.hpp"
#include "pg/table_writer.hpp"

namespace idem::pg {

namespace {

// copy_varlena returns a detoasted, palloc'd copy of a column, or null.
template <typename T>
T* copy_varlena(TupleTableSlot* slot, int column) {
    if (slot->tts_isnull[column])
        return nullptr;
    return reinterpret_cast<T*>(
        pg_detoast_datum_copy(reinterpret_cast<varlena*>(DatumGetPointer(slot->tts_values[column]))));
}

void set_varlena(TableWriter& writer, int column, const void* value) {
    if (value != nullptr)
        set_column(writer, column, PointerGetDatum(value));
}

} // namespace

void insert_answer(Oid responses, const core::OperationId& id, core::Token token, const Answer& answer) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof uuid.data);
    TableWriter writer = open_writer(responses);
    clear_row(writer);
    set_column(writer, RESPONSE_OPERATION_ID, UUIDPGetDatum(&uuid));
    set_column(writer, RESPONSE_TOKEN, Int64GetDatum(token.value));
    set_column(writer, RESPONSE_STATUS, Int32GetDatum(answer.status));
    set_column(writer, RESPONSE_BODY_OMITTED, BoolGetDatum(answer.body_omitted));
    set_column(writer, RESPONSE_GIVEN_HASH,
               PointerGetDatum(
                   cstring_to_text_with_len(reinterpret_cast<const char*>(answer.given.bytes), answer.given.size)));
    set_varlena(writer, RESPONSE_HEADERS, answer.headers);
    set_varlena(writer, RESPONSE_BODY, answer.body);
    set_varlena(writer, RESPONSE_BODY_BYTES, answer.body_bytes);
    set_varlena(writer, RESPONSE_BODY_REF, answer.body_ref);
    set_varlena(writer, RESPONSE_BODY_SHA256, answer.body_sha256);
    store_row(writer);
    insert_row(writer);
    close_writer(writer);
}

bool read_answer(Oid responses, const core::OperationId& id, core::Token token, Answer* answer) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof uuid.data);
    Relation rel = table_open(responses, AccessShareLock);
    Relation index = index_open(primary_key_index(rel), AccessShareLock);
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    ScanKeyData conditions[2];
    ScanKeyInit(&conditions[0], 1, BTEqualStrategyNumber, F_UUID_EQ, UUIDPGetDatum(&uuid));
    ScanKeyInit(&conditions[1], 2, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(token.value));
    IndexScanDesc scan = begin_index_scan(rel, index, snapshot, 2);
    index_rescan(scan, conditions, 2, nullptr, 0);
    const bool found = index_getnext_slot(scan, ForwardScanDirection, slot);
    if (found) {
        slot_getallattrs(slot);
        answer->status = DatumGetInt32(slot->tts_values[RESPONSE_STATUS]);
        answer->body_omitted = DatumGetBool(slot->tts_values[RESPONSE_BODY_OMITTED]);
        answer->given = read_digest(slot->tts_values[RESPONSE_GIVEN_HASH]);
        answer->headers = copy_varlena<Jsonb>(slot, RESPONSE_HEADERS);
        answer->body = copy_varlena<text>(slot, RESPONSE_BODY);
        answer->body_bytes = copy_varlena<bytea>(slot, RESPONSE_BODY_BYTES);
        answer->body_ref = copy_varlena<text>(slot, RESPONSE_BODY_REF);
        answer->body_sha256 = copy_varlena<bytea>(slot, RESPONSE_BODY_SHA256);
    }
    index_endscan(scan);
    UnregisterSnapshot(snapshot);
    ExecDropSingleTupleTableSlot(slot);
    index_close(index, NoLock);
    table_close(rel, NoLock);
    return found;
}

} // namespace idem::pg
