/* Bodies of requests: whole, and in pieces. */
#include "server/store/sqlite/reader.h"

#include "server/store/request.h"
#include "server/store/sqlite/columns.h"

#include <stdio.h>

enum { STORED_PIECES = 64, STORED_PIECE_BYTES = 256 << 10 };

static enum store_codec codec_of(sqlite3_stmt *row, int place)
{
    return (enum store_codec)column_name(row, place, store_codec_names);
}

/* ---- whole
 * ------------------------------------------------------------------------------------------------------------------ */

static bool unpack(sqlite3_stmt *row, struct store_memory *memory, struct text *ret_body)
{
    struct text stored = column_view(row, 0);
    size_t plain_bytes = (size_t)column_int_or(row, 4, (int64_t)stored.length_bytes);
    char *plain = store_memory_take(memory, plain_bytes + 1, 1);
    if (!plain || !store_unpack(codec_of(row, 3), stored, plain, plain_bytes))
        return false;
    *ret_body = (struct text){plain, plain_bytes};
    return true;
}

enum store_status store_read_request(struct store_reader *reader, struct text batch_id,
                                     struct store_request *ret_request)
{
    *ret_request = (struct store_request){0};
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_REQUEST);
    bind_text(row, 1, batch_id);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    struct store_memory *memory = ret_request->memory = store_memory_create();
    bool whole = unpack(row, memory, &ret_request->body);
    ret_request->content_type = column_text(row, 1, memory);
    column_read_sha256(row, 2, memory, &ret_request->sha256);
    reader_end(reader);
    return whole ? reader_status(reader, SQLITE_OK, memory) : STORE_UNAVAILABLE;
}

void store_request_finish(struct store_request *request)
{
    store_memory_destroy(TAKE_PTR(request->memory));
}

/* ---- in pieces
 * -------------------------------------------------------------------------------------------------------------- */

static void close_blob(sqlite3_blob *const *blob)
{
    (void)sqlite3_blob_close(*blob);
}

static int open_body(struct store_reader *reader, int64_t batch_seq, sqlite3_blob **ret_blob)
{
    return sqlite3_blob_open(reader->database.handle, "main", "requests", "body", batch_seq, 0, ret_blob);
}

enum store_status store_find_request(struct store_reader *reader, struct text batch_id,
                                     struct store_request_pieces *ret_pieces)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_FIND_REQUEST);
    *ret_pieces = (struct store_request_pieces){0};
    buffer_init(&ret_pieces->stored, SIZE_MAX);
    bind_text(row, 1, batch_id);
    int result = database_first(row);
    if (result != SQLITE_ROW)
        return result == SQLITE_DONE ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
    struct text type = column_view(row, 1);
    ret_pieces->batch_seq = sqlite3_column_int64(row, 0);
    snprintf(ret_pieces->content_type, sizeof(ret_pieces->content_type), "%.*s", (int)type.length_bytes, type.data);
    ret_pieces->codec = codec_of(row, 2);
    ret_pieces->stored_bytes = (size_t)sqlite3_column_int64(row, 3);
    ret_pieces->body_bytes = (size_t)column_int_or(row, 4, (int64_t)ret_pieces->stored_bytes);
    reader_end(reader);
    if (ret_pieces->codec == STORE_CODEC_ZSTD)
        ret_pieces->unpacking = store_unpacking_create();
    return ret_pieces->codec == STORE_CODEC_PLAIN || ret_pieces->unpacking ? STORE_OK : STORE_UNAVAILABLE;
}

static bool read_stored(struct store_reader *reader, struct store_request_pieces *pieces, size_t bytes, char *ret_bytes)
{
    _cleanup_(close_blob) sqlite3_blob *blob = NULL;
    if (bytes == 0 || open_body(reader, pieces->batch_seq, &blob) != SQLITE_OK ||
        sqlite3_blob_read(blob, ret_bytes, (int)bytes, (int)pieces->read_bytes) != SQLITE_OK)
        return false;
    pieces->read_bytes += bytes;
    return true;
}

/* More stored bytes; false: there are no more, or they cannot be read. */
static bool refill(struct store_reader *reader, struct store_request_pieces *pieces)
{
    size_t left_bytes = pieces->stored_bytes - pieces->read_bytes;
    size_t bytes = pieces->stored_bytes / STORED_PIECES;
    if (bytes < STORED_PIECE_BYTES)
        bytes = STORED_PIECE_BYTES;
    if (bytes > left_bytes)
        bytes = left_bytes;
    buffer_clear(&pieces->stored);
    char *room = buffer_reserve(&pieces->stored, bytes);
    if (!room || !read_stored(reader, pieces, bytes, room))
        return false;
    pieces->stored.length_bytes = bytes;
    pieces->left = buffer_text(&pieces->stored);
    return true;
}

static bool unpack_piece(struct store_reader *reader, struct store_request_pieces *pieces, size_t piece_bytes,
                         char *ret_bytes)
{
    size_t done_bytes = 0;
    for (;;) {
        ssize_t some =
            store_unpack_some(pieces->unpacking, &pieces->left, ret_bytes + done_bytes, piece_bytes - done_bytes);
        if (some < 0)
            return false;
        done_bytes += (size_t)some;
        if (done_bytes == piece_bytes)
            return true;
        if (!refill(reader, pieces))
            return false;
    }
}

enum store_status store_read_request_piece(struct store_reader *reader, struct store_request_pieces *pieces,
                                           size_t piece_bytes, char *ret_bytes)
{
    bool read = pieces->unpacking ? unpack_piece(reader, pieces, piece_bytes, ret_bytes)
                                  : piece_bytes == 0 || read_stored(reader, pieces, piece_bytes, ret_bytes);
    pieces->told_bytes += read ? piece_bytes : 0;
    return read ? STORE_OK : STORE_UNAVAILABLE;
}

void store_request_pieces_finish(struct store_request_pieces *pieces)
{
    store_unpacking_destroy(TAKE_PTR(pieces->unpacking));
    buffer_finish(&pieces->stored);
}
