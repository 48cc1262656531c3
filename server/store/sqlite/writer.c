#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/store/sqlite/store_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#define LOOK_PERIOD_US (1 * US_PER_S) /* at the files, while there is nothing to write */

const int64_t store_commit_bucket_us[STORE_COMMIT_BUCKETS] = {500,   1000,   2500,    10000,
                                                              50000, 250000, 1000000, INT64_MAX};

/* ---- the queue
 * ------------------------------------------------------------------------------------------------------------ */

static bool has_room(const struct store *store, const struct store_op *op)
{
    if (op->reserved)
        return true;
    return store->queued_ops + store->reserved_ops < store->queue_ops &&
           store->queued_bytes + op->bytes <= store->queue_bytes;
}

/* Rows and closed groups can wait for company, and be carried out twice: they give nothing back but a number. They are
 * nearly all there are. */
static bool is_of_many(const struct store_op *op)
{
    return op->kind == STORE_INSERT_ROLLOUT || op->kind == STORE_CLOSE_GROUP;
}

/* Whether the writer may wait longer than commit_delay. */
static bool is_patient(const struct store *store)
{
    return store->urgent_ops == 0 && store->reserved_ops > 0;
}

static void enqueue(struct store *store, struct store_op *op)
{
    op->next = NULL;
    *store->last = op;
    store->last = &op->next;
    store->queued_ops++;
    store->queued_bytes += op->bytes;
    store->urgent_ops += !is_of_many(op);
    if (op->reserved && store->reserved_ops)
        store->reserved_ops--;
}

static void show_queue(struct store *store)
{
    atomic_store_explicit(&store->metrics.queued_ops, store->queued_ops, memory_order_relaxed);
    atomic_store_explicit(&store->metrics.reserved_ops, store->reserved_ops, memory_order_relaxed);
    atomic_store_explicit(&store->metrics.queued_bytes, store->queued_bytes, memory_order_relaxed);
}

bool store_submit(struct store *store, struct store_op *op)
{
    op->bytes = operation_bytes(op);
    pthread_mutex_lock(&store->lock);
    bool accepted = !store->closing && has_room(store, op);
    if (accepted) {
        bool was_patient = is_patient(store);
        enqueue(store, op);
        show_queue(store);
        /* While it gathers, only what ends that wakes the writer: a wake-up for each row costs more than the row. */
        if (!store->gathering || store->queued_ops >= store->commit_rows || (was_patient && !is_patient(store)))
            pthread_cond_signal(&store->changed);
    }
    pthread_mutex_unlock(&store->lock);
    return accepted;
}

bool store_reserve(struct store *store, size_t ops)
{
    pthread_mutex_lock(&store->lock);
    size_t used = store->queued_ops + store->reserved_ops;
    bool granted = !store->closing && used <= store->queue_ops && ops <= store->queue_ops - used;
    if (granted)
        store->reserved_ops += ops;
    show_queue(store);
    pthread_mutex_unlock(&store->lock);
    return granted;
}

void store_release(struct store *store, size_t ops)
{
    pthread_mutex_lock(&store->lock);
    store->reserved_ops -= ops < store->reserved_ops ? ops : store->reserved_ops;
    if (store->gathering && store->reserved_ops == 0)
        pthread_cond_signal(&store->changed);
    show_queue(store);
    pthread_mutex_unlock(&store->lock);
}

/* Waits for company for the first operation, at most as long as the settings say. The lock is held. */
static void gather(struct store *store)
{
    int64_t begun_us = clock_monotonic_us();
    store->gathering = true;
    while (!store->closing && store->queued_ops < store->commit_rows) {
        bool longer = is_patient(store) && store->commit_patience_us > store->commit_delay_us;
        int64_t until_us = begun_us + (longer ? store->commit_patience_us : store->commit_delay_us);
        struct timespec until = {until_us / US_PER_S, (until_us % US_PER_S) * 1000};
        if (clock_monotonic_us() >= until_us)
            break;
        pthread_cond_timedwait(&store->changed, &store->lock, &until);
    }
    store->gathering = false;
}

/* Waits for the first operation, or until a deletion may continue. Meanwhile the files are checked. The lock is
 * held, except during the check. */
static void wait_for_work(struct store *store)
{
    int64_t due_us = deletion_due_us(store->deletion, true);
    while (!store->first && !store->closing && clock_monotonic_us() < due_us) {
        int64_t until_us = clock_monotonic_us() + LOOK_PERIOD_US;
        until_us = due_us < until_us ? due_us : until_us;
        struct timespec until = {until_us / US_PER_S, (until_us % US_PER_S) * 1000};
        if (pthread_cond_timedwait(&store->changed, &store->lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&store->lock);
        (void)files_check(store);
        pthread_mutex_lock(&store->lock);
    }
}

/* The next group, at most commit_rows long; NULL: there is none. *ret_ended: the store closes, and nothing is left. */
static struct store_op *take_group(struct store *store, bool *ret_ended)
{
    pthread_mutex_lock(&store->lock);
    wait_for_work(store);
    if (store->first)
        gather(store);
    struct store_op *group = store->first;
    *ret_ended = !group && store->closing;
    struct store_op **end = &store->first;
    for (size_t taken = 0; *end && taken < store->commit_rows; taken++) {
        store->queued_ops--;
        store->queued_bytes -= (*end)->bytes;
        store->urgent_ops -= !is_of_many(*end);
        end = &(*end)->next;
    }
    store->first = *end;
    *end = NULL;
    if (!store->first)
        store->last = &store->first;
    show_queue(store);
    pthread_mutex_unlock(&store->lock);
    return group;
}

/* ---- the commit
 * ----------------------------------------------------------------------------------------------------------- */

/* After some errors (no room, I/O) SQLite ends the whole transaction by itself. */
static bool transaction_is_gone(struct store *store)
{
    return sqlite3_get_autocommit(store->writer.handle);
}

/* lost: why nothing of it will be found; NULL: SQLite's result says what is wrong. */
static void fail_group(struct store *store, struct store_op *group, int result, const char *lost)
{
    enum store_status status = database_status(&store->writer, result);
    const char *detail = lost ? lost : sqlite3_errmsg(store->writer.handle);
    if (lost || status == STORE_OK || status == STORE_REFUSED)
        status = STORE_UNAVAILABLE;
    for (struct store_op *op = group; op; op = op->next) {
        op->status = status;
        snprintf(op->message, sizeof(op->message), "not committed: %s", detail);
    }
    if (!transaction_is_gone(store))
        database_run_plain(&store->writer, SQL_ROLLBACK_WRITE);
    atomic_fetch_add_explicit(&store->metrics.commit_failures, 1, memory_order_relaxed);
    atomic_store_explicit(&store->metrics.disk_full, status == STORE_DISK_FULL, memory_order_relaxed);
    log_event(LOG_LEVEL_ERROR, "commit failed", "reason", status == STORE_DISK_FULL ? "disk_full" : "store_unavailable",
              "detail", group->message, NULL);
}

static int run_one(struct store *store, struct store_op *op)
{
    op->message[0] = '\0';
    op->status = operation_run(store, op);
    return transaction_is_gone(store) ? sqlite3_extended_errcode(store->writer.handle) : SQLITE_OK;
}

/* One operation in its savepoint, so that its failure takes nothing else along. An SQLite result code for the whole
 * group. */
static int run_in_savepoint(struct store *store, struct store_op *op)
{
    int result = database_run_plain(&store->writer, SQL_SAVEPOINT_OPERATION);
    if (result == SQLITE_OK)
        result = run_one(store, op);
    if (result == SQLITE_OK && op->status != STORE_OK)
        result = database_run_plain(&store->writer, SQL_ROLLBACK_OPERATION);
    return result == SQLITE_OK ? database_run_plain(&store->writer, SQL_RELEASE_OPERATION) : result;
}

/* Operations up to `end` in one savepoint: with one for each, SQLite would copy every page that each of them touches.
 * If one fails behind a write of its own, everything is taken back (*ret_torn). */
static int run_together(struct store *store, struct store_op *first, const struct store_op *end, bool *ret_torn)
{
    sqlite3 *handle = store->writer.handle;
    int result = database_run_plain(&store->writer, SQL_SAVEPOINT_OPERATION);
    *ret_torn = false;
    for (struct store_op *op = first; op != end && result == SQLITE_OK && !*ret_torn; op = op->next) {
        sqlite3_int64 changes = sqlite3_total_changes64(handle);
        result = run_one(store, op);
        *ret_torn = op->status != STORE_OK && sqlite3_total_changes64(handle) != changes;
    }
    if (result == SQLITE_OK && *ret_torn)
        result = database_run_plain(&store->writer, SQL_ROLLBACK_OPERATION);
    return result == SQLITE_OK ? database_run_plain(&store->writer, SQL_RELEASE_OPERATION) : result;
}

/* The next operation, or as many as can go together. *ret_next: the first of those that are left. */
static int run_next(struct store *store, struct store_op *first, struct store_op **ret_next)
{
    struct store_op *end = first->next;
    bool torn = false;
    while (end && is_of_many(first) && is_of_many(end))
        end = end->next;
    *ret_next = end;
    if (end == first->next)
        return run_in_savepoint(store, first);
    int result = run_together(store, first, end, &torn);
    for (struct store_op *op = first; torn && op != end && result == SQLITE_OK; op = op->next)
        result = run_in_savepoint(store, op);
    return result;
}

static int run_group(struct store *store, struct store_op *group)
{
    int result = database_run_plain(&store->writer, SQL_BEGIN_WRITE);
    for (struct store_op *op = group; op && result == SQLITE_OK;)
        result = run_next(store, op, &op);
    return result == SQLITE_OK ? database_run_plain(&store->writer, SQL_COMMIT_WRITE) : result;
}

static void count_commit(struct store *store, const struct store_op *group, int64_t duration_us)
{
    struct store_metrics *metrics = &store->metrics;
    size_t operations = 0;
    atomic_fetch_add_explicit(&metrics->commits, 1, memory_order_relaxed);
    for (const struct store_op *op = group; op; op = op->next) {
        operations++;
        if (op->kind == STORE_INSERT_ROLLOUT && op->status == STORE_OK)
            atomic_fetch_add_explicit(&metrics->rollouts, 1, memory_order_relaxed);
    }
    if (store->committed)
        store->committed(operations, duration_us);
    atomic_fetch_add_explicit(&metrics->commit_us_total, (uint64_t)duration_us, memory_order_relaxed);
    size_t bucket = 0;
    while (duration_us > store_commit_bucket_us[bucket])
        bucket++;
    atomic_fetch_add_explicit(&metrics->commit_us_bucket[bucket], 1, memory_order_relaxed);
    atomic_store_explicit(&metrics->disk_full, false, memory_order_relaxed);
}

static int64_t ask(struct store *store, enum statement which)
{
    sqlite3_stmt *statement = database_statement(&store->writer, which);
    int64_t number = database_first(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return number;
}

static void show_file_size(struct store *store)
{
    int64_t page_bytes = ask(store, SQL_PAGE_SIZE);
    atomic_store_explicit(&store->metrics.file_bytes, (uint64_t)(ask(store, SQL_PAGE_COUNT) * page_bytes),
                          memory_order_relaxed);
    atomic_store_explicit(&store->metrics.free_bytes, (uint64_t)(ask(store, SQL_FREE_PAGES) * page_bytes),
                          memory_order_relaxed);
}

static void show_log_size(struct store *store, const char *log_path)
{
    struct stat status;
    uint64_t bytes = stat(log_path, &status) == 0 ? (uint64_t)status.st_size : 0;
    atomic_store_explicit(&store->metrics.wal_bytes, bytes, memory_order_relaxed);
}

static void commit_group(struct store *store, struct store_op *group)
{
    int64_t start_us = clock_monotonic_us();
    const char *lost = files_check(store);
    int result = lost ? SQLITE_IOERR : run_group(store, group);
    if (result == SQLITE_OK)
        lost = files_check(store);
    if (result == SQLITE_OK && !lost)
        count_commit(store, group, clock_monotonic_us() - start_us);
    else
        fail_group(store, group, result, lost);
    for (const struct store_op *op = group; op; op = op->next)
        atomic_fetch_add_explicit(&store->metrics.operations, 1, memory_order_relaxed);
}

/* ---- what a migration left
 * ---------------------------------------------------------------------------------------------------------- */

static bool is_interrupted(void *arg)
{
    return ((const struct store *)arg)->interrupted;
}

static void wait_before_next_try(struct store *store)
{
    int64_t until_us = clock_monotonic_us() + LOOK_PERIOD_US;
    struct timespec until = {until_us / US_PER_S, (until_us % US_PER_S) * 1000};
    pthread_mutex_lock(&store->lock);
    while (!store->closing && pthread_cond_timedwait(&store->changed, &store->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&store->lock);
}

/* One after the other, each a transaction; one that cannot be built is tried again, for the service must not serve
 * without it. */
static void build_indexes(struct store *store)
{
    for (size_t i = 0; i < store->missing.count && !store->interrupted;) {
        const struct missing_index *index = &store->missing.list[i];
        log_event(LOG_LEVEL_INFO, "building an index", "index", index->name, NULL);
        int result = indexes_build(&store->writer, index, is_interrupted, store);
        if (result == SQLITE_OK) {
            log_event(LOG_LEVEL_INFO, "index built", "index", index->name, NULL);
            store->missing_left = store->missing.count - ++i;
        } else if (result != SQLITE_INTERRUPT) {
            log_event(LOG_LEVEL_ERROR, "an index cannot be built", "index", index->name, "why",
                      sqlite3_errmsg(store->writer.handle), NULL);
            wait_before_next_try(store);
        }
    }
}

/* A slice, if one is due. An operation submitted meanwhile waits for this slice, and runs before the next. */
static void delete_between(struct store *store, bool idle)
{
    if (clock_monotonic_us() < deletion_due_us(store->deletion, idle))
        return;
    if (files_check(store))
        deletion_put_off(store->deletion);
    else
        deletion_work(store->deletion);
    atomic_store_explicit(&store->metrics.deletions, deletion_is_awake(store->deletion), memory_order_relaxed);
}

static void *writer_main(void *arg)
{
    struct store *store = arg;
    build_indexes(store);
    show_file_size(store);
    _cleanup_free_ char *log_path = xasprintf("%s-wal", store->path);
    bool ended = false;
    while (!ended) {
        struct store_op *group = take_group(store, &ended);
        if (group) {
            commit_group(store, group);
            show_log_size(store, log_path);
            show_file_size(store);
            store->finished(store->finished_arg, group);
        }
        if (!ended)
            delete_between(store, !group);
        if (!group)
            show_file_size(store);
    }
    return NULL;
}

int writer_start(struct store *store)
{
    store->last = &store->first;
    sigset_t all;
    sigset_t before;
    sigfillset(&all); /* signals belong to the loop thread */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&store->thread, NULL, writer_main, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void writer_stop(struct store *store)
{
    pthread_mutex_lock(&store->lock);
    store->closing = true;
    store->interrupted = true;
    pthread_cond_signal(&store->changed);
    pthread_mutex_unlock(&store->lock);
    pthread_join(store->thread, NULL);
}
