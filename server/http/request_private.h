/* Shared by the files of the HTTP layer. Not for handlers. */
#ifndef SERVER_HTTP_REQUEST_PRIVATE_H
#define SERVER_HTTP_REQUEST_PRIVATE_H

#include "server/base/buffer.h"
#include "server/http/budget_private.h"
#include "server/http/http.h"
#include "server/http/link_private.h"
#include "server/http/log_private.h"
#include "server/http/refusals_private.h"
#include "server/runtime/loop.h"

#include <microhttpd.h>

struct MHD_Connection;

struct http {
    struct http_options options;
    struct MHD_Daemon *daemon;
    struct loop_source *source;
    int listen_fd;
    int port;
    bool quiesced;
    bool made_room; /* a connection has ended since the library looked for new ones */
    bool migrating; /* these three: http.h */
    bool draining;
    bool leaving;
    struct request *requests;
    int64_t body_bytes; /* of request bodies that are being received and read */
    struct reply_budget replies;
    struct http_log log;
    struct refusals refusals;
};

enum request_state { REQUEST_READING, REQUEST_WAITING, REQUEST_READY, REQUEST_ANSWERED };

struct request {
    struct job job; /* first: the way to a worker and back */
    struct http *http;
    struct MHD_Connection *connection;
    struct request *previous; /* all requests */
    struct request *next;
    const struct route *route;
    struct call call;
    enum request_state state;
    bool first_call_done;
    bool suspended;
    bool on_worker;
    bool gone; /* the client hung up while it waited */

    struct buffer raw_uri; /* as it came, query included */
    struct buffer decoded; /* storage of path arguments and query parameters */
    char request_id[REQUEST_ID_BYTES];
    char *idempotency_key;
    char method[40];
    char allow[64];
    int64_t began_us;

    struct buffer body;
    size_t body_bytes;
    size_t announced_bytes; /* by Content-Length; 0: it was not */
    size_t body_limit_bytes;
    size_t held_bytes;   /* of them in http->body_bytes */
    bool body_completed; /* the call has it */
    bool piece_taken;    /* of a body in pieces: others came before */
    bool body_refused;   /* a canned reply was written; the rest is thrown away */
    struct loop_timer body_timer;

    struct link *link;
    bool (*hung_up)(struct request *request, void *arg);
    void *hung_up_arg;

    void (*work)(struct call *call); /* what the worker runs */
    struct buffer part;
    size_t room_bytes; /* for the next part */
    size_t part_sent_bytes;
    int produced;      /* what produce() said last */
    bool stream_waits; /* it said STREAM_WAIT and was not woken yet */
    bool stream_woken; /* since produce() was asked last */
    struct loop_timer stream_timer;

    struct reply_wait reply_wait; /* for room in http->replies */
    size_t reply_bytes;           /* what the reply holds of it */
    bool reply_oversize;
    struct loop_timer reply_timer; /* of its wait, then of its client */
    uint64_t acknowledged_bytes;   /* by the client, when that last changed */
    int64_t taken_us;
};

/* http/body.c */
void body_begin(struct request *request);
/* Takes one piece; false if the connection must be cut. */
bool body_take(struct request *request, const char *bytes, size_t length_bytes);
/* Of a body in pieces: enough has come to be worked off. */
bool body_has_piece(const struct request *request);
/* After a piece: the time for the next one begins. */
void body_go_on(struct request *request);
/* Worker thread: the whole body as call->body, hashed if the route wants it; or the piece. */
void body_complete(struct request *request);
/* The body's bytes are the handler's now, or gone. */
void body_release(struct request *request);
void body_finish(struct request *request);

/* http/reply.c */
enum MHD_Result reply_queue(struct request *request);
/* A reply that had begun cannot be finished. */
void reply_log_cut(const struct request *request);
/* Writes a whole error reply to the socket and shuts it down: for the time in which the library takes no reply. */
void reply_canned(struct request *request, enum error_code code, const char *message);
/* The same with the refusal that the call has. */
void reply_early(struct request *request);
/* The same where the library knows of no request. */
void reply_canned_to(struct link *link, const struct gate_refusal *refusal);

/* http/hold.c */
/* The reply holds so many bytes from now on, whether there is room or not. */
void reply_hold(struct request *request, size_t bytes);
/* The whole reply, which is there. 0, or -1 with the call refused: there is no room for it. */
int reply_hold_whole(struct request *request);
/* It has its answer, whatever it was. */
void reply_stop_waiting(struct request *request);
void reply_refuse_room(struct request *request);
/* From the status line to the end of the reply: closes the connection of a client that takes nothing. */
void reply_watch(struct request *request);
void reply_unwatch(struct request *request, bool completed);
void reply_finish(struct request *request);

/* http/stream.c */
void stream_init(struct request *request);
/* request_submit(), as soon as there is room for a part. */
void stream_submit(struct request *request);
/* Worker thread. */
void stream_produce(struct request *request, struct store_reader *reader);
/* The worker is back with the first part, or with none: answers, refuses, or asks again. */
void stream_first_made(struct request *request);
bool stream_may_answer(struct request *request);
struct MHD_Response *stream_response(struct request *request);
void stream_finish(struct request *request);

/* http/server.c */
void request_suspend(struct request *request);
void request_resume(struct request *request);
/* The client of a request that is watched has gone. */
void request_hung_up(struct request *request);
/* Its body is still being read, and nothing was answered. */
bool request_reads_body(const struct request *request);
void request_submit(struct request *request); /* its work, to a worker */

#endif
