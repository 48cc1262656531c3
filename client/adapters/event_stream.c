#include "client/adapters/event_stream_private.h"

#include <string.h>

void event_stream_init(struct event_stream *stream, struct text body)
{
    *stream = (struct event_stream){.rest = body};
    buffer_init(&stream->joined, body.length_bytes);
}

void event_stream_finish(struct event_stream *stream)
{
    buffer_finish(&stream->joined);
}

static struct text skip(struct text text, size_t bytes)
{
    return (struct text){text.data + bytes, text.length_bytes - bytes};
}

/* A whole line without its end. */
static bool take_line(struct event_stream *stream, struct text *ret_line)
{
    struct text rest = stream->rest;
    const char *end = rest.length_bytes ? memchr(rest.data, '\n', rest.length_bytes) : NULL;

    if (!end)
        return false;
    *ret_line = (struct text){rest.data, (size_t)(end - rest.data)};
    stream->rest = skip(rest, ret_line->length_bytes + 1);
    if (ret_line->length_bytes && ret_line->data[ret_line->length_bytes - 1] == '\r')
        ret_line->length_bytes--;
    return true;
}

/* "name: value" or "name:value". */
static bool has_name(struct text line, const char *name, struct text *ret_value)
{
    size_t name_bytes = strlen(name);

    if (line.length_bytes <= name_bytes || memcmp(line.data, name, name_bytes) != 0 || line.data[name_bytes] != ':')
        return false;
    *ret_value = skip(line, name_bytes + 1);
    if (ret_value->length_bytes && *ret_value->data == ' ')
        *ret_value = skip(*ret_value, 1);
    return true;
}

static void add_data(struct event_stream *stream, struct stream_event *event, struct text value)
{
    if (!event->data.data) {
        event->data = value;
        return;
    }
    if (event->data.data != stream->joined.data) {
        buffer_clear(&stream->joined);
        buffer_append(&stream->joined, event->data.data, event->data.length_bytes);
    }
    buffer_append_byte(&stream->joined, '\n');
    buffer_append(&stream->joined, value.data, value.length_bytes);
    event->data = buffer_text(&stream->joined);
}

bool event_stream_next(struct event_stream *stream, struct stream_event *ret_event)
{
    struct text line;
    struct text value;

    *ret_event = (struct stream_event){.data = TEXT_NONE};
    while (take_line(stream, &line)) {
        if (!line.length_bytes && ret_event->data.data)
            return true;
        if (has_name(line, "error", &value))
            ret_event->is_error = true;
        else if (!has_name(line, "data", &value))
            continue;
        add_data(stream, ret_event, value);
    }
    return false;
}
