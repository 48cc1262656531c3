#include "server/store/sqlite/columns.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum {
    BUSY_TIMEOUT_MS = 5000, /* an operator's sqlite3 may hold the lock for a moment */
    CHECKPOINT_PAGES = 4000,
    LOG_LIMIT_BYTES = 64 * 1024 * 1024,
};

const struct statement_row statement_rows[SQL_COUNT] = {
#define WRITE(name, sql) [SQL_##name] = {#name, sql, 1},
#define READ(name, sql) [SQL_##name] = {#name, sql, 0},
#include "server/store/sqlite/statements.def"
#undef WRITE
#undef READ
};

/* A path may hold any character, so the URI form is built by escaping. */
static void append_uri(char *uri, size_t uri_bytes, const char *path)
{
    size_t used = (size_t)snprintf(uri, uri_bytes, "file:");
    for (const char *at = path; *at && used + 4 < uri_bytes; at++)
        if (*at == '%' || *at == '?' || *at == '#')
            used += (size_t)snprintf(uri + used, uri_bytes - used, "%%%02X", (unsigned char)*at);
        else
            uri[used++] = *at;
    snprintf(uri + used, uri_bytes - used, "?immutable=1");
}

/* SQLite counts its memory under a mutex, twice for each block; nobody asks for the count. */
static void configure_once(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static int open_handle(struct database *database, const char *path, enum database_mode mode)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= mode == DATABASE_WRITER                                  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
             : mode == DATABASE_VERIFY || mode == DATABASE_VERIFY_LOG ? SQLITE_OPEN_READWRITE
                                                                      : SQLITE_OPEN_READONLY;
    if (mode != DATABASE_PROBE_IMMUTABLE)
        return sqlite3_open_v2(path, &database->handle, flags, NULL);
    char uri[3 * 4096 + 64];
    append_uri(uri, sizeof(uri), path);
    return sqlite3_open_v2(uri, &database->handle, flags | SQLITE_OPEN_URI, NULL);
}

/* The content of the file is data and is never trusted: no functions with side effects from its schema, no writing to
 * its internals, no double-quoted strings, no extensions. */
static int distrust(sqlite3 *handle)
{
    static const struct {
        int option;
        int value;
    } rows[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1}, {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},        {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},   {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}, {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
    };
    int result = SQLITE_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && result == SQLITE_OK; i++)
        result = sqlite3_db_config(handle, rows[i].option, rows[i].value, NULL);
    return result;
}

static int run_pragma(sqlite3 *handle, const char *name, const char *value, int number)
{
    char sql[96];
    if (value)
        snprintf(sql, sizeof(sql), "PRAGMA %s=%s", name, value);
    else
        snprintf(sql, sizeof(sql), "PRAGMA %s=%d", name, number);
    return sqlite3_exec(handle, sql, NULL, NULL, NULL);
}

static int set_pragmas(sqlite3 *handle, bool writer, bool durability_normal, size_t cache_bytes)
{
    const struct {
        const char *name;
        const char *value;
        int number;
        bool writer_only;
    } rows[] = {
        {"temp_store", "MEMORY", 0, false},
        {"cache_size", NULL, -(int)(cache_bytes / 1024), false},
        {"query_only", writer ? "OFF" : "ON", 0, false},
        {"journal_mode", "WAL", 0, true},
        {"synchronous", durability_normal ? "NORMAL" : "FULL", 0, true},
        {"secure_delete", "FAST", 0, true}, /* Debian's default zeroes every page that is freed */
        {"wal_autocheckpoint", NULL, CHECKPOINT_PAGES, true},
        {"journal_size_limit", NULL, LOG_LIMIT_BYTES, true},
    };
    int result = SQLITE_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(rows) && result == SQLITE_OK; i++)
        if (writer || !rows[i].writer_only)
            result = run_pragma(handle, rows[i].name, rows[i].value, rows[i].number);
    return result;
}

/* A connection that looks and leaves all as it was. */
static int set_up_check(sqlite3 *handle, enum database_mode mode)
{
    int result = run_pragma(handle, "query_only", "ON", 0);
    if (result != SQLITE_OK || mode == DATABASE_VERIFY)
        return result;
    return sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

int database_open(struct database *database, const char *path, enum database_mode mode, bool durability_normal,
                  size_t cache_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure_once);
    int result = open_handle(database, path, mode);
    if (result == SQLITE_OK)
        result = distrust(database->handle);
    if (result == SQLITE_OK)
        result = sqlite3_busy_timeout(database->handle, BUSY_TIMEOUT_MS);
    if (result == SQLITE_OK && mode != DATABASE_WRITER && mode != DATABASE_READER)
        return set_up_check(database->handle, mode);
    if (result == SQLITE_OK)
        result = set_pragmas(database->handle, mode == DATABASE_WRITER, durability_normal, cache_bytes);
    return result;
}

static bool has_log(const char *path)
{
    _cleanup_free_ char *log = xasprintf("%s-wal", path);
    return access(log, F_OK) == 0;
}

int database_open_to_verify(struct database *database, const char *path)
{
    bool with_log = has_log(path);
    int result = database_open(database, path, with_log ? DATABASE_VERIFY_LOG : DATABASE_VERIFY, false, 0);
    if (result == SQLITE_OK)
        result = sqlite3_exec(database->handle, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
    if ((result & 0xFF) != SQLITE_CANTOPEN && (result & 0xFF) != SQLITE_READONLY)
        return result;
    database_close(database);
    return database_open(database, path, with_log ? DATABASE_PROBE : DATABASE_PROBE_IMMUTABLE, false, 0);
}

static int prepare(struct database *database, int which)
{
    return sqlite3_prepare_v3(database->handle, statement_rows[which].sql, -1, SQLITE_PREPARE_PERSISTENT,
                              &database->statements[which], NULL);
}

int database_prepare(struct database *database, bool writes, bool incomplete)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        if ((bool)statement_rows[i].writes != writes)
            continue;
        int result = prepare(database, i);
        /* SQLITE_SCHEMA: another index was built meanwhile, and a further one after SQLite's own second try. */
        bool may_come = result == SQLITE_ERROR || result == SQLITE_SCHEMA;
        if (result != SQLITE_OK && !(incomplete && may_come))
            return result;
    }
    return SQLITE_OK;
}

void database_close(struct database *database)
{
    for (int i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize(database->statements[i]);
    sqlite3_close(database->handle);
    *database = (struct database){0};
}

/* A limit on the size of a file (EFBIG) or a quota is a want of room too. */
static bool is_want_of_room(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* The errno of the last failed call on the database file or its write-ahead log: sqlite3_system_errno() is often
 * overwritten by the cleaning up before anybody can ask. Only ENOSPC has a result code of its own. */
static bool ran_out_of_room(const struct database *database)
{
    sqlite3_file *log = NULL;
    int error = 0;
    int log_error = 0;
    sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
    if (sqlite3_file_control(database->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
        log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &log_error);
    return is_want_of_room(error) || is_want_of_room(log_error);
}

enum store_status database_status(const struct database *database, int result)
{
    switch (result & 0xFF) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return STORE_OK;
    case SQLITE_FULL:
        return STORE_DISK_FULL;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        return STORE_REFUSED;
    case SQLITE_IOERR:
        return (result == SQLITE_IOERR_WRITE && ran_out_of_room(database)) ? STORE_DISK_FULL : STORE_UNAVAILABLE;
    default:
        return STORE_UNAVAILABLE;
    }
}

sqlite3_stmt *database_statement(struct database *database, enum statement which)
{
    if (!database->statements[which])
        (void)prepare(database, (int)which); /* if it cannot, its first step says so */
    sqlite3_stmt *statement = database->statements[which];
    sqlite3_reset(statement);
    if (statement) /* sqlite3_clear_bindings() alone takes no NULL */
        sqlite3_clear_bindings(statement);
    return statement;
}

int database_run(sqlite3_stmt *statement)
{
    int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE || result == SQLITE_ROW ? SQLITE_OK : result;
}

int database_run_plain(struct database *database, enum statement which)
{
    return database_run(database_statement(database, which));
}

int database_first(sqlite3_stmt *statement)
{
    int result = sqlite3_step(statement);
    if (result != SQLITE_ROW)
        sqlite3_reset(statement);
    return result;
}

int database_number(struct database *database, const char *sql, int64_t *ret_number)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL);
    if (result == SQLITE_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        *ret_number = sqlite3_column_int64(statement, 0);
        result = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return result;
}

void bind_int(sqlite3_stmt *statement, int place, int64_t value)
{
    sqlite3_bind_int64(statement, place, value);
}

void bind_int_or_null(sqlite3_stmt *statement, int place, int64_t value)
{
    if (value >= 0)
        sqlite3_bind_int64(statement, place, value);
    else
        sqlite3_bind_null(statement, place);
}

void bind_double(sqlite3_stmt *statement, int place, double value)
{
    if (isnan(value))
        sqlite3_bind_null(statement, place);
    else
        sqlite3_bind_double(statement, place, value);
}

void bind_text(sqlite3_stmt *statement, int place, struct text text)
{
    if (text.data)
        sqlite3_bind_text64(statement, place, text.data, text.length_bytes, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_null(statement, place);
}

void bind_blob(sqlite3_stmt *statement, int place, const void *bytes, size_t length_bytes)
{
    if (bytes)
        sqlite3_bind_blob64(statement, place, bytes, length_bytes, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, place);
}

int64_t column_int_or(sqlite3_stmt *statement, int place, int64_t if_null)
{
    return sqlite3_column_type(statement, place) == SQLITE_NULL ? if_null : sqlite3_column_int64(statement, place);
}

double column_double(sqlite3_stmt *statement, int place)
{
    return sqlite3_column_type(statement, place) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(statement, place);
}

struct text column_view(sqlite3_stmt *statement, int place)
{
    if (sqlite3_column_type(statement, place) == SQLITE_NULL)
        return TEXT_NONE;
    const char *bytes = sqlite3_column_blob(statement, place); /* NULL for an empty one */
    return (struct text){bytes ? bytes : "", (size_t)sqlite3_column_bytes(statement, place)};
}

struct text column_text(sqlite3_stmt *statement, int place, struct store_memory *memory)
{
    struct text view = column_view(statement, place);
    return view.data ? store_memory_text(memory, view.data, view.length_bytes) : TEXT_NONE;
}

void *column_array(sqlite3_stmt *statement, int place, size_t element_bytes, struct store_memory *memory,
                   size_t *ret_count)
{
    struct text view = column_view(statement, place);
    *ret_count = view.length_bytes / element_bytes;
    if (!view.data)
        return NULL;
    void *copy = store_memory_take(memory, *ret_count, element_bytes);
    if (copy && *ret_count)
        memcpy(copy, view.data, *ret_count * element_bytes);
    return copy;
}

int column_name(sqlite3_stmt *statement, int place, const char *const *names)
{
    int index = store_name_index(names, column_view(statement, place));
    return index < 0 ? 0 : index;
}

void column_id(sqlite3_stmt *statement, int place, char ret_id[ID_BYTES])
{
    struct text view = column_view(statement, place);
    size_t length_bytes = view.length_bytes < ID_BYTES ? view.length_bytes : ID_BYTES - 1;
    if (length_bytes)
        memcpy(ret_id, view.data, length_bytes);
    ret_id[length_bytes] = '\0';
}
