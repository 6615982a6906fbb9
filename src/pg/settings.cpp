// settings.cpp: see settings.hpp.
#include "pg/server.hpp"
#include "pg/settings.hpp"

namespace idem::pg {

namespace settings {
constinit bool require_policy = false;
} // namespace settings

void define_settings() {
    DefineCustomBoolVariable(
        "idempotency.require_policy", "Rejects claims of an op that has no policy.",
        "A misspelt op then answers rejected (unknown_op) instead of running under the default policy.",
        &settings::require_policy, settings::require_policy, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    MarkGUCPrefixReserved("idempotency");
}

} // namespace idem::pg
