#include "server/store/sqlite/deletion_plan.h"

#include "server/base/cleanup.h"

#include <stdlib.h>

/* Foreign keys, and columns that name a run without one. */
#define ARROWS                                                                                                         \
    "WITH RECURSIVE arrows (child, place, parent) AS ("                                                                \
    "  SELECT t.name, f.\"from\", f.\"table\" FROM sqlite_schema t JOIN pragma_foreign_key_list(t.name) f"             \
    "   WHERE t.type = 'table' AND f.\"table\" <> t.name"                                                              \
    "  UNION SELECT t.name, c.name, 'runs' FROM sqlite_schema t JOIN pragma_table_info(t.name) c"                      \
    "   WHERE t.type = 'table' AND c.name = 'run_seq')"

/* Table, its column, whether that names a batch, what tells its rows apart. `height`: how long a chain of arrows leads to
 * the table, so that referring rows go before the row that they refer to. */
static const char steps_sql[] = ARROWS
    ", height (name, n) AS ("
    "  SELECT name, 0 FROM sqlite_schema WHERE type = 'table'"
    "  UNION SELECT a.parent, h.n + 1 FROM height h JOIN arrows a ON a.child = h.name)"
    " SELECT a.child, a.place, a.parent = 'batches',"
    "  CASE WHEN l.wr THEN (SELECT group_concat(name) FROM pragma_table_info(a.child) WHERE pk > 0) ELSE 'rowid' END"
    " FROM (SELECT DISTINCT child, place, parent FROM arrows) a JOIN pragma_table_list l ON l.schema = 'main' AND "
    "l.name = a.child"
    " WHERE a.parent IN ('runs', 'batches') AND a.child NOT IN ('batches', 'groups', 'rollouts')"
    " ORDER BY (SELECT max(n) FROM height WHERE name = a.child), a.child";

/* The tables of which each row may belong to many runs. Others that are shared hold few rows, which say nothing of a
 * run's prompts, and stay. */
static const char sweeps_sql[] =
    ARROWS " SELECT parent, group_concat('NOT EXISTS (SELECT 1 FROM \"' || child || '\" x WHERE x.\"' || place || '\" "
           "= s.seq)', ' AND ')"
           " FROM arrows WHERE parent IN ('tasks', 'tags', 'contents') GROUP BY parent ORDER BY parent";

static const char *column(sqlite3_stmt *row, int place)
{
    return (const char *)sqlite3_column_text(row, place);
}

static int prepare(sqlite3 *handle, char *sql, sqlite3_stmt **ret_statement)
{
    int result = sqlite3_prepare_v3(handle, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement, NULL);
    free(sql);
    return result;
}

static int add_step(sqlite3 *handle, sqlite3_stmt *row, struct deletion_plan *plan)
{
    const char *table = column(row, 0);
    const char *key = column(row, 3);
    plan->steps = xrealloc(plan->steps, (plan->step_count + 1) * sizeof(*plan->steps));
    struct plan_step *step = &plan->steps[plan->step_count++];
    *step = (struct plan_step){.of_batch = sqlite3_column_int(row, 2)};
    return prepare(handle,
                   xasprintf("DELETE FROM \"%s\" WHERE (%s) IN (SELECT %s FROM \"%s\" WHERE \"%s\" = ?1 LIMIT ?2)",
                             table, key, key, table, column(row, 1)),
                   &step->remove);
}

static int add_sweep(sqlite3 *handle, sqlite3_stmt *row, struct deletion_plan *plan)
{
    const char *table = column(row, 0);
    plan->sweeps = xrealloc(plan->sweeps, (plan->sweep_count + 1) * sizeof(*plan->sweeps));
    struct plan_sweep *sweep = &plan->sweeps[plan->sweep_count++];
    *sweep = (struct plan_sweep){0};
    int result = prepare(
        handle, xasprintf("SELECT max(seq) FROM (SELECT seq FROM \"%s\" WHERE seq > ?1 ORDER BY seq LIMIT ?2)", table),
        &sweep->last);
    if (result != SQLITE_OK)
        return result;
    return prepare(handle,
                   xasprintf("DELETE FROM \"%s\" AS s WHERE s.seq > ?1 AND s.seq <= ?2 AND %s", table, column(row, 1)),
                   &sweep->remove);
}

static int add_all(sqlite3 *handle, const char *sql,
                   int (*add)(sqlite3 *handle, sqlite3_stmt *row, struct deletion_plan *plan),
                   struct deletion_plan *plan)
{
    sqlite3_stmt *rows = NULL;
    int result = sqlite3_prepare_v2(handle, sql, -1, &rows, NULL);
    while (result == SQLITE_OK && (result = sqlite3_step(rows)) == SQLITE_ROW)
        result = add(handle, rows, plan);
    sqlite3_finalize(rows);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int deletion_plan_make(sqlite3 *handle, struct deletion_plan *ret_plan)
{
    *ret_plan = (struct deletion_plan){0};
    int result = add_all(handle, steps_sql, add_step, ret_plan);
    return result == SQLITE_OK ? add_all(handle, sweeps_sql, add_sweep, ret_plan) : result;
}

void deletion_plan_finish(struct deletion_plan *plan)
{
    for (size_t i = 0; i < plan->step_count; i++)
        sqlite3_finalize(plan->steps[i].remove);
    for (size_t i = 0; i < plan->sweep_count; i++) {
        sqlite3_finalize(plan->sweeps[i].last);
        sqlite3_finalize(plan->sweeps[i].remove);
    }
    free(plan->steps);
    free(plan->sweeps);
    *plan = (struct deletion_plan){0};
}
