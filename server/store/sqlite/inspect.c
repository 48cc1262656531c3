#include "server/store/sqlite/inspect.h"

#include "server/base/clock.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/migrate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* A small file is checked whole at a start, a larger one only where a service reads and writes first. A slow disk ends
 * either: what was not read by then is not known to be damaged. */
enum { CHECK_WHOLE_BYTES = 4 << 20, CHECK_US = 1000 * 1000, CHECK_STEPS = 2000 };
enum { LINKS_MAX = 40 }; /* as many as the kernel follows */

static const char file_magic[16] = "SQLite format 3";

int store_refuse(int error, char message[STORE_MESSAGE_BYTES], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, STORE_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return -error;
}

const char *inspect_network_name(unsigned long magic)
{
    /* linux/magic.h and the file systems' own headers. The write-ahead log needs memory shared between processes. */
    static const struct {
        unsigned long magic;
        const char *name;
    } rows[] = {
        {0x6969, "NFS"},        {0x517B, "SMB"},
        {0xFE534D42, "SMB2"},   {0xFF534D42, "CIFS"},
        {0x65735546, "FUSE"},   {0x01021997, "9P"},
        {0x5346414F, "AFS"},    {0x6B414653, "AFS"},
        {0x00C36400, "Ceph"},   {0x564C, "NCP"},
        {0x73757245, "Coda"},   {0x0BD00BD0, "Lustre"},
        {0x7461636F, "OCFS2"},  {0x01161970, "GFS2"},
        {0x47504653, "GPFS"},   {0x786F4256, "VirtualBox shared folder"},
        {0x19830326, "BeeGFS"}, {0x20030528, "OrangeFS"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (rows[i].magic == (magic & 0xFFFFFFFF))
            return rows[i].name;
    return NULL;
}

/* The place that a link names; NULL: it is none. */
static char *read_link(const char *path)
{
    char place[PATH_MAX];
    ssize_t length = readlink(path, place, sizeof(place) - 1);
    const char *slash = strrchr(path, '/');
    if (length < 0)
        return NULL;
    place[length] = '\0';
    return *place == '/' || !slash ? xstrdup(place) : xasprintf("%.*s/%s", (int)(slash - path), path, place);
}

/* The place of a file that is not there: in a real directory. */
static int resolve_absent(const char *path, char **ret_path, char message[STORE_MESSAGE_BYTES])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    _cleanup_free_ char *directory = slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
    _cleanup_free_ char *real_directory = realpath(directory, NULL);
    if (!real_directory)
        return store_refuse(errno, message, "the directory of the database %s cannot be reached: %m", path);
    if (!*name)
        return store_refuse(EISDIR, message, "the database %s is a directory", path);
    *ret_path = xasprintf("%s/%s", strcmp(real_directory, "/") == 0 ? "" : real_directory, name);
    return 0;
}

/* A link to a file that is not there leads to where it would be made: the lock and the log stand there, as they will
 * when it is there. */
int inspect_resolve(const char *path, char **ret_path, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *at = xstrdup(path);
    char *next = NULL;
    *ret_path = realpath(at, NULL);
    for (int links = 0; !*ret_path && links < LINKS_MAX && (next = read_link(at)); links++) {
        free(at);
        at = next;
        *ret_path = realpath(at, NULL);
    }
    return *ret_path ? 0 : resolve_absent(at, ret_path, message);
}

int inspect_place(const char *path, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *directory = xstrndup(path, (size_t)(strrchr(path, '/') - path) + 1);
    struct statfs file_system;
    if (statfs(directory, &file_system) < 0)
        return store_refuse(errno, message, "the directory of the database %s cannot be reached: %m", path);
    const char *network = inspect_network_name((unsigned long)file_system.f_type);
    if (network)
        return store_refuse(EREMOTE, message, "the database %s is on a network file system (%s); it needs a local one",
                            path, network);
    if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) < 0)
        return store_refuse(errno, message, "the directory of the database %s is not writable: %m", path);
    return 0;
}

/* Looks at the first bytes, without SQLite. 1: there is a database; 0: absent or empty; negative: refused. */
static int inspect_header(const char *path, int access_mode, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_close_ int fd = open(path, access_mode | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0
                               : store_refuse(errno, message, "the database %s cannot be %s: %m", path,
                                              access_mode == O_RDWR ? "written" : "read");
    struct stat status;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return store_refuse(EINVAL, message, "the database %s is not a regular file", path);
    if (status.st_size == 0)
        return 0;
    char header[100];
    ssize_t length = pread(fd, header, sizeof(header), 0);
    if (length < (ssize_t)sizeof(header) || memcmp(header, file_magic, sizeof(file_magic)) != 0)
        return store_refuse(EUCLEAN, message, "the file %s is damaged, or is no database at all; it was left untouched",
                            path);
    return 1;
}

static bool is_filled(const char *path, const char *suffix)
{
    _cleanup_free_ char *name = xasprintf("%s%s", path, suffix);
    struct stat status;
    return stat(name, &status) == 0 && status.st_size > 0;
}

static int refuse_damaged(struct database *database, const char *path, const char *detail,
                          char message[STORE_MESSAGE_BYTES])
{
    return store_refuse(EUCLEAN, message, "the database %s is damaged (%s); it was left untouched", path,
                        detail ? detail : sqlite3_errmsg(database->handle));
}

int inspect_version(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t things = 0;
    if (database_number(database, "PRAGMA application_id", &application) != SQLITE_OK ||
        database_number(database, "PRAGMA user_version", &version) != SQLITE_OK ||
        database_number(database, "SELECT count(*) FROM sqlite_schema", &things) != SQLITE_OK)
        return refuse_damaged(database, path, NULL, message);
    if (application != STORE_APPLICATION_ID && (application != 0 || version != 0 || things != 0))
        return store_refuse(EMEDIUMTYPE, message, "the database %s belongs to another program; it was left untouched",
                            path);
    if (version > migrate_latest())
        return store_refuse(
            EPROTONOSUPPORT, message,
            "the database %s has schema version %lld, newer than this program knows (%lld); it was left untouched",
            path, (long long)version, (long long)migrate_latest());
    return 0;
}

static int is_past(void *deadline_us)
{
    return clock_monotonic_us() > *(const int64_t *)deadline_us;
}

/* Every page. Not the CHECKs: SQLite forgets those of a file that it may only read. */
static int inspect_all_pages(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(database->handle, "PRAGMA quick_check(1)", -1, &statement, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    int refused = 0;
    if (result == SQLITE_ROW && !text_equals(column_view(statement, 0), "ok"))
        refused = refuse_damaged(database, path, (const char *)sqlite3_column_text(statement, 0), message);
    else if (result != SQLITE_ROW && (result & 0xFF) != SQLITE_INTERRUPT)
        refused = refuse_damaged(database, path, NULL, message);
    sqlite3_finalize(statement);
    return refused;
}

/* Of each table and index the way from the root to the first entry, of tables to the last one, too: the newest rows.
 * Statements that do not fit it (rowid of a table without, a partial index) fail to prepare and are left out. */
static const char *const edge_forms[] = {
    "SELECT 1 FROM \"%w\" NOT INDEXED LIMIT 1",
    "SELECT max(rowid) FROM \"%w\" NOT INDEXED",
    "SELECT 1 FROM \"%w\" INDEXED BY \"%w\" LIMIT 1",
};

static int read_edge(struct database *database, const char *form, const char *table, const char *index)
{
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf(form, table, index);
    int result = sql ? sqlite3_prepare_v2(database->handle, sql, -1, &statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (result == SQLITE_OK)
        result = sqlite3_step(statement);
    else if (result == SQLITE_ERROR)
        result = SQLITE_DONE;
    sqlite3_finalize(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int read_edges(struct database *database)
{
    static const char list[] = "SELECT type = 'index', tbl_name, name FROM sqlite_schema WHERE rootpage > 0";
    sqlite3_stmt *thing = NULL;
    int result = sqlite3_prepare_v2(database->handle, list, -1, &thing, NULL);
    int step = result;
    while (result == SQLITE_OK && (step = sqlite3_step(thing)) == SQLITE_ROW) {
        bool is_index = sqlite3_column_int(thing, 0);
        const char *table = (const char *)sqlite3_column_text(thing, 1);
        const char *name = (const char *)sqlite3_column_text(thing, 2);
        for (size_t i = is_index ? 2 : 0; i < (is_index ? 3U : 2U) && result == SQLITE_OK; i++)
            result = read_edge(database, edge_forms[i], table, name);
    }
    if (result == SQLITE_OK && step != SQLITE_DONE)
        result = step;
    sqlite3_finalize(thing);
    return result;
}

static int inspect_edges(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    int result = read_edges(database);
    return result == SQLITE_OK || (result & 0xFF) == SQLITE_INTERRUPT
               ? 0
               : refuse_damaged(database, path, sqlite3_errstr(result), message);
}

/* Without a log the file has all its pages; with one the last of them may still be there alone. */
int inspect_size(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    struct stat status;
    int64_t pages = 0;
    int64_t page_bytes = 0;
    char detail[96];
    if (database_number(database, "PRAGMA page_count", &pages) != SQLITE_OK ||
        database_number(database, "PRAGMA page_size", &page_bytes) != SQLITE_OK)
        return refuse_damaged(database, path, NULL, message);
    if (stat(path, &status) < 0)
        return store_refuse(errno, message, "the database %s cannot be read: %m", path);
    int64_t whole_bytes = pages * page_bytes;
    if (status.st_size >= whole_bytes || is_filled(path, "-wal"))
        return 0;
    snprintf(detail, sizeof(detail), "%lld of its %lld bytes are there", (long long)status.st_size,
             (long long)whole_bytes);
    return refuse_damaged(database, path, detail, message);
}

/* The start reads a bounded part of the file, whatever its size; the whole is read by `rolloutd verify-database`. */
static int inspect_pages(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    int64_t deadline_us = clock_monotonic_us() + CHECK_US;
    struct stat status;
    if (stat(path, &status) < 0)
        return store_refuse(errno, message, "the database %s cannot be read: %m", path);
    sqlite3_progress_handler(database->handle, CHECK_STEPS, is_past, &deadline_us);
    int refused = inspect_size(database, path, message);
    if (refused == 0 && status.st_size <= CHECK_WHOLE_BYTES)
        refused = inspect_all_pages(database, path, message);
    else if (refused == 0)
        refused = inspect_edges(database, path, message);
    sqlite3_progress_handler(database->handle, 0, NULL, NULL);
    return refused;
}

/* SQLite would take the log of an empty file for a left-over and delete it, with every row that is in it alone. */
static int inspect_lost(const char *path, char message[STORE_MESSAGE_BYTES])
{
    if (!is_filled(path, "-wal"))
        return 0;
    return store_refuse(EUCLEAN, message,
                        "the database %s is missing or empty, but its write-ahead log %s-wal is there: put the file "
                        "back, or move the log away; both were left untouched",
                        path, path);
}

static int inspect_restored(const char *path, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *copy = xasprintf("%s" INSPECT_RESTORING, path);
    if (access(copy, F_OK) != 0)
        return 0;
    return store_refuse(EUCLEAN, message,
                        "the database %s was about to be replaced when that was cut off; rolloutd restore --replace "
                        "again finishes it (%s is the new copy, and the old one is still here or in %s.replaced-...)",
                        path, copy, path);
}

int inspect_to_read(const char *path, char message[STORE_MESSAGE_BYTES])
{
    int present = inspect_header(path, O_RDONLY, message);
    if (present == 0)
        return store_refuse(ENOENT, message, "the database %s is missing or empty", path);
    return present < 0 ? present : 0;
}

int inspect_file(const char *path, char message[STORE_MESSAGE_BYTES])
{
    int present = inspect_restored(path, message);
    if (present == 0)
        present = inspect_header(path, O_RDWR, message);
    if (present == 0)
        return inspect_lost(path, message);
    /* A rollback journal is what a first start leaves when it is killed before the file was ever a database of ours. */
    if (present < 0 || is_filled(path, "-journal"))
        return present < 0 ? present : 0;
    bool after_crash = is_filled(path, "-wal");
    struct database database = {0};
    int result = database_open(&database, path, after_crash ? DATABASE_PROBE : DATABASE_PROBE_IMMUTABLE, false, 0);
    int refused = result == SQLITE_OK ? inspect_version(&database, path, message)
                                      : refuse_damaged(&database, path, NULL, message);
    if (refused == 0)
        refused = inspect_pages(&database, path, message);
    database_close(&database);
    return refused;
}
