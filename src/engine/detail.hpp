// detail.hpp: builds the detail object of a result.
//
// Purpose: what a result says beyond its frozen columns. A Detail that nothing was added to is SQL NULL.
// Lifetime: all palloc'd in the current context; names are string literals.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::engine {

// Detail is a jsonb object being built.
struct Detail {
    JsonbParseState* state = nullptr;
};

// add_* add one member; a null pointer adds nothing.
void add_text(Detail& detail, const char* name, core::Bytes value);
void add_text(Detail& detail, const char* name, const text* value);
void add_integer(Detail& detail, const char* name, std::int64_t value);
void add_bool(Detail& detail, const char* name, bool value);
void add_time(Detail& detail, const char* name, core::Timestamp value);
void add_hex(Detail& detail, const char* name, core::Bytes bytes);
void add_json(Detail& detail, const char* name, Jsonb* value);

// finish returns the object, or null when it is empty.
Jsonb* finish(Detail& detail);

} // namespace idem::engine
