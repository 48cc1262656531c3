/* Task sets, written: drafts in bounded operations, frozen or dropped. */
#include "server/base/clock.h"
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/operations.h"

enum { DROPPED_AT_ONCE = 512 };

/* ---- added to a draft -------------------------------------------------------------------------------------- */

static int begin_draft(struct store *store, struct store_add_tasks *add)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_DRAFT);
    bind_text(insert, 1, add->set);
    bind_int(insert, 2, clock_utc_us());
    int result = database_run(insert);
    add->set_seq = sqlite3_last_insert_rowid(store->writer.handle);
    return result;
}

static int insert_task(struct store *store, int64_t set_seq, const struct store_new_task *from)
{
    int64_t prompt_seq = 0;
    int64_t reference_seq = -1;
    int64_t tags_seq = -1;
    int place = 2;
    int result = operation_enter_content(store, &from->prompt, &prompt_seq);
    if (result == SQLITE_OK && from->has_reference)
        result = operation_enter_content(store, &from->reference, &reference_seq);
    if (result == SQLITE_OK && from->tags.data)
        result = operation_enter_text(store, SQL_INSERT_TAGS, SQL_FIND_TAGS, from->tags, &tags_seq);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_SET_TASK);
    bind_int(insert, 1, set_seq);
    COLUMNS_WRITTEN(SET_TASK_COLUMNS)
    return database_run(insert);
}

/* SQLITE_ROW: the draft has a task of this name. */
static int find_name(struct store *store, int64_t set_seq, struct text task, int64_t *ret_line)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_SET_TASK_LINE);
    bind_int(find, 1, set_seq);
    bind_text(find, 2, task);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_line = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

enum store_status operation_add_tasks(struct store *store, struct store_op *op)
{
    struct store_add_tasks *add = &op->add_tasks;
    int result = add->set_seq ? SQLITE_OK : begin_draft(store, add);
    for (size_t i = 0; i < add->count && result == SQLITE_OK; i++) {
        result = find_name(store, add->set_seq, add->tasks[i].task, &add->first_line);
        if (result == SQLITE_ROW) {
            add->wrong = i;
            return operation_decline(op, STORE_EXISTS, "the set has a task of this name");
        }
        if (result == SQLITE_DONE)
            result = insert_task(store, add->set_seq, &add->tasks[i]);
    }
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- frozen ------------------------------------------------------------------------------------------------ */

static int insert_splits(struct store *store, const struct store_freeze_taskset *freeze, int64_t *ret_tasks)
{
    int result = SQLITE_OK;
    for (size_t i = 0; i < freeze->split_count && result == SQLITE_OK; i++) {
        sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_SPLIT);
        bind_int(insert, 1, freeze->set_seq);
        bind_text(insert, 2, freeze->splits[i].split);
        bind_int(insert, 3, freeze->splits[i].tasks);
        result = database_run(insert);
        *ret_tasks += freeze->splits[i].tasks;
    }
    return result;
}

enum store_status operation_freeze_taskset(struct store *store, struct store_op *op)
{
    const struct store_freeze_taskset *freeze = &op->freeze_taskset;
    int64_t tasks = 0;
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_TASKSET);
    bind_text(find, 1, freeze->set);
    int result = database_first(find);
    if (result == SQLITE_ROW) {
        bool same = operation_is_same_body(find, 0, freeze->sha256);
        sqlite3_reset(find);
        return same ? operation_decline(op, STORE_EXISTS, "the set is there with this content")
                    : operation_decline(op, STORE_STATE_CONFLICT, "the set is there with other content");
    }
    if (result == SQLITE_DONE)
        result = insert_splits(store, freeze, &tasks);
    if (result != SQLITE_OK)
        return operation_fail(store, op, result);
    sqlite3_stmt *update = database_statement(&store->writer, SQL_FREEZE_TASKSET);
    bind_int(update, 1, freeze->set_seq);
    bind_blob(update, 2, freeze->sha256, SHA256_BYTES);
    bind_int(update, 3, tasks);
    result = database_run(update);
    return result == SQLITE_OK ? STORE_OK : operation_fail(store, op, result);
}

/* ---- dropped ----------------------------------------------------------------------------------------------- */

/* The oldest draft of the range. SQLITE_ROW, or SQLITE_DONE. */
static int find_draft(struct store *store, const struct store_drop_drafts *drop, int64_t *ret_seq)
{
    sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_DRAFT);
    bind_int(find, 1, drop->from_seq);
    bind_int(find, 2, drop->to_seq);
    int result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

static int leave_content(struct store *store, int64_t seq)
{
    sqlite3_stmt *drop = database_statement(&store->writer, SQL_DELETE_CONTENT);
    bind_int(drop, 1, seq);
    return database_run(drop);
}

/* Contents without another reference are deleted, too. */
static int drop_task(struct store *store, int64_t seq, const int64_t contents[2])
{
    sqlite3_stmt *drop = database_statement(&store->writer, SQL_DELETE_SET_TASK);
    bind_int(drop, 1, seq);
    int result = database_run(drop);
    for (size_t i = 0; i < 2 && result == SQLITE_OK; i++)
        if (contents[i] > 0)
            result = leave_content(store, contents[i]);
    return result;
}

static int drop_tasks(struct store *store, int64_t set_seq, int *ret_dropped)
{
    int result;
    *ret_dropped = 0;
    do {
        sqlite3_stmt *find = database_statement(&store->writer, SQL_FIND_TASK_TO_DROP);
        bind_int(find, 1, set_seq);
        result = database_first(find);
        if (result != SQLITE_ROW)
            break;
        int64_t seq = sqlite3_column_int64(find, 0);
        const int64_t contents[] = {column_int_or(find, 1, 0), column_int_or(find, 2, 0)};
        sqlite3_reset(find);
        result = drop_task(store, seq, contents);
    } while (result == SQLITE_OK && ++*ret_dropped < DROPPED_AT_ONCE);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int drop_part(struct store *store, int64_t set_seq)
{
    int dropped;
    int result = drop_tasks(store, set_seq, &dropped);
    if (result != SQLITE_OK || dropped == DROPPED_AT_ONCE)
        return result;
    sqlite3_stmt *drop = database_statement(&store->writer, SQL_DELETE_DRAFT);
    bind_int(drop, 1, set_seq);
    return database_run(drop);
}

enum store_status operation_drop_drafts(struct store *store, struct store_op *op)
{
    struct store_drop_drafts *drop = &op->drop_drafts;
    int64_t seq = 0;
    int result = find_draft(store, drop, &seq);
    if (result == SQLITE_ROW)
        result = drop_part(store, seq);
    if (result == SQLITE_OK)
        result = find_draft(store, drop, &seq);
    drop->more = result == SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? STORE_OK : operation_fail(store, op, result);
}
