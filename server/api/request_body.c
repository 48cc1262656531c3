/* GET /v1/batches/{id}/request */
#include "server/api/routes.h"
#include "server/base/cleanup.h"
#include "server/http/call.h"
#include "server/store/request.h"
#include "server/store/store.h"

#define REQUEST_PIECES 64 /* of a large body at most: each walks over those before it */

struct request_stream {
    struct stream stream; /* first */
    struct store_request_pieces pieces;
};

static void request_stream_destroy(struct stream *stream)
{
    struct request_stream *self = (struct request_stream *)stream;
    store_request_pieces_finish(&self->pieces);
    free(self);
}

static int request_stream_produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct request_stream *self = (struct request_stream *)stream;
    size_t left_bytes = self->pieces.body_bytes - self->pieces.told_bytes;
    size_t piece_bytes = self->pieces.body_bytes / REQUEST_PIECES;
    if (piece_bytes < stream->room_bytes)
        piece_bytes = stream->room_bytes;
    if (piece_bytes > left_bytes)
        piece_bytes = left_bytes;
    char *out = buffer_reserve(part, piece_bytes);
    if (!out || !reader || store_read_request_piece(reader, &self->pieces, piece_bytes, out) != STORE_OK)
        return STREAM_CUT;
    part->length_bytes += piece_bytes;
    return self->pieces.told_bytes < self->pieces.body_bytes ? STREAM_MORE : STREAM_LAST;
}

/* The body as it was posted, under its own type. */
void get_batch_request(struct call *call)
{
    static const char *const types[] = {"application/json", "application/x-safetensors", "application/x-ndjson", NULL};
    struct store_request_pieces pieces = {0};
    enum store_status status =
        call->reader ? store_find_request(call->reader, call->args[0], &pieces) : STORE_UNAVAILABLE;
    if (status != STORE_OK) {
        store_request_pieces_finish(&pieces);
        if (status == STORE_NOT_FOUND)
            call_refuse(call, ERR_NOT_FOUND, "id", "no batch has this id");
        else
            call_refuse_unreadable(call);
        return;
    }
    struct request_stream *self = xcalloc(1, sizeof(*self));
    self->stream = (struct stream){.produce = request_stream_produce, .destroy = request_stream_destroy};
    self->pieces = pieces;
    int type = store_name_index(types, text_of(pieces.content_type));
    call->reply.status = 200;
    call->reply.content_type = type < 0 ? "application/octet-stream" : types[type];
    call->reply.stream = &self->stream;
}
