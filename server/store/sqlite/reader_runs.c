#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

static const struct list_key runs_key = {"runs"};

/* A row of SELECT_RUN. Returns its seq. */
static int64_t read_run_row(sqlite3_stmt *row, struct store_memory *memory, struct store_run *into)
{
    int place = 1;
    *into = (struct store_run){0};
    COLUMNS_READ(RUN_COLUMNS)
    into->has_update = column_int_or(row, place, -1) >= 0;
    if (into->has_update)
        database_read_update(row, place, &into->update);
    return sqlite3_column_int64(row, 0);
}

static enum store_status list_runs(struct store_reader *reader, int64_t after, size_t limit,
                                   struct store_runs *ret_runs)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_LIST_RUNS);
    bind_int(rows, 1, after);
    bind_int(rows, 2, (int64_t)limit + 1);
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        if (ret_runs->count == limit) {
            cursor_write(&runs_key, after, ret_runs->next);
            break;
        }
        after = read_run_row(rows, ret_runs->memory, &ret_runs->runs[ret_runs->count++]);
    }
    reader_end(reader);
    return reader_status(reader, result, ret_runs->memory);
}

bool store_runs_cursor_fits(struct text cursor)
{
    int64_t after;
    return !cursor.data || cursor_read(&runs_key, cursor, &after);
}

enum store_status store_list_runs(struct store_reader *reader, struct text cursor, size_t limit,
                                  struct store_runs *ret_runs)
{
    *ret_runs = (struct store_runs){0};
    int64_t after = 0;
    if (cursor.data && !cursor_read(&runs_key, cursor, &after))
        return STORE_INVALID_CURSOR;
    ret_runs->memory = store_memory_create();
    ret_runs->runs = store_memory_take(ret_runs->memory, limit, sizeof(*ret_runs->runs));
    return ret_runs->runs ? list_runs(reader, after, limit, ret_runs) : STORE_UNAVAILABLE;
}

enum store_status store_read_open_updates(struct store_reader *reader, struct store_runs *ret_runs)
{
    *ret_runs = (struct store_runs){.memory = store_memory_create()};
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_OPEN_UPDATES);
    size_t capacity = 0;
    int result;
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_run *runs =
            store_memory_grow(ret_runs->memory, ret_runs->runs, ret_runs->count, &capacity, sizeof(*runs));
        if (!runs)
            break;
        ret_runs->runs = runs;
        read_run_row(rows, ret_runs->memory, &runs[ret_runs->count++]);
    }
    reader_end(reader);
    return reader_status(reader, result, ret_runs->memory);
}

void store_runs_finish(struct store_runs *runs)
{
    store_memory_destroy(TAKE_PTR(runs->memory));
}

/* ---- one run
 * ---------------------------------------------------------------------------------------------------------------- */

static void read_incarnation(sqlite3_stmt *row, struct store_run_detail *run)
{
    run->incarnations[run->incarnation_count++] = (struct store_incarnation){
        sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), column_int_or(row, 2, -1)};
}

static void read_revision(sqlite3_stmt *row, struct store_run_detail *run)
{
    run->revisions[run->revision_count++] = (struct store_revision){
        sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2)};
}

static void read_objective(sqlite3_stmt *row, struct store_run_detail *run)
{
    struct store_run_objective *objective = &run->objectives[run->objective_count++];
    objective->objective = column_text(row, 0, run->memory);
    column_id(row, 1, objective->first_batch_id);
    objective->purpose = (enum store_purpose)column_name(row, 2, store_purpose_names);
    objective->first_used_at_us = sqlite3_column_int64(row, 3);
}

struct part_counts {
    size_t incarnations;
    size_t revisions;
    size_t objectives;
};

static int count_parts(struct store_reader *reader, int64_t run_seq, struct part_counts *ret_counts)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_COUNT_RUN_PARTS);
    bind_int(row, 1, run_seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result;
    *ret_counts = (struct part_counts){(size_t)sqlite3_column_int64(row, 0), (size_t)sqlite3_column_int64(row, 1),
                                       (size_t)sqlite3_column_int64(row, 2)};
    return SQLITE_OK;
}

static bool take_parts(struct store_run_detail *run, struct part_counts counts)
{
    run->revisions_declared = (int64_t)counts.revisions;
    size_t revisions = counts.revisions < STORE_RUN_REVISIONS ? counts.revisions : STORE_RUN_REVISIONS;
    run->incarnations = store_memory_take(run->memory, counts.incarnations, sizeof(*run->incarnations));
    run->revisions = store_memory_take(run->memory, revisions, sizeof(*run->revisions));
    run->objectives = store_memory_take(run->memory, counts.objectives, sizeof(*run->objectives));
    return !store_memory_failed(run->memory);
}

static int read_parts(struct store_reader *reader, int64_t run_seq, struct store_run_detail *run)
{
    static const struct {
        enum statement which;
        void (*read)(sqlite3_stmt *row, struct store_run_detail *run);
    } parts[] = {
        {SQL_READ_INCARNATIONS, read_incarnation},
        {SQL_READ_REVISIONS, read_revision},
        {SQL_READ_OBJECTIVES, read_objective},
    };
    int result = SQLITE_DONE;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && result == SQLITE_DONE; i++) {
        sqlite3_stmt *rows = database_statement(&reader->database, parts[i].which);
        bind_int(rows, 1, run_seq);
        if (parts[i].which == SQL_READ_REVISIONS)
            bind_int(rows, 2, STORE_RUN_REVISIONS);
        while ((result = sqlite3_step(rows)) == SQLITE_ROW)
            parts[i].read(rows, run);
    }
    return result;
}

static enum store_status read_run(struct store_reader *reader, struct text name, struct store_run_detail *ret_run)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_RUN);
    bind_text(row, 1, name);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    ret_run->memory = store_memory_create();
    int64_t run_seq = read_run_row(row, ret_run->memory, &ret_run->run);
    struct part_counts counts = {0};
    result = count_parts(reader, run_seq, &counts);
    if (result == SQLITE_OK && take_parts(ret_run, counts))
        result = read_parts(reader, run_seq, ret_run);
    return reader_status(reader, result, ret_run->memory);
}

enum store_status store_read_run(struct store_reader *reader, struct text run, struct store_run_detail *ret_run)
{
    *ret_run = (struct store_run_detail){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_run(reader, run, ret_run);
    reader_end(reader);
    return status;
}

void store_run_detail_finish(struct store_run_detail *run)
{
    store_memory_destroy(TAKE_PTR(run->memory));
}

/* ---- beside a batch
 * ----------------------------------------------------------------------------------------------------------- */

enum store_status store_read_standing(struct store_reader *reader, struct text run, int64_t incarnation,
                                      struct store_standing *ret_standing)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_STANDING);
    bind_text(row, 1, run);
    bind_int(row, 2, incarnation);
    int result = database_first(row);
    if (result == SQLITE_ROW)
        *ret_standing = (struct store_standing){sqlite3_column_int64(row, 0), column_int_or(row, 1, -1)};
    reader_end(reader);
    return result == SQLITE_ROW ? STORE_OK : result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
}

enum store_status store_read_lines(struct store_reader *reader, struct text run, struct store_lines *ret_lines)
{
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_LINES);
    size_t capacity = 0;
    int result;
    *ret_lines = (struct store_lines){.memory = store_memory_create()};
    bind_text(rows, 1, run);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        ret_lines->lines = store_memory_grow(ret_lines->memory, ret_lines->lines, ret_lines->count, &capacity,
                                             sizeof(*ret_lines->lines));
        if (!ret_lines->lines)
            break;
        ret_lines->lines[ret_lines->count++] =
            (struct store_line){.revision = sqlite3_column_int64(rows, 0),
                                .purpose = (enum store_purpose)column_name(rows, 1, store_purpose_names),
                                .incarnation = sqlite3_column_int64(rows, 2)};
    }
    enum store_status status = reader_status(reader, result, ret_lines->memory);
    reader_end(reader);
    return status;
}

void store_lines_finish(struct store_lines *lines)
{
    store_memory_destroy(TAKE_PTR(lines->memory));
}

enum store_status store_find_abort(struct store_reader *reader, struct text batch_id, int64_t revision)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_ABORT);
    bind_text(row, 1, batch_id);
    bind_int(row, 2, revision);
    int result = database_first(row);
    reader_end(reader);
    return result == SQLITE_ROW ? STORE_OK : result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
}
