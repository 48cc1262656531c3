#include "server/store/sqlite/reader.h"

#include "server/store/sqlite/columns.h"

/* ---- rows
 * -------------------------------------------------------------------------------------------------------------------
 */

void read_rollout_row(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *ret_rollout)
{
    struct store_rollout *into = ret_rollout;
    int place = 1;
    *into = (struct store_rollout){.seq = sqlite3_column_int64(row, 0)};
    COLUMNS_READ(ROLLOUT_COLUMNS)
    id_of_group(into->batch_id, sqlite3_column_int64(row, ROLLOUT_AT_group_index), into->group_id);
    id_of_rollout(into->group_id, into->sample_index, into->id);
}

/* ---- side tables
 * ------------------------------------------------------------------------------------------------------------ */

static void read_text(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *into)
{
    int place = 1;
    COLUMNS_READ(TEXT_COLUMNS)
}

static void read_verdicts(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *into)
{
    int place = 1;
    COLUMNS_READ(VERDICT_COLUMNS)
}

static void read_arrays(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *rollout)
{
    size_t count;
    rollout->completion_ids = column_array(row, 0, sizeof(uint32_t), memory, &rollout->token_count);
    rollout->logprobs = column_array(row, 1, sizeof(float), memory, &count);
    rollout->completion_mask = column_array(row, 2, sizeof(uint8_t), memory, &count);
}

/* u32 end, f64 advantage, packed. */
static void read_advantages(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *rollout)
{
    enum { RUN_BYTES = 12 };
    struct text packed = column_view(row, 0);
    size_t count = packed.length_bytes / RUN_BYTES;
    struct store_advantage *runs = store_memory_take(memory, count + 1, sizeof(*runs));

    for (size_t i = 0; runs && i < count; i++) {
        memcpy(&runs[i].end, packed.data + i * RUN_BYTES, sizeof(uint32_t));
        memcpy(&runs[i].advantage, packed.data + i * RUN_BYTES + sizeof(uint32_t), sizeof(double));
    }
    rollout->advantages = runs;
    rollout->advantage_count = runs ? count : 0;
}

static void read_segments(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *into)
{
    into->segments = column_text(row, 0, memory);
}

static void read_metadata(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *into)
{
    into->metadata = column_text(row, 0, memory);
}

static int read_later(struct store_reader *reader, struct store_memory *memory, struct store_rollout *rollout)
{
    struct store_later *later = NULL;
    size_t capacity = 0;
    int result;
    sqlite3_stmt *rows = database_statement(&reader->database, SQL_READ_LATER);
    bind_int(rows, 1, rollout->seq);
    while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
        struct store_later *larger = store_memory_grow(memory, later, rollout->later_count, &capacity, sizeof(*later));
        if (!larger)
            break;
        rollout->later = later = larger;
        struct store_later *into = &later[rollout->later_count++];
        *into = (struct store_later){.at_us = sqlite3_column_int64(rows, 1),
                                     .verdicts = column_text(rows, 2, memory),
                                     .reward = column_double(rows, 3)};
        column_id(rows, 0, into->id);
    }
    sqlite3_reset(rows);
    return result == SQLITE_DONE || result == SQLITE_ROW ? SQLITE_OK : result;
}

int read_rollout_sides(struct store_reader *reader, unsigned with, struct store_memory *memory,
                       struct store_rollout *rollout)
{
    static const struct {
        unsigned with;
        enum statement which;
        void (*read)(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *rollout);
    } sides[] = {
        {STORE_WITH_TEXT, SQL_READ_TEXT, read_text},
        {STORE_WITH_VERDICTS, SQL_READ_VERDICTS, read_verdicts},
        {STORE_WITH_SEGMENTS, SQL_READ_SEGMENTS, read_segments},
        {STORE_WITH_METADATA, SQL_READ_METADATA, read_metadata},
        {STORE_WITH_ARRAYS, SQL_READ_ARRAYS, read_arrays},
        {STORE_WITH_ARRAYS, SQL_READ_ADVANTAGES, read_advantages},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(sides); i++) {
        if (!(with & sides[i].with))
            continue;
        sqlite3_stmt *row = database_statement(&reader->database, sides[i].which);
        bind_int(row, 1, rollout->seq);
        int result = database_first(row);
        if (result == SQLITE_ROW)
            sides[i].read(row, memory, rollout);
        else if (result != SQLITE_DONE)
            return result;
        sqlite3_reset(row);
    }
    int later = with & STORE_WITH_LATER ? read_later(reader, memory, rollout) : SQLITE_OK;
    if (later != SQLITE_OK || !(with & STORE_WITH_TASK))
        return later;
    return read_task_texts(reader, SQL_READ_ROLLOUT_TASK, rollout->seq, memory, &rollout->prompt, &rollout->reference);
}

/* ---- one rollout
 * ------------------------------------------------------------------------------------------------------------ */

static int find_rollout(struct store_reader *reader, struct text rollout_id, int64_t *ret_seq)
{
    char group_id[ID_BYTES];
    int64_t sample_index = 0;
    int64_t group_seq = 0;
    int64_t n = 0;
    if (!id_split_rollout(rollout_id, group_id, &sample_index))
        return SQLITE_DONE;
    int result = reader_find_group(reader, text_of(group_id), &group_seq, &n);
    if (result != SQLITE_ROW)
        return result;
    sqlite3_stmt *find = database_statement(&reader->database, SQL_READ_ROLLOUT_SEQ);
    bind_int(find, 1, group_seq);
    bind_int(find, 2, sample_index);
    result = database_first(find);
    if (result == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(find, 0);
    sqlite3_reset(find);
    return result;
}

static enum store_status read_rollout(struct store_reader *reader, struct text rollout_id, unsigned with,
                                      struct store_rollouts *ret_rollout)
{
    int64_t seq = 0;
    int result = find_rollout(reader, rollout_id, &seq);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    struct store_memory *memory = ret_rollout->memory = store_memory_create();
    ret_rollout->rollouts = store_memory_take(memory, 1, sizeof(*ret_rollout->rollouts));
    if (!ret_rollout->rollouts)
        return STORE_UNAVAILABLE;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_ROLLOUT);
    bind_int(row, 1, seq);
    result = database_first(row);
    if (result != SQLITE_ROW)
        return STORE_UNAVAILABLE;
    read_rollout_row(row, memory, ret_rollout->rollouts);
    ret_rollout->count = 1;
    result = read_rollout_sides(reader, with, memory, ret_rollout->rollouts);
    return reader_status(reader, result, memory);
}

enum store_status store_read_rollout(struct store_reader *reader, struct text rollout_id, unsigned with,
                                     struct store_rollouts *ret_rollout)
{
    *ret_rollout = (struct store_rollouts){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_rollout(reader, rollout_id, with, ret_rollout);
    reader_end(reader);
    return status;
}

void store_rollouts_finish(struct store_rollouts *rollouts)
{
    store_memory_destroy(TAKE_PTR(rollouts->memory));
}

/* ---- members
 * ---------------------------------------------------------------------------------------------------------------- */

static void read_member_row(sqlite3_stmt *row, struct store_memory *memory, struct store_member *into)
{
    int place = 1;
    *into = (struct store_member){.group_index = sqlite3_column_int64(row, 0)};
    COLUMNS_READ(MEMBER_COLUMNS)
}

/* limit: how many rows there can be. */
static enum store_status read_members(struct store_reader *reader, enum statement which, int64_t seq, int64_t limit,
                                      struct store_members *ret_members)
{
    struct store_memory *memory = ret_members->memory = store_memory_create();
    ret_members->members = store_memory_take(memory, (size_t)limit, sizeof(*ret_members->members));
    if (!ret_members->members)
        return STORE_UNAVAILABLE;
    sqlite3_stmt *rows = database_statement(&reader->database, which);
    bind_int(rows, 1, seq);
    int result = SQLITE_DONE;
    while (ret_members->count < (size_t)limit && (result = sqlite3_step(rows)) == SQLITE_ROW)
        read_member_row(rows, memory, &ret_members->members[ret_members->count++]);
    return reader_status(reader, result, memory);
}

static enum store_status read_batch_members(struct store_reader *reader, struct text batch_id,
                                            struct store_members *ret_members)
{
    sqlite3_stmt *find = database_statement(&reader->database, SQL_BATCH_SEQ);
    bind_text(find, 1, batch_id);
    int result = database_first(find);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    return read_members(reader, SQL_READ_BATCH_MEMBERS, sqlite3_column_int64(find, 0), sqlite3_column_int64(find, 1),
                        ret_members);
}

enum store_status store_read_batch_members(struct store_reader *reader, struct text batch_id,
                                           struct store_members *ret_members)
{
    *ret_members = (struct store_members){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    enum store_status status = read_batch_members(reader, batch_id, ret_members);
    reader_end(reader);
    return status;
}

enum store_status store_read_group_members(struct store_reader *reader, struct text group_id,
                                           struct store_members *ret_members)
{
    *ret_members = (struct store_members){0};
    if (reader_begin(reader) != SQLITE_OK)
        return STORE_UNAVAILABLE;
    int64_t seq = 0;
    int64_t n = 0;
    int result = reader_find_group(reader, group_id, &seq, &n);
    enum store_status status = result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    if (result == SQLITE_ROW)
        status = read_members(reader, SQL_READ_GROUP_MEMBERS, seq, n, ret_members);
    reader_end(reader);
    return status;
}

void store_members_finish(struct store_members *members)
{
    store_memory_destroy(TAKE_PTR(members->memory));
}
