/* http_gate: the one way by which bytes of a client come to libmicrohttpd.
 *
 * The library reads with recv(), and the program's own recv() stands in front of libc's. For a socket with a gate it
 * gives out only bytes that MSG_PEEK showed to be good: whole heads (head_private.h), bodies of the announced length,
 * well-formed chunks (chunks_private.h). Bytes after a bad head never get to the library. For any other socket it is
 * recv(). A library that read in another way would bring requests that no gate has passed: they are not handled
 * (http/server.c).
 *
 * A gate lives in its owner's struct, and belongs to the loop thread, as the library does. */
#ifndef SERVER_HTTP_GATE_PRIVATE_H
#define SERVER_HTTP_GATE_PRIVATE_H

#include "server/http/chunks_private.h"
#include "server/http/errors.h"
#include "server/http/head_private.h"

/* A request that was not let through, for its reply and its line in the log. */
struct gate_refusal {
    enum error_code code;
    const char *message;                      /* static */
    bool head;                                /* a head; otherwise the chunks of the request that passed last */
    char method[40], path[264], identity[72]; /* "" where they were not read; cut */
};

enum gate_state {
    GATE_HEAD,   /* a head comes */
    GATE_CHUNKS, /* a body in chunks comes */
    GATE_LAST,   /* the client or the service ended the connection: later bytes are not read */
    GATE_REFUSED,
    GATE_DEAF, /* the refusal was answered: later bytes are thrown away until the client closes */
};

struct gate {
    int fd;
    enum gate_state state;
    bool blank_line;     /* one was skipped before this head */
    bool last;           /* the head that passed last wants to be the last one */
    bool ended;          /* set by the owner: the client sends no more bytes */
    bool over;           /* set by the owner: the library is told that the client has gone */
    uint64_t pass_bytes; /* of the next ones that may pass */
    size_t seen_bytes;   /* of a head that is not complete */
    uint64_t heads;      /* that passed */
    struct chunks chunks;
    struct gate_refusal refusal; /* in state GATE_REFUSED */
    void (*changed)(void *arg);  /* a head passed, began, or something was refused; inside the library's recv() */
    void *arg;
};

/* The socket is non-blocking. */
void gate_open(struct gate *gate, int fd, void (*changed)(void *arg), void *arg);
void gate_close(struct gate *gate);

/* Part of a head is here, and not all of it. */
bool gate_holds_part(const struct gate *gate);
/* No further bytes pass. */
void gate_end(struct gate *gate);

#endif
