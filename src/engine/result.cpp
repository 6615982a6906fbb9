// result.cpp: see result.hpp.
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"

namespace idem::engine {

namespace {

struct Columns {
    Datum* values;
    bool* isnull;

    void set(int column, Datum value) const {
        values[column] = value;
        isnull[column] = false;
    }
    void set_pointer(int column, const void* value) const {
        if (value != nullptr)
            set(column, PointerGetDatum(value));
    }
    void set_word(int column, const char* word) const {
        if (word != nullptr)
            set(column, PointerGetDatum(cstring_to_text(word)));
    }
    void set_time(int column, core::Timestamp time) const {
        if (time != 0)
            set(column, TimestampTzGetDatum(time));
    }
};

void set_answer(const Columns& columns, const pg::Answer& answer) {
    columns.set(pg::RESULT_STATUS, Int32GetDatum(answer.status));
    columns.set_pointer(pg::RESULT_HEADERS, answer.headers);
    columns.set_pointer(pg::RESULT_BODY, answer.body);
    columns.set_pointer(pg::RESULT_BODY_BYTES, answer.body_bytes);
    columns.set_pointer(pg::RESULT_BODY_REF, answer.body_ref);
}

Datum copy_id(const core::OperationId& id) {
    auto* uuid = static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t)));
    std::memcpy(uuid->data, id.bytes, sizeof uuid->data);
    return UUIDPGetDatum(uuid);
}

} // namespace

text* copy_text(const text* value) {
    return cstring_to_text_with_len(VARDATA_ANY(value), static_cast<int>(VARSIZE_ANY_EXHDR(value)));
}

Jsonb* copy_jsonb(const Jsonb* value) {
    if (value == nullptr)
        return nullptr;
    auto* copy = static_cast<Jsonb*>(palloc(VARSIZE(value)));
    std::memcpy(static_cast<void*>(copy), value, VARSIZE(value));
    return copy;
}

Result result_of_row(const pg::KeyRow& row, core::Outcome outcome, core::State state) {
    Result result{};
    result.outcome = outcome;
    result.state = core::state_word(state);
    result.id = row.id;
    result.has_id = true;
    result.key = copy_text(row.key);
    result.attempt = row.attempt;
    result.claimed_at = row.created_at;
    result.completed_at = row.completed_at;
    result.expires_at = row.expires_at;
    return result;
}

void result_tuple(const Result& result, Datum* values, bool* isnull) {
    std::memset(isnull, true, pg::RESULT_COLUMNS * sizeof(bool));
    std::memset(values, 0, pg::RESULT_COLUMNS * sizeof(Datum));
    if (!result.known)
        return;
    const Columns columns{values, isnull};
    columns.set_word(pg::RESULT_OUTCOME, core::outcome_word(result.outcome));
    columns.set(pg::RESULT_PROCEED, BoolGetDatum(core::proceeds(result.outcome)));
    columns.set(pg::RESULT_REPLAYED, BoolGetDatum(result.outcome == core::Outcome::REPLAY));
    if (result.has_id)
        columns.set(pg::RESULT_OPERATION_ID, copy_id(result.id));
    if (result.token.value != 0)
        columns.set(pg::RESULT_TOKEN, Int64GetDatum(result.token.value));
    columns.set_word(pg::RESULT_STATE, result.state);
    columns.set_pointer(pg::RESULT_KEY, result.key);
    if (result.attempt != 0)
        columns.set(pg::RESULT_ATTEMPT, Int32GetDatum(result.attempt));
    if (result.has_answer)
        set_answer(columns, result.answer);
    columns.set_pointer(pg::RESULT_CHECKPOINT, result.checkpoint);
    columns.set_time(pg::RESULT_CLAIMED_AT, result.claimed_at);
    columns.set_time(pg::RESULT_COMPLETED_AT, result.completed_at);
    columns.set_time(pg::RESULT_EXPIRES_AT, result.expires_at);
    if (result.retry_after_s != 0)
        columns.set(pg::RESULT_RETRY_AFTER_S, Int32GetDatum(result.retry_after_s));
    columns.set_word(pg::RESULT_REASON, result.reason);
    columns.set_pointer(pg::RESULT_DETAIL, result.detail);
}

void check_result_shape(TupleDesc desc) {
    if (!pg::has_shape(desc, pg::RESULT_SHAPE))
        pg::error_type_shape("idem_result");
}

Datum result_datum(const pg::Installation& installation, const Result& result) {
    Datum values[pg::RESULT_COLUMNS];
    bool isnull[pg::RESULT_COLUMNS];
    result_tuple(result, values, isnull);
    TupleDesc desc = lookup_rowtype_tupdesc(installation.result_type, -1);
    check_result_shape(desc);
    const Datum datum = HeapTupleGetDatum(heap_form_tuple(desc, values, isnull));
    ReleaseTupleDesc(desc);
    return datum;
}

} // namespace idem::engine
