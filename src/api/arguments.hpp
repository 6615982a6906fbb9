// arguments.hpp: reading SQL arguments.
//
// Purpose: NULL identifiers raise 22004, malformed values 22023, each naming the argument; nothing here is STRICT, so
// that a driver's NULL never becomes a silent NULL answer.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::api {

// ACTOR_MAX is the longest actor, in bytes.
inline constexpr std::size_t ACTOR_MAX = 255;

// optional_text, optional_jsonb, optional_bytea, optional_uuid return an argument detoasted, or null.
text* optional_text(FunctionCallInfo fcinfo, int argument);
Jsonb* optional_jsonb(FunctionCallInfo fcinfo, int argument);
bytea* optional_bytea(FunctionCallInfo fcinfo, int argument);
const pg_uuid_t* optional_uuid(FunctionCallInfo fcinfo, int argument);

// required_text returns an argument of 1 to `limit` bytes.
text* required_text(FunctionCallInfo fcinfo, int argument, const char* name, std::size_t limit);

// optional_target returns the target argument, up to TARGET_MAX bytes, or null.
inline constexpr std::size_t TARGET_MAX = 1024;
text* optional_target(FunctionCallInfo fcinfo, int argument);

// required_key returns the key argument; whether it is well-formed is the policy's question.
text* required_key(FunctionCallInfo fcinfo, int argument);

// required_operation_id and required_token read what names an acquisition.
core::OperationId required_operation_id(FunctionCallInfo fcinfo, int argument);
core::Token required_token(FunctionCallInfo fcinfo, int argument);

// optional_duration returns an interval in microseconds, or NOT_GIVEN. A month counts 30 days.
core::Duration optional_duration(FunctionCallInfo fcinfo, int argument, const char* name, core::Duration minimum,
                                 core::Duration maximum, const char* minimum_text, const char* maximum_text);

// optional_wait, optional_lease and optional_ttl are optional_duration within the limits of the contract.
core::Duration optional_wait(FunctionCallInfo fcinfo, int argument);
core::Duration optional_lease(FunctionCallInfo fcinfo, int argument);
core::Duration optional_ttl(FunctionCallInfo fcinfo, int argument);

} // namespace idem::api
