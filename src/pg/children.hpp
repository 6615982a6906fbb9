// children.hpp: which operations were claimed on behalf of which.
//
// Purpose: idem_keys has no index but its primary key, or its updates were not HOT; so the children of an operation are
// found through idem_children, a row for each life of a key that named a parent. A row may be stale (the child began a
// new life under another parent, or is gone), never missing: readers check idem_keys.parent.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// insert_child notes a child, once.
void insert_child(Oid children, const pg_uuid_t* parent, const core::OperationId& child);

} // namespace idem::pg
