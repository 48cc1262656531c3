#include "server/store/sqlite/retention.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/log.h"

#include <string.h>

#define RUNS_AT_ONCE 64
#define PERIOD_MAX_US (60 * US_PER_S)
#define PERIOD_MIN_US US_PER_S
#define PERIODS_OF_AN_AGE 10
#define NAME_BYTES 129

/* The run that has been idle for longest, of those that were looked at. */
struct idle_run {
    int64_t seq; /* 0: none yet */
    int64_t active_us;
    int64_t batches;
    int64_t rollouts;
    char name[NAME_BYTES];
};

struct retention {
    struct database *database;
    struct store_retention rules;
    int64_t period_us;
    int64_t due_us; /* monotonic */
    int64_t after;  /* the last run that was looked at; 0: the walk begins */
    struct idle_run oldest;
    bool said; /* it was logged that the file is too large and no run may go */
};

static int64_t period_of(const struct store_retention *rules)
{
    int64_t age_us = rules->keep_us ? rules->keep_us : INT64_MAX;
    if (rules->most_bytes && rules->spare_us < age_us)
        age_us = rules->spare_us;
    int64_t period_us = age_us / PERIODS_OF_AN_AGE;
    return period_us < PERIOD_MIN_US ? PERIOD_MIN_US : period_us > PERIOD_MAX_US ? PERIOD_MAX_US : period_us;
}

struct retention *retention_create(struct database *database, const struct store_retention *rules)
{
    if (!rules->keep_us && !rules->most_bytes)
        return NULL;
    struct retention *retention = xcalloc(1, sizeof(*retention));
    retention->database = database;
    retention->rules = *rules;
    retention->period_us = period_of(rules);
    return retention;
}

void retention_destroy(struct retention *retention)
{
    free(retention);
}

int64_t retention_due_us(const struct retention *retention)
{
    return retention ? retention->due_us : INT64_MAX;
}

void retention_look_again(struct retention *retention)
{
    if (!retention)
        return;
    retention->after = 0;
    retention->due_us = 0;
}

/* ---- which run --------------------------------------------------------------------------------------------------- */

/* `a* demo` covers "demo", and all names that begin with an a. */
static bool is_excepted(const char *list, struct text name)
{
    for (const char *at = list ? list : ""; *(at += strspn(at, " ")); at += strcspn(at, " ")) {
        size_t length = strcspn(at, " ");
        bool open = at[length - 1] == '*';
        length -= open;
        if ((open ? name.length_bytes >= length : name.length_bytes == length) && memcmp(at, name.data, length) == 0)
            return true;
    }
    return false;
}

/* A row of RETENTION_RUNS. */
static void consider(struct retention *retention, sqlite3_stmt *row)
{
    struct text name = column_view(row, 1);
    struct idle_run *oldest = &retention->oldest;
    int64_t active_us = sqlite3_column_int64(row, 2);
    retention->after = sqlite3_column_int64(row, 0);
    if (is_excepted(retention->rules.except, name) || (oldest->seq && active_us >= oldest->active_us))
        return;
    *oldest = (struct idle_run){.seq = retention->after,
                                .active_us = active_us,
                                .batches = sqlite3_column_int64(row, 3),
                                .rollouts = sqlite3_column_int64(row, 4)};
    memcpy(oldest->name, name.data, name.length_bytes < NAME_BYTES ? name.length_bytes : NAME_BYTES - 1);
}

/* SQLITE_ROW: there may be more runs; SQLITE_DONE: these were the last. */
static int look_at_some(struct retention *retention)
{
    sqlite3_stmt *rows = database_statement(retention->database, SQL_RETENTION_RUNS);
    bind_int(rows, 1, retention->after);
    bind_int(rows, 2, RUNS_AT_ONCE);
    int result;
    int count = 0;
    for (; (result = sqlite3_step(rows)) == SQLITE_ROW; count++)
        consider(retention, rows);
    sqlite3_reset(rows);
    return result == SQLITE_DONE && count == RUNS_AT_ONCE ? SQLITE_ROW : result;
}

static int read_used_bytes(struct retention *retention, int64_t *ret_bytes)
{
    static const char *const questions[] = {"PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA page_size"};
    int64_t answers[ARRAY_LENGTH(questions)];
    for (size_t i = 0; i < ARRAY_LENGTH(questions); i++) {
        int result = database_number(retention->database, questions[i], &answers[i]);
        if (result != SQLITE_OK)
            return result;
    }
    *ret_bytes = (answers[0] - answers[1]) * answers[2];
    return SQLITE_OK;
}

/* The reason to delete the oldest; NULL: it stays. */
static const char *reason(struct retention *retention, int64_t used_bytes)
{
    const struct store_retention *rules = &retention->rules;
    const struct idle_run *oldest = &retention->oldest;
    int64_t idle_us = clock_utc_us() - oldest->active_us;
    if (oldest->seq && rules->keep_us && idle_us > rules->keep_us)
        return "retention.keep";
    bool large = rules->most_bytes && used_bytes > rules->most_bytes;
    if (large && oldest->seq && idle_us > rules->spare_us)
        return "retention.max_bytes";
    if (large && !retention->said)
        log_event(LOG_LEVEL_WARNING, "the record is larger than retention.max_bytes, and no run may go",
                  LOG_INT("bytes", used_bytes), LOG_INT("max_bytes", rules->most_bytes), NULL);
    retention->said = large;
    return NULL;
}

/* ---- the mark ---------------------------------------------------------------------------------------------------- */

static int insert_deletion(struct retention *retention)
{
    const struct idle_run *run = &retention->oldest;
    sqlite3_stmt *insert = database_statement(retention->database, SQL_INSERT_DELETION);
    bind_text(insert, 1, text_of(run->name));
    bind_text(insert, 2, text_of(store_deletion_reason_names[STORE_DELETION_RETENTION]));
    bind_int(insert, 6, clock_utc_us());
    bind_int(insert, 7, run->batches);
    bind_int(insert, 8, 0); /* counted as they go */
    bind_int(insert, 9, run->rollouts);
    int result = database_run(insert);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *mark = database_statement(retention->database, SQL_MARK_RUN_DELETED);
    bind_int(mark, 1, run->seq);
    bind_int(mark, 2, sqlite3_last_insert_rowid(retention->database->handle));
    return database_run(mark);
}

/* Operations ran between the looks. SQLITE_ROW: the oldest may still go, and has been idle ever since it was looked at;
 * SQLITE_DONE: not so. */
static int find_unchanged(struct retention *retention)
{
    const struct idle_run *run = &retention->oldest;
    sqlite3_stmt *row = database_statement(retention->database, SQL_RETENTION_RUNS);
    bind_int(row, 1, run->seq - 1);
    bind_int(row, 2, 1);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result;
    bool same = sqlite3_column_int64(row, 0) == run->seq && text_equals(column_view(row, 1), run->name) &&
                sqlite3_column_int64(row, 2) == run->active_us;
    sqlite3_reset(row);
    return same ? SQLITE_ROW : SQLITE_DONE;
}

/* SQLITE_DONE: nothing is marked. */
static int mark_oldest(struct retention *retention, const char *why)
{
    char active[RFC3339_BYTES];
    int result = database_run_plain(retention->database, SQL_BEGIN_WRITE);
    if (result == SQLITE_OK)
        result = find_unchanged(retention);
    if (result == SQLITE_DONE)
        database_run_plain(retention->database, SQL_ROLLBACK_WRITE);
    if (result == SQLITE_ROW)
        result = insert_deletion(retention);
    if (result == SQLITE_OK)
        result = database_run_plain(retention->database, SQL_COMMIT_WRITE);
    if (result != SQLITE_OK)
        return result;
    clock_format_rfc3339(retention->oldest.active_us, active);
    log_event(LOG_LEVEL_WARNING, "run is deleted by retention", "run", retention->oldest.name, "setting", why,
              "last_active", active, LOG_INT("batches", retention->oldest.batches),
              LOG_INT("rollouts", retention->oldest.rollouts), NULL);
    return SQLITE_OK;
}

static int end_walk(struct retention *retention, bool *ret_marked)
{
    int64_t used_bytes = 0;
    int result = read_used_bytes(retention, &used_bytes);
    const char *why = result == SQLITE_OK ? reason(retention, used_bytes) : NULL;
    if (why)
        result = mark_oldest(retention, why);
    *ret_marked = why && result == SQLITE_OK;
    retention->after = 0;
    retention->due_us = clock_monotonic_us() + retention->period_us;
    return result;
}

int retention_look(struct retention *retention, bool *ret_marked)
{
    *ret_marked = false;
    if (retention->after == 0)
        retention->oldest = (struct idle_run){0};
    int result = look_at_some(retention);
    if (result == SQLITE_ROW)
        return SQLITE_OK;
    return result == SQLITE_DONE ? end_walk(retention, ret_marked) : result;
}
