// execute.hpp: claim, call a handler, complete: one round trip and one transaction.
#pragma once

#include "core/types.hpp"
#include "engine/claim.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"

namespace idem::engine {

// execute runs `handler` (null: the policy's) if the claim proceeds, and stores its answer. The first run answers
// COMPLETED, or as idem_fail does where handler_error is store and the handler raised.
Result execute(ClaimSession& session, const ClaimRequest& request, const core::OperationId& id, const text* handler);

} // namespace idem::engine
