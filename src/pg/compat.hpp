// compat.hpp: every difference between server majors, and nothing else.
//
// Purpose: PostgreSQL 15 to 18 from one source. A caller uses these names on every major.
#pragma once

#include "pg/server.hpp"

namespace idem::pg {

// insert_index_entries adds a heap tuple to all indexes; with `speculative` conflicts are returned, not raised.
inline List* insert_index_entries(ResultRelInfo* relation, TupleTableSlot* slot, EState* estate, bool update,
                                  bool speculative, bool* conflict, bool only_summarizing) {
#if PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(relation, slot, estate, update, speculative, conflict, NIL, only_summarizing);
#else
    (void)only_summarizing;
    return ExecInsertIndexTuples(relation, slot, estate, update, speculative, conflict, NIL);
#endif
}

// IndexUpdate tells what an update left to do for the indexes.
struct IndexUpdate {
    bool needed;
    bool only_summarizing;
};

// update_tuple is table_tuple_update; with `wait` rivals are waited for in the lock manager.
inline TM_Result update_tuple(Relation rel, ItemPointer tid, TupleTableSlot* slot, CommandId cid, bool wait,
                              TM_FailureData* failure, LockTupleMode* lock_mode, IndexUpdate* indexes) {
#if PG_VERSION_NUM >= 160000
    TU_UpdateIndexes update = TU_None;
    const TM_Result result =
        table_tuple_update(rel, tid, slot, cid, InvalidSnapshot, InvalidSnapshot, wait, failure, lock_mode, &update);
    *indexes = IndexUpdate{update != TU_None, update == TU_Summarizing};
#else
    bool update = false;
    const TM_Result result =
        table_tuple_update(rel, tid, slot, cid, InvalidSnapshot, InvalidSnapshot, wait, failure, lock_mode, &update);
    *indexes = IndexUpdate{update, false};
#endif
    return result;
}

// begin_index_scan starts a scan of one key with one snapshot.
inline IndexScanDesc begin_index_scan(Relation heap, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 180000
    return index_beginscan(heap, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(heap, index, snapshot, keys, 0);
#endif
}

// primary_key_index returns the index to probe, never a remembered one: REINDEX CONCURRENTLY swaps it.
inline Oid primary_key_index(Relation rel) {
#if PG_VERSION_NUM >= 180000
    return RelationGetPrimaryKeyIndex(rel, false);
#else
    return RelationGetPrimaryKeyIndex(rel);
#endif
}

// init_range_table tells an executor state of the one table whose triggers may run: foreign key triggers and column
// triggers look there. All columns but the first, the key, count as updated.
inline void init_range_table(EState* estate, Relation rel) {
    RangeTblEntry* entry = makeNode(RangeTblEntry);
    entry->rtekind = RTE_RELATION;
    entry->relid = RelationGetRelid(rel);
    entry->relkind = rel->rd_rel->relkind;
    entry->rellockmode = RowExclusiveLock;
    Bitmapset* updated = bms_add_range(nullptr, 2 - FirstLowInvalidHeapAttributeNumber,
                                       RelationGetDescr(rel)->natts - FirstLowInvalidHeapAttributeNumber);
#if PG_VERSION_NUM >= 160000
    List* permissions = NIL;
    RTEPermissionInfo* permission = addRTEPermissionInfo(&permissions, entry);
    permission->updatedCols = updated;
#if PG_VERSION_NUM >= 180000
    ExecInitRangeTable(estate, list_make1(entry), permissions, bms_make_singleton(1));
#else
    ExecInitRangeTable(estate, list_make1(entry), permissions);
#endif
#else
    entry->updatedCols = updated;
    ExecInitRangeTable(estate, list_make1(entry));
#endif
}

// check_is_enforced tells whether new rows must satisfy a CHECK.
inline bool check_is_enforced(const ConstrCheck& check) {
#if PG_VERSION_NUM >= 180000
    return check.ccenforced;
#else
    (void)check;
    return true;
#endif
}

// run_before_update_triggers runs BEFORE ROW triggers on a row the caller has locked; false: a trigger skips the row.
inline bool run_before_update_triggers(EState* estate, ResultRelInfo* info, ItemPointer tid, TupleTableSlot* row) {
    EPQState recheck;
    TM_FailureData failure;
#if PG_VERSION_NUM >= 160000
    TM_Result result = TM_Ok;
    EvalPlanQualInit(&recheck, estate, nullptr, NIL, -1, NIL);
#if PG_VERSION_NUM >= 180000
    return ExecBRUpdateTriggers(estate, &recheck, info, tid, nullptr, row, &result, &failure, false);
#else
    return ExecBRUpdateTriggers(estate, &recheck, info, tid, nullptr, row, &result, &failure);
#endif
#else
    EvalPlanQualInit(&recheck, estate, nullptr, NIL, -1);
    return ExecBRUpdateTriggers(estate, &recheck, info, tid, nullptr, row, &failure);
#endif
}

// qualified_name_list splits a possibly qualified, possibly quoted name.
inline List* qualified_name_list(const char* name) {
#if PG_VERSION_NUM >= 160000
    return stringToQualifiedNameList(name, nullptr);
#else
    return stringToQualifiedNameList(name);
#endif
}

// my_proc_number is this process's place among all server processes, below MaxBackends + NUM_AUXILIARY_PROCS.
inline int my_proc_number() {
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyProc->pgprocno;
#endif
}

// may_execute tells whether the current user may call a function.
inline bool may_execute(Oid function) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#else
    return pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

} // namespace idem::pg
