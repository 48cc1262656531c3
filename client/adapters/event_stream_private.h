/* event_stream: the events of a server-sent event stream that has come whole. Pure; shared by the adapters.
 *
 * Source: the HTML standard, section 9.2.6. An event ends with an empty line; text after the last one is no
 * event. Comments, `event`, `id` and `retry` are passed over. */
#ifndef CLIENT_ADAPTERS_EVENT_STREAM_PRIVATE_H
#define CLIENT_ADAPTERS_EVENT_STREAM_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>

struct event_stream {
    struct text rest;
    struct buffer joined; /* the data of an event of several lines */
};

struct stream_event {
    struct text data;
    bool is_error; /* the line's name was "error", as llama.cpp's servers wrote until 2025 */
};

void event_stream_init(struct event_stream *stream, struct text body); /* the body must stay */
void event_stream_finish(struct event_stream *stream);

/* ret_event stays until the next call. False: there are no more. */
bool event_stream_next(struct event_stream *stream, struct stream_event *ret_event);

#endif
