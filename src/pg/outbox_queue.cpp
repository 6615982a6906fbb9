// outbox_queue.cpp: see outbox_queue.hpp.
#include "core/fingerprint.hpp"
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/outbox_queue.hpp"
#include "pg/varlena.hpp"

namespace idem::pg {

namespace {

constexpr int LANES_COLUMNS = 4;
constexpr int LANES_KEY[LANES_COLUMNS] = {QUEUE_TOPIC, QUEUE_ACTOR, QUEUE_LANE, QUEUE_SEQ};

bool is_lanes_index(Relation index) {
    const Form_pg_index form = index->rd_index;
    if (!form->indisvalid || form->indnkeyatts < LANES_COLUMNS || RelationGetIndexPredicate(index) != NIL)
        return false;
    for (int i = 0; i < LANES_COLUMNS; ++i)
        if (form->indkey.values[i] != LANES_KEY[i] + 1 || index->rd_indoption[i] != 0)
            return false;
    return index->rd_rel->relam == BTREE_AM_OID;
}

// open_lanes finds the index by its columns, because REINDEX CONCURRENTLY gives it another OID.
Relation open_lanes(Relation rel) {
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        Relation index = index_open(lfirst_oid(cell), AccessShareLock);
        if (is_lanes_index(index))
            return index;
        index_close(index, NoLock);
    }
    error_table_shape(RelationGetRelationName(rel), "It has no index on (topic, actor, lane, seq).");
}

ScanKeyData text_key(int column, StrategyNumber strategy, RegProcedure function, text* value) {
    ScanKeyData key;
    ScanKeyEntryInitialize(&key, 0, static_cast<AttrNumber>(column), strategy, InvalidOid, C_COLLATION_OID, function,
                           PointerGetDatum(value));
    return key;
}

ScanKeyData text_equals(int column, text* value) {
    return text_key(column, BTEqualStrategyNumber, F_TEXTEQ, value);
}

ScanKeyData text_after(int column, text* value) {
    return text_key(column, BTGreaterStrategyNumber, F_TEXT_GT, value);
}

// find_group looks for the first row that fulfils the conditions.
bool find_group(OutboxQueue& queue, ScanKeyData* keys, int count, OutboxGroup* out) {
    IndexScanDesc scan = begin_index_scan(queue.writer.rel, queue.lanes, queue.snapshot, count);
    index_rescan(scan, keys, count, nullptr, 0);
    const bool found = index_getnext_slot(scan, ForwardScanDirection, queue.slot);
    if (found)
        *out = read_group(queue.slot);
    ExecClearTuple(queue.slot);
    index_endscan(scan);
    return found;
}

bool first_group(OutboxQueue& queue, text* topic, OutboxGroup* out) {
    ScanKeyData key = text_equals(1, topic);
    return find_group(queue, &key, 1, out);
}

bool next_actor(OutboxQueue& queue, const OutboxGroup& after, OutboxGroup* out) {
    ScanKeyData keys[] = {text_equals(1, after.topic), text_after(2, after.actor)};
    return find_group(queue, keys, 2, out);
}

bool group_among(OutboxQueue& queue, const OutboxGroup& after, List* topics, OutboxGroup* out) {
    ListCell* cell;
    foreach (cell, topics) {
        text* topic = static_cast<text*>(lfirst(cell));
        const int order = after.topic == nullptr ? 1 : compare_texts(topic, after.topic);
        if (order > 0 ? first_group(queue, topic, out) : order == 0 && next_actor(queue, after, out))
            return true;
    }
    return false;
}

// find_message finds the first row at or after an id.
bool find_message(OutboxQueue& queue, const core::OperationId& from) {
    pg_uuid_t uuid;
    std::memcpy(uuid.data, from.bytes, sizeof uuid.data);
    ScanKeyData key;
    ScanKeyInit(&key, 1, BTGreaterEqualStrategyNumber, F_UUID_GE, UUIDPGetDatum(&uuid));
    Relation primary = index_open(primary_key_index(queue.writer.rel), AccessShareLock);
    IndexScanDesc scan = begin_index_scan(queue.writer.rel, primary, queue.snapshot, 1);
    index_rescan(scan, &key, 1, nullptr, 0);
    const bool found = index_getnext_slot(scan, ForwardScanDirection, queue.slot);
    if (found)
        slot_getallattrs(queue.slot);
    index_endscan(scan);
    index_close(primary, NoLock);
    return found;
}

std::uint64_t id_prefix(const core::OperationId& id) {
    std::uint64_t prefix = 0;
    for (int i = 0; i < 6; ++i)
        prefix = prefix << 8 | id.bytes[i];
    return prefix;
}

core::OperationId id_of_prefix(std::uint64_t prefix) {
    core::OperationId id{};
    for (int i = 0; i < 6; ++i)
        id.bytes[i] = static_cast<std::uint8_t>(prefix >> (40 - 8 * i));
    return id;
}

bool find_topic(Relation rel, text* topic, TupleTableSlot* slot) {
    Relation index = index_open(primary_key_index(rel), AccessShareLock);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    ScanKeyData key = text_equals(1, topic);
    IndexScanDesc scan = begin_index_scan(rel, index, snapshot, 1);
    index_rescan(scan, &key, 1, nullptr, 0);
    const bool found = index_getnext_slot(scan, ForwardScanDirection, slot);
    if (found)
        slot_getallattrs(slot);
    index_endscan(scan);
    UnregisterSnapshot(snapshot);
    index_close(index, NoLock);
    return found;
}

} // namespace

std::uint64_t unix_milliseconds() {
    constexpr core::Duration FROM_1970_TO_2000 = 10957 * core::DAY;
    return static_cast<std::uint64_t>((GetCurrentTimestamp() + FROM_1970_TO_2000) / core::MILLISECOND);
}

OutboxQueue open_queue(const Installation& installation) {
    OutboxQueue queue{};
    queue.writer = open_writer(installation.outbox_queue);
    queue.lanes = open_lanes(queue.writer.rel);
    queue.slot = table_slot_create(queue.writer.rel, nullptr);
    queue.snapshot = RegisterSnapshot(GetLatestSnapshot());
    return queue;
}

void close_queue(OutboxQueue& queue) {
    end_lanes(queue);
    ExecDropSingleTupleTableSlot(queue.slot);
    UnregisterSnapshot(queue.snapshot);
    index_close(queue.lanes, NoLock);
    close_writer(queue.writer);
}

std::int64_t lane_of(const text* ordering_key, std::int64_t seq) {
    if (ordering_key == nullptr)
        return seq;
    const core::Digest digest = core::xxh3_128(bytes_of(ordering_key));
    std::uint64_t hash;
    std::memcpy(&hash, digest.bytes, sizeof hash);
    return static_cast<std::int64_t>(hash | std::uint64_t{1} << 63);
}

bool group_after(OutboxQueue& queue, const OutboxGroup& after, List* topics, OutboxGroup* out) {
    if (topics != NIL)
        return group_among(queue, after, topics, out);
    if (after.topic == nullptr)
        return find_group(queue, nullptr, 0, out);
    if (next_actor(queue, after, out))
        return true;
    ScanKeyData key = text_after(1, after.topic);
    return find_group(queue, &key, 1, out);
}

// Ids begin with the time in milliseconds: a random time between the first and now is a random message.
bool random_group(OutboxQueue& queue, OutboxGroup* out) {
    if (!find_message(queue, core::OperationId{}))
        return false;
    const std::uint64_t first = id_prefix(read_queue_row(queue.slot).message);
    const std::uint64_t now = unix_milliseconds();
    if (now > first) {
        const std::uint64_t any = pg_prng_uint64_range(&pg_global_prng_state, first, now);
        if (!find_message(queue, id_of_prefix(any)) && !find_message(queue, core::OperationId{}))
            return false;
    }
    *out = read_group(queue.slot);
    ExecClearTuple(queue.slot);
    return true;
}

int compare_texts(const text* a, const text* b) {
    return bytes_of(a).compare(bytes_of(b));
}

int compare_groups(const OutboxGroup& a, const OutboxGroup& b) {
    const int order = compare_texts(a.topic, b.topic);
    return order != 0 ? order : compare_texts(a.actor, b.actor);
}

void start_lanes(OutboxQueue& queue, const OutboxGroup& group, std::int64_t lane) {
    ScanKeyData keys[3] = {text_equals(1, group.topic), text_equals(2, group.actor)};
    ScanKeyInit(&keys[2], 3, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(lane));
    if (queue.scan == nullptr)
        queue.scan = begin_index_scan(queue.writer.rel, queue.lanes, queue.snapshot, 3);
    index_rescan(queue.scan, keys, 3, nullptr, 0);
}

bool next_in_lanes(OutboxQueue& queue) {
    return index_getnext_slot(queue.scan, ForwardScanDirection, queue.slot);
}

void end_lanes(OutboxQueue& queue) {
    if (queue.scan == nullptr)
        return;
    ExecClearTuple(queue.slot);
    index_endscan(queue.scan);
    queue.scan = nullptr;
}

QueueRow read_queue_row(TupleTableSlot* slot) {
    slot_getallattrs(slot);
    const Datum* values = slot->tts_values;
    QueueRow row{};
    std::memcpy(row.message.bytes, DatumGetUUIDP(values[QUEUE_MESSAGE_ID])->data, sizeof row.message.bytes);
    row.seq = DatumGetInt64(values[QUEUE_SEQ]);
    row.lane = DatumGetInt64(values[QUEUE_LANE]);
    row.ready_at = DatumGetTimestampTz(values[QUEUE_READY_AT]);
    row.token = DatumGetInt64(values[QUEUE_TOKEN]);
    row.attempt = DatumGetInt32(values[QUEUE_ATTEMPT]);
    row.state = DatumGetChar(values[QUEUE_STATE]);
    return row;
}

OutboxGroup read_group(TupleTableSlot* slot) {
    slot_getallattrs(slot);
    return OutboxGroup{DatumGetTextPCopy(slot->tts_values[QUEUE_TOPIC]),
                       DatumGetTextPCopy(slot->tts_values[QUEUE_ACTOR])};
}

TopicRules read_topic_rules(const Installation& installation, text* topic) {
    Relation rel = table_open(installation.outbox_topics, AccessShareLock);
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TopicRules rules;
    if (find_topic(rel, topic, slot)) {
        rules.max_attempts = DatumGetInt32(slot->tts_values[TOPIC_MAX_ATTEMPTS]);
        rules.hold = bytes_of(DatumGetTextPP(slot->tts_values[TOPIC_ON_DEAD_LETTER])) != "skip";
    }
    ExecDropSingleTupleTableSlot(slot);
    table_close(rel, NoLock);
    return rules;
}

void write_topic_rules(const Installation& installation, text* topic, const TopicRules& rules) {
    // Setting rules is rare and two setters at once are rarer: a lock that readers do not notice keeps it simple.
    LockRelationOid(installation.outbox_topics, ShareRowExclusiveLock);
    TableWriter writer = open_writer(installation.outbox_topics);
    TupleTableSlot* slot = table_slot_create(writer.rel, nullptr);
    const bool found = find_topic(writer.rel, topic, slot);
    if (found)
        copy_row(writer, slot);
    else
        clear_row(writer);
    set_column(writer, TOPIC_TOPIC, PointerGetDatum(topic));
    set_column(writer, TOPIC_MAX_ATTEMPTS, Int32GetDatum(rules.max_attempts));
    set_column(writer, TOPIC_ON_DEAD_LETTER, PointerGetDatum(cstring_to_text(rules.hold ? "hold" : "skip")));
    store_row(writer);
    if (!found)
        insert_row(writer);
    else if (update_row(writer, &slot->tts_tid) != TM_Ok)
        error_serialization();
    ExecDropSingleTupleTableSlot(slot);
    close_writer(writer);
    CommandCounterIncrement();
}

} // namespace idem::pg
