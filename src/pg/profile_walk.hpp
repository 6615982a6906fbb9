// profile_walk.hpp: from stored jsonb to core's token stream, under a profile.
//
// Purpose: the general walk, for payloads that are hashed under options: what the options say of a place is looked up
// as the walk gets there, and what comes out is the canonical text of the changed value. Under the empty profile that
// is what write_jsonb writes; callers take the fast walk then. Cost: linear in the stored size, but for the ordering of
// members and unordered arrays; iterative, so depth is limited by memory and not by the stack. Elements of an unordered
// array are made canonical in memory before they are written.
#pragma once

#include "core/canonical.hpp"
#include "core/profile.hpp"

#include "pg/profile_options.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// write_jsonb_under writes value (detoasted, not NULL) under profile to writer. Interruptible. Errors as write_jsonb,
// and 22003 for a number beyond the doubles under numbers => double.
void write_jsonb_under(const core::Profile& profile, const Jsonb* value, core::CanonicalWriter& writer);

// is_jcs_safe tells whether every RFC 8785 implementation makes the same text of value as this library: each number is
// the shortest decimal of a double, and no string or key has a noncharacter. Errors as write_jsonb.
bool is_jcs_safe(const Jsonb* value);

} // namespace idem::pg
