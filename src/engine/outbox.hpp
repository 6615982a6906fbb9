// outbox.hpp: the verbs of the outbox.
//
// Purpose: a message is put in the transaction of the state change it tells of, and leased to relays once that has
// committed. Promises: nothing committed is ever skipped, whatever the commit order, because what is to be delivered is
// a row and not a position; per (actor, topic, ordering key) messages come in the commit order of transactions that
// wait for each other's rows, and none overtakes one that is leased, backing off or held; a relay whose lease lapsed
// cannot ack. Who serves whom: each (topic, actor) with messages gets a like share of a batch; a process goes on where
// it stopped, a new one starts anywhere. Accepted: a relay that crashes between publishing and ack publishes again, so
// consumers remember ids; a walk leaves a lane that somebody else is changing to the next walk.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"

namespace idem::engine {

// OutboxMessage is what is put; nulls where the caller gave nothing.
struct OutboxMessage {
    text* actor;
    text* topic;
    Jsonb* payload;
    bytea* payload_bytes;
    text* ordering_key;
    text* dedup_id;
    Jsonb* headers;
    const pg_uuid_t* operation_id;
    core::Duration delay;
};

// PutAnswer is the message's id and how it went: queued, duplicate, dead.
struct PutAnswer {
    core::OperationId id;
    const char* outcome;
};

PutAnswer put_message(const pg::Installation& installation, const OutboxMessage& message);

// enqueue_message queues the message in a row of idem_outbox; its trigger calls it while the transaction commits.
void enqueue_message(const pg::Installation& installation, TupleTableSlot* message);

// FetchRequest asks for messages; topics is NIL for all, sorted otherwise.
struct FetchRequest {
    text* relay;
    int batch;
    core::Duration lease;
    List* topics;
    core::Duration wait;
};

// FetchedMessage is where a leased message is handed to: its row in idem_outbox and its lease.
struct FetchedMessage {
    std::int64_t seq;
    std::int32_t attempt;
    std::int64_t token;
    core::Timestamp lease_until;
};
using MessageSink = void (*)(void* context, TupleTableSlot* message, const FetchedMessage& lease);

void fetch_messages(const pg::Installation& installation, const FetchRequest& request, MessageSink sink, void* context);

// ack_messages deletes messages from the queue; returns how many were in it.
std::int64_t ack_messages(const pg::Installation& installation, core::OperationId* ids, int count, std::int64_t token);

// NackAnswer is what became of the message: retry, dead, held.
struct NackAnswer {
    const char* outcome;
    core::Timestamp ready_at;
};

NackAnswer nack_message(const pg::Installation& installation, const core::OperationId& id, std::int64_t token,
                        core::Duration retry_in, text* error);

// requeue_messages makes dead letters messages again; skip_messages lets the rest of their lanes go on without them.
// Both return how many rows they changed.
std::int64_t requeue_messages(const pg::Installation& installation, core::OperationId* ids, int count);
std::int64_t skip_messages(const pg::Installation& installation, core::OperationId* ids, int count);

} // namespace idem::engine
