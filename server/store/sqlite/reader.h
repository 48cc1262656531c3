/* reader: shared by the reading files of the room. Private to the room. */
#ifndef SERVER_STORE_SQLITE_READER_H
#define SERVER_STORE_SQLITE_READER_H

#include "server/base/buffer.h"
#include "server/store/lean.h"
#include "server/store/sqlite/cursor.h"
#include "server/store/sqlite/database.h"

struct store_reader {
    struct database database;
    char *owner;

    /* reader_contents.c: the request that was read last, until reader_end(); 0: none. In the memory of its page */
    int64_t request_batch_seq;
    struct text request;

    struct buffer unpacked; /* rollout_scan.c: the text that is searched */
};

/* Everything one result shows comes from one snapshot: reads of several statements are wrapped in these. Ending also
 * resets every statement, because one that is not reset keeps the snapshot, and with it the write-ahead log, alive. */
int reader_begin(struct store_reader *reader);
void reader_end(struct store_reader *reader);

/* A read ends here: DONE or ROW become OK (or UNAVAILABLE if memory ran out), anything else UNAVAILABLE. */
enum store_status reader_status(struct store_reader *reader, int result, const struct store_memory *memory);

/* Looks up a seq by a text. SQLITE_ROW, or SQLITE_DONE if there is none. */
int reader_find_seq(struct store_reader *reader, enum statement which, struct text name, int64_t *ret_seq);
/* A group by its id: its seq and n. SQLITE_ROW, or SQLITE_DONE. */
int reader_find_group(struct store_reader *reader, struct text group_id, int64_t *ret_seq, int64_t *ret_n);

/* Fills *ret_batch from a row of SELECT_BATCH. Returns its seq. */
int64_t read_batch_row(sqlite3_stmt *row, struct store_memory *memory, struct store_batch *ret_batch);
/* Fills *ret_rollout from a row of SELECT_ROLLOUT, without the side tables. */
void read_rollout_row(sqlite3_stmt *row, struct store_memory *memory, struct store_rollout *ret_rollout);
/* Prompt and reference as JSON, by SQL_READ_GROUP_TASK or SQL_READ_ROLLOUT_TASK; TEXT_NONE: not on record. All calls
 * between reader_begin() and reader_end() use the same memory. An SQLite result code. */
int read_task_texts(struct store_reader *reader, enum statement which, int64_t seq, struct store_memory *memory,
                    struct text *ret_prompt, struct text *ret_reference);
/* The parameters of SQL_READ_GIVEN. */
void reader_bind_given(sqlite3_stmt *row, int64_t batch_seq, const struct lean_part *part);
/* The side tables, by `with`. An SQLite result code. */
int read_rollout_sides(struct store_reader *reader, unsigned with, struct store_memory *memory,
                       struct store_rollout *rollout);

/* A content whose codec, plain_bytes and content stand from `place` on. TEXT_NONE: it cannot be unpacked, and then
 * store_memory_failed(): a prompt that cannot be read is not one that is not there. */
struct text reader_unpack(sqlite3_stmt *row, int place, struct store_memory *memory);

#endif
