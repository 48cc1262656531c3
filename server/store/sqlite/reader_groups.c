#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

/* A row of SELECT_GROUP. Returns its seq. */
static int64_t read_group_row(sqlite3_stmt *row, const char *batch_id, unsigned with, struct store_memory *memory,
                              struct store_group *into)
{
    int place = 1;
    *into = (struct store_group){0};
    COLUMNS_READ(GROUP_COLUMNS)
    COLUMNS_READ(GROUP_CONTENT_COLUMNS)
    memcpy(into->batch_id, batch_id, ID_BYTES);
    id_of_group(batch_id, into->index, into->id);
    if (with & STORE_WITH_ARRAYS)
        into->prompt_ids = column_array(row, GROUP_AT_prompt_ids, sizeof(uint32_t), memory, &into->prompt_id_count);
    return sqlite3_column_int64(row, 0);
}

static int read_group_rollouts(struct store_reader *reader, int64_t group_seq, unsigned with, int64_t sample_index,
                               size_t bytes_max, struct store_group *group)
{
    group->rollouts = store_memory_take(group->memory, (size_t)group->n, sizeof(*group->rollouts));
    size_t before_bytes = store_memory_bytes(group->memory);
    if (!group->rollouts)
        return SQLITE_NOMEM;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_GROUP_ROLLOUTS);
    bind_int(rows, 1, group_seq);
    bind_int(rows, 2, sample_index);
    int result = SQLITE_DONE;
    while (group->rollout_count < (size_t)group->n && (result = sqlite3_step(rows)) == SQLITE_ROW) {
        group->more = group->rollout_count > 0 && store_memory_bytes(group->memory) - before_bytes >= bytes_max;
        if (group->more)
            break;
        struct store_rollout *rollout = &group->rollouts[group->rollout_count++];
        read_rollout_row(rows, group->memory, rollout);
        result = read_rollout_sides(reader, with, group->memory, rollout);
        if (result != SQLITE_OK)
            return result;
    }
    return result;
}

static enum store_status read_group(struct store_reader *reader, struct text group_id, unsigned with,
                                    int64_t sample_index, size_t bytes_max, struct store_group *ret_group)
{
    char batch_id[ID_BYTES] = "";
    int64_t index = 0;
    if (!id_split_group(group_id, batch_id, &index))
        return STORE_NOT_FOUND;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_GROUP);
    bind_text(row, 1, text_of(batch_id));
    bind_int(row, 2, index);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    struct store_memory *memory = store_memory_create();
    int64_t seq = read_group_row(row, batch_id, with, memory, ret_group);
    ret_group->memory = memory;
    result = with & STORE_WITH_TASK
                 ? read_task_texts(reader, SQL_READ_GROUP_TASK, seq, memory, &ret_group->prompt, &ret_group->reference)
                 : SQLITE_OK;
    if (result != SQLITE_OK)
        return reader_status(reader, result, memory);
    result = read_group_rollouts(reader, seq, with & ~(unsigned)STORE_WITH_TASK, sample_index, bytes_max, ret_group);
    return reader_status(reader, result, memory);
}

enum store_status store_read_group_from(struct store_reader *reader, struct text group_id, unsigned with,
                                        int64_t sample_index, size_t bytes_max, struct store_group *ret_group)
{
    *ret_group = (struct store_group){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_group(reader, group_id, with, sample_index, bytes_max, ret_group);
    reader_end(reader);
    return status;
}

enum store_status store_read_group(struct store_reader *reader, struct text group_id, unsigned with,
                                   struct store_group *ret_group)
{
    return store_read_group_from(reader, group_id, with, INT64_MIN, SIZE_MAX, ret_group);
}

void store_group_finish(struct store_group *group)
{
    store_memory_destroy(TAKE_PTR(group->memory));
}

static enum store_status read_groups(struct store_reader *reader, struct text batch_id, int64_t from_index,
                                     size_t limit, unsigned with, struct store_groups *ret_groups)
{
    int64_t batch_seq = 0;
    int result = reader_find_seq(reader, SQL_BATCH_SEQ, batch_id, &batch_seq);
    if (result != SQLITE_ROW || batch_id.length_bytes >= ID_BYTES)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    char id[ID_BYTES] = "";
    memcpy(id, batch_id.data, batch_id.length_bytes);
    struct store_memory *memory = ret_groups->memory = store_memory_create();
    ret_groups->groups = store_memory_take(memory, limit, sizeof(*ret_groups->groups));
    if (!ret_groups->groups)
        return STORE_UNAVAILABLE;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_GROUPS);
    bind_text(rows, 1, batch_id);
    bind_int(rows, 2, from_index);
    bind_int(rows, 3, (int64_t)limit);
    while (ret_groups->count < limit && (result = sqlite3_step(rows)) == SQLITE_ROW)
        read_group_row(rows, id, with, memory, &ret_groups->groups[ret_groups->count++]);
    return reader_status(reader, result, memory);
}

enum store_status store_read_groups(struct store_reader *reader, struct text batch_id, int64_t from_index, size_t limit,
                                    unsigned with, struct store_groups *ret_groups)
{
    *ret_groups = (struct store_groups){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_groups(reader, batch_id, from_index, limit, with, ret_groups);
    reader_end(reader);
    return status;
}

void store_groups_finish(struct store_groups *groups)
{
    store_memory_destroy(TAKE_PTR(groups->memory));
}
