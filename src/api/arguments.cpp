// arguments.cpp: see arguments.hpp.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/claim.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"

namespace idem::api {

text* optional_text(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) ? nullptr : PG_GETARG_TEXT_PP(argument);
}

Jsonb* optional_jsonb(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) ? nullptr : PG_GETARG_JSONB_P(argument);
}

bytea* optional_bytea(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) ? nullptr : PG_GETARG_BYTEA_PP(argument);
}

const pg_uuid_t* optional_uuid(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) ? nullptr : PG_GETARG_UUID_P(argument);
}

text* required_text(FunctionCallInfo fcinfo, int argument, const char* name, std::size_t limit) {
    text* value = optional_text(fcinfo, argument);
    if (value == nullptr)
        pg::error_null_argument(name);
    if (VARSIZE_ANY_EXHDR(value) == 0)
        pg::error_empty_argument(name);
    if (VARSIZE_ANY_EXHDR(value) > limit)
        pg::error_argument_too_long(name, limit);
    return value;
}

text* optional_target(FunctionCallInfo fcinfo, int argument) {
    text* value = optional_text(fcinfo, argument);
    if (value != nullptr && VARSIZE_ANY_EXHDR(value) > TARGET_MAX)
        pg::error_argument_too_long("target", TARGET_MAX);
    return value;
}

text* required_key(FunctionCallInfo fcinfo, int argument) {
    text* value = optional_text(fcinfo, argument);
    if (value == nullptr)
        pg::error_null_argument("key");
    return value;
}

core::OperationId required_operation_id(FunctionCallInfo fcinfo, int argument) {
    const pg_uuid_t* value = optional_uuid(fcinfo, argument);
    if (value == nullptr)
        pg::error_null_argument("operation_id");
    core::OperationId id;
    std::memcpy(id.bytes, value->data, sizeof id.bytes);
    return id;
}

core::Token required_token(FunctionCallInfo fcinfo, int argument) {
    if (PG_ARGISNULL(argument))
        pg::error_null_argument("token");
    return core::Token{PG_GETARG_INT64(argument)};
}

core::Duration optional_duration(FunctionCallInfo fcinfo, int argument, const char* name, core::Duration minimum,
                                 core::Duration maximum, const char* minimum_text, const char* maximum_text) {
    if (PG_ARGISNULL(argument))
        return engine::NOT_GIVEN;
    const Interval* interval = PG_GETARG_INTERVAL_P(argument);
    // Within these bounds the sum below cannot overflow, and no duration of the contract is near them.
    constexpr std::int32_t FAR = 100'000;
    const bool near = interval->month > -FAR && interval->month < FAR && interval->day > -FAR && interval->day < FAR &&
                      interval->time > -FAR * core::DAY && interval->time < FAR * core::DAY;
    const core::Duration days = near ? interval->month * std::int64_t{30} + interval->day : 0;
    const core::Duration duration = near ? days * core::DAY + interval->time : -1;
    if (duration < minimum || duration > maximum)
        pg::error_duration_range(name, minimum_text, maximum_text);
    return duration;
}

core::Duration optional_wait(FunctionCallInfo fcinfo, int argument) {
    return optional_duration(fcinfo, argument, "wait", 0, core::MAX_WAIT, "0", "60 seconds");
}

core::Duration optional_lease(FunctionCallInfo fcinfo, int argument) {
    return optional_duration(fcinfo, argument, "lease", core::MIN_LEASE, core::MAX_LEASE, "1 second", "24 hours");
}

core::Duration optional_ttl(FunctionCallInfo fcinfo, int argument) {
    return optional_duration(fcinfo, argument, "ttl", core::MIN_TTL, core::MAX_TTL, "1 second", "90 days");
}

} // namespace idem::api
