// lease_queue.cpp: see lease_queue.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"
#include "pg/lease_queue.hpp"
#include "pg/table_writer.hpp"

namespace idem::pg {

bool insert_lease_hint(Oid leases, const core::OperationId& id, core::Token token, core::Timestamp lease_until) {
    TableWriter writer = try_open_writer(leases);
    if (writer.rel == nullptr)
        return false;
    pg_uuid_t uuid;
    std::memcpy(uuid.data, id.bytes, sizeof uuid.data);
    clear_row(writer);
    set_column(writer, LEASE_OPERATION_ID, UUIDPGetDatum(&uuid));
    set_column(writer, LEASE_TOKEN, Int64GetDatum(token.value));
    set_column(writer, LEASE_UNTIL, TimestampTzGetDatum(lease_until));
    store_row(writer);
    insert_row(writer);
    close_writer(writer);
    return true;
}

void lock_lease_queue(Oid leases) {
    LockRelationOid(leases, RowExclusiveLock);
}

} // namespace idem::pg
