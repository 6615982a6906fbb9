// rules.cpp: see rules.hpp.
#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/detail.hpp"
#include "engine/rules.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"

namespace idem::engine {

Result replay_result(const pg::Installation& installation, const pg::KeyRow& row, bool payload_differs) {
    Result result = result_of_row(row, core::Outcome::REPLAY, row.state);
    if (!pg::read_answer(installation.responses, row.id, row.token, &result.answer))
        pg::error_answer_missing(row.id);
    result.has_answer = true;
    Detail detail;
    if (result.answer.body_omitted)
        add_bool(detail, "body_omitted", true);
    if (payload_differs)
        add_bool(detail, "payload_differs", true);
    add_text(detail, "traceparent", row.traceparent);
    add_json(detail, "evidence", row.evidence);
    result.detail = finish(detail);
    return result;
}

} // namespace idem::engine
