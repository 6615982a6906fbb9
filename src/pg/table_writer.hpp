// table_writer.hpp: direct inserts and updates of one table, as the executor would do them, without the executor.
//
// Purpose: the hot path has no SPI and no plan. What the executor does around a heap write is re-derived here, once.
// A table is in one of two shapes, looked at on each open:
//   plain     as our script made it: at most the primary key index, no row trigger, no CHECK. Heap and index are
//   written
//             with nothing around them; NOT NULL holds because the installation check pins our columns.
//   dressed   somebody added an index, a trigger, a foreign key or a CHECK. An executor state is made and the
//   executor's
//             own helpers run: constraints, all indexes, BEFORE and AFTER ROW triggers.
// Statement triggers, rules and row level security are bypassed in both; docs say so.
// Locking: RowExclusiveLock on the table and its indexes, kept to the end of the transaction, as DML does.
// Lifetime: a TableWriter lives inside one call; on error the server's resource owners release all of it.
#pragma once

#include "core/types.hpp"
#include "pg/server.hpp"

namespace idem::pg {

// TableWriter is one table opened for writing.
struct TableWriter {
    Relation rel;
    TupleTableSlot* row; // a heap tuple, formed once: the heap would form it anew at each of its steps
    bool borrowed;       // rel and index belong to a reader

    // Plain shape.
    Relation index; // null where the table has none
    IndexInfo* index_info;

    // Dressed shape; null and false in the plain one.
    EState* estate;
    ResultRelInfo* info;
    ExprState** checks; // one for each CHECK of the table; null where it has none
    bool row_triggers;
};

// InsertResult is what a speculative insert found.
enum class InsertResult : std::uint8_t { INSERTED, CONFLICT };

// open_writer opens a table; try_open_writer does too unless it is gone, and then leaves rel null; open_writer_on
// writes a table that is open already, with its primary key index. close_writer gives back what was opened, but for the
// locks.
TableWriter open_writer(Oid relid);
TableWriter try_open_writer(Oid relid);
TableWriter open_writer_on(Relation rel, Relation primary_key);
void close_writer(TableWriter& writer);

// clear_row starts a new row of NULLs, set_column sets a value in it, store_row makes the tuple of it.
void clear_row(TableWriter& writer);
void set_column(TableWriter& writer, int column, Datum value);
void store_row(TableWriter& writer);

// copy_row starts a new row from an existing one, toast pointers unchanged.
void copy_row(TableWriter& writer, TupleTableSlot* source);

// insert_row inserts writer.row; a unique violation raises 23505.
void insert_row(TableWriter& writer);

// insert_row_speculatively inserts writer.row unless a unique index holds its value, committed or not. This alone may
// conclude that a key is absent. Raises 23505 when an index other than the primary key conflicts.
InsertResult insert_row_speculatively(TableWriter& writer);

// update_row replaces the row version at `tid` by writer.row. Waits in the lock manager for a rival that holds the row.
// TM_Ok, TM_Updated or TM_Deleted (somebody was faster: probe again); anything else raises.
TM_Result update_row(TableWriter& writer, ItemPointer tid);

// try_update_row is update_row that never waits: TM_BeingModified where a rival holds the row, TM_SelfModified where
// this command has changed it already.
TM_Result try_update_row(TableWriter& writer, ItemPointer tid);

// delete_row removes the row version at `tid`, waiting for a rival as update_row does. No row trigger runs. TM_Ok,
// TM_Updated or TM_Deleted; anything else raises.
TM_Result delete_row(TableWriter& writer, ItemPointer tid);

} // namespace idem::pg
