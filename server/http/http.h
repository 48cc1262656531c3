/* http: libmicrohttpd in external epoll mode inside the loop, and the life of a request.
 *
 * READING  headers and body arrive; first-call checks have passed. Again between two pieces of a body in pieces
 * WAITING  the connection is suspended: a worker has the call, or the loop part waits for something
 * READY    the reply is known, the connection was resumed
 * ANSWERED the reply is with the library; the request ends with its connection's turn
 *
 * A suspended connection is invisible to libmicrohttpd: hang-ups and deadlines are watched here. Everything belongs to
 * the loop thread. */
#ifndef SERVER_HTTP_HTTP_H
#define SERVER_HTTP_HTTP_H

#include "server/http/call.h"
#include "server/http/route.h"
#include "server/runtime/limits.h"
#include "server/runtime/workers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;
struct request;
struct loop;
struct memory_trim;
struct settings;

/* Parts of the owner that the HTTP layer uses. Copied; its pointers must outlive the struct http. */
struct http_options {
    const struct settings *settings;
    struct descriptor_shares shares;
    struct loop *loop;
    struct workers *workers;
    struct memory_trim *trim;
    char *const *token; /* what requests must carry, NULL there: nothing. May be exchanged between two requests */
    struct route_table routes;
    void *owner; /* handed to the loop parts of routes */
};

/* Binds and listens. NULL with a message on failure. ret_url gets "http://127.0.0.1:8787". */
struct http *http_create(const struct http_options *options, char ret_url[128], char message[256]);
/* No new connections from now on. */
void http_quiesce(struct http *http);
/* No request may be suspended. */
void http_destroy(struct http *http);
/* Lets the library work; returns how long the loop may wait at most. */
int64_t http_run(struct http *http);

/* The database is migrated: only ROUTE_ALWAYS is answered. */
void http_set_migrating(struct http *http, bool migrating);
/* ROUTE_CREATES is refused from now on. */
void http_drain(struct http *http);
bool http_is_draining(const struct http *http);
/* Every request is refused from now on: the last replies are on their way. */
void http_leave(struct http *http);
bool http_is_leaving(const struct http *http);

/* Request bodies that are being received and read, and replies that wait for their sockets. */
int64_t http_body_bytes(const struct http *http);
int64_t http_reply_bytes(const struct http *http);
/* The port that is listened on. */
int http_port(const struct http *http);
size_t http_connections(const struct http *http);
struct json_write;
/* "items": the last requests that were refused or failed, of one X-Request-Id or (TEXT_NONE) of all, newest first, and how
 * many are "kept" and were in "total". */
void http_write_refusals(const struct http *http, struct text request_id, int64_t limit, struct json_write *json);
/* Requests that are suspended, and all that are not answered in full yet. */
size_t http_suspended(const struct http *http);
size_t http_active(const struct http *http);
/* Refuses, with 503 draining, every request that waits for something on the loop. Those that a worker has will be
 * answered. */
void http_release_waiting(struct http *http);

/* --- for the loop parts of routes ---------------------------------------------------------------- */

struct call *request_call(struct request *request);

#define CLIENT_BYTES 64
/* The address that the request came from, with its port; empty: it has hung up. A proxy's, if there is one before us. */
void request_client(const struct request *request, char ret_client[CLIENT_BYTES]);

/* call->reply is filled: send it. The request must not be touched afterwards. */
void request_answer(struct request *request);
/* Refuses and sends. */
void request_refuse(struct request *request, enum error_code code, const char *path, const char *format, ...)
    _printf_(4, 5);
/* Runs `work` with the call on a worker, then sends the reply it filled; refuses with 429 if the workers are busy. */
void request_continue_on_worker(struct request *request, void (*work)(struct call *call));

/* Of ROUTE_PIECES, when the piece is worked off and the worker part has taken the body: the next one may come. A refusal
 * before the last piece is sent at once, and the rest of the body is not read. */
void request_take_more(struct request *request);

/* Memory that a handler made from the body, and keeps until its reply is complete, counts as the body did. False: it
 * does not fit into memory_budget, and the request was refused. */
bool request_hold_parsed(struct request *request, size_t bytes);

/* For a client that hangs up while the request waits. The callback lets go of the request and returns true: it
 * ends now. Or it returns false, because a worker still has the call and will answer it. */
void request_on_hangup(struct request *request, bool (*hung_up)(struct request *request, void *arg), void *arg);

/* Loop thread: a stream that said STREAM_WAIT has something now. Also fine before the request was answered. */
void request_stream_wake(struct request *request);

#endif
