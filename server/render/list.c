#include "server/render/list.h"

#include <stdio.h>
#include <stdlib.h>

#define SCAN_AT_ONCE INT64_C(2048) /* rows: some milliseconds; then it is another request's turn */
#define ROWS_AT_ONCE INT64_C(256)
#define READ_SHARE 8 /* of the room: numbers take several times as much as JSON */

static void destroy(struct stream *stream)
{
    free(stream);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void begin_page(struct record_list *list)
{
    json_object_begin(&list->json);
    json_key(&list->json, "items");
    json_array_begin(&list->json);
}

static void end_page(struct record_list *list)
{
    json_array_end(&list->json);
    json_put_string(&list->json, "next", list->next[0] ? list->next : NULL);
    json_object_end(&list->json);
}

static const struct record_list_frame page_frame = {begin_page, end_page};

static void begin(struct record_list *list)
{
    if (!list->begun)
        list->frame->begin(list);
    list->begun = true;
}

static int end(struct record_list *list)
{
    begin(list);
    list->frame->end(list);
    buffer_append_byte(list->json.out, '\n');
    return STREAM_LAST;
}

static int produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct record_list *list = (struct record_list *)stream;
    int64_t scan_end = list->scan_left - SCAN_AT_ONCE;
    list->json.out = part;
    do {
        if (part->length_bytes >= stream->room_bytes || list->scan_left <= scan_end)
            return STREAM_MORE;
        struct store_page_limits limits = {.rows = (size_t)least(list->rows_left, ROWS_AT_ONCE),
                                           .scanned = (size_t)least(list->scan_left, list->scan_left - scan_end),
                                           .bytes = stream->room_bytes / READ_SHARE};
        if (!reader || list->add(list, reader, &limits) < 0)
            return STREAM_CUT;
    } while (list->next[0] && list->rows_left > 0 && list->scan_left > 0 && list->bytes_left > 0);
    return end(list);
}

void record_list_init(struct record_list *list, struct text cursor, int64_t rows, int64_t scan)
{
    list->stream = (struct stream){.produce = produce, .destroy = destroy};
    list->frame = &page_frame;
    list->cursor = cursor;
    list->rows_left = rows;
    list->scan_left = scan;
    list->bytes_left = RECORD_LIST_BYTES_MAX;
    json_write_init(&list->json, NULL);
}

void record_list_answer(struct call *call, struct record_list *list)
{
    call->reply.status = 200;
    call->reply.content_type = "application/json";
    call->reply.stream = &list->stream;
}

struct json_write *record_list_item(struct record_list *list)
{
    begin(list);
    return &list->json;
}

struct text record_list_cursor(const struct record_list *list)
{
    return list->next[0] ? text_of(list->next) : list->cursor;
}

void record_list_read(struct record_list *list, const char *next, size_t rows, size_t scanned, size_t bytes)
{
    snprintf(list->next, sizeof(list->next), "%s", next);
    list->rows_left -= (int64_t)rows;
    list->scan_left -= (int64_t)scanned;
    list->bytes_left -= (int64_t)bytes;
}
