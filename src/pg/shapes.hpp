// shapes.hpp: the columns of the composite types that go in and out, in their frozen order.
//
// Purpose: one place knows the order of idem_result, idem_response and idem_http. A type that somebody altered is
// refused (ID006) wherever a row of it is made or read, because a Datum under a wrong type is a wild pointer.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// Columns of idem_result.
enum ResultColumn : int {
    RESULT_OUTCOME,
    RESULT_PROCEED,
    RESULT_REPLAYED,
    RESULT_OPERATION_ID,
    RESULT_TOKEN,
    RESULT_STATE,
    RESULT_KEY,
    RESULT_ATTEMPT,
    RESULT_STATUS,
    RESULT_HEADERS,
    RESULT_BODY,
    RESULT_BODY_BYTES,
    RESULT_BODY_REF,
    RESULT_CHECKPOINT,
    RESULT_CLAIMED_AT,
    RESULT_COMPLETED_AT,
    RESULT_EXPIRES_AT,
    RESULT_RETRY_AFTER_S,
    RESULT_REASON,
    RESULT_DETAIL,
    RESULT_COLUMNS,
};

// Columns of idem_response.
enum HandlerAnswerColumn : int {
    ANSWER_STATUS,
    ANSWER_HEADERS,
    ANSWER_BODY,
    ANSWER_BODY_JSON,
    ANSWER_BODY_BYTES,
    ANSWER_COLUMNS
};

// Columns of idem_http.
enum HttpColumn : int { HTTP_STATUS, HTTP_HEADERS, HTTP_BODY, HTTP_COLUMNS };

inline constexpr Oid RESULT_SHAPE[RESULT_COLUMNS] = {
    TEXTOID, BOOLOID,  BOOLOID, UUIDOID,  INT8OID,        TEXTOID,        TEXTOID,        INT4OID, INT4OID, JSONBOID,
    TEXTOID, BYTEAOID, TEXTOID, JSONBOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT4OID, TEXTOID, JSONBOID};
inline constexpr Oid ANSWER_SHAPE[ANSWER_COLUMNS] = {INT4OID, JSONBOID, TEXTOID, JSONBOID, BYTEAOID};
inline constexpr Oid HTTP_SHAPE[HTTP_COLUMNS] = {INT4OID, JSONBOID, BYTEAOID};

// has_shape tells whether a row type has exactly these columns.
template <int N>
bool has_shape(TupleDesc desc, const Oid (&shape)[N]) {
    if (desc->natts != N)
        return false;
    for (int i = 0; i < N; ++i)
        if (TupleDescAttr(desc, i)->atttypid != shape[i])
            return false;
    return true;
}

} // namespace idem::pg
