#include "server/store/sqlite/deletion.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/store/sqlite/deletion_plan.h"
#include "server/store/sqlite/retention.h"

enum {
    SLICE_US = 4000,       /* then it is committed */
    ROLLOUTS_AT_ONCE = 16, /* rows of a statement, which SLICE_US does not interrupt; also arrays and requests */
    ROWS_AT_ONCE = 128,
    SWEPT_AT_ONCE = 64, /* likewise: a prompt may be large */
    BUSY_SHARE = 10,    /* while operations wait, the slices have one part in so many of the writer's time */
};
#define RETRY_US (1 * US_PER_S)

/* The run that is deleted. */
struct order {
    int64_t run_seq;
    int64_t deletion;
    int64_t batches;
    int64_t rollouts;
    char run[129];
};

struct deletion {
    struct database *database;
    struct deletion_plan plan;
    struct retention *retention; /* NULL: there are no such rules */
    bool awake;
    int64_t began_us; /* the last slice, and when it ended */
    int64_t ended_us;
    int64_t retry_us; /* not before */
    bool failing;     /* the failure was logged */
    bool in_run;      /* `order` is valid */
    struct order order;
    size_t sweep; /* of the plan, and behind which seq */
    int64_t swept;
};

struct deletion *deletion_create(struct database *database, const struct store_retention *retention)
{
    struct deletion *deletion = xcalloc(1, sizeof(*deletion));
    deletion->database = database;
    deletion->awake = true; /* a restart may have cut a deletion off */
    deletion->retention = retention_create(database, retention);
    if (deletion_plan_make(database->handle, &deletion->plan) == SQLITE_OK)
        return deletion;
    deletion_destroy(deletion);
    return NULL;
}

void deletion_destroy(struct deletion *deletion)
{
    if (!deletion)
        return;
    deletion_plan_finish(&deletion->plan);
    retention_destroy(deletion->retention);
    free(deletion);
}

void deletion_wake(struct deletion *deletion)
{
    deletion->awake = true;
}

bool deletion_is_awake(const struct deletion *deletion)
{
    return deletion->awake;
}

int64_t deletion_due_us(const struct deletion *deletion, bool idle)
{
    int64_t wanted_us = deletion->awake ? 0 : retention_due_us(deletion->retention);
    if (wanted_us == INT64_MAX)
        return INT64_MAX;
    int64_t pause_us = idle ? 0 : (deletion->ended_us - deletion->began_us) * (BUSY_SHARE - 1);
    int64_t due_us = deletion->ended_us + pause_us;
    due_us = due_us > wanted_us ? due_us : wanted_us;
    return due_us > deletion->retry_us ? due_us : deletion->retry_us;
}

/* ---- statements ------------------------------------------------------------------------------------------------- */

/* Rows that a statement with a seq and a limit, or another seq, has deleted; negative: an SQLite result code. */
static int remove_rows(struct deletion *deletion, sqlite3_stmt *statement, int64_t first, int64_t second)
{
    bind_int(statement, 1, first);
    if (sqlite3_bind_parameter_count(statement) > 1)
        bind_int(statement, 2, second);
    int result = database_run(statement);
    return result == SQLITE_OK ? sqlite3_changes(deletion->database->handle) : -result;
}

static int remove_by(struct deletion *deletion, enum statement which, int64_t first, int64_t second)
{
    return remove_rows(deletion, database_statement(deletion->database, which), first, second);
}

/* One number. SQLITE_ROW, SQLITE_DONE or an error. */
static int find_number(sqlite3_stmt *statement, int64_t *ret_number)
{
    int result = database_first(statement);
    if (result != SQLITE_ROW)
        return result;
    *ret_number = column_int_or(statement, 0, -1);
    sqlite3_reset(statement);
    return SQLITE_ROW;
}

/* ---- one run ---------------------------------------------------------------------------------------------------- */

/* Each of these does a bounded part: how many rows, 0 if nothing of its kind is left, or a negative result code. */

static int remove_steps(struct deletion *deletion, bool of_batch, int64_t owner_seq)
{
    for (size_t i = 0; i < deletion->plan.step_count; i++) {
        const struct plan_step *step = &deletion->plan.steps[i];
        if (step->of_batch != of_batch)
            continue;
        int removed = remove_rows(deletion, step->remove, owner_seq, of_batch ? ROLLOUTS_AT_ONCE : ROWS_AT_ONCE);
        if (removed)
            return removed;
    }
    return 0;
}

/* Retention orders a deletion without counting its groups. */
static int remove_groups(struct deletion *deletion, int64_t batch_seq)
{
    int removed = remove_by(deletion, SQL_DELETE_GROUPS, batch_seq, ROWS_AT_ONCE);
    if (removed <= 0)
        return removed;
    int counted = remove_by(deletion, SQL_COUNT_DELETED_GROUPS, deletion->order.deletion, removed);
    return counted < 0 ? counted : removed;
}

static int remove_batch(struct deletion *deletion, int64_t batch_seq)
{
    int removed = remove_by(deletion, SQL_DELETE_ROLLOUTS, batch_seq, ROLLOUTS_AT_ONCE);
    if (!removed)
        removed = remove_steps(deletion, true, batch_seq); /* arrays, before their groups take all of them at once */
    if (!removed)
        removed = remove_groups(deletion, batch_seq);
    return removed ? removed : remove_by(deletion, SQL_DELETE_BATCH, batch_seq, 0);
}

static int remove_batches(struct deletion *deletion)
{
    int64_t batch_seq = 0;
    sqlite3_stmt *next = database_statement(deletion->database, SQL_DELETION_BATCH);
    bind_int(next, 1, deletion->order.run_seq);
    int result = find_number(next, &batch_seq);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? 0 : -result;
    return remove_batch(deletion, batch_seq);
}

/* Walks once over the rows that all runs share. */
static int sweep(struct deletion *deletion)
{
    while (deletion->sweep < deletion->plan.sweep_count) {
        const struct plan_sweep *sweep = &deletion->plan.sweeps[deletion->sweep];
        int64_t last = -1;
        bind_int(sweep->last, 1, deletion->swept);
        bind_int(sweep->last, 2, SWEPT_AT_ONCE);
        int result = find_number(sweep->last, &last);
        if (result != SQLITE_ROW)
            return -result;
        if (last < 0) {
            deletion->sweep++;
            deletion->swept = 0;
            continue;
        }
        int removed = remove_rows(deletion, sweep->remove, deletion->swept, last);
        deletion->swept = last;
        return removed < 0 ? removed : 1;
    }
    return 0;
}

static int end_run(struct deletion *deletion)
{
    int removed = remove_by(deletion, SQL_DELETE_RUN, deletion->order.run_seq, 0);
    return removed < 0 ? removed : remove_by(deletion, SQL_END_DELETION, deletion->order.deletion, clock_utc_us());
}

static int remove_part(struct deletion *deletion, bool *ret_ended)
{
    int removed = remove_batches(deletion);
    if (!removed)
        removed = remove_steps(deletion, false, deletion->order.run_seq);
    if (!removed)
        removed = sweep(deletion);
    *ret_ended = removed == 0;
    return removed ? removed : end_run(deletion);
}

/* SQLITE_ROW: there is a run to be deleted. */
static int find_order(struct deletion *deletion)
{
    sqlite3_stmt *next = database_statement(deletion->database, SQL_NEXT_DELETION);
    int result = database_first(next);
    if (result != SQLITE_ROW)
        return result;
    struct order *order = &deletion->order;
    struct text run = column_view(next, 2);
    *order = (struct order){.run_seq = sqlite3_column_int64(next, 0),
                            .deletion = sqlite3_column_int64(next, 1),
                            .batches = sqlite3_column_int64(next, 3),
                            .rollouts = sqlite3_column_int64(next, 4)};
    memcpy(order->run, run.data, run.length_bytes < sizeof(order->run) ? run.length_bytes : sizeof(order->run) - 1);
    sqlite3_reset(next);
    deletion->in_run = true;
    deletion->sweep = 0;
    deletion->swept = 0;
    return SQLITE_ROW;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

/* Inside the transaction. An SQLite result code. */
static int work_until(struct deletion *deletion, int64_t until_us, bool *ret_ended)
{
    while (!*ret_ended) {
        int removed = remove_part(deletion, ret_ended);
        if (removed < 0)
            return -removed;
        if (clock_monotonic_us() >= until_us)
            break;
    }
    return SQLITE_OK;
}

static void say_ended(struct deletion *deletion)
{
    const struct order *order = &deletion->order;
    log_event(LOG_LEVEL_INFO, "run deleted", "run", order->run, LOG_INT("deletion", order->deletion),
              LOG_INT("batches", order->batches), LOG_INT("rollouts", order->rollouts), NULL);
    deletion->in_run = false;
    retention_look_again(deletion->retention);
}

void deletion_put_off(struct deletion *deletion)
{
    deletion->retry_us = clock_monotonic_us() + RETRY_US;
}

static void fail(struct deletion *deletion)
{
    sqlite3 *handle = deletion->database->handle;
    if (!deletion->failing)
        log_event(LOG_LEVEL_ERROR, "a deletion failed and is retried", "run", deletion->order.run, "why",
                  sqlite3_errmsg(handle), NULL);
    deletion->failing = true;
    deletion->in_run = false; /* the next slice looks for the remaining rows again */
    deletion_put_off(deletion);
    if (!sqlite3_get_autocommit(handle))
        database_run_plain(deletion->database, SQL_ROLLBACK_WRITE);
}

static int run_slice(struct deletion *deletion)
{
    bool ended = false;
    int result = database_run_plain(deletion->database, SQL_BEGIN_WRITE);
    if (result == SQLITE_OK)
        result = work_until(deletion, deletion->began_us + SLICE_US, &ended);
    if (result == SQLITE_OK)
        result = database_run_plain(deletion->database, SQL_COMMIT_WRITE);
    if (result == SQLITE_OK && ended)
        say_ended(deletion);
    return result;
}

/* Ordered deletions first; retention looks only when there is none. */
static int go_on(struct deletion *deletion)
{
    int result = deletion->in_run ? SQLITE_ROW : find_order(deletion);
    deletion->awake = result != SQLITE_DONE;
    return result == SQLITE_ROW ? run_slice(deletion) : result;
}

void deletion_work(struct deletion *deletion)
{
    deletion->began_us = clock_monotonic_us();
    int result = deletion->awake ? go_on(deletion) : retention_look(deletion->retention, &deletion->awake);
    if (result != SQLITE_OK && result != SQLITE_DONE)
        fail(deletion);
    else
        deletion->failing = false;
    deletion->ended_us = clock_monotonic_us();
}
