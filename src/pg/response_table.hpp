// response_table.hpp: the stored answers.
//
// Purpose: one row of idem_responses per finished acquisition, found by (operation_id, token), so that a key that lives
// again after its ttl never meets the answer of its former life.
// Lifetime: what read_answer returns is palloc'd in the current context and owes nothing to buffers or snapshots.
// Snapshots: reads use the latest snapshot, because the keys row was found with a newer one than the statement's.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// Answer is what was answered, once and for all. Null pointers are SQL NULLs; at most one of the bodies is there.
struct Answer {
    std::int32_t status;
    core::Digest given; // of the answer as it was given, before a policy left anything out
    bool body_omitted;  // there was a body, over the limit: only its sha256 is kept
    Jsonb* headers;
    text* body;
    bytea* body_bytes;
    text* body_ref;
    bytea* body_sha256;
};

// insert_answer stores the answer of one acquisition.
void insert_answer(Oid responses, const core::OperationId& id, core::Token token, const Answer& answer);

// read_answer finds the answer of one acquisition; false when there is none.
bool read_answer(Oid responses, const core::OperationId& id, core::Token token, Answer* answer);

} // namespace idem::pg
