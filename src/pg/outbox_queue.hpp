// outbox_queue.hpp: the messages that are still to be delivered, and the order in which they may be.
//
// Purpose: idem_outbox_queue has one narrow row per undelivered message. Its index (topic, actor, lane, seq) is walked
// by hand, so that no plan decides what is leased. Data layout: a lane is what must stay in order. An ordering key has
// the lane of its hash, below 0; a message without one has a lane of its own, its seq; dead letters that hold nobody up
// share the last lane of their topic and actor, which a walk passes in one step. seq is drawn while the transaction
// commits, when it has every row lock it will ever have: a transaction that waited for one of those rows draws later.
// Accepted: keys of one topic and actor whose 63-bit hashes are equal are ordered among each other too. Locking: none
// but row locks, never waited for. A walk sees one snapshot and updates only the row versions that it saw: whatever
// changed meanwhile is left to the next walk, with the rest of its lane. Lifetime: an OutboxQueue lives in one call.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/installation.hpp"
#include "pg/table_writer.hpp"

namespace idem::pg {

inline constexpr char QUEUED = 'q';
inline constexpr char LEASED = 'l';
inline constexpr char DEAD = 'x';

// DEAD_LANE is the lane of dead letters that hold nobody up.
inline constexpr std::int64_t DEAD_LANE = PG_INT64_MAX;

// QueueRow is one row, unpacked but for its texts.
struct QueueRow {
    core::OperationId message;
    std::int64_t seq;
    std::int64_t lane;
    core::Timestamp ready_at;
    std::int64_t token;
    std::int32_t attempt;
    char state;
};

// OutboxGroup is the unit of fairness; both texts are palloc'd. topic is null where there is none.
struct OutboxGroup {
    text* topic;
    text* actor;
};

// OutboxQueue is the queue, opened for a walk: what it sees, and what it writes.
struct OutboxQueue {
    TableWriter writer;
    Relation lanes;
    TupleTableSlot* slot;
    Snapshot snapshot;
    IndexScanDesc scan; // one at a time
};

// open_queue opens the queue as it is committed now; close_queue gives back all but the locks.
OutboxQueue open_queue(const Installation& installation);
void close_queue(OutboxQueue& queue);

// lane_of returns the lane of an ordering key, or of a message without one (null).
std::int64_t lane_of(const text* ordering_key, std::int64_t seq);

// unix_milliseconds is the time that new ids begin with.
std::uint64_t unix_milliseconds();

// group_after finds the first group after `after`, in bytewise order; a null topic is before all. `topics` (sorted, NIL
// for all) are the ones that count.
bool group_after(OutboxQueue& queue, const OutboxGroup& after, List* topics, OutboxGroup* out);

// random_group finds the group of any message; false in an empty queue.
bool random_group(OutboxQueue& queue, OutboxGroup* out);

// compare_texts orders texts bytewise, compare_groups by topic and actor.
int compare_texts(const text* a, const text* b);
int compare_groups(const OutboxGroup& a, const OutboxGroup& b);

// start_lanes begins a walk through a group's rows in the order of (lane, seq); next_in_lanes leaves the next row in
// queue.slot, end_lanes ends the walk.
void start_lanes(OutboxQueue& queue, const OutboxGroup& group, std::int64_t lane);
bool next_in_lanes(OutboxQueue& queue);
void end_lanes(OutboxQueue& queue);

// read_queue_row unpacks a slot of the queue.
QueueRow read_queue_row(TupleTableSlot* slot);
OutboxGroup read_group(TupleTableSlot* slot);

// TopicRules says when a topic's messages become dead letters.
struct TopicRules {
    std::int32_t max_attempts = 20;
    bool hold = true;
};

// read_topic_rules returns the rules of a topic as they are committed now; write_topic_rules sets them.
TopicRules read_topic_rules(const Installation& installation, text* topic);
void write_topic_rules(const Installation& installation, text* topic, const TopicRules& rules);

} // namespace idem::pg
