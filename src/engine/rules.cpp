// rules.cpp: see rules.hpp.
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/detail.hpp"
#include "engine/rules.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

const char* reason_unknown(const pg::KeyRow& row) {
    JsonbValue value;
    const bool swept = row.evidence != nullptr && JB_ROOT_IS_OBJECT(row.evidence) &&
                       getKeyJsonValueFromContainer(&row.evidence->root, "lease_over", 10, &value) != nullptr;
    return row.state == core::State::INDETERMINATE && !swept ? "reported" : "lease_over";
}

Jsonb* detail_of_answer(const pg::KeyRow& row, Jsonb* evidence, const pg::Answer& answer, bool payload_differs) {
    Detail detail;
    if (answer.body_omitted)
        add_bool(detail, "body_omitted", true);
    if (answer.body_sha256 != nullptr)
        add_hex(detail, "body_sha256", pg::bytes_of(answer.body_sha256));
    if (payload_differs)
        add_bool(detail, "payload_differs", true);
    add_text(detail, "traceparent", row.traceparent);
    add_json(detail, "evidence", evidence);
    return finish(detail);
}

bool replay_result(const pg::Installation& installation, const pg::KeyRow& row, bool payload_differs, Result* result) {
    *result = result_of_row(row, core::Outcome::REPLAY, row.state);
    if (!pg::read_answer(installation.responses, row.id, row.token, &result->answer))
        return false;
    result->has_answer = true;
    result->detail = detail_of_answer(row, row.evidence, result->answer, payload_differs);
    return true;
}

void check_answer_gone(pg::KeyReader& reader, const pg::KeyRow& row) {
    ItemPointerData tid = row.tid;
    if (pg::probe_latest(reader, row.id) && ItemPointerEquals(&tid, &reader.slot->tts_tid))
        pg::error_answer_missing(row.id);
    if (IsolationUsesXactSnapshot())
        pg::error_serialization();
}

} // namespace idem::engine
