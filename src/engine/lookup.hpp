// lookup.hpp: reading a key without claiming it. Writes nothing, waits for nothing, works on a standby.
#pragma once

#include "core/types.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"

namespace idem::engine {

// lookup tells what a claim of the same request would be answered now, short of claiming. An unknown key gives
// Result.known = false.
Result lookup(const pg::Installation& installation, const core::OperationId& id);

} // namespace idem::engine
