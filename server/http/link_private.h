/* http_link: one client connection, from its acceptance to its end, beside what the library knows of it. Loop thread.
 */
#ifndef SERVER_HTTP_LINK_PRIVATE_H
#define SERVER_HTTP_LINK_PRIVATE_H

#include "server/http/gate_private.h"
#include "server/runtime/loop.h"

struct MHD_Connection;
struct http;
struct request;

/* Its end is watched here: a suspended connection is invisible to the library, and where the end comes together with a
 * part of a request the library reads that part and waits for ever for an edge. */
struct link {
    struct http *http;
    struct MHD_Connection *connection;
    int fd;
    struct loop_source *source;
    struct request *request; /* the one that is under way; NULL: none */
    bool watched;            /* it wants to know of a hang-up */
    bool ended;              /* the client sends nothing any more */
    struct loop_timer nudge;
    struct loop_timer head_timer; /* runs from a request's first byte to the end of its headers */
    struct loop_timer linger;     /* runs from a canned reply to the connection's end */
    struct gate gate;
    uint64_t begun; /* requests of which the library told us, and those of them that have ended */
    uint64_t answered;
};

struct link *link_create(struct http *http, struct MHD_Connection *connection);
void link_destroy(struct link *link);

/* The library tells of the next request. False: its bytes did not come through the gate. */
bool link_begin(struct link *link, struct request *request);
/* The body of the current request is wanted. */
void link_reads_body(struct link *link);
/* The current request ended, and its reply with it. */
void link_end(struct link *link);
void link_watch_hangup(struct link *link);
/* "127.0.0.1:40312"; empty: it is not known any more. */
void link_write_client(const struct link *link, size_t client_bytes, char *ret_client);

/* A canned reply was sent. Later bytes are thrown away for a second, so that a reset does not overtake the reply.
 */
void link_linger(struct link *link);
/* The connection ends now. */
void link_cut(struct link *link);

#endif
