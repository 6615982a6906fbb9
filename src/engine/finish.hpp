// finish.hpp: what the holder of a key may do with it: complete, fail, release, extend, checkpoint; and resolve, for
// when nobody holds it any more.
//
// Purpose: each verb is one optimistic round: probe the latest row, judge the token, compose the next version, update.
// The update waits for a rival in the lock manager, where the deadlock detector sees it; if the rival changed the row,
// the round starts again with what it left. A stale token never changes anything.
#pragma once

#include "core/types.hpp"
#include "core/words.hpp"
#include "engine/result.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"

namespace idem::engine {

// GivenAnswer is an answer as the caller gave it: at most one of the bodies.
struct GivenAnswer {
    bool has_status;
    std::int32_t status;
    Jsonb* headers;
    text* body;
    Jsonb* body_json;
    bytea* body_bytes;
    text* body_ref;
    bytea* body_sha256;
};

// check_answer raises 22023 where an answer contradicts itself.
void check_answer(const GivenAnswer& given);

// check_evidence raises ID005 where evidence is over 64 KiB.
void check_evidence(const Jsonb* evidence);

// complete stores the answer of the work. Raises ID001, ID002, ID003, ID005, ID007.
// `evidence`, where given, is kept with the key.
Result complete(const pg::Installation& installation, const core::OperationId& id, core::Token token,
                const GivenAnswer& given, Jsonb* evidence = nullptr);

// Failure names what a failed attempt leaves behind.
enum class Failure : std::uint8_t { BY_STATUS, FAILED, RELEASED, INDETERMINATE };

// fail ends the work without success. Raises as complete.
Result fail(const pg::Installation& installation, const core::OperationId& id, core::Token token, Failure failure,
            const GivenAnswer& given, Jsonb* evidence);

// release gives the key back unused. Raises ID001, ID002, ID007.
Result release(const pg::Installation& installation, const core::OperationId& id, core::Token token);

// extend makes the lease run from now; `lease` NOT_GIVEN takes the policy's. Raises ID001, ID007, 55000.
Result extend(const pg::Installation& installation, const core::OperationId& id, core::Token token,
              core::Duration lease);

// checkpoint remembers how far the work is; null forgets it. Raises ID001, ID005, ID007, 55000.
Result checkpoint(const pg::Installation& installation, const core::OperationId& id, core::Token token,
                  Jsonb* checkpoint);

// resolve decides an indeterminate operation: COMPLETED, FAILED or RELEASED. Raises 55000, ID007.
Result resolve(const pg::Installation& installation, const core::OperationId& id, core::State state,
               const GivenAnswer& given, Jsonb* evidence);

// reopen frees a key whose work ended or is of unknown fate, so that the next claim does it again. Whoever calls this
// wants a second effect. Raises 55000 where the key runs or is free, ID007.
Result reopen(const pg::Installation& installation, const core::OperationId& id, Jsonb* evidence);

} // namespace idem::engine
