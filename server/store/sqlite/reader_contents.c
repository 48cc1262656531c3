/* The prompt and the reference of a group; of one from before there were contents, from its request. */
#include "server/store/sqlite/reader.h"

#include "server/base/json_scan.h"
#include "server/store/sqlite/columns.h"

struct text reader_unpack(sqlite3_stmt *row, int place, struct store_memory *memory)
{
    size_t plain_bytes = (size_t)sqlite3_column_int64(row, place + 1);
    char *plain = store_memory_take(memory, plain_bytes + 1, 1);
    enum store_codec codec = (enum store_codec)column_name(row, place, store_codec_names);
    if (plain && store_unpack(codec, column_view(row, place + 2), plain, plain_bytes))
        return (struct text){plain, plain_bytes};
    store_memory_fail(memory);
    return TEXT_NONE;
}

/* ---- requests of groups from before
 * ----------------------------------------------------------------------------------------- */

/* The request of the batch, in the memory of the page: the last one is kept for the rows that follow, as long as the
 * page is read. An SQLite result code. */
static int read_request(struct store_reader *reader, int64_t batch_seq, struct store_memory *memory)
{
    if (reader->request_batch_seq == batch_seq)
        return SQLITE_OK;
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_STORED_REQUEST);
    bind_int(row, 1, batch_seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result;
    reader->request = reader_unpack(row, 0, memory);
    reader->request_batch_seq = batch_seq;
    sqlite3_reset(row);
    return SQLITE_OK;
}

static bool enter_group(struct json_scan *scan, int64_t index)
{
    struct text key;
    bool found = false;
    for (json_scan_object(scan); !found && json_scan_member(scan, &key);)
        if (text_equals(key, "groups"))
            found = true;
        else
            json_scan_skip(scan);
    if (!found || !json_scan_array(scan))
        return false;
    for (int64_t i = 0; json_scan_element(scan); i++) {
        if (i == index)
            return json_scan_object(scan);
        json_scan_skip(scan);
    }
    return false;
}

static void find_texts(struct text request, int64_t index, struct text *ret_prompt, struct text *ret_reference)
{
    struct json_scan scan;
    struct text key;
    json_scan_init(&scan, request);
    if (!enter_group(&scan, index))
        return;
    while (json_scan_member(&scan, &key)) {
        struct text value = json_scan_raw(&scan);
        if (text_equals(key, "prompt") || text_equals(key, "messages"))
            *ret_prompt = value;
        else if (text_equals(key, "reference"))
            *ret_reference = value;
    }
}

/* ---- one group
 * --------------------------------------------------------------------------------------------------------------- */

enum { AT_BATCH = 6, AT_INDEX };

int read_task_texts(struct store_reader *reader, enum statement which, int64_t seq, struct store_memory *memory,
                    struct text *ret_prompt, struct text *ret_reference)
{
    sqlite3_stmt *row = database_statement(&reader->database, which);
    *ret_prompt = *ret_reference = TEXT_NONE;
    bind_int(row, 1, seq);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? SQLITE_OK : result;
    bool is_old = sqlite3_column_type(row, 0) == SQLITE_NULL && sqlite3_column_type(row, 3) == SQLITE_NULL;
    int64_t batch_seq = sqlite3_column_int64(row, AT_BATCH);
    int64_t index = sqlite3_column_int64(row, AT_INDEX);
    if (!is_old) {
        *ret_prompt = reader_unpack(row, 0, memory);
        *ret_reference = reader_unpack(row, 3, memory);
    }
    sqlite3_reset(row);
    if (!is_old)
        return SQLITE_OK;
    result = read_request(reader, batch_seq, memory);
    if (result == SQLITE_OK)
        find_texts(reader->request, index, ret_prompt, ret_reference);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}
