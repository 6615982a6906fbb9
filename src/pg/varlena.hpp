// varlena.hpp: the bytes of a detoasted variable-length value.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// bytes_of views the bytes of a text, bytea or jsonb, short header or long; the value must be detoasted and not null.
inline core::Bytes bytes_of(const void* value) {
    const auto* data = static_cast<const varlena*>(value);
    return core::Bytes{VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data)};
}

} // namespace idem::pg
