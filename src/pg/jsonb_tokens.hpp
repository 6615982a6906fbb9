// jsonb_tokens.hpp: from stored jsonb to core's token stream.
//
// Purpose: walk a jsonb value where it lies, without JsonbIterator, without building JsonbValues and without recursion,
// and feed core::CanonicalWriter. This is the only code that knows how jsonb and numeric look on disk.
// Lifetime: everything palloc'd here is freed before return; on error the memory context does it.
#pragma once

#include "core/canonical.hpp"
#include "core/types.hpp"

#include "pg/server.hpp"

namespace idem::pg {

// write_jsonb writes value (detoasted, not NULL) to writer, members in UTF-16 key order, text in UTF-8. Interruptible.
// In an SQL_ASCII database a string with a byte above 7F raises 22021; in other encodings a string that has no UTF-8
// form raises what the server's conversion raises.
void write_jsonb(const Jsonb* value, core::CanonicalWriter& writer);

// write_string writes text (server encoding) to writer as one JSON string. Errors as write_jsonb.
void write_string(core::Bytes text, core::CanonicalWriter& writer);

// utf8_of returns text (server encoding) in UTF-8: text itself if it is that already, else a palloc'd conversion, which
// free_conversion frees. Errors as write_jsonb.
core::Bytes utf8_of(core::Bytes text);
void free_conversion(core::Bytes converted, core::Bytes original);

// decimal_of views a stored numeric, from its varlena header on, as core's Decimal; it lives as long as the numeric.
core::Decimal decimal_of(const char* stored);

} // namespace idem::pg
