// identity.hpp: who a key is.
//
// Purpose: operation_id is the first 16 bytes of SHA-256 over actor, op and key, each preceded by its length in bytes
// as a 4-byte big-endian number, with version (8) and variant written over their 6 bits as RFC 9562 says. No secret and
// no state goes in, so every node and every client computes the same one, and a restore, a replica or a clone cannot
// lose it. Texts count as UTF-8 whatever the server encoding is.
#pragma once

#include "core/types.hpp"

namespace idem::engine {

// derive_operation_id returns the operation id of (actor, op, key), given in the server encoding.
core::OperationId derive_operation_id(core::Bytes actor, core::Bytes op, core::Bytes key);

} // namespace idem::engine
