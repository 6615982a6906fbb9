// families.hpp: ops that are made of a family's name and what the caller calls a part of it: "inbox:stripe".
#pragma once

#include <string_view>

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::api {

// FAMILY_NAME_MAX is the longest source or channel, in bytes: with the family's name it is an op.
inline constexpr std::size_t FAMILY_NAME_MAX = 120;

// family_op joins a family and a source or channel.
text* family_op(std::string_view family, const text* name);

// optional_dedup_window is a ttl under the name it has for events and messages.
core::Duration optional_dedup_window(FunctionCallInfo fcinfo, int argument);

} // namespace idem::api
