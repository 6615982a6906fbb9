// helpers.hpp: calling the script's own SQL functions from C++.
//
// Purpose: what happens beside a key and not on the hot path (watermarks, versions) is SQL of the install script,
// SECURITY DEFINER, granted to nobody; C++ calls it as part of a verb that the caller may use. Each statement of such a
// function takes a fresh snapshot in READ COMMITTED, so one that follows a lock sees what the lock waited for.
// Lifetime: a Helper is prepared once for a call of ours, in the current memory context, and keeps its plans there, so
// that a batch plans once.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

inline constexpr int HELPER_ARGUMENTS_MAX = 10;

// Helper is a prepared function of the script.
struct Helper {
    FmgrInfo* function;
    short arguments;
};

// prepare_helper finds a function of an installation by name and argument types. Raises 42883 where it is gone.
Helper prepare_helper(Oid schema, const char* name, const Oid* types, int count);

// call_helper runs it with a snapshot that sees everything this transaction did; its changes are visible afterwards.
NullableDatum call_helper(const Helper& helper, const NullableDatum* arguments);

// given makes an argument of a pointer, NULL where it is null.
inline NullableDatum given(const void* pointer) {
    return NullableDatum{PointerGetDatum(pointer), pointer == nullptr};
}

} // namespace idem::pg
