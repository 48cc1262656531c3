#include "server/store/sqlite/migrate.h"

#include "schema/embedded.h"
#include "server/store/sqlite/database.h"

#include <stdio.h>
#include <string.h>

extern const struct embedded_file embedded_migrations[];

int64_t migrate_latest(void)
{
    int64_t count = 0;
    while (embedded_migrations[count].name)
        count++;
    return count;
}

static int read_version(struct database *database, int64_t *ret_version)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database->handle, "PRAGMA user_version", -1, &statement, NULL);
    if (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        *ret_version = sqlite3_column_int64(statement, 0);
        result = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return result;
}

static const char *after_blank(const char *sql)
{
    for (;;) {
        sql += strspn(sql, " \t\r\n");
        if (strncmp(sql, "--", 2) != 0)
            return sql;
        sql += strcspn(sql, "\n");
    }
}

/* One that is UNIQUE is part of what a statement means, and is made at once. */
static bool makes_index(const char *sql)
{
    static const char words[] = "CREATE INDEX ";
    return strncmp(after_blank(sql), words, sizeof(words) - 1) == 0;
}

/* Statement by statement, without indexes. */
static int run_without_indexes(struct database *database, const char *sql)
{
    int result = SQLITE_OK;
    while (result == SQLITE_OK && *after_blank(sql)) {
        sqlite3_stmt *statement = NULL;
        bool left_out = makes_index(sql);
        result = sqlite3_prepare_v2(database->handle, sql, -1, &statement, &sql);
        if (result == SQLITE_OK && !left_out)
            result = database_run(statement);
        sqlite3_finalize(statement);
    }
    return result;
}

static int run_file(struct database *database, int64_t version, bool with_indexes)
{
    const char *sql = embedded_migrations[version].data;
    return with_indexes ? sqlite3_exec(database->handle, sql, NULL, NULL, NULL) : run_without_indexes(database, sql);
}

static int migrate_step(struct database *database, int64_t version, bool with_indexes)
{
    char stamp[96];
    snprintf(stamp, sizeof(stamp), "PRAGMA application_id=%d; PRAGMA user_version=%lld", STORE_APPLICATION_ID,
             (long long)version + 1);
    int result = sqlite3_exec(database->handle, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = run_file(database, version, with_indexes);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database->handle, stamp, NULL, NULL, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database->handle, "COMMIT", NULL, NULL, NULL);
    if (result != SQLITE_OK && !sqlite3_get_autocommit(database->handle))
        sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

int migrate(struct database *database)
{
    int64_t version = 0;
    int result = read_version(database, &version);
    bool is_new = version == 0;
    for (; result == SQLITE_OK && version < migrate_latest(); version++)
        result = migrate_step(database, version, is_new);
    return result;
}

int migrate_model(struct database *ret_model)
{
    *ret_model = (struct database){0};
    int result = sqlite3_open_v2(":memory:", &ret_model->handle,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    return result == SQLITE_OK ? migrate(ret_model) : result;
}
