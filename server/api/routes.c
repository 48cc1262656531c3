#include "server/api/routes.h"

#include "server/api/server.h"
#include "server/base/cleanup.h"
#include "server/http/http.h"

#define ON_WORKER(method, pattern, flags, worker) {method, pattern, flags, worker, NULL},
#define ON_LOOP(method, pattern, flags, loop) {method, pattern, flags, NULL, loop},
#define ON_BOTH(method, pattern, flags, worker, loop) {method, pattern, flags, worker, loop},
static const struct route rows[] = {
#include "server/api/routes.def"
};

const struct route_table routes = {rows, ARRAY_LENGTH(rows)};

struct http *routes_serve(struct server *server, char ret_url[128], char message[256])
{
    const struct http_options options = {.settings = server->settings,
                                         .shares = server->shares,
                                         .loop = server->loop,
                                         .workers = server->workers,
                                         .trim = &server->trim,
                                         .token = &server->token,
                                         .routes = routes,
                                         .owner = server};
    return http_create(&options, ret_url, message);
}
