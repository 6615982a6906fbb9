// table_writer.cpp: see table_writer.hpp.
#include "core/types.hpp"
#include "pg/server.hpp"
#include "pg/compat.hpp"
#include "pg/errors.hpp"
#include "pg/table_writer.hpp"

namespace idem::pg {

namespace {

bool has_row_triggers(const TriggerDesc* triggers) {
    return triggers != nullptr &&
           (triggers->trig_insert_before_row || triggers->trig_insert_after_row || triggers->trig_update_before_row ||
            triggers->trig_update_after_row || triggers->trig_insert_new_table || triggers->trig_update_new_table);
}

bool has_checks(Relation rel) {
    const TupleConstr* constraints = RelationGetDescr(rel)->constr;
    return constraints != nullptr && constraints->num_check > 0;
}

// ensure_range_table gives the executor state its range table, which most writes never look at.
void ensure_range_table(TableWriter& writer) {
    if (writer.estate->es_range_table == NIL)
        init_range_table(writer.estate, writer.rel);
}

// prepare_checks makes the CHECKs that somebody has added ready to run.
void prepare_checks(TableWriter& writer) {
    if (!has_checks(writer.rel))
        return;
    const TupleConstr* constraints = RelationGetDescr(writer.rel)->constr;
    const MemoryContext caller = MemoryContextSwitchTo(writer.estate->es_query_cxt);
    writer.checks = static_cast<ExprState**>(palloc0(sizeof(ExprState*) * constraints->num_check));
    for (int i = 0; i < constraints->num_check; ++i) {
        const ConstrCheck& check = constraints->check[i];
        if (check_is_enforced(check))
            writer.checks[i] = ExecPrepareExpr(static_cast<Expr*>(stringToNode(check.ccbin)), writer.estate);
    }
    MemoryContextSwitchTo(caller);
}

// check_constraints does what ExecConstraints does, but for its DETAIL: that would show the row, and keys and payloads
// do not belong into a log.
void check_constraints(TableWriter& writer) {
    const TupleDesc desc = RelationGetDescr(writer.rel);
    for (int i = 0; i < desc->natts; ++i)
        if (TupleDescAttr(desc, i)->attnotnull && slot_attisnull(writer.row, i + 1))
            error_null_column(writer.rel, NameStr(TupleDescAttr(desc, i)->attname));
    if (writer.checks == nullptr)
        return;
    ExprContext* context = GetPerTupleExprContext(writer.estate);
    context->ecxt_scantuple = writer.row;
    for (int i = 0; i < desc->constr->num_check; ++i)
        if (writer.checks[i] != nullptr && !ExecCheck(writer.checks[i], context))
            error_check_violation(writer.rel, desc->constr->check[i].ccname);
    ResetPerTupleExprContext(writer.estate);
}

// before_insert runs what belongs before the heap insert; a trigger that skips the row is refused, because a claim
// without a row would be a lie.
void before_insert(TableWriter& writer) {
    if (writer.row_triggers) {
        AfterTriggerBeginQuery();
        if (!ExecBRInsertTriggers(writer.estate, writer.info, writer.row))
            error_row_skipped(RelationGetRelationName(writer.rel));
    }
    if (writer.estate != nullptr)
        check_constraints(writer);
}

// insert_plain_index adds writer.row to the primary key index; false where a partial check found a rival.
bool insert_plain_index(TableWriter& writer, IndexUniqueCheck check, bool unchanged) {
    if (writer.index == nullptr)
        return true;
    Datum values[INDEX_MAX_KEYS];
    bool isnull[INDEX_MAX_KEYS];
    FormIndexDatum(writer.index_info, writer.row, nullptr, values, isnull);
    return index_insert(writer.index, values, isnull, &writer.row->tts_tid, writer.rel, check, unchanged,
                        writer.index_info);
}

void after_insert(TableWriter& writer, List* recheck_indexes) {
    if (writer.row_triggers) {
        ExecARInsertTriggers(writer.estate, writer.info, writer.row, recheck_indexes, nullptr);
        AfterTriggerEndQuery(writer.estate);
    }
}

// check_conflicting_indexes raises for a unique index that somebody added: probing the primary key would never find the
// row it conflicts with.
void check_conflicting_indexes(TableWriter& writer, List* indexes) {
    const Oid primary = primary_key_index(writer.rel);
    ListCell* cell;
    foreach (cell, indexes) {
        const Oid oid = lfirst_oid(cell);
        if (oid == primary)
            continue;
        Relation index = index_open(oid, AccessShareLock);
        const bool same_key = index->rd_index->indnkeyatts == 1 && index->rd_index->indkey.values[0] == 1 &&
                              RelationGetIndexPredicate(index) == NIL;
        index_close(index, NoLock);
        if (!same_key)
            error_unique_violation(get_rel_name(oid));
    }
}

TM_Result update_heap_and_indexes(TableWriter& writer, ItemPointer tid, bool wait, List** recheck) {
    TM_FailureData failure;
    LockTupleMode lock_mode;
    IndexUpdate indexes;
    const TM_Result result =
        update_tuple(writer.rel, tid, writer.row, GetCurrentCommandId(true), wait, &failure, &lock_mode, &indexes);
    if (result == TM_Updated || result == TM_Deleted)
        return result;
    if (!wait && (result == TM_BeingModified || result == TM_SelfModified))
        return result;
    if (result != TM_Ok)
        elog(ERROR, "unexpected result %d of an update", static_cast<int>(result));
    if (!indexes.needed)
        return TM_Ok;
    if (writer.estate == nullptr) {
        (void)insert_plain_index(writer, UNIQUE_CHECK_YES, true);
        return TM_Ok;
    }
    if (writer.info->ri_NumIndices == 0)
        return TM_Ok;
    ensure_range_table(writer); // index maintenance asks it which columns an update changes
    *recheck =
        insert_index_entries(writer.info, writer.row, writer.estate, true, false, nullptr, indexes.only_summarizing);
    return TM_Ok;
}

// update_row_with_triggers locks the row first, so that triggers never see a version that a rival then replaces.
TM_Result update_row_with_triggers(TableWriter& writer, ItemPointer tid, bool wait) {
    TupleTableSlot* locked = table_slot_create(writer.rel, nullptr);
    TM_FailureData failure;
    const TM_Result lock = table_tuple_lock(writer.rel, tid, GetActiveSnapshot(), locked, GetCurrentCommandId(true),
                                            LockTupleNoKeyExclusive, wait ? LockWaitBlock : LockWaitSkip, 0, &failure);
    ExecDropSingleTupleTableSlot(locked);
    if (lock != TM_Ok)
        return lock == TM_WouldBlock ? TM_BeingModified : lock;
    writer.estate->es_snapshot = GetActiveSnapshot();
    writer.estate->es_output_cid = GetCurrentCommandId(true); // decides which of our own rows triggers may see
    AfterTriggerBeginQuery();
    if (!run_before_update_triggers(writer.estate, writer.info, tid, writer.row))
        error_row_skipped(RelationGetRelationName(writer.rel));
    check_constraints(writer);
    List* recheck = NIL;
    const TM_Result result = update_heap_and_indexes(writer, tid, true, &recheck);
    if (result != TM_Ok)
        elog(ERROR, "a locked row was updated by another transaction");
    ExecARUpdateTriggers(writer.estate, writer.info, nullptr, nullptr, tid, nullptr, writer.row, recheck, nullptr,
                         false);
    AfterTriggerEndQuery(writer.estate);
    return TM_Ok;
}

TM_Result update_version(TableWriter& writer, ItemPointer tid, bool wait) {
    CheckCmdReplicaIdentity(writer.rel, CMD_UPDATE);
    if (writer.row_triggers)
        return update_row_with_triggers(writer, tid, wait);
    if (writer.estate != nullptr)
        check_constraints(writer);
    List* recheck = NIL;
    return update_heap_and_indexes(writer, tid, wait, &recheck);
}

void begin_executor_state(TableWriter& writer) {
    writer.estate = CreateExecutorState();
    writer.info = makeNode(ResultRelInfo);
    InitResultRelInfo(writer.info, writer.rel, 1, nullptr, 0);
    // Not `speculative`: that would look up operators for arbiter indexes, and there are none to name.
    ExecOpenIndices(writer.info, false);
    if (writer.row_triggers)
        ensure_range_table(writer);
    prepare_checks(writer);
}

void end_executor_state(TableWriter& writer) {
    ExecCloseIndices(writer.info);
    if (writer.row_triggers)
        ExecCloseResultRelations(writer.estate);
    ExecResetTupleTable(writer.estate->es_tupleTable, false);
    FreeExecutorState(writer.estate);
}

// has_other_indexes tells whether the table has any index but its primary key.
bool has_other_indexes(Relation rel) {
    if (!rel->rd_rel->relhasindex)
        return false;
    List* indexes = RelationGetIndexList(rel);
    const bool only_primary =
        indexes == NIL || (list_length(indexes) == 1 && linitial_oid(indexes) == primary_key_index(rel));
    list_free(indexes);
    return !only_primary;
}

void open_plain_index(TableWriter& writer, Relation primary_key) {
    if (!writer.rel->rd_rel->relhasindex)
        return;
    const Oid oid = primary_key_index(writer.rel);
    if (!OidIsValid(oid))
        return;
    writer.index = primary_key != nullptr ? primary_key : index_open(oid, RowExclusiveLock);
    writer.index_info = BuildIndexInfo(writer.index);
}

TableWriter writer_of(Relation rel, Relation primary_key) {
    TableWriter writer{};
    writer.rel = rel;
    writer.borrowed = primary_key != nullptr;
    writer.row = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsHeapTuple);
    writer.row_triggers = has_row_triggers(rel->trigdesc);
    if (writer.row_triggers || has_checks(rel) || has_other_indexes(rel))
        begin_executor_state(writer);
    else
        open_plain_index(writer, primary_key);
    return writer;
}

} // namespace

TableWriter open_writer(Oid relid) {
    return writer_of(table_open(relid, RowExclusiveLock), nullptr);
}

TableWriter try_open_writer(Oid relid) {
    Relation rel = try_table_open(relid, RowExclusiveLock);
    return rel == nullptr ? TableWriter{} : writer_of(rel, nullptr);
}

TableWriter open_writer_on(Relation rel, Relation primary_key) {
    return writer_of(rel, primary_key);
}

void close_writer(TableWriter& writer) {
    ExecDropSingleTupleTableSlot(writer.row);
    if (writer.estate != nullptr)
        end_executor_state(writer);
    if (writer.borrowed)
        return;
    if (writer.index != nullptr)
        index_close(writer.index, NoLock);
    table_close(writer.rel, NoLock);
}

void clear_row(TableWriter& writer) {
    ExecClearTuple(writer.row);
    std::memset(writer.row->tts_isnull, true,
                static_cast<std::size_t>(writer.row->tts_tupleDescriptor->natts) * sizeof(bool));
}

void set_column(TableWriter& writer, int column, Datum value) {
    writer.row->tts_values[column] = value;
    writer.row->tts_isnull[column] = false;
}

void store_row(TableWriter& writer) {
    HeapTuple tuple = heap_form_tuple(writer.row->tts_tupleDescriptor, writer.row->tts_values, writer.row->tts_isnull);
    ExecStoreHeapTuple(tuple, writer.row, true);
}

void copy_row(TableWriter& writer, TupleTableSlot* source) {
    ExecClearTuple(writer.row);
    slot_getallattrs(source);
    const auto columns = static_cast<std::size_t>(source->tts_tupleDescriptor->natts);
    std::memcpy(writer.row->tts_values, source->tts_values, columns * sizeof(Datum));
    std::memcpy(writer.row->tts_isnull, source->tts_isnull, columns * sizeof(bool));
}

void insert_row(TableWriter& writer) {
    before_insert(writer);
    table_tuple_insert(writer.rel, writer.row, GetCurrentCommandId(true), 0, nullptr);
    if (writer.estate == nullptr) {
        (void)insert_plain_index(writer, UNIQUE_CHECK_YES, false);
        return;
    }
    List* recheck = NIL;
    if (writer.info->ri_NumIndices > 0)
        recheck = insert_index_entries(writer.info, writer.row, writer.estate, false, false, nullptr, false);
    after_insert(writer, recheck);
}

InsertResult insert_row_speculatively(TableWriter& writer) {
    before_insert(writer);
    const TransactionId xid = GetCurrentTransactionId();
    const std::uint32_t speculation = SpeculativeInsertionLockAcquire(xid);
    table_tuple_insert_speculative(writer.rel, writer.row, GetCurrentCommandId(true), 0, nullptr, speculation);
    bool conflict = false;
    List* indexes = NIL;
    if (writer.estate == nullptr)
        conflict = !insert_plain_index(writer, UNIQUE_CHECK_PARTIAL, false);
    else
        indexes = insert_index_entries(writer.info, writer.row, writer.estate, false, true, &conflict, false);
    table_tuple_complete_speculative(writer.rel, writer.row, speculation, !conflict);
    SpeculativeInsertionLockRelease(xid);
    if (!conflict) {
        after_insert(writer, indexes);
        return InsertResult::INSERTED;
    }
    check_conflicting_indexes(writer, indexes);
    if (writer.row_triggers)
        AfterTriggerEndQuery(writer.estate);
    return InsertResult::CONFLICT;
}

TM_Result update_row(TableWriter& writer, ItemPointer tid) {
    return update_version(writer, tid, true);
}

TM_Result try_update_row(TableWriter& writer, ItemPointer tid) {
    return update_version(writer, tid, false);
}

TM_Result delete_row(TableWriter& writer, ItemPointer tid) {
    CheckCmdReplicaIdentity(writer.rel, CMD_DELETE);
    TM_FailureData failure;
    const TM_Result result = table_tuple_delete(writer.rel, tid, GetCurrentCommandId(true), InvalidSnapshot,
                                                InvalidSnapshot, true, &failure, false);
    if (result != TM_Ok && result != TM_Updated && result != TM_Deleted)
        elog(ERROR, "unexpected result %d of a delete", static_cast<int>(result));
    return result;
}

} // namespace idem::pg
