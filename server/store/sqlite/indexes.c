#include "server/store/sqlite/indexes.h"

#include "server/store/sqlite/migrate.h"

enum { STEPS_BETWEEN_QUESTIONS = 100000 };

void indexes_finish(struct missing_indexes *missing)
{
    for (size_t i = 0; i < missing->count; i++) {
        free(missing->list[i].name);
        free(missing->list[i].sql);
    }
    free(missing->list);
    *missing = (struct missing_indexes){0};
}

static void add(struct missing_indexes *missing, sqlite3_stmt *row)
{
    missing->list = xrealloc(missing->list, (missing->count + 1) * sizeof(missing->list[0]));
    missing->list[missing->count++] = (struct missing_index){xstrdup((const char *)sqlite3_column_text(row, 0)),
                                                             xstrdup((const char *)sqlite3_column_text(row, 1))};
}

static int add_missing(sqlite3_stmt *expected, sqlite3_stmt *find, struct missing_indexes *missing)
{
    int result;
    while ((result = sqlite3_step(expected)) == SQLITE_ROW) {
        sqlite3_reset(find);
        bind_text(find, 1, column_view(expected, 0));
        int found = sqlite3_step(find);
        if (found == SQLITE_DONE)
            add(missing, expected);
        else if (found != SQLITE_ROW)
            return found;
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int compare(sqlite3 *model, struct database *database, struct missing_indexes *missing)
{
    sqlite3_stmt *expected = NULL;
    sqlite3_stmt *find = NULL;
    int result = sqlite3_prepare_v2(model, "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOT NULL",
                                    -1, &expected, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_prepare_v2(database->handle, "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?1",
                                    -1, &find, NULL);
    if (result == SQLITE_OK)
        result = add_missing(expected, find, missing);
    sqlite3_finalize(expected);
    sqlite3_finalize(find);
    return result;
}

int indexes_find_missing(struct database *database, struct missing_indexes *ret_missing)
{
    struct database model = {0};
    *ret_missing = (struct missing_indexes){0};
    int result = migrate_model(&model);
    if (result == SQLITE_OK)
        result = compare(model.handle, database, ret_missing);
    database_close(&model);
    return result;
}

struct question {
    bool (*stop)(void *arg);
    void *arg;
};

static int ask(void *arg)
{
    const struct question *question = arg;
    return question->stop(question->arg);
}

/* The sorter of a large index belongs on the disk, not into memory. */
int indexes_build(struct database *database, const struct missing_index *index, bool (*stop)(void *arg), void *arg)
{
    struct question question = {stop, arg};
    sqlite3_progress_handler(database->handle, STEPS_BETWEEN_QUESTIONS, ask, &question);
    int result = sqlite3_exec(database->handle, "PRAGMA temp_store = FILE", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database->handle, index->sql, NULL, NULL, NULL);
    sqlite3_progress_handler(database->handle, 0, NULL, NULL);
    (void)sqlite3_exec(database->handle, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    return result;
}
