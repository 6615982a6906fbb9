// settings.cpp: see settings.hpp.
#include "pg/server.hpp"
#include "pg/settings.hpp"

namespace idem::pg {

namespace settings {
constinit int batch_size = 1000;
constinit bool require_policy = false;
constinit int sweep_rate = 0;
} // namespace settings

void define_settings() {
    DefineCustomIntVariable("idempotency.batch_size", "Rows that one transaction of the sweep may change.",
                            "Fewer make shorter transactions.", &settings::batch_size, settings::batch_size, 1, 100000,
                            PGC_SUSET, 0, nullptr, nullptr, nullptr);
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
