/* SQLite's backup interface begins again whenever another process writes, unless its source is inside a read
 * transaction. So the source is: it sees one moment, and the copy ends. */
#include "server/store/sqlite/copy.h"

#include "server/store/sqlite/database.h"
#include "server/store/sqlite/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PRIVATE_MODE = 0600, STEP_PAGES = 256, STOP_STEPS = 10000 };

static const int64_t sync_bytes = INT64_C(64)
                                  << 20; /* on the way, so that the last sync is not one of the whole file */

const char *const copy_suffixes[] = {"", "-wal", "-shm", "-journal", NULL};

struct copying {
    const char *from;
    const char *to;
    const struct store_watch *watch;
    struct database source; /* inside a read transaction */
    struct database target; /* while pages are written, then while they are checked */
    int fd;                 /* of the new file */
    char *message;          /* STORE_MESSAGE_BYTES */
};

static int is_stopped(void *arg)
{
    const struct copying *copying = arg;
    return copying->watch && copying->watch->stop && *copying->watch->stop;
}

static int refuse_stopped(struct copying *copying)
{
    return store_refuse(ECANCELED, copying->message, "the copy of %s was stopped; nothing of it is left",
                        copying->from);
}

static int refuse_source(struct copying *copying, int result)
{
    if ((result & 0xFF) == SQLITE_INTERRUPT)
        return refuse_stopped(copying);
    bool damaged = (result & 0xFF) == SQLITE_CORRUPT || (result & 0xFF) == SQLITE_NOTADB;
    return store_refuse(damaged ? EUCLEAN : EIO, copying->message, "the database %s %s: %s", copying->from,
                        damaged ? "is damaged" : "cannot be read", sqlite3_errstr(result));
}

static int refuse_target(struct copying *copying, int result)
{
    if (database_status(&copying->target, result) == STORE_DISK_FULL)
        return store_refuse(ENOSPC, copying->message, "the copy %s cannot be written: the disk is full", copying->to);
    return store_refuse(EIO, copying->message, "the copy of %s to %s failed: %s", copying->from, copying->to,
                        sqlite3_errstr(result));
}

/* ---- the source ------------------------------------------------------------------------------------------ */

static int inspect_source(struct copying *copying)
{
    int64_t version = 0;
    int refused = inspect_version(&copying->source, copying->from, copying->message);
    if (refused == 0)
        refused = inspect_size(&copying->source, copying->from, copying->message);
    if (refused == 0 && database_number(&copying->source, "PRAGMA user_version", &version) == SQLITE_OK && version == 0)
        refused = store_refuse(EMEDIUMTYPE, copying->message, "the database %s is empty", copying->from);
    return refused;
}

/* The first read is the moment that the copy shows. */
static int hold_moment(struct copying *copying)
{
    static const char sql[] = "BEGIN; SELECT count(*) FROM sqlite_schema";
    int result = sqlite3_exec(copying->source.handle, sql, NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : refuse_source(copying, result);
}

static int open_source(struct copying *copying)
{
    int result = database_open_to_verify(&copying->source, copying->from);
    if (result != SQLITE_OK)
        return refuse_source(copying, result);
    sqlite3_progress_handler(copying->source.handle, STOP_STEPS, is_stopped, copying);
    int refused = hold_moment(copying);
    return refused == 0 ? inspect_source(copying) : refused;
}

/* ---- the pages ------------------------------------------------------------------------------------------- */

static int create_target(struct copying *copying)
{
    copying->fd = open(copying->to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, PRIVATE_MODE);
    if (copying->fd >= 0)
        return 0;
    if (errno == EEXIST)
        return store_refuse(EEXIST, copying->message,
                            "%s is there already: another copy is being made, or one was cut off; delete it if none is",
                            copying->to);
    return store_refuse(errno, copying->message, "the copy %s cannot be created: %m", copying->to);
}

/* Without locks and a journal: nobody else knows the file, and it is deleted after a failure. */
static int open_target(struct copying *copying)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int result = sqlite3_open_v2(copying->to, &copying->target.handle, flags, "unix-none");
    if (result == SQLITE_OK)
        result =
            sqlite3_exec(copying->target.handle, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : refuse_target(copying, result);
}

static int sync_target(struct copying *copying)
{
    if (fsync(copying->fd) == 0)
        return 0;
    return store_refuse(errno, copying->message, "the copy %s cannot be written: %m", copying->to);
}

/* Once for each `sync_bytes`, which are on disk then. */
static int report_progress(struct copying *copying, sqlite3_backup *backup, int64_t page_bytes, int64_t *synced_bytes)
{
    int64_t whole_bytes = sqlite3_backup_pagecount(backup) * page_bytes;
    int64_t copied_bytes = whole_bytes - sqlite3_backup_remaining(backup) * page_bytes;
    if (copied_bytes - *synced_bytes < sync_bytes)
        return 0;
    *synced_bytes = copied_bytes;
    int refused = sync_target(copying);
    if (refused == 0 && copying->watch && copying->watch->progress)
        copying->watch->progress(copied_bytes, whole_bytes);
    return refused;
}

static int copy_pages(struct copying *copying, int64_t page_bytes)
{
    sqlite3_backup *backup = sqlite3_backup_init(copying->target.handle, "main", copying->source.handle, "main");
    int64_t synced_bytes = 0;
    int result = SQLITE_OK;
    int refused = 0;
    if (!backup)
        return refuse_target(copying, sqlite3_extended_errcode(copying->target.handle));
    while (refused == 0 && (result = sqlite3_backup_step(backup, STEP_PAGES)) == SQLITE_OK)
        refused =
            is_stopped(copying) ? refuse_stopped(copying) : report_progress(copying, backup, page_bytes, &synced_bytes);
    if (refused == 0 && result != SQLITE_DONE) /* before the end of the backup forgets the errno */
        refused = refuse_target(copying, result);
    result = sqlite3_backup_finish(backup);
    return refused == 0 && result != SQLITE_OK ? refuse_target(copying, result) : refused;
}

static int write_pages(struct copying *copying)
{
    int64_t page_bytes = 0;
    int result = database_number(&copying->source, "PRAGMA page_size", &page_bytes);
    if (result != SQLITE_OK)
        return refuse_source(copying, result);
    int refused = open_target(copying);
    if (refused == 0)
        refused = copy_pages(copying, page_bytes);
    database_close(&copying->target);
    return refused == 0 ? sync_target(copying) : refused;
}

/* ---- the check ------------------------------------------------------------------------------------------- */

/* SQLite says some of what it finds in two lines. */
static int refuse_copy(struct copying *copying, const char *detail)
{
    char line[200];
    snprintf(line, sizeof(line), "%s", detail);
    for (char *at = line; (at = strchr(at, '\n'));)
        *at = ' ';
    return store_refuse(EUCLEAN, copying->message, "the copy of %s does not pass its check (%s)", copying->from, line);
}

static int open_copy(struct copying *copying)
{
    int result = database_open(&copying->target, copying->to, DATABASE_PROBE_IMMUTABLE, false, 0);
    if (result != SQLITE_OK)
        return refuse_copy(copying, sqlite3_errstr(result));
    sqlite3_progress_handler(copying->target.handle, STOP_STEPS, is_stopped, copying);
    return 0;
}

static int count_rows(struct copying *copying, struct database *database, const char *table, int64_t *ret_rows)
{
    char sql[256];
    sqlite3_snprintf(sizeof(sql), sql, "SELECT count(*) FROM \"%w\"", table);
    int result = database_number(database, sql, ret_rows);
    if (result == SQLITE_OK)
        return 0;
    return (result & 0xFF) == SQLITE_INTERRUPT ? refuse_stopped(copying) : refuse_copy(copying, sqlite3_errstr(result));
}

static int compare_table(struct copying *copying, const char *table, struct store_copy_report *report)
{
    int64_t rows = 0;
    int64_t copied = 0;
    int refused = count_rows(copying, &copying->source, table, &rows);
    if (refused == 0)
        refused = count_rows(copying, &copying->target, table, &copied);
    if (refused == 0 && rows != copied)
        refused = refuse_copy(copying, table);
    if (strcmp(table, "batches") == 0)
        report->batches = copied;
    if (strcmp(table, "rollouts") == 0)
        report->rollouts = copied;
    return refused;
}

static int compare_tables(struct copying *copying, struct store_copy_report *report)
{
    static const char sql[] = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    sqlite3_stmt *tables = NULL;
    int result = sqlite3_prepare_v2(copying->source.handle, sql, -1, &tables, NULL);
    int refused = 0;
    while (result == SQLITE_OK && refused == 0 && (result = sqlite3_step(tables)) == SQLITE_ROW) {
        refused = compare_table(copying, (const char *)sqlite3_column_text(tables, 0), report);
        result = SQLITE_OK;
    }
    sqlite3_finalize(tables);
    return refused == 0 && result != SQLITE_DONE ? refuse_source(copying, result) : refused;
}

/* Not the CHECKs: SQLite forgets those of a file that it may only read. */
static int check_pages(struct copying *copying, bool whole)
{
    const char *sql = whole ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)";
    sqlite3_stmt *statement = NULL;
    int refused = 0;
    int result = sqlite3_prepare_v2(copying->target.handle, sql, -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    if ((result & 0xFF) == SQLITE_INTERRUPT)
        refused = refuse_stopped(copying);
    else if (result != SQLITE_ROW)
        refused = refuse_copy(copying, sqlite3_errstr(result));
    else if (!text_equals(column_view(statement, 0), "ok"))
        refused = refuse_copy(copying, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return refused;
}

/* The source is let go before every page is read, so that the log of a service can be shortened again. */
static int check_copy(struct copying *copying, bool whole, struct store_copy_report *report)
{
    struct stat status = {0};
    int refused = open_copy(copying);
    if (refused == 0)
        refused = inspect_version(&copying->target, copying->to, copying->message);
    if (refused == 0)
        refused = compare_tables(copying, report);
    database_close(&copying->source);
    if (refused == 0)
        refused = check_pages(copying, whole);
    if (refused == 0 && database_number(&copying->target, "PRAGMA user_version", &report->schema_version) != SQLITE_OK)
        refused = refuse_copy(copying, "its version cannot be read");
    if (refused == 0 && fstat(copying->fd, &status) == 0)
        report->bytes = status.st_size;
    return refused;
}

int copy_make(const char *from, const char *to, bool whole, const struct store_watch *watch,
              struct store_copy_report *ret_report, char message[STORE_MESSAGE_BYTES])
{
    struct copying copying = {.from = from, .to = to, .watch = watch, .fd = -1, .message = message};
    int refused = open_source(&copying);
    if (refused == 0)
        refused = create_target(&copying);
    if (refused == 0)
        refused = write_pages(&copying);
    if (refused == 0)
        refused = check_copy(&copying, whole, ret_report);
    database_close(&copying.target);
    database_close(&copying.source);
    if (copying.fd >= 0)
        close(copying.fd);
    if (refused < 0 && copying.fd >= 0)
        (void)unlink(to);
    return refused;
}

/* ---- names ----------------------------------------------------------------------------------------------- */

/* Some file systems know no RENAME_NOREPLACE; those know a second name. */
int copy_rename(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (link(from, to) < 0 && !(errno == EEXIST && copy_is_same_file(from, to))) /* cut off before the unlink() */
        return -errno;
    return unlink(from) == 0 ? 0 : -errno;
}

int copy_sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *folder = xstrndup(path, (size_t)(slash - path) + 1);
    _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && (fsync(fd) == 0 || errno == EINVAL) ? 0 : -errno;
}

bool copy_is_same_file(const char *path, const char *other)
{
    struct stat status;
    struct stat other_status;
    return stat(path, &status) == 0 && stat(other, &other_status) == 0 && status.st_dev == other_status.st_dev &&
           status.st_ino == other_status.st_ino;
}

bool copy_is_there(const char *path, const char *suffix)
{
    _cleanup_free_ char *name = xasprintf("%s%s", path, suffix);
    struct stat status;
    return lstat(name, &status) == 0;
}
