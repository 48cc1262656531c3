#include "server/store/migrate.h"

#include "schema/embedded.h"
#include "server/store/database.h"

#include <stdio.h>

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

static int migrate_step(struct database *database, int64_t version)
{
    char stamp[96];
    snprintf(stamp, sizeof(stamp), "PRAGMA application_id=%d; PRAGMA user_version=%lld", STORE_APPLICATION_ID,
             (long long)version + 1);
    const char *const parts[] = {"BEGIN IMMEDIATE", embedded_migrations[version].data, stamp, "COMMIT"};
    int result = SQLITE_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(parts) && result == SQLITE_OK; i++)
        result = sqlite3_exec(database->handle, parts[i], NULL, NULL, NULL);
    if (result != SQLITE_OK && !sqlite3_get_autocommit(database->handle))
        sqlite3_exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    return result;
}

int migrate(struct database *database)
{
    int64_t version = 0;
    int result = read_version(database, &version);
    for (; result == SQLITE_OK && version < migrate_latest(); version++)
        result = migrate_step(database, version);
    return result;
}
