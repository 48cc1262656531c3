/* call: one HTTP request as its handler sees it. The request is immutable; the handler fills the reply.
 *
 * A route has a worker part, a loop part, or both (routes.c). The worker part gets the whole body and a read
 * connection, and either fills the reply or leaves `parsed` for the loop part. No HTTP library in here: a handler can
 * be driven from a test or a fuzzer. A call belongs to one thread at a time. */
#ifndef SERVER_HTTP_CALL_H
#define SERVER_HTTP_CALL_H

#include "server/base/buffer.h"
#include "server/base/ids.h"
#include "server/base/text.h"
#include "server/http/errors.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings;
struct store_reader;

#define CALL_ARGS_MAX 3
#define REQUEST_ID_BYTES 72 /* the longest X-Request-Id, and its NUL */
#define CALL_QUERY_MAX 64

struct query_parameter {
    struct text name;  /* decoded, valid UTF-8, no NUL */
    struct text value; /* decoded; TEXT_NONE if there was no '=' */
};

/* A reply in parts, each made on a worker just before it is sent, so that a slow reader costs memory for one part only.
 */
enum stream_state {
    STREAM_CUT = -1, /* cut the connection: the reply cannot be finished */
    STREAM_LAST,     /* this was the last part */
    STREAM_MORE,
    STREAM_WAIT, /* nothing to send yet: request_stream_wake() will tell */
};

struct stream {
    size_t room_bytes; /* a part ends with the row or the member that fills them */
    int (*produce)(struct stream *stream, struct store_reader *reader,
                   struct buffer *part); /* worker; enum stream_state */
    void (*destroy)(struct stream *stream);
};

#define REPLY_POLICY_BYTES 128

struct reply {
    int status; /* 0: not answered yet */
    const char *content_type;
    struct buffer body;
    char *tail; /* sent behind the body; NULL: nothing. A block (base/blocks.h) that the reply owns */
    size_t tail_bytes;
    struct stream *stream;           /* instead of the body; the reply owns it */
    char location[64];               /* empty: no such header */
    char policy[REPLY_POLICY_BYTES]; /* Content-Security-Policy; empty: nothing is allowed */
    int retry_after_s;               /* 0: no such header */
    bool close;                      /* the connection cannot be used again */
    char failed[48];                 /* X-Rolloutd-Failed; empty: no such header */
    const char *code;                /* of a refusal, for the log: static */
    char *path;                      /* these two are the reply's; NULL: none */
    char *message;
};

/* The formats for a browser or a terminal. */
enum call_page { PAGE_JSON, PAGE_MARKDOWN, PAGE_HTML };

struct call {
    /* in */
    struct text args[CALL_ARGS_MAX]; /* the {…} of the route's pattern, in order, decoded */
    size_t arg_count;
    struct query_parameter query[CALL_QUERY_MAX];
    size_t query_count;
    char *body; /* NUL-terminated; a handler may lift arrays out of it in place */
    size_t body_bytes;
    bool body_more;              /* ROUTE_PIECES: this is not the last piece; lines are cut wherever it ends */
    uint8_t body_sha256[32];     /* of the body as it came, on routes that keep it */
    const char *content_type;    /* without parameters, lower case; "" if there was none */
    const char *idempotency_key; /* NULL if there was none */
    const char *request_id;
    bool resumed;               /* the body was accepted before, perhaps by a version that refused less */
    bool prefer_async;          /* Prefer: respond-async */
    bool accept_ndjson;         /* Accept: application/x-ndjson */
    bool accept_safetensors;    /* Accept: application/x-safetensors */
    bool accept_csv;            /* Accept: text/csv */
    enum call_page accept_page; /* that Accept wants most */
    bool authorized;            /* no token is configured, or the right one was given */
    const struct settings *settings;
    struct store_reader *reader; /* the worker's; NULL on the loop thread */
    atomic_bool abandoned;       /* set by the loop: the client has gone, so a worker may end without an answer */

    /* out */
    struct reply reply;
    char subject[ID_BYTES]; /* the id that the loop part found for a second worker part */
    const char *subject_at; /* static: the path that shows it, up to the id; NULL: that of batches */
    void *parsed;           /* from the worker part to the loop part */
    void (*parsed_destroy)(void *parsed);
    /* Worker: writes the reply when the batch that the request made has ended; NULL: the batch is the reply. `about` is for
     * its use. */
    void (*answer_batch)(struct call *call);
    void *about;
    void (*about_destroy)(void *about);
};

void call_init(struct call *call);
void call_finish(struct call *call); /* frees body, reply and parsed */
/* Frees the request once the reply is complete: it must not wait for the client. */
void call_drop_input(struct call *call);
void call_drop_stream(struct call *call);

/* Fills the reply with the error envelope. path: the offending field (`groups[3].reference`), the query parameter, or
 * NULL. Returns -1 always, so that `return call_refuse(…)` reads well in functions that return 0 or -1. */
int call_refuse(struct call *call, enum error_code code, const char *path, const char *format, ...) _printf_(4, 5);

/* The same with a code of its own on the wire, such as a failure's. */
int call_refuse_as(struct call *call, enum error_code code, const char *own_code, const char *format, ...)
    _printf_(4, 5);

/* Adds a member to the `error` of a refusal: one whole JSON value. -1, too. */
int call_add_to_refusal(struct call *call, const char *name, struct text json);

/* 503: call->reader is NULL, or a read of the record failed. -1, too. */
int call_refuse_unreadable(struct call *call);

/* Fills the reply with a JSON body that was written into call->reply.body. */
int call_answer_json(struct call *call, int status);
/* The same for bytes of another type. */
int call_answer_bytes(struct call *call, int status, const char *content_type);

/* The value of a query parameter, or TEXT_NONE. */
struct text call_query(const struct call *call, const char *name);
/* Refuses (400 unknown_field, path = its name) a parameter that is not in the NULL-terminated list, or given twice
 * (invalid_field). "tag.NAME" in the list is a family: every name that begins with "tag.". */
int call_check_query(struct call *call, const char *const *known);
/* Typed parameters: absent leaves *value as it is; malformed or out of range is refused with 400 invalid_field. */
int call_query_int(struct call *call, const char *name, int64_t minimum, int64_t maximum, int64_t *value);
int call_query_double(struct call *call, const char *name, double *value);
int call_query_duration(struct call *call, const char *name, int64_t *value_us);
int call_query_bool(struct call *call, const char *name, bool *value);
int call_query_time(struct call *call, const char *name, int64_t *value_us);
/* One of a NULL-terminated list of words: *value is its index. */
int call_query_word(struct call *call, const char *name, const char *const *words, int *value);
/* ?arrays=none|base64|json; *value keeps its default when absent. */
struct json_write;
int call_query_arrays(struct call *call, int *value /* enum json_arrays */);

#endif
