// result.hpp: the row every verb answers with.
//
// Purpose: engine code fills a Result; only this file knows the order of idem_result's columns. Null pointers and the
// value 0 in `token`, `attempt`, `retry_after_s` and the times are SQL NULLs.
#pragma once

#include "core/types.hpp"
#include "core/words.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"
#include "pg/key_table.hpp"
#include "pg/response_table.hpp"
#include "pg/shapes.hpp"

namespace idem::engine {

// Result is one idem_result.
struct Result {
    bool known = true; // false: nothing is known of the key, all columns are NULL
    core::Outcome outcome = core::Outcome::REJECTED;
    const char* state = nullptr;
    core::OperationId id = {};
    bool has_id = false;
    core::Token token = {};
    const text* key = nullptr;
    std::int32_t attempt = 0;
    bool has_answer = false;
    pg::Answer answer = {};
    Jsonb* checkpoint = nullptr;
    core::Timestamp claimed_at = 0;
    core::Timestamp completed_at = 0;
    core::Timestamp expires_at = 0;
    std::int32_t retry_after_s = 0;
    const char* reason = nullptr;
    Jsonb* detail = nullptr;
};

// copy_text returns a palloc'd copy of a row's text, which outlives the row's buffer.
text* copy_text(const text* value);

// copy_jsonb returns a palloc'd copy of a row's jsonb, or null.
Jsonb* copy_jsonb(const Jsonb* value);

// result_of_row starts a Result with what a key row says, without token and answer. `state` is what it is called now.
Result result_of_row(const pg::KeyRow& row, core::Outcome outcome, core::State state);

// result_datum turns a Result into an idem_result of this installation.
Datum result_datum(const pg::Installation& installation, const Result& result);

// check_result_shape raises ID006 unless a row type is idem_result as this library knows it.
void check_result_shape(TupleDesc desc);

// result_tuple fills values[] and isnull[] (pg::RESULT_COLUMNS long) for a tuplestore.
void result_tuple(const Result& result, Datum* values, bool* isnull);

} // namespace idem::engine
