#include "server/render/feed.h"

#include "server/base/cleanup.h"
#include "server/render/render.h"

#include <stdatomic.h>
#include <stdio.h>

struct feed {
    struct stream stream; /* first */
    struct store_batch batch;
    struct render_terms terms;
    struct render_scope scope;
    bool opened; /* the four above are filled */
    char batch_id[ID_BYTES];
    int arrays;
    uint32_t *order; /* [groups]; the loop thread appends, the worker reads below `closed` */
    atomic_size_t closed;
    atomic_bool ended;
    atomic_bool cut;
    size_t sent;
    struct json_write json;
    struct group_piece piece; /* of the next one */
    bool in_line;             /* its line has begun */
};

static void feed_destroy(struct stream *stream)
{
    struct feed *feed = (struct feed *)stream;
    store_batch_finish(&feed->batch);
    free(feed->order);
    free(feed);
}

static int open_batch(struct feed *feed, struct store_reader *reader)
{
    store_batch_finish(&feed->batch);
    if (!reader || store_read_batch(reader, text_of(feed->batch_id), &feed->batch) != STORE_OK)
        return -1;
    render_terms_init(&feed->terms, &feed->batch);
    feed->terms.closed = false; /* no totals yet: contributions are not guessed */
    feed->scope = (struct render_scope){.fields = render_stored_returns(feed->batch.returns),
                                        .arrays = (enum json_arrays)feed->arrays,
                                        .batch_state = feed->batch.state,
                                        .terms = &feed->terms};
    feed->opened = true;
    return 0;
}

/* 1: its line is whole; 0: the part is full; -1: it cannot be read. */
static int write_group(struct feed *feed, struct store_reader *reader, struct buffer *part)
{
    feed->json.out = part;
    if (!feed->in_line) {
        feed->in_line = true;
        feed->piece.index = feed->order[feed->sent];
        json_write_init(&feed->json, part);
        json_object_begin(&feed->json);
        json_key(&feed->json, "group");
    }
    int ended = render_group_piece(&feed->json, reader, feed->stream.room_bytes, &feed->scope, &feed->piece);
    if (ended <= 0)
        return ended;
    feed->sent++;
    feed->in_line = false;
    json_object_end(&feed->json);
    buffer_append_byte(part, '\n');
    return 1;
}

static int write_last(struct feed *feed, struct store_reader *reader, struct buffer *part)
{
    _cleanup_(store_provenance_finish) struct store_provenance provenance = {0};
    struct json_write json;
    if (open_batch(feed, reader) < 0 || store_read_provenance(reader, text_of(feed->batch_id), &provenance) != STORE_OK)
        return -1;
    json_write_init(&json, part);
    json_object_begin(&json);
    json_key(&json, "batch");
    json_object_begin(&json);
    render_batch_members(&json, &feed->batch, &feed->terms, &provenance);
    json_object_end(&json);
    json_object_end(&json);
    buffer_append_byte(part, '\n');
    return STREAM_LAST;
}

static int produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct feed *feed = (struct feed *)stream;
    bool ended = feed->ended; /* before `closed`: what was closed by then is all */
    size_t closed = feed->closed;

    if (feed->cut || (!feed->opened && open_batch(feed, reader) < 0))
        return STREAM_CUT;
    while (feed->sent < closed && part->length_bytes < stream->room_bytes)
        if (write_group(feed, reader, part) < 0)
            return STREAM_CUT;
    if (feed->sent < closed)
        return STREAM_MORE;
    if (ended)
        return write_last(feed, reader, part);
    return part->length_bytes > 0 ? STREAM_MORE : STREAM_WAIT;
}

struct feed *feed_create(const char *batch_id, size_t groups, int arrays)
{
    struct feed *feed = xcalloc(1, sizeof(*feed));
    feed->stream = (struct stream){.produce = produce, .destroy = feed_destroy};
    feed->order = xcalloc(groups + 1, sizeof(uint32_t));
    feed->arrays = arrays;
    snprintf(feed->batch_id, sizeof(feed->batch_id), "%s", batch_id);
    memcpy(feed->piece.batch_id, feed->batch_id, ID_BYTES);
    return feed;
}

struct stream *feed_stream(struct feed *feed)
{
    return &feed->stream;
}

void feed_group_closed(struct feed *feed, uint32_t group)
{
    feed->order[feed->closed] = group;
    feed->closed++;
}

void feed_ended(struct feed *feed)
{
    feed->ended = true;
}

void feed_cut(struct feed *feed)
{
    feed->cut = true;
}

enum { GROUPS_AT_ONCE = 1000 };

/* All groups but those that a refill dropped. */
static int add_delivered(struct store_reader *reader, const struct store_batch *batch, struct feed *feed)
{
    for (int64_t from = 0; from < batch->group_count;) {
        _cleanup_(store_groups_finish) struct store_groups page = {0};
        if (store_read_groups(reader, text_of(batch->id), from, GROUPS_AT_ONCE, 0, &page) != STORE_OK ||
            page.count == 0)
            return -1;
        for (size_t i = 0; i < page.count; i++)
            if (!page.groups[i].dropped)
                feed_group_closed(feed, (uint32_t)page.groups[i].index);
        from = page.groups[page.count - 1].index + 1;
    }
    return 0;
}

void feed_answer_ended(struct call *call)
{
    struct store_batch batch = {0};
    int arrays = JSON_ARRAYS_PLAIN;
    enum store_status status =
        call->reader ? store_read_batch(call->reader, text_of(call->subject), &batch) : STORE_UNAVAILABLE;

    if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "id", "no batch has this id");
    else if (status != STORE_OK)
        call_refuse_unreadable(call);
    if (status == STORE_OK && call_query_arrays(call, &arrays) == 0) {
        struct feed *feed = feed_create(batch.id, (size_t)batch.group_count, arrays);
        if (add_delivered(call->reader, &batch, feed) < 0) {
            feed_destroy(&feed->stream);
            store_batch_finish(&batch);
            call_refuse_unreadable(call);
            return;
        }
        feed_ended(feed);
        call->reply.status = 200;
        call->reply.content_type = "application/x-ndjson";
        call->reply.stream = feed_stream(feed);
    }
    store_batch_finish(&batch);
}
