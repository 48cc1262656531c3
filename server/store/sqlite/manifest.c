/* Manifests: written, compared with operations, read. */
#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/operations.h"
#include "server/store/sqlite/reader.h"

enum { TOKENS_SLICE_ROWS = 20000 };

/* A manifest in the writer. */
struct manifest_row {
    int64_t version; /* 0: there is none */
    struct store_budget budget;
};

static int find_manifest(struct store *store, int64_t run_seq, struct manifest_row *ret_row)
{
    *ret_row = (struct manifest_row){.budget = {-1, -1}};
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_MANIFEST);
    bind_int(find, 1, run_seq);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_row = (struct manifest_row){.version = sqlite3_column_int64(find, 0),
                                         .budget = {column_int_or(find, 1, -1), column_int_or(find, 2, -1)}};
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* ---- spent tokens and revisions ---------------------------------------------------------------------------- */

/* counted_to -1: all of it is counted. */
static int find_spent(struct store *store, int64_t run_seq, int64_t *ret_tokens, int64_t *ret_counted_to)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_SPENT);
    bind_int(find, 1, run_seq);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_INTERNAL : result;
    *ret_tokens = sqlite3_column_int64(find, 0);
    *ret_counted_to = column_int_or(find, 1, -1);
    sqlite3_reset(find);
    return SQLITE_OK;
}

static int count_revisions(struct store *store, int64_t run_seq, int64_t *ret_revisions)
{
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_TRAINED_REVISIONS);
    bind_int(count, 1, run_seq);
    int result = database_first(count);
    if (result != SQLITE_ROW)
        return result;
    *ret_revisions = sqlite3_column_int64(count, 0);
    sqlite3_reset(count);
    return SQLITE_OK;
}

/* One slice of the rollouts that were stored before their tokens were counted with them. */
static int count_tokens(struct store *store, int64_t run_seq, int64_t counted_to, bool *ret_all)
{
    sqlite3_stmt *sum = database_statement(&store->writer, SQL_SUM_SPENT_SLICE);
    bind_int(sum, 1, run_seq);
    bind_int(sum, 2, counted_to);
    bind_int(sum, 3, TOKENS_SLICE_ROWS);
    int result = database_first(sum);
    if (result != SQLITE_ROW)
        return result;
    *ret_all = sqlite3_column_int64(sum, 0) < TOKENS_SLICE_ROWS;
    int64_t last = column_int_or(sum, 1, counted_to);
    int64_t tokens = sqlite3_column_int64(sum, 2);
    sqlite3_reset(sum);
    sqlite3_stmt *add = database_statement(&store->writer, SQL_ADD_SPENT_SLICE);
    bind_int(add, 1, run_seq);
    bind_int(add, 2, tokens);
    bind_int_or_null(add, 3, *ret_all ? -1 : last);
    return database_run(add);
}

/* ---- operations against the manifest ----------------------------------------------------------------------- */

static bool is_agreed(struct store *store, int64_t run_seq, const struct store_manifest_guard *guard)
{
    sqlite3_stmt *read = database_statement(&store->writer, SQL_FIND_FROZEN);
    bind_int(read, 1, run_seq);
    bool agrees = database_first(read) == SQLITE_ROW && guard->agrees(guard->arg, column_view(read, 0));
    sqlite3_reset(read);
    return agrees;
}

enum store_status operation_check_manifest(struct store *store, struct store_op *op, const struct run_row *run,
                                           const struct store_manifest_guard *guard)
{
    struct manifest_row manifest;
    int result = find_manifest(store, run->seq, &manifest);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    if (manifest.version == 0 || manifest.version == guard->version || !guard->agrees ||
        is_agreed(store, run->seq, guard))
        return STORE_OK;
    return operation_decline(op, STORE_MANIFEST_CONFLICT, "the run's manifest says otherwise");
}

static int is_trained(struct store *store, const struct run_row *run, int64_t revision, bool *ret_trained)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_TRAINED_REVISION);
    bind_int(find, 1, run->seq);
    bind_int(find, 2, run->incarnation);
    bind_int(find, 3, revision);
    int result = database_first(find);
    *ret_trained = result == SQLITE_ROW;
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* A batch at a revision that has batches already spends none. */
static int check_revisions(struct store *store, const struct run_row *run, int64_t revision, int64_t budget,
                           bool *ret_over)
{
    bool trained = false;
    int64_t revisions = 0;
    int result = is_trained(store, run, revision, &trained);
    if (result == SQLITE_OK && !trained)
        result = count_revisions(store, run->seq, &revisions);
    *ret_over = !trained && revisions >= budget;
    return result;
}

enum store_status operation_check_budget(struct store *store, struct store_op *op, const struct run_row *run,
                                         int64_t revision)
{
    struct manifest_row manifest;
    int64_t tokens = 0;
    int64_t counted_to = -1;
    bool over = false;
    int result = find_manifest(store, run->seq, &manifest);
    if (result == SQLITE_OK && manifest.budget.completion_tokens >= 0)
        result = find_spent(store, run->seq, &tokens, &counted_to);
    if (result == SQLITE_OK && manifest.budget.revisions >= 0)
        result = check_revisions(store, run, revision, manifest.budget.revisions, &over);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    if (manifest.budget.completion_tokens >= 0 && tokens >= manifest.budget.completion_tokens)
        return operation_decline(op, STORE_OVER_BUDGET, "the completion tokens of the run's budget are spent");
    return over ? operation_decline(op, STORE_OVER_BUDGET, "the revisions of the run's budget are spent") : STORE_OK;
}

/* ---- written ----------------------------------------------------------------------------------------------- */

static int has_newer_batch(struct store *store, int64_t run_seq, int64_t seq, bool *ret_newer)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_NEWER_BATCH);
    bind_int(find, 1, run_seq);
    bind_int(find, 2, seq);
    int result = database_first(find);
    *ret_newer = result == SQLITE_ROW;
    sqlite3_reset(find);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* STORE_OK: `spent` has the sums that the budget limits, and none exceeds it. */
static enum store_status check_spent(struct store *store, struct store_op *op, int64_t run_seq)
{
    struct store_put_manifest *put = &op->put_manifest;
    int64_t counted_to = -1;
    int result = SQLITE_OK;
    put->spent = (struct store_budget){0, 0};
    if (put->budget.completion_tokens >= 0)
        result = find_spent(store, run_seq, &put->spent.completion_tokens, &counted_to);
    if (result == SQLITE_OK && put->budget.revisions >= 0)
        result = count_revisions(store, run_seq, &put->spent.revisions);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    bool over = (put->budget.completion_tokens >= 0 && put->spent.completion_tokens > put->budget.completion_tokens) ||
                (put->budget.revisions >= 0 && put->spent.revisions > put->budget.revisions);
    return over ? operation_decline(op, STORE_OVER_BUDGET, "the run has spent more already") : STORE_OK;
}

static int write_manifest(struct store *store, struct store_put_manifest *put, int64_t run_seq)
{
    sqlite3_stmt *write = database_statement(&store->writer, SQL_PUT_MANIFEST);
    bind_int(write, 1, run_seq);
    bind_int(write, 2, put->version);
    bind_int(write, 3, clock_utc_us());
    bind_text(write, 4, put->given);
    bind_text(write, 5, put->frozen);
    bind_int_or_null(write, 6, put->budget.completion_tokens);
    bind_int_or_null(write, 7, put->budget.revisions);
    return database_run(write);
}

/* STORE_OK: the manifest and the batches that the caller has read are still the newest. */
static enum store_status check_unchanged(struct store *store, struct store_op *op, int64_t run_seq)
{
    const struct store_put_manifest *put = &op->put_manifest;
    struct manifest_row manifest;
    bool newer = false;
    int result = find_manifest(store, run_seq, &manifest);
    if (result == SQLITE_OK)
        result = has_newer_batch(store, run_seq, put->checked_batch, &newer);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    if (manifest.version != put->base_version)
        return operation_decline(op, STORE_CHANGED, "the manifest has changed since");
    return newer ? operation_decline(op, STORE_CHANGED, "a batch was made since") : STORE_OK;
}

enum store_status operation_put_manifest(struct store *store, struct store_op *op)
{
    struct store_put_manifest *put = &op->put_manifest;
    struct run_row run = {0};
    int result = operation_find_run(store, put->run, &run);
    put->created = result == SQLITE_DONE;
    put->version = put->base_version + 1;
    if (put->created)
        result = operation_enter_run(store, put->run, clock_utc_us(), &run);
    else if (result == SQLITE_ROW)
        result = SQLITE_OK;
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    enum store_status status = check_unchanged(store, op, run.seq);
    if (status == STORE_OK)
        status = check_spent(store, op, run.seq);
    if (status != STORE_OK)
        return status;
    result = write_manifest(store, put, run.seq);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

enum store_status operation_count_spent(struct store *store, struct store_op *op)
{
    struct store_count_spent *count = &op->count_spent;
    struct run_row run = {0};
    int64_t tokens;
    int64_t counted_to = -1;
    count->all = true;
    int result = operation_find_run(store, count->run, &run);
    if (result == SQLITE_DONE)
        return STORE_OK;
    if (result == SQLITE_ROW)
        result = find_spent(store, run.seq, &tokens, &counted_to);
    if (result == SQLITE_OK && counted_to >= 0)
        result = count_tokens(store, run.seq, counted_to, &count->all);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- read -------------------------------------------------------------------------------------------------- */

enum store_status store_read_manifest(struct store_reader *reader, struct text run, struct store_manifest *ret_manifest)
{
    struct store_manifest *into = ret_manifest;
    *into = (struct store_manifest){.memory = store_memory_create(), .budget = {-1, -1}};
    struct store_memory *memory = into->memory;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_MANIFEST);
    bind_text(row, 1, run);
    int result = database_first(row);
    if (result == SQLITE_ROW && column_int_or(row, 1, 0) > 0) {
        int place = 1;
        COLUMNS_READ(MANIFEST_COLUMNS)
    }
    reader_end(reader);
    return result == SQLITE_DONE ? STORE_NOT_FOUND : reader_status(reader, result, memory);
}

void store_manifest_finish(struct store_manifest *manifest)
{
    store_memory_destroy(TAKE_PTR(manifest->memory));
}
