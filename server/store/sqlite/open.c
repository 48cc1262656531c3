#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/inspect.h"
#include "server/store/sqlite/lock.h"
#include "server/store/sqlite/migrate.h"
#include "server/store/sqlite/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define PRIVATE_MODE 0600

static const size_t default_commit_rows = 64;
static const size_t default_queue_ops = 8192;
static const size_t default_queue_bytes = (size_t)256 << 20;
static const size_t default_cache_bytes = (size_t)8 << 20;

/* Prompts and completions are nobody else's business. SQLite gives the files beside the database its mode; those of an
 * older version, or of a crash, are here already. Before SQLite opens the file: any close() lets its locks go. */
static int make_private(const char *path, char message[STORE_MESSAGE_BYTES])
{
    static const char *const suffixes[] = {"-lock", "-wal", "-shm"};
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, PRIVATE_MODE);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return store_refuse(errno, message, "the database %s cannot be opened: %m", path);
    if ((status.st_mode & ALLPERMS) != PRIVATE_MODE && fchmod(fd, PRIVATE_MODE) < 0)
        log_event(LOG_LEVEL_WARNING, "others may read the database", "database", path, "why", strerror(errno), NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(suffixes); i++) {
        _cleanup_free_ char *beside = xasprintf("%s%s", path, suffixes[i]);
        (void)chmod(beside, PRIVATE_MODE);
    }
    return 0;
}

/* Drafts of uploads that a death cut off. */
static int find_old_drafts(struct store *store)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_LAST_DRAFT);
    int result = database_first(find);
    store->last_old_draft = result == SQLITE_ROW ? sqlite3_column_int64(find, 0) : 0;
    sqlite3_reset(find);
    return result == SQLITE_ROW ? SQLITE_OK : result;
}

int64_t store_last_old_draft(const struct store *store)
{
    return store->last_old_draft;
}

static int register_owner(struct store *store)
{
    struct database *database = &store->writer;
    int result = database_run_plain(database, SQL_BEGIN_WRITE);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *bump = database_statement(database, SQL_BUMP_OWNER);
    bind_text(bump, 1, text_of(store->owner));
    result = database_first(bump);
    if (result != SQLITE_ROW)
        return result;
    store->owner_epoch = sqlite3_column_int64(bump, 0);
    sqlite3_reset(bump);
    sqlite3_stmt *adopt = database_statement(database, SQL_ADOPT_BATCHES);
    bind_text(adopt, 1, text_of(store->owner));
    bind_int(adopt, 2, store->owner_epoch);
    result = database_run(adopt);
    return result == SQLITE_OK ? database_run_plain(database, SQL_COMMIT_WRITE) : result;
}

/* Leases whose time passed while the service was down. */
static int expire_leases(struct store *store)
{
    int64_t leases = 0;
    int64_t groups = 0;
    int result = database_run_plain(&store->writer, SQL_BEGIN_WRITE);
    if (result == SQLITE_OK)
        result = deliveries_expire(store, -1, clock_utc_us(), &leases, &groups);
    return result == SQLITE_OK ? database_run_plain(&store->writer, SQL_COMMIT_WRITE) : result;
}

static int open_database(struct store *store, bool durability_normal, char message[STORE_MESSAGE_BYTES])
{
    struct database *database = &store->writer;
    int result = database_open(database, store->path, DATABASE_WRITER, durability_normal, store->cache_bytes);
    if (result == SQLITE_OK)
        result = migrate(database);
    if (result == SQLITE_OK)
        result = database_prepare(database, true, false);
    if (result == SQLITE_OK)
        result = register_owner(store);
    if (result == SQLITE_OK)
        result = expire_leases(store);
    if (result == SQLITE_OK)
        result = find_old_drafts(store);
    if (result == SQLITE_OK)
        result = indexes_find_missing(database, &store->missing);
    if (result == SQLITE_OK && !(store->deletion = deletion_create(database, &store->retention)))
        result = sqlite3_extended_errcode(database->handle);
    if (result == SQLITE_OK) {
        store->missing_left = store->missing.count;
        files_remember(store);
        return 0;
    }
    bool full = database_status(database, result) == STORE_DISK_FULL;
    return store_refuse(full ? ENOSPC : EIO, message, "the database %s cannot be opened: %s", store->path,
                        sqlite3_errmsg(database->handle));
}

static void take_options(struct store *store, const struct store_options *options)
{
    store->owner = xstrdup(options->owner ? options->owner : "rolloutd");
    store->commit_rows = options->commit_rows ? options->commit_rows : default_commit_rows;
    store->commit_delay_us = options->commit_delay_us;
    store->commit_patience_us = options->commit_patience_us;
    store->queue_ops = options->queue_ops ? options->queue_ops : default_queue_ops;
    store->queue_bytes = options->queue_bytes ? options->queue_bytes : default_queue_bytes;
    store->cache_bytes = options->cache_bytes ? options->cache_bytes : default_cache_bytes;
    store->finished = options->finished;
    store->finished_arg = options->finished_arg;
    store->committed = options->committed;
    store->retention = options->retention;
}

static int open_steps(struct store *store, const struct store_options *options, char message[STORE_MESSAGE_BYTES])
{
    int refused = inspect_resolve(options->path, &store->path, message);
    if (refused == 0)
        refused = inspect_place(store->path, message);
    if (refused == 0)
        refused = lock_take(store->path, &store->lock_fd, message);
    if (refused == 0)
        refused = inspect_file(store->path, message);
    if (refused == 0)
        refused = make_private(store->path, message);
    if (refused == 0)
        refused = open_database(store, options->durability_normal, message);
    if (refused < 0)
        return refused;
    int error = writer_start(store);
    return error ? store_refuse(error, message, "the writer thread of the database cannot be started") : 0;
}

static void store_free(struct store *store)
{
    deletion_destroy(store->deletion);
    database_close(&store->writer);
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    indexes_finish(&store->missing);
    free(store->owner);
    free(store->path);
    free(store);
}

struct store *store_open(const struct store_options *options, char message[STORE_MESSAGE_BYTES], int *ret_error)
{
    struct store *store = xcalloc(1, sizeof(*store));
    store->lock_fd = -1;
    pthread_mutex_init(&store->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    take_options(store, options);
    message[0] = '\0';
    int refused = open_steps(store, options, message);
    *ret_error = -refused;
    if (refused == 0)
        return store;
    store_free(store);
    return NULL;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    writer_stop(store);
    store_free(store);
}

int store_check(const struct store_options *options, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *path = NULL;
    message[0] = '\0';
    int refused = inspect_resolve(options->path, &path, message);
    if (refused == 0)
        refused = inspect_place(path, message);
    return refused == 0 ? inspect_file(path, message) : refused;
}

bool store_is_migrating(const struct store *store)
{
    return store->missing_left > 0;
}

void store_say_migration(const struct store *store, char ret_text[STORE_MESSAGE_BYTES])
{
    size_t left = store->missing_left;
    size_t at = store->missing.count - left;
    if (left == 0)
        *ret_text = '\0';
    else
        snprintf(ret_text, STORE_MESSAGE_BYTES, "migrating: the index %s is built, %zu of %zu",
                 store->missing.list[at].name, at + 1, store->missing.count);
}

const struct store_metrics *store_metrics(const struct store *store)
{
    return &store->metrics;
}
