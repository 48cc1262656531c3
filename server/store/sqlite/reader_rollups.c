/* Roll-ups as they are read. */
#include "server/store/rollup.h"

#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/reader.h"

/* ---- one run ----------------------------------------------------------------------------------------------------- */

enum store_status store_rollups_are_whole(struct store_reader *reader, struct text run, bool *ret_whole)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_ROLLUPS_ARE_WHOLE);
    bind_text(row, 1, run);
    int result = database_first(row);
    if (result == SQLITE_ROW)
        *ret_whole = sqlite3_column_int64(row, 0) != 0;
    reader_end(reader);
    return result == SQLITE_ROW ? STORE_OK : result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
}

struct visit {
    struct store_reader *reader;
    int64_t run_seq;
    const struct store_rollup_filter *filter;
    const struct store_rollup_visitor *visitor;
};

/* The statements of a visit have the same parameters. */
static sqlite3_stmt *begin(const struct visit *visit, enum statement which)
{
    const struct store_rollup_filter *filter = visit->filter;
    sqlite3_stmt *rows = database_statement(&visit->reader->database, which);
    bind_int(rows, 1, visit->run_seq);
    bind_int(rows, 2, filter->incarnation);
    bind_int(rows, 3, filter->revision_min);
    bind_int(rows, 4, filter->revision_max);
    bind_text(rows, 5, filter->purpose < 0 ? TEXT_NONE : text_of(store_purpose_names[filter->purpose]));
    return rows;
}

/* ---- the three kinds of rows ------------------------------------------------------------------------------------- */

static bool take_rollup(const struct visit *visit, sqlite3_stmt *row)
{
    struct store_memory *memory = NULL; /* its text is not copied */
    struct store_rollup rollup = {.incarnation = sqlite3_column_int64(row, 0)};
    struct store_rollup *into = &rollup;
    int place = 4;
    rollup.revision = sqlite3_column_int64(row, 1);
    rollup.purpose = (enum store_purpose)column_name(row, 2, store_purpose_names);
    rollup.task = column_view(row, 3);
    COLUMNS_READ(ROLLUP_COLUMNS)
    return visit->visitor->rollup(visit->visitor->arg, &rollup);
}

static bool take_group(const struct visit *visit, sqlite3_stmt *row)
{
    const struct store_rollup_group group = {.incarnation = sqlite3_column_int64(row, 0),
                                             .revision = sqlite3_column_int64(row, 1),
                                             .purpose = (enum store_purpose)column_name(row, 2, store_purpose_names),
                                             .task = column_view(row, 3),
                                             .group_seq = sqlite3_column_int64(row, 4),
                                             .rewarded = column_int_or(row, 5, -1),
                                             .zero_variance = sqlite3_column_int64(row, 6) != 0};
    return visit->visitor->group(visit->visitor->arg, &group);
}

static bool take_score(const struct visit *visit, sqlite3_stmt *row)
{
    const struct store_rollup_score score = {.incarnation = sqlite3_column_int64(row, 0),
                                             .revision = sqlite3_column_int64(row, 1),
                                             .purpose = (enum store_purpose)column_name(row, 2, store_purpose_names),
                                             .task = column_view(row, 3),
                                             .verifier = column_view(row, 4),
                                             .scored = sqlite3_column_int64(row, 5),
                                             .sum = sqlite3_column_double(row, 6)};
    return visit->visitor->score(visit->visitor->arg, &score);
}

static bool take_count(const struct visit *visit, sqlite3_stmt *row)
{
    const struct store_rollup_count count = {
        .incarnation = sqlite3_column_int64(row, 0),
        .revision = sqlite3_column_int64(row, 1),
        .purpose = (enum store_purpose)column_name(row, 2, store_purpose_names),
        .kind = (enum store_rollup_count_kind)column_name(row, 3, store_rollup_count_names),
        .name = column_view(row, 4),
        .n = sqlite3_column_int64(row, 5),
        .engine_model = column_view(row, 6),
        .engine_version = column_view(row, 7),
        .tokenizer_sha256 = column_view(row, 8)};
    return visit->visitor->count(visit->visitor->arg, &count);
}

static int take_rollout(const struct visit *visit, sqlite3_stmt *row, bool *ret_go_on)
{
    struct store_memory *memory = store_memory_create();
    struct store_rollout rollout;
    read_rollout_row(row, memory, &rollout);
    int result = read_rollout_sides(visit->reader, STORE_WITH_VERDICTS, memory, &rollout);
    if (result == SQLITE_OK && store_memory_failed(memory))
        result = SQLITE_NOMEM;
    if (result == SQLITE_OK)
        *ret_go_on = visit->visitor->rollout(visit->visitor->arg, &rollout);
    store_memory_destroy(memory);
    return result;
}

/* ---- the visit --------------------------------------------------------------------------------------------------- */

static int visit_rows(const struct visit *visit, enum statement which,
                      bool (*take)(const struct visit *visit, sqlite3_stmt *row), bool *go_on)
{
    sqlite3_stmt *rows = begin(visit, which);
    int result = SQLITE_DONE;
    while (*go_on && (result = sqlite3_step(rows)) == SQLITE_ROW)
        *go_on = take(visit, rows);
    return result == SQLITE_ROW ? SQLITE_DONE : result;
}

static int visit_rollouts(const struct visit *visit, bool *go_on)
{
    sqlite3_stmt *rows = begin(visit, SQL_READ_UNROLLED);
    int result = SQLITE_DONE;
    while (*go_on && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        int taken = take_rollout(visit, rows, go_on);
        if (taken != SQLITE_OK)
            return taken;
    }
    return result == SQLITE_ROW ? SQLITE_DONE : result;
}

enum store_status store_visit_rollups(struct store_reader *reader, struct text run,
                                      const struct store_rollup_filter *filter,
                                      const struct store_rollup_visitor *visitor)
{
    struct visit visit = {.reader = reader, .filter = filter, .visitor = visitor};
    bool go_on = true;
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int result = reader_find_seq(reader, SQL_RUN_SEQ, run, &visit.run_seq);
    if (result == SQLITE_DONE) {
        reader_end(reader);
        return STORE_NOT_FOUND;
    }
    if (result == SQLITE_ROW)
        result = visit_rows(&visit, SQL_READ_ROLLUPS, take_rollup, &go_on);
    if (result == SQLITE_DONE)
        result = visit_rows(&visit, SQL_READ_ROLLUP_GROUPS, take_group, &go_on);
    if (result == SQLITE_DONE && visitor->score)
        result = visit_rows(&visit, SQL_READ_ROLLUP_SCORES, take_score, &go_on);
    if (result == SQLITE_DONE && visitor->count)
        result = visit_rows(&visit, SQL_READ_ROLLUP_COUNTS, take_count, &go_on);
    if (result == SQLITE_DONE)
        result = visit_rollouts(&visit, &go_on);
    enum store_status status = result == SQLITE_DONE ? STORE_OK : database_status(&reader->database, result);
    reader_end(reader);
    return status;
}
