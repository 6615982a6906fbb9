// policy_options.hpp: policy options between jsonb and core::Policy.
//
// Purpose: check what a user wrote, fill in what the preset says, and give back either the full options object that
// idem_policies keeps or the struct that the claim path reads. Both go through core's option table.
// Lifetime: results are palloc'd in the current memory context, or copied into the caller's struct.
// Accepted: an object stored by an older version lacks the newer options; they have the values of an op without policy.
#pragma once

#include <string_view>

#include "core/policy.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// resolve_policy_options returns the effective options of a preset with the given ones on top: every option is present,
// each in its normal form. options may be null. Raises 22023 on an unknown preset or option, a value of the wrong type,
// or one out of its bounds.
Jsonb* resolve_policy_options(std::string_view preset, Jsonb* options);

// parse_policy reads an options object as resolve_policy_options makes it; version stays 0. Raises 22023 as above.
void parse_policy(Jsonb* effective, core::Policy* out);

} // namespace idem::pg
