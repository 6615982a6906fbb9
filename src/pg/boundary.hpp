// boundary.hpp: how a C++ function becomes callable from SQL.
//
// Purpose: one macro declares the exported C symbol, its finfo record and the body. There is no guard between C++ and
// the server because there is nothing to guard: the library is built without exceptions and RTTI, holds no object with
// a destructor across a server call, and allocates with palloc only. test/lint proves it on the built file.
//
// Frame rule: every automatic variable in a frame that calls the server is trivially destructible, because ereport
// leaves by longjmp. Memory, relations, buffers and snapshots are the server's to release at abort.
#pragma once

#include "pg/server.hpp"

#define IDEM_EXPORT __attribute__((visibility("default")))

// IDEM_FUNCTION(name) { body } defines the SQL-callable function `name`; `fcinfo` is in scope.
#define IDEM_FUNCTION(name)                                                                                            \
    extern "C" {                                                                                                       \
    IDEM_EXPORT Datum name(PG_FUNCTION_ARGS);                                                                          \
    IDEM_EXPORT const Pg_finfo_record* pg_finfo_##name(void);                                                          \
    const Pg_finfo_record* pg_finfo_##name(void) {                                                                     \
        static const Pg_finfo_record info = {1};                                                                       \
        return &info;                                                                                                  \
    }                                                                                                                  \
    }                                                                                                                  \
    Datum name(PG_FUNCTION_ARGS)
