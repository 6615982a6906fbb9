// outbox.cpp: leasing messages to relays, and what relays say of them. See outbox.hpp.
#include "core/types.hpp"
#include "engine/claim.hpp"
#include "engine/outbox.hpp"
#include "engine/outbox_wakeup.hpp"
#include "pg/server.hpp"
#include "pg/errors.hpp"
#include "pg/key_table.hpp"
#include "pg/outbox_queue.hpp"
#include "pg/table_writer.hpp"
#include "pg/varlena.hpp"

namespace idem::engine {

namespace {

constexpr int GROUPS_MAX = 256;
constexpr int BLOCKED_ROWS_MAX = 16; // then a step through the index is cheaper than reading on
constexpr core::Duration FIRST_BACKOFF = core::SECOND;
constexpr core::Duration LONGEST_BACKOFF = 5 * core::MINUTE;
constexpr core::Duration POLL = 100 * core::MILLISECOND;
constexpr int ERROR_MAX = 1000;
constexpr std::size_t PLACE_MAX = 255;

// Place is where this process's next batch begins: after the group it served last.
struct Place {
    bool known;
    std::size_t topic_size;
    std::size_t actor_size;
    char topic[PLACE_MAX];
    char actor[PLACE_MAX];
};
constinit Place place{};

// Walk is one pass through the queue under one snapshot.
struct Walk {
    const pg::Installation& installation;
    const FetchRequest& request;
    pg::OutboxQueue queue;
    pg::KeyReader messages;
    core::Timestamp now;
    std::int64_t token;
    int leased;
    bool contended; // somebody changed what the snapshot shows
    MessageSink sink;
    void* context;
};

pg::OutboxGroup remembered_group() {
    if (!place.known)
        return pg::OutboxGroup{};
    return pg::OutboxGroup{cstring_to_text_with_len(place.topic, static_cast<int>(place.topic_size)),
                           cstring_to_text_with_len(place.actor, static_cast<int>(place.actor_size))};
}

void remember_group(const pg::OutboxGroup& group) {
    const core::Bytes topic = pg::bytes_of(group.topic);
    const core::Bytes actor = pg::bytes_of(group.actor);
    place.known = topic.size() <= PLACE_MAX && actor.size() <= PLACE_MAX;
    if (!place.known)
        return;
    place.topic_size = topic.size();
    place.actor_size = actor.size();
    std::memcpy(place.topic, topic.data(), topic.size());
    std::memcpy(place.actor, actor.data(), actor.size());
}

TM_Result change(Walk& walk) {
    pg::store_row(walk.queue.writer);
    return pg::try_update_row(walk.queue.writer, &walk.queue.slot->tts_tid);
}

// bury makes the row a dead letter; true where it holds up its lane. TM_Ok only counts: a rival decides otherwise.
bool bury(pg::TableWriter& writer, const pg::QueueRow& row, bool hold, core::Timestamp now) {
    const bool holds = hold && row.lane < 0;
    pg::set_column(writer, pg::QUEUE_STATE, CharGetDatum(pg::DEAD));
    pg::set_column(writer, pg::QUEUE_READY_AT, TimestampTzGetDatum(now));
    pg::set_column(writer, pg::QUEUE_TOKEN, Int64GetDatum(0));
    if (!holds)
        pg::set_column(writer, pg::QUEUE_LANE, Int64GetDatum(pg::DEAD_LANE));
    return holds;
}

// give_up buries a message whose relays never came back, or that somebody has deleted; true where its lane goes on.
bool give_up(Walk& walk, const pg::QueueRow& row, const pg::TopicRules& rules, const char* why) {
    pg::copy_row(walk.queue.writer, walk.queue.slot);
    const bool holds = bury(walk.queue.writer, row, rules.hold, walk.now);
    pg::set_column(walk.queue.writer, pg::QUEUE_LAST_ERROR, PointerGetDatum(cstring_to_text(why)));
    const bool done = change(walk) == TM_Ok;
    return done && !holds;
}

// Step is what a row means for its lane: the next one may follow, or none of the lane may.
enum class Step : std::uint8_t { ON, BLOCKED };

Step lease_row(Walk& walk, const pg::QueueRow& row, const pg::TopicRules& rules) {
    if (row.attempt >= rules.max_attempts)
        return give_up(walk, row, rules, "lease lapsed at the last attempt") ? Step::ON : Step::BLOCKED;
    if (!pg::probe_latest(walk.messages, row.message))
        return give_up(walk, row, rules, "message was deleted") ? Step::ON : Step::BLOCKED;
    const core::Timestamp until = walk.now + walk.request.lease;
    pg::TableWriter& writer = walk.queue.writer;
    pg::copy_row(writer, walk.queue.slot);
    pg::set_column(writer, pg::QUEUE_STATE, CharGetDatum(pg::LEASED));
    pg::set_column(writer, pg::QUEUE_READY_AT, TimestampTzGetDatum(until));
    pg::set_column(writer, pg::QUEUE_TOKEN, Int64GetDatum(walk.token));
    pg::set_column(writer, pg::QUEUE_ATTEMPT, Int32GetDatum(row.attempt + 1));
    pg::set_column(writer, pg::QUEUE_RELAY, PointerGetDatum(walk.request.relay));
    const TM_Result result = change(walk);
    if (result == TM_SelfModified) // leased by an earlier pass of this walk
        return Step::ON;
    if (result != TM_Ok) {
        walk.contended = true;
        return Step::BLOCKED;
    }
    ++walk.leased;
    walk.sink(walk.context, walk.messages.slot, FetchedMessage{row.seq, row.attempt + 1, walk.token, until});
    return Step::ON;
}

// walk_lanes goes through lanes from `first` to before `end` and leases until the walk has `goal` messages.
void walk_lanes(Walk& walk, const pg::OutboxGroup& group, const pg::TopicRules& rules, std::int64_t first,
                std::int64_t end, int goal) {
    bool blocked = false;
    std::int64_t blocked_lane = 0;
    int blocked_rows = 0;
    pg::start_lanes(walk.queue, group, first);
    while (walk.leased < goal && pg::next_in_lanes(walk.queue)) {
        CHECK_FOR_INTERRUPTS();
        const pg::QueueRow row = pg::read_queue_row(walk.queue.slot);
        if (row.lane >= end || row.lane == pg::DEAD_LANE)
            break;
        if (blocked && row.lane == blocked_lane) {
            if (++blocked_rows > BLOCKED_ROWS_MAX) {
                pg::start_lanes(walk.queue, group, row.lane + 1);
                blocked = false;
            }
            continue;
        }
        blocked = row.state == pg::DEAD || row.ready_at > walk.now || lease_row(walk, row, rules) == Step::BLOCKED;
        blocked_lane = row.lane;
        blocked_rows = 0;
    }
    pg::end_lanes(walk.queue);
}

// serve leases up to `share` messages of a group. Half of the walks begin with messages that have no order, the oldest
// first; the others anywhere among the ordering keys, so that no lane waits for ever behind busy ones.
void serve(Walk& walk, const pg::OutboxGroup& group, int share) {
    const int left = walk.request.batch - walk.leased;
    const int goal = walk.leased + (share < left ? share : left);
    const pg::TopicRules rules = pg::read_topic_rules(walk.installation, group.topic);
    const std::uint64_t chance = pg_prng_uint64(&pg_global_prng_state);
    const std::int64_t middle = (chance & 1) != 0 ? 0 : static_cast<std::int64_t>(chance | std::uint64_t{1} << 63);
    walk_lanes(walk, group, rules, middle, pg::DEAD_LANE, goal);
    if (walk.leased < goal)
        walk_lanes(walk, group, rules, PG_INT64_MIN, middle, goal);
}

// Round is a run of groups in the order in which they are served.
struct Round {
    pg::OutboxGroup groups[GROUPS_MAX];
    int count;
};

// Cycle goes once around all groups, from wherever it starts.
struct Cycle {
    pg::OutboxGroup start;
    pg::OutboxGroup at;
    bool wrapped;
    bool done;
};

bool advance(Walk& walk, Cycle& cycle, pg::OutboxGroup* out) {
    while (!cycle.done) {
        if (pg::group_after(walk.queue, cycle.at, walk.request.topics, out)) {
            if (cycle.wrapped && pg::compare_groups(*out, cycle.start) > 0)
                break;
            cycle.at = *out;
            return true;
        }
        if (cycle.wrapped || cycle.start.topic == nullptr)
            break;
        cycle.wrapped = true;
        cycle.at = pg::OutboxGroup{};
    }
    cycle.done = true;
    return false;
}

void serve_round(Walk& walk, const Round& round) {
    const int batch = walk.request.batch - walk.leased;
    const int share = (batch + round.count - 1) / round.count;
    for (int i = 0; i < round.count && walk.leased < walk.request.batch; ++i) {
        serve(walk, round.groups[i], share);
        remember_group(round.groups[i]);
    }
    for (int i = 0; i < round.count && walk.leased < walk.request.batch; ++i)
        serve(walk, round.groups[i], walk.request.batch);
}

void serve_all(Walk& walk) {
    Cycle cycle{};
    cycle.start = remembered_group();
    if (!place.known)
        (void)pg::random_group(walk.queue, &cycle.start);
    cycle.at = cycle.start;
    auto* round = static_cast<Round*>(palloc(sizeof(Round)));
    const int groups = walk.request.batch < GROUPS_MAX ? walk.request.batch : GROUPS_MAX;
    while (walk.leased < walk.request.batch && !cycle.done) {
        round->count = 0;
        while (round->count < groups && advance(walk, cycle, &round->groups[round->count]))
            ++round->count;
        if (round->count > 0)
            serve_round(walk, *round);
    }
    pfree(round);
}

// walk_queue goes through the queue once; what it leased is handed on. contended tells that trying again makes sense.
int walk_queue(const pg::Installation& installation, const FetchRequest& request, MessageSink sink, void* context,
               bool* contended) {
    Walk walk{installation,
              request,
              pg::open_queue(installation),
              pg::open_reader(installation.outbox, AccessShareLock),
              GetCurrentTimestamp(),
              nextval_internal(installation.outbox_seq, false),
              0,
              false,
              sink,
              context};
    serve_all(walk);
    pg::close_reader(walk.messages);
    pg::close_queue(walk.queue);
    CommandCounterIncrement();
    *contended = walk.contended;
    return walk.leased;
}

void sleep(core::Timestamp until, bool waiting) {
    if (waiting) {
        pg::sleep_for_change(until, InvalidTransactionId);
        return;
    }
    const core::Duration left = until - GetCurrentTimestamp();
    const core::Duration pause = left < POLL ? left : POLL;
    (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                    pause <= 0 ? 0 : static_cast<long>(pause / core::MILLISECOND) + 1, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
}

// QueueLookup finds rows of the queue by message.
struct QueueLookup {
    pg::TableWriter writer;
    pg::KeyReader reader;
};

QueueLookup open_lookup(const pg::Installation& installation) {
    QueueLookup lookup{};
    lookup.reader = pg::open_reader(installation.outbox_queue, RowExclusiveLock);
    lookup.writer = pg::open_writer(installation.outbox_queue);
    return lookup;
}

void close_lookup(QueueLookup& lookup) {
    pg::close_writer(lookup.writer);
    pg::close_reader(lookup.reader);
    CommandCounterIncrement();
}

void require_message(const pg::Installation& installation, const core::OperationId& id) {
    pg::KeyReader reader = pg::open_reader(installation.outbox, AccessShareLock);
    if (!pg::probe_latest(reader, id))
        pg::error_no_message(id);
    pg::close_reader(reader);
}

bool holds_lease(const pg::QueueRow& row, std::int64_t token) {
    return row.state == pg::LEASED && row.token == token && row.ready_at > GetCurrentTimestamp();
}

// ack_message deletes one row; false where it was gone already.
bool ack_message(const pg::Installation& installation, QueueLookup& lookup, const core::OperationId& id,
                 std::int64_t token) {
    while (pg::probe_latest(lookup.reader, id)) {
        const pg::QueueRow row = pg::read_queue_row(lookup.reader.slot);
        if (!holds_lease(row, token))
            pg::error_lease_lapsed(id);
        if (row.lane < 0)
            touch_outbox();
        if (pg::delete_row(lookup.writer, &lookup.reader.slot->tts_tid) == TM_Ok)
            return true;
        CHECK_FOR_INTERRUPTS();
    }
    require_message(installation, id);
    return false;
}

int by_bytes(const void* a, const void* b) {
    return std::memcmp(a, b, sizeof(core::OperationId));
}

core::Duration backoff(int attempt) {
    const int doublings = attempt < 1 ? 0 : attempt > 10 ? 10 : attempt - 1;
    core::Duration base = FIRST_BACKOFF << doublings;
    if (base > LONGEST_BACKOFF)
        base = LONGEST_BACKOFF;
    const auto less = static_cast<core::Duration>(
        pg_prng_uint64_range(&pg_global_prng_state, 0, static_cast<std::uint64_t>(base / 2)));
    return base - less < FIRST_BACKOFF ? FIRST_BACKOFF : base - less;
}

// give_back_rest returns what is behind a message in its lane and leased with it: it must not overtake.
void give_back_rest(const pg::Installation& installation, const pg::OutboxGroup& group, const pg::QueueRow& first,
                    std::int64_t token, core::Timestamp now) {
    if (first.lane >= 0)
        return;
    pg::OutboxQueue queue = pg::open_queue(installation);
    pg::start_lanes(queue, group, first.lane);
    while (pg::next_in_lanes(queue)) {
        const pg::QueueRow row = pg::read_queue_row(queue.slot);
        if (row.lane != first.lane)
            break;
        if (row.seq <= first.seq || row.state != pg::LEASED || row.token != token)
            continue;
        pg::copy_row(queue.writer, queue.slot);
        pg::set_column(queue.writer, pg::QUEUE_STATE, CharGetDatum(pg::QUEUED));
        pg::set_column(queue.writer, pg::QUEUE_READY_AT, TimestampTzGetDatum(now));
        pg::set_column(queue.writer, pg::QUEUE_TOKEN, Int64GetDatum(0));
        pg::set_column(queue.writer, pg::QUEUE_ATTEMPT, Int32GetDatum(row.attempt - 1));
        pg::store_row(queue.writer);
        (void)pg::update_row(queue.writer, &queue.slot->tts_tid);
        CHECK_FOR_INTERRUPTS();
    }
    pg::close_queue(queue);
}

text* clipped(text* error) {
    const core::Bytes bytes = pg::bytes_of(error);
    const int size = static_cast<int>(bytes.size());
    return size <= ERROR_MAX ? error
                             : cstring_to_text_with_len(bytes.data(), pg_mbcliplen(bytes.data(), size, ERROR_MAX));
}

// compose_nack composes the next version of the row and says what becomes of it.
NackAnswer compose_nack(const pg::Installation& installation, QueueLookup& lookup, const pg::QueueRow& row,
                        const pg::OutboxGroup& group, core::Duration retry_in, text* error) {
    const core::Timestamp now = GetCurrentTimestamp();
    const pg::TopicRules rules = pg::read_topic_rules(installation, group.topic);
    NackAnswer answer{"retry", now + (retry_in == NOT_GIVEN ? backoff(row.attempt) : retry_in)};
    pg::copy_row(lookup.writer, lookup.reader.slot);
    if (row.attempt >= rules.max_attempts) {
        answer = NackAnswer{bury(lookup.writer, row, rules.hold, now) ? "held" : "dead", now};
    } else {
        pg::set_column(lookup.writer, pg::QUEUE_STATE, CharGetDatum(pg::QUEUED));
        pg::set_column(lookup.writer, pg::QUEUE_READY_AT, TimestampTzGetDatum(answer.ready_at));
        pg::set_column(lookup.writer, pg::QUEUE_TOKEN, Int64GetDatum(0));
    }
    if (error != nullptr)
        pg::set_column(lookup.writer, pg::QUEUE_LAST_ERROR, PointerGetDatum(clipped(error)));
    pg::store_row(lookup.writer);
    return answer;
}

// revive composes a dead letter's next version as a message in its old place.
void revive(const pg::Installation& installation, QueueLookup& lookup, const pg::QueueRow& row) {
    pg::KeyReader messages = pg::open_reader(installation.outbox, AccessShareLock);
    if (!pg::probe_latest(messages, row.message))
        pg::error_no_message(row.message);
    slot_getallattrs(messages.slot);
    const text* ordering_key = messages.slot->tts_isnull[pg::MESSAGE_ORDERING_KEY]
                                   ? nullptr
                                   : DatumGetTextPP(messages.slot->tts_values[pg::MESSAGE_ORDERING_KEY]);
    pg::set_column(lookup.writer, pg::QUEUE_STATE, CharGetDatum(pg::QUEUED));
    pg::set_column(lookup.writer, pg::QUEUE_LANE, Int64GetDatum(pg::lane_of(ordering_key, row.seq)));
    pg::set_column(lookup.writer, pg::QUEUE_READY_AT, TimestampTzGetDatum(GetCurrentTimestamp()));
    pg::set_column(lookup.writer, pg::QUEUE_ATTEMPT, Int32GetDatum(0));
    pg::close_reader(messages);
}

// change_dead changes one dead letter; false where it is none, or holds nobody up and is to be skipped.
bool change_dead(const pg::Installation& installation, QueueLookup& lookup, const core::OperationId& id, bool requeue) {
    while (pg::probe_latest(lookup.reader, id)) {
        const pg::QueueRow row = pg::read_queue_row(lookup.reader.slot);
        if (row.state != pg::DEAD || (!requeue && row.lane == pg::DEAD_LANE))
            return false;
        pg::copy_row(lookup.writer, lookup.reader.slot);
        if (requeue)
            revive(installation, lookup, row);
        else
            pg::set_column(lookup.writer, pg::QUEUE_LANE, Int64GetDatum(pg::DEAD_LANE));
        pg::store_row(lookup.writer);
        if (pg::update_row(lookup.writer, &lookup.reader.slot->tts_tid) == TM_Ok)
            return true;
        CHECK_FOR_INTERRUPTS();
    }
    require_message(installation, id);
    return false;
}

std::int64_t change_all_dead(const pg::Installation& installation, core::OperationId* ids, int count, bool requeue) {
    qsort(ids, static_cast<std::size_t>(count), sizeof *ids, by_bytes);
    std::int64_t changed = 0;
    for (int i = 0; i < count; ++i) {
        QueueLookup lookup = open_lookup(installation);
        changed += change_dead(installation, lookup, ids[i], requeue) ? 1 : 0;
        close_lookup(lookup);
    }
    touch_outbox();
    return changed;
}

} // namespace

void fetch_messages(const pg::Installation& installation, const FetchRequest& request, MessageSink sink,
                    void* context) {
    const core::Timestamp deadline = GetCurrentTimestamp() + request.wait;
    pg::enter_transaction();
    const bool waiting = request.wait > 0 && pg::begin_wait(outbox_condition(), PG_INT32_MAX);
    for (int tries = 0;; ++tries) {
        if (waiting)
            pg::prepare_to_sleep();
        bool contended;
        if (walk_queue(installation, request, sink, context, &contended) > 0)
            break;
        if (contended && tries < 3)
            continue;
        if (GetCurrentTimestamp() >= deadline)
            break;
        sleep(deadline, waiting);
    }
    if (waiting)
        pg::end_wait();
}

std::int64_t ack_messages(const pg::Installation& installation, core::OperationId* ids, int count, std::int64_t token) {
    qsort(ids, static_cast<std::size_t>(count), sizeof *ids, by_bytes);
    QueueLookup lookup = open_lookup(installation);
    std::int64_t acked = 0;
    for (int i = 0; i < count; ++i)
        if (i == 0 || by_bytes(&ids[i - 1], &ids[i]) != 0)
            acked += ack_message(installation, lookup, ids[i], token) ? 1 : 0;
    close_lookup(lookup);
    return acked;
}

NackAnswer nack_message(const pg::Installation& installation, const core::OperationId& id, std::int64_t token,
                        core::Duration retry_in, text* error) {
    QueueLookup lookup = open_lookup(installation);
    for (;;) {
        if (!pg::probe_latest(lookup.reader, id)) {
            require_message(installation, id);
            pg::error_lease_lapsed(id);
        }
        const pg::QueueRow row = pg::read_queue_row(lookup.reader.slot);
        if (!holds_lease(row, token))
            pg::error_lease_lapsed(id);
        const pg::OutboxGroup group = pg::read_group(lookup.reader.slot);
        const NackAnswer answer = compose_nack(installation, lookup, row, group, retry_in, error);
        if (pg::update_row(lookup.writer, &lookup.reader.slot->tts_tid) == TM_Ok) {
            close_lookup(lookup);
            give_back_rest(installation, group, row, token, GetCurrentTimestamp());
            touch_outbox();
            CommandCounterIncrement();
            return answer;
        }
        CHECK_FOR_INTERRUPTS();
    }
}

std::int64_t requeue_messages(const pg::Installation& installation, core::OperationId* ids, int count) {
    return change_all_dead(installation, ids, count, true);
}

std::int64_t skip_messages(const pg::Installation& installation, core::OperationId* ids, int count) {
    return change_all_dead(installation, ids, count, false);
}

} // namespace idem::engine
