// installation.hpp: where the extension's tables and types are, for the function that was called.
//
// Purpose: the extension is relocatable and may be dropped and created again inside one session, so no OID is compiled
// in or kept for long: the called function's own pg_proc row says the schema, the schema says the rest. Lifetime: one
// cached Installation per backend, valid until a relcache invalidation names one of its tables or everything. A caller
// gets a copy. Filling the cache also checks the shape of each table (heap, the columns of our script first, no added
// column that would need a value), because the direct path relies on it; a shape change invalidates too.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// Installation is the set of OIDs of one CREATE EXTENSION in one database.
struct Installation {
    Oid schema;
    Oid keys;
    Oid responses;
    Oid leases;
    Oid policies;
    Oid profiles;
    Oid secrets;
    Oid outbox;
    Oid outbox_queue;
    Oid outbox_topics;
    Oid outbox_seq;
    Oid children;
    Oid result_type;
};

// Columns of idem_keys, in table order.
enum KeyColumn : int {
    KEY_OPERATION_ID,
    KEY_TOKEN,
    KEY_CREATED_AT,
    KEY_UPDATED_AT,
    KEY_LEASE_UNTIL,
    KEY_ATTEMPT,
    KEY_PROFILE,
    KEY_STATE,
    KEY_ACTOR,
    KEY_OP,
    KEY_KEY,
    KEY_CLAIMED_BY,
    KEY_PAYLOAD_HASH,
    KEY_COMPLETED_AT,
    KEY_EXPIRES_AT,
    KEY_TTL_S,
    KEY_ATTEMPT_ID,
    KEY_PARENT,
    KEY_TRACEPARENT,
    KEY_CHECKPOINT,
    KEY_EVIDENCE,
    KEY_PAYLOAD,
    KEY_COLUMNS,
};

// Columns of idem_responses, in table order.
enum ResponseColumn : int {
    RESPONSE_OPERATION_ID,
    RESPONSE_TOKEN,
    RESPONSE_STATUS,
    RESPONSE_BODY_OMITTED,
    RESPONSE_GIVEN_HASH,
    RESPONSE_HEADERS,
    RESPONSE_BODY,
    RESPONSE_BODY_BYTES,
    RESPONSE_BODY_REF,
    RESPONSE_BODY_SHA256,
    RESPONSE_COLUMNS,
};

// Columns of idem_leases, in table order.
enum LeaseColumn : int { LEASE_OPERATION_ID, LEASE_TOKEN, LEASE_UNTIL, LEASE_COLUMNS };

// Columns of idem_outbox, in table order.
enum MessageColumn : int {
    MESSAGE_ID,
    MESSAGE_CREATED_AT,
    MESSAGE_DELIVER_AT,
    MESSAGE_OPERATION_ID,
    MESSAGE_TOPIC,
    MESSAGE_ORDERING_KEY,
    MESSAGE_TYPE,
    MESSAGE_ACTOR,
    MESSAGE_DEDUP_ID,
    MESSAGE_HEADERS,
    MESSAGE_PAYLOAD,
    MESSAGE_PAYLOAD_BYTES,
    MESSAGE_COLUMNS,
};

// Columns of idem_outbox_queue, in table order.
enum QueueColumn : int {
    QUEUE_MESSAGE_ID,
    QUEUE_SEQ,
    QUEUE_LANE,
    QUEUE_READY_AT,
    QUEUE_TOKEN,
    QUEUE_ATTEMPT,
    QUEUE_STATE,
    QUEUE_TOPIC,
    QUEUE_ACTOR,
    QUEUE_RELAY,
    QUEUE_LAST_ERROR,
    QUEUE_COLUMNS,
};

// Columns of idem_outbox_topics, in table order.
enum TopicColumn : int { TOPIC_TOPIC, TOPIC_MAX_ATTEMPTS, TOPIC_ON_DEAD_LETTER, TOPIC_COLUMNS };

// Columns of idem_children, in table order.
enum ChildColumn : int { CHILD_PARENT, CHILD_OPERATION_ID, CHILD_COLUMNS };

// installation_of returns the installation the called function belongs to. Raises ID006 when the library and the SQL
// script are of different versions, 42P01 and 55000 when tables are missing or altered.
Installation installation_of(FunctionCallInfo fcinfo);

// find_installation finds the installation of this database, and the owner of its tables, without a function to start
// from. False when there is none, or one of another version.
bool find_installation(Installation* found, Oid* owner);

} // namespace idem::pg
