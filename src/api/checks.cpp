// checks.cpp: idem_check_holder and idem_required, by which the script's SQL functions raise what C++ verbs raise.
#include "core/decision.hpp"
#include "core/types.hpp"
#include "core/words.hpp"
#include "api/arguments.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/errors.hpp"
#include "pg/varlena.hpp"

using namespace idem;

// idem_check_holder(operation_id, token, held, state) returns true where `token` holds, or ended, a key that has token
// `held` and `state`. NULL held: there is no such key. Raises ID001, ID007.
IDEM_FUNCTION(idem_check_holder_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const core::Token shown = api::required_token(fcinfo, 1);
    if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
        pg::error_no_operation(id);
    const core::State state = static_cast<core::State>(PG_GETARG_CHAR(3));
    if (core::judge_holder(state, core::Token{PG_GETARG_INT64(2)}, shown) == core::HolderVerdict::STALE)
        pg::error_stale_token(id);
    PG_RETURN_BOOL(true);
}

// idem_required(value, argument, size_limit) returns a value of 1 to size_limit bytes. Raises 22004, 22023.
IDEM_FUNCTION(idem_required_v1) {
    const char* argument = PG_ARGISNULL(1) ? "argument" : text_to_cstring(PG_GETARG_TEXT_PP(1));
    const std::size_t limit = PG_ARGISNULL(2) ? 255 : static_cast<std::size_t>(PG_GETARG_INT32(2));
    PG_RETURN_TEXT_P(api::required_text(fcinfo, 0, argument, limit));
}

// idem_check_size(bytes, argument, size_limit) returns true where there is no value or it is within the limit. Raises
// ID005.
IDEM_FUNCTION(idem_check_size_v1) {
    const char* argument = PG_ARGISNULL(1) ? "argument" : text_to_cstring(PG_GETARG_TEXT_PP(1));
    const std::size_t limit = PG_ARGISNULL(2) ? 0 : static_cast<std::size_t>(PG_GETARG_INT32(2));
    if (!PG_ARGISNULL(0) && static_cast<std::size_t>(PG_GETARG_INT32(0)) > limit)
        pg::error_too_large(argument, static_cast<std::size_t>(PG_GETARG_INT32(0)), limit);
    PG_RETURN_BOOL(true);
}
