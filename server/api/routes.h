/* routes: THE table of method, pattern and handlers. A test keeps it equal to schema/openapi.yaml. */
#ifndef SERVER_API_ROUTES_H
#define SERVER_API_ROUTES_H

#include "server/base/text.h"
#include "server/http/call.h"
#include "server/http/http.h"

#include <stdbool.h>

enum route_flags {
    ROUTE_OPEN = 1,        /* needs no token */
    ROUTE_CREATES = 2,     /* refused while draining */
    ROUTE_BODY = 4,        /* takes a JSON body */
    ROUTE_SAFETENSORS = 8, /* or one of tensors, which may be larger */
    ROUTE_HASHED = 16,     /* call->body_sha256 is wanted */
    ROUTE_NO_BODY = 32,    /* or none */
    ROUTE_RECORD = 64,     /* the worker part reads the record: it has threads of its own */
    ROUTE_ALWAYS = 128,    /* answered while the database is migrated, too */
};

struct route {
    const char *method;
    const char *pattern; /* "/v1/rollouts/{id}" */
    unsigned flags;
    void (*on_worker)(struct call *call);                            /* first, if set */
    void (*on_loop)(struct server *server, struct request *request); /* then, unless the worker part has answered */
};

extern const struct route routes[];
extern const size_t route_count;

/* Finds the route of a raw, still encoded path; fills call->args (decoded, into storage the caller frees).
 * NULL with *ret_error = ERR_NOT_FOUND (no pattern fits), ERR_METHOD_NOT_ALLOWED (another method would), or
 * ERR_BAD_REQUEST (broken percent escape, NUL or broken UTF-8). */
const struct route *route_find(const char *method, struct text raw_path, struct call *call, struct buffer *storage,
                               enum error_code *ret_error);

/* Appends the decoded text to storage; false for a broken escape, NUL, or broken UTF-8. The buffer must not move while
 * the decoded text is used: reserve enough before. */
bool percent_decode(struct text raw, bool plus_is_space, struct buffer *storage, struct text *ret_decoded);

/* Reads what stands behind the '?' into call->query. 0, or -1 with the call refused. The storage as above. */
int query_parse(struct text raw, struct call *call, struct buffer *storage);

/* Methods of the path, for the Allow header: "GET, DELETE". */
void route_allowed(struct text raw_path, char ret_allow[64]);

#endif
