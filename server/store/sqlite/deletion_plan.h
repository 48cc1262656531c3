/* deletion_plan: the rows that go with a run, read from the schema itself: a table that points to runs or batches is
 * covered by its foreign key. Private to the room.
 *
 * A new table needs a column `run_seq`, or a foreign key to batches; or one to a table that has either, or to
 * groups or rollouts, ON DELETE CASCADE. Each with an index. tests/unit/store/test_deletion.c holds every table against
 * this. */
#ifndef SERVER_STORE_SQLITE_DELETION_PLAN_H
#define SERVER_STORE_SQLITE_DELETION_PLAN_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of one table that belong to a run or a batch. */
struct plan_step {
    bool of_batch;
    sqlite3_stmt *remove; /* ?1: seq of the run or batch; ?2: rows at most */
};

/* Unreferenced rows of a table that all runs share. */
struct plan_sweep {
    sqlite3_stmt *last;   /* ?1: behind this seq; ?2: rows at most. The seq of the last of them */
    sqlite3_stmt *remove; /* ?1: behind this seq; ?2: up to this one */
};

struct deletion_plan {
    struct plan_step *steps; /* those that point to others first; without rollouts and groups */
    size_t step_count;
    struct plan_sweep *sweeps;
    size_t sweep_count;
};

/* An SQLite result code. deletion_plan_finish() is needed either way. */
int deletion_plan_make(sqlite3 *handle, struct deletion_plan *ret_plan);
void deletion_plan_finish(struct deletion_plan *plan);

#endif
