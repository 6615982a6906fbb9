// settings.hpp: the settings of the extension, all of them.
//
// Purpose: one table, alphabetical. Defaults stand here once; policies, not settings, decide what an op promises.
#pragma once

namespace idem::pg {

namespace settings {
// require_policy: an op without a policy is rejected (reason unknown_op) instead of getting the default policy.
extern bool require_policy;
} // namespace settings

// define_settings registers the settings and reserves the prefix idempotency.
void define_settings();

} // namespace idem::pg
