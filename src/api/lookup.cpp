// lookup.cpp: idem_lookup and idem_lookup_id.
#include "core/policy.hpp"
#include "core/types.hpp"
#include "api/arguments.hpp"
#include "engine/identity.hpp"
#include "engine/lookup.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/boundary.hpp"
#include "pg/installation.hpp"
#include "pg/varlena.hpp"

using namespace idem;
using pg::bytes_of;

IDEM_FUNCTION(idem_lookup_v1) {
    const text* actor = api::required_text(fcinfo, 0, "actor", api::ACTOR_MAX);
    const text* op = api::required_text(fcinfo, 1, "op", core::MAX_OP_BYTES);
    const text* key = api::required_key(fcinfo, 2);
    const pg::Installation installation = pg::installation_of(fcinfo);
    engine::Result result{};
    result.known = false;
    if (bytes_of(key).size() <= core::MAX_KEY_BYTES)
        result =
            engine::lookup(installation, engine::derive_operation_id(bytes_of(actor), bytes_of(op), bytes_of(key)));
    PG_RETURN_DATUM(engine::result_datum(installation, result));
}

IDEM_FUNCTION(idem_lookup_id_v1) {
    const core::OperationId id = api::required_operation_id(fcinfo, 0);
    const pg::Installation installation = pg::installation_of(fcinfo);
    PG_RETURN_DATUM(engine::result_datum(installation, engine::lookup(installation, id)));
}
