/* routes: the table of routes.def, and the declarations of its handlers. */
#ifndef SERVER_API_ROUTES_H
#define SERVER_API_ROUTES_H

#include "server/http/route.h"

struct http;
struct server;

#define ON_WORKER(method, pattern, flags, worker) void worker(struct call *call);
#define ON_LOOP(method, pattern, flags, loop) void loop(void *owner, struct request *request);
#define ON_BOTH(method, pattern, flags, worker, loop)                                                                  \
    void worker(struct call *call);                                                                                    \
    void loop(void *owner, struct request *request);
#include "server/api/routes.def"
#undef ON_WORKER
#undef ON_LOOP
#undef ON_BOTH

#define ON_WORKER(method, pattern, flags, worker) +1
#define ON_LOOP(method, pattern, flags, loop) +1
#define ON_BOTH(method, pattern, flags, worker, loop) +1
enum {
    ROUTE_COUNT = 0
#include "server/api/routes.def"
};
#undef ON_WORKER
#undef ON_LOOP
#undef ON_BOTH

extern const struct route_table routes; /* ROUTE_COUNT rows */

/* Listens, and answers by the table; errors and ret_url as of http_create(). Needs the loop and the workers. */
struct http *routes_serve(struct server *server, char ret_url[128], char message[256]);

#endif
