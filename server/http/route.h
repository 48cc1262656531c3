/* route: a method, a pattern and its handlers. The table is the owner's; http gets it with its options. */
#ifndef SERVER_HTTP_ROUTE_H
#define SERVER_HTTP_ROUTE_H

#include <stddef.h>

struct call;
struct request;

enum route_flags {
    ROUTE_OPEN = 1,        /* needs no token */
    ROUTE_CREATES = 2,     /* refused while draining */
    ROUTE_BODY = 4,        /* takes a JSON body */
    ROUTE_SAFETENSORS = 8, /* or one of tensors, which may be larger */
    ROUTE_HASHED = 16,     /* call->body_sha256 is wanted */
    ROUTE_NO_BODY = 32,    /* or none */
    ROUTE_RECORD = 64,     /* the worker part reads the record: it has threads of its own */
    ROUTE_ALWAYS = 128,    /* answered while the database is migrated, too */
    ROUTE_PIECES = 512,    /* a body of any size, of lines of JSON: both parts are called for each piece (call.h) */
    ROUTE_BARE = 1024,     /* takes no parameters: `?` with any of them is refused */
    ROUTE_FOREIGN = 2048,  /* for a client of another service, which takes a URL alone: the token may be its password */
    ROUTE_GATEWAY = 4096,  /* its clients repeat 504 alone: 429 and 503 are sent as that */
    ROUTE_REPORT = 256,    /* the worker part may take seconds: it waits for others of the kind, never for the rest */
};

struct route {
    const char *method;
    const char *pattern; /* "/v1/rollouts/{id}" */
    unsigned flags;
    void (*on_worker)(struct call *call);                  /* first, if set */
    void (*on_loop)(void *owner, struct request *request); /* then, unless the worker part has answered */
};

struct route_table {
    const struct route *rows;
    size_t count;
};

#endif
