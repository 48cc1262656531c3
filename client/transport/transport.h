/* transport: the one user of libcurl. Sends requests to engines and hands back whole replies.
 *
 * Driven by the host's loop through `struct transport_host`; all functions and callbacks belong to the loop thread and
 * none of them blocks: names are looked up in threads of their own (resolver.c). HTTP/1.1 only, no proxy whatever the
 * environment says, no redirects, no compression. A connection that died in the pool before a byte of the reply came is
 * replaced, and the request is sent once more without a failure. */
#ifndef CLIENT_TRANSPORT_TRANSPORT_H
#define CLIENT_TRANSPORT_TRANSPORT_H

#include "client/adapters/adapter.h"
#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transport;
struct transfer;

/* Offered by the loop. Events are EPOLLIN and EPOLLOUT, level-triggered. */
struct transport_host {
    void *arg;
    /* A handle for the two others, or NULL with errno: then the transfer fails. */
    void *(*watch)(void *arg, int fd, uint32_t events, void (*ready)(void *ready_arg, uint32_t events),
                   void *ready_arg);
    void (*modify)(void *arg, void *source, uint32_t events);
    void (*unwatch)(void *arg, void *source); /* before the descriptor is closed; `ready` is not called any more */
    /* One timer; setting it again moves it, NEVER_US clears it. at_us is CLOCK_MONOTONIC. */
    void (*set_timer)(void *arg, int64_t at_us, void (*expired)(void *timer_arg), void *timer_arg);
};

struct transport_settings {
    size_t connections_max; /* kept open for reuse: the sum of the engines' limits */
    size_t descriptors_max; /* connections at all; a transfer beyond waits for one. 0: no limit */
    const char *user_agent; /* "rolloutd/0.1.0" */
    /* NULL: getaddrinfo. Tests put a slow or failing one here. Called on a thread of its own. */
    int (*lookup)(const char *host, const char *port, char *ret_addresses, size_t size_bytes);
};

struct transport *transport_create(const struct transport_host *host,
                                   const struct transport_settings *settings); /* NULL: no memory or no descriptors */
/* Drops all transfers without calling back. A lookup that still hangs is left to its thread. */
void transport_destroy(struct transport *transport);

enum transfer_result {
    TRANSFER_DONE,        /* a whole reply, whatever its status */
    TRANSFER_UNREACHABLE, /* no address, refused, no route, connect timed out, TLS failed, or closed before any byte */
    TRANSFER_TIMEOUT,     /* connected, but timeout_us passed */
    TRANSFER_CUT,         /* the reply began and did not end, or was no HTTP */
    TRANSFER_TOO_LARGE,   /* the body went over reply_limit_bytes */
    TRANSFER_BAD_REQUEST, /* the URL or a header cannot be used; nothing was sent */
};
extern const char *const transfer_result_names[];

struct transfer_reply {
    enum transfer_result result;
    int status; /* HTTP; 0 if no header came */
    bool connected;
    unsigned sends; /* how often the request was sent: again if the pool's connection was dead before a byte came */
    bool reused;    /* sent on a connection that had carried another request */
    size_t received_bytes; /* of body */
    char content_type[96]; /* "" if there was none */
    char retry_after[64];  /* "" if there was none */
    char problem[160];     /* the failure, as a message; "" if TRANSFER_DONE */
    struct buffer body;
};

/* Strings and body are copied or must stay as said. */
struct transfer_request {
    const char *base_url;       /* "http://127.0.0.1:8000", no slash at the end (a path prefix is fine) */
    const char *path;           /* "/v1/completions" */
    const char *method;         /* "GET" "POST" */
    const char *bearer_token;   /* NULL: none */
    const char *request_id;     /* NULL: none */
    struct text body;           /* JSON; must stay until `done` or transport_cancel(), everything else is copied */
    int64_t timeout_us;         /* for everything, the lookup included */
    int64_t connect_timeout_us; /* 0: 3 s */
    size_t reply_limit_bytes;
};

/* Never NULL; a failure comes through `done`, which is never called from inside this function. `done` is called once,
 * on the loop thread, and the transfer is gone then. The reply lives until `done` returns: buffer_steal() its body, or
 * move it. */
/* A lack of descriptors, buffers or threads in this process is no failure: the transfer waits, and its time with it.
 */
struct transfer *transport_start(struct transport *transport, const struct transfer_request *request,
                                 void (*done)(void *arg, struct transfer_reply *reply), void *arg);

/* Closes the connection, so that the engine stops; `done` is not called. */
void transport_cancel(struct transfer *transfer);

/* Sends it without a callback: the reply or its absence is ignored. Takes the body; `request->body` is not read. */
void transport_send(struct transport *transport, const struct transfer_request *request, struct buffer *body);

/* After engines came or went: how many connections are kept open for reuse. */
void transport_keep_connections(struct transport *transport, size_t count);

/* A request for a sample would begin at once. A few descriptors are kept for probes. */
bool transport_has_room(const struct transport *transport);

/* From a failed transfer to a sample's error. Not for TRANSFER_DONE. Pure. */
void sample_error_of_transfer(const struct transfer_reply *reply, struct sample_error *ret_error);

#endif
