// children.cpp: see children.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/children.hpp"
#include "pg/installation.hpp"
#include "pg/table_writer.hpp"

namespace idem::pg {

void insert_child(Oid children, const pg_uuid_t* parent, const core::OperationId& child) {
    TableWriter writer = open_writer(children);
    pg_uuid_t uuid;
    std::memcpy(uuid.data, child.bytes, sizeof uuid.data);
    clear_row(writer);
    set_column(writer, CHILD_PARENT, UUIDPGetDatum(parent));
    set_column(writer, CHILD_OPERATION_ID, UUIDPGetDatum(&uuid));
    store_row(writer);
    (void)insert_row_speculatively(writer);
    close_writer(writer);
}

} // namespace idem::pg
