/* Groups of a batch: those of its request, and those drawn from its reserve. */
#include "server/store/sqlite/columns.h"
#include "server/store/sqlite/deliveries.h"
#include "server/store/sqlite/operations.h"

int operation_enter_text(struct store *store, enum statement insert_it, enum statement find_it, struct text text,
                         int64_t *ret_seq)
{
    sqlite3_stmt *insert = database_statement(&store->writer, insert_it);
    bind_text(insert, 1, text);
    int result = database_run(insert);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *find = database_statement(&store->writer, find_it);
    bind_text(find, 1, text);
    result = database_first(find);
    if (result != SQLITE_ROW)
        return result;
    *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return SQLITE_OK;
}

static int insert_group_contents(struct store *store, int64_t group_seq, const struct store_new_group *from)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_GROUP_CONTENTS);
    int place = 3;
    bind_int(insert, 1, group_seq);
    bind_blob(insert, 2, from->prompt_ids, from->prompt_id_count * sizeof(uint32_t));
    COLUMNS_WRITTEN(GROUP_CONTENT_COLUMNS)
    return database_run(insert);
}

static int insert_given(struct store *store, int64_t batch_seq, int64_t group_seq, const struct lean_member *from)
{
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_GIVEN);
    bind_int(insert, 1, batch_seq);
    bind_int(insert, 2, group_seq);
    bind_int(insert, 3, (int64_t)from->sample_index);
    for (int i = 0; i < LEAN_ARRAYS; i++)
        bind_blob(insert, 4 + i, from->arrays[i], from->count * lean_width_bytes[i]);
    return database_run(insert);
}

int operation_insert_group(struct store *store, int64_t batch_seq, int64_t index, const struct store_new_group *from,
                           int64_t *ret_seq)
{
    int64_t task_seq = 0;
    int64_t tags_seq = -1;
    int64_t prompt_seq = -1;
    int64_t reference_seq = -1;
    int place = 2;
    int result = operation_enter_text(store, SQL_INSERT_TASK, SQL_FIND_TASK, from->task, &task_seq);
    if (result == SQLITE_OK && from->tags.data)
        result = operation_enter_text(store, SQL_INSERT_TAGS, SQL_FIND_TAGS, from->tags, &tags_seq);
    if (result == SQLITE_OK)
        result = operation_enter_content(store, from->prompt, &prompt_seq);
    if (result == SQLITE_OK)
        result = operation_enter_content(store, from->reference, &reference_seq);
    if (result != SQLITE_OK)
        return result;
    sqlite3_stmt *insert = database_statement(&store->writer, SQL_INSERT_GROUP);
    bind_int(insert, 1, batch_seq);
    COLUMNS_WRITTEN(GROUP_COLUMNS)
    result = database_run(insert);
    if (result != SQLITE_OK)
        return result;
    int64_t group_seq = *ret_seq = sqlite3_last_insert_rowid(store->writer.handle);
    result = insert_group_contents(store, group_seq, from);
    for (size_t i = 0; i < from->given_count && result == SQLITE_OK; i++)
        result = insert_given(store, batch_seq, group_seq, &from->given[i]);
    return result;
}

/* The batch's row: one more group. *ret_max_staleness -1: none. */
static int count_drawn(struct store *store, int64_t batch_seq, int64_t members, int64_t *ret_max_staleness)
{
    sqlite3_stmt *count = database_statement(&store->writer, SQL_COUNT_DRAWN_GROUP);
    bind_int(count, 1, batch_seq);
    bind_int(count, 2, members);
    int result = database_first(count);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_CORRUPT : result;
    *ret_max_staleness = column_int_or(count, 0, -1);
    return database_run(count);
}

int operation_draw_group(struct store *store, const struct group_row *beside, int64_t index,
                         const struct store_new_group *group)
{
    int64_t seq = 0;
    int64_t max_staleness = -1;
    int result = operation_insert_group(store, beside->batch_seq, index, group, &seq);
    if (result == SQLITE_OK)
        result = count_drawn(store, beside->batch_seq, group->n, &max_staleness);
    if (result != SQLITE_OK || beside->deliver != STORE_LEASE)
        return result;
    result = deliveries_add(store, beside->run_seq, seq, max_staleness);
    return result == SQLITE_OK ? deliveries_count(store, beside->run_seq, STORE_DELIVERY_WAITING, 1) : result;
}
