// settings.cpp: see settings.hpp.
#include "pg/server.hpp"
#include "pg/settings.hpp"

namespace idem::pg {

namespace settings {
constinit int batch_size = 1000;
constinit int max_connected_time = 2000;
constinit int max_sweepers = 2;
constinit int naptime = 60000;
constinit bool require_policy = false;
constinit int sweep_rate = 0;
} // namespace settings

void define_settings() {
    DefineCustomIntVariable("idempotency.batch_size", "Rows that one transaction of the sweep may change.",
                            "Fewer make shorter transactions.", &settings::batch_size, settings::batch_size, 1, 100000,
                            PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.max_connected_time", "Time a sweeper stays in a database.",
                            "It goes on a second later, if it was not done.", &settings::max_connected_time,
                            settings::max_connected_time, 10, 4000, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.max_sweepers", "Sweepers at a time, over all databases.",
                            "0: none; idem_admin_sweep() does their work.", &settings::max_sweepers,
                            settings::max_sweepers, 0, 16, PGC_SIGHUP, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.naptime", "Time between two passes over a database.",
                            "A pass that takes long is followed by a rest of 20 times as long.", &settings::naptime,
                            settings::naptime, 1, 86400000, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable(
        "idempotency.require_policy", "Rejects claims of an op that has no policy.",
        "A misspelt op then answers rejected (unknown_op) instead of running under the default policy.",
        &settings::require_policy, settings::require_policy, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomIntVariable("idempotency.sweep_rate", "Rows a second that the sweep may change.",
                            "0: as many as it can.", &settings::sweep_rate, settings::sweep_rate, 0, 10000000,
                            PGC_SUSET, 0, nullptr, nullptr, nullptr);
    MarkGUCPrefixReserved("idempotency");
}

} // namespace idem::pg
