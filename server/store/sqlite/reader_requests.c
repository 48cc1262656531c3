/* Bodies of requests: in pieces, and whole. */
#include "server/store/sqlite/reader.h"

#include "server/store/request.h"
#include "server/store/sqlite/columns.h"

#include <stdio.h>

enum { STORED_PIECES = 64, STORED_PIECE_BYTES = 256 << 10 };

static enum store_codec codec_of(sqlite3_stmt *row, int place)
{
    return (enum store_codec)column_name(row, place, store_codec_names);
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
    ret_pieces->left = buffer_text(&ret_pieces->stored);
    buffer_init(&ret_pieces->part, LEAN_PART_MAX_BYTES);
    buffer_init(&ret_pieces->values, LEAN_PART_MAX_BYTES);
    buffer_init(&ret_pieces->written, SIZE_MAX);
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
    column_read_sha256(row, 5, NULL, &ret_pieces->sha256);
    reader_end(reader);
    if (ret_pieces->codec != STORE_CODEC_PLAIN)
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

/* ---- a lean form
 * -------------------------------------------------------------------------------------------------------------- */

void reader_bind_given(sqlite3_stmt *row, int64_t batch_seq, const struct lean_part *part)
{
    size_t width_bytes = lean_width_bytes[part->array];
    bind_int(row, 1, batch_seq);
    bind_int(row, 2, (int64_t)part->group_index);
    bind_int(row, 3, (int64_t)part->sample_index);
    bind_int(row, 4, part->array);
    bind_int(row, 5, (int64_t)(part->first * width_bytes) + 1);
    bind_int(row, 6, (int64_t)(part->count * width_bytes));
}

static bool read_values(struct store_reader *reader, struct store_request_pieces *pieces, const struct lean_part *part)
{
    sqlite3_stmt *row = database_statement(&reader->database, SQL_READ_GIVEN);
    reader_bind_given(row, pieces->batch_seq, part);
    buffer_clear(&pieces->values);
    int result = database_first(row);
    struct text values = result == SQLITE_ROW ? column_view(row, 0) : TEXT_NONE;
    buffer_append(&pieces->values, values.data, values.length_bytes);
    sqlite3_reset(row);
    return values.data && !pieces->values.failed;
}

static bool read_part(struct store_reader *reader, struct store_request_pieces *pieces)
{
    char head[LEAN_HEAD_BYTES];
    struct lean_part part;
    if (!unpack_piece(reader, pieces, sizeof(head), head))
        return false;
    size_t bytes = lean_part_bytes(head);
    buffer_clear(&pieces->part);
    char *room = bytes ? buffer_reserve(&pieces->part, bytes) : NULL;
    if (!room || !unpack_piece(reader, pieces, bytes, room) || !lean_read_part((struct text){room, bytes}, &part) ||
        (part.has_values && !read_values(reader, pieces, &part)))
        return false;
    buffer_clear(&pieces->written);
    bool written = lean_write_part(&part, buffer_text(&pieces->values), &pieces->written);
    pieces->written_left = buffer_text(&pieces->written);
    return written;
}

static bool write_piece(struct store_reader *reader, struct store_request_pieces *pieces, size_t piece_bytes,
                        char *ret_bytes)
{
    while (piece_bytes) {
        struct text *left = &pieces->written_left;
        if (left->length_bytes == 0 && !read_part(reader, pieces))
            return false;
        size_t some = left->length_bytes < piece_bytes ? left->length_bytes : piece_bytes;
        memcpy(ret_bytes, left->data, some);
        *left = (struct text){left->data + some, left->length_bytes - some};
        ret_bytes += some;
        piece_bytes -= some;
    }
    return true;
}

/* ---- any form
 * -------------------------------------------------------------------------------------------------------------- */

static bool read_piece(struct store_reader *reader, struct store_request_pieces *pieces, size_t piece_bytes,
                       char *ret_bytes)
{
    if (pieces->codec == STORE_CODEC_LEAN)
        return write_piece(reader, pieces, piece_bytes, ret_bytes);
    if (pieces->codec == STORE_CODEC_ZSTD)
        return unpack_piece(reader, pieces, piece_bytes, ret_bytes);
    return piece_bytes == 0 || read_stored(reader, pieces, piece_bytes, ret_bytes);
}

enum store_status store_read_request_piece(struct store_reader *reader, struct store_request_pieces *pieces,
                                           size_t piece_bytes, char *ret_bytes)
{
    bool read = read_piece(reader, pieces, piece_bytes, ret_bytes);
    pieces->told_bytes += read ? piece_bytes : 0;
    return read ? STORE_OK : STORE_UNAVAILABLE;
}

void store_request_pieces_finish(struct store_request_pieces *pieces)
{
    store_unpacking_destroy(TAKE_PTR(pieces->unpacking));
    buffer_finish(&pieces->stored);
    buffer_finish(&pieces->part);
    buffer_finish(&pieces->values);
    buffer_finish(&pieces->written);
}

/* ---- whole
 * ------------------------------------------------------------------------------------------------------------------ */

static enum store_status read_whole(struct store_reader *reader, struct store_request_pieces *pieces,
                                    struct store_request *request)
{
    struct store_memory *memory = request->memory = store_memory_create();
    char *body = store_memory_take(memory, pieces->body_bytes + 1, 1);
    if (!body || store_read_request_piece(reader, pieces, pieces->body_bytes, body) != STORE_OK)
        return STORE_UNAVAILABLE;
    request->body = (struct text){body, pieces->body_bytes};
    request->content_type = store_memory_text(memory, pieces->content_type, strlen(pieces->content_type));
    memcpy(request->sha256, pieces->sha256, SHA256_BYTES);
    return store_memory_failed(memory) ? STORE_UNAVAILABLE : STORE_OK;
}

enum store_status store_read_request(struct store_reader *reader, struct text batch_id,
                                     struct store_request *ret_request)
{
    struct store_request_pieces pieces;
    *ret_request = (struct store_request){0};
    enum store_status status = store_find_request(reader, batch_id, &pieces);
    if (status == STORE_OK)
        status = read_whole(reader, &pieces, ret_request);
    store_request_pieces_finish(&pieces);
    return status;
}

void store_request_finish(struct store_request *request)
{
    store_memory_destroy(TAKE_PTR(request->memory));
}
