// settings.hpp: the settings of the extension, all of them.
//
// Purpose: one table, alphabetical. Defaults stand here once; policies, not settings, decide what an op promises.
#pragma once

namespace idem::pg {

namespace settings {
// batch_size: rows that one transaction of the sweep may change, 1 to 100,000.
extern int batch_size;
// max_connected_time: milliseconds a sweeper stays in a database.
extern int max_connected_time;
// max_sweepers: sweepers at a time, over all databases; 0: none.
extern int max_sweepers;
// naptime: milliseconds between two passes over a database.
extern int naptime;
// require_policy: an op without a policy is rejected (reason unknown_op) instead of getting the default policy.
extern bool require_policy;
// sweep_rate: rows a second that the sweep may change. 0: as many as it can.
extern int sweep_rate;
} // namespace settings

// define_settings registers the settings and reserves the prefix idempotency.
void define_settings();

} // namespace idem::pg
