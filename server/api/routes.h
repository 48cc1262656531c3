/* routes: THE table of method, pattern and handlers. A test keeps it equal to schema/openapi.yaml. */
#ifndef SERVER_API_ROUTES_H
#define SERVER_API_ROUTES_H

#include "server/http/route.h"

struct http;
struct server;

extern const struct route_table routes;

/* Listens, and answers by the table; errors and ret_url as of http_create(). Needs the loop and the workers. */
struct http *routes_serve(struct server *server, char ret_url[128], char message[256]);

#endif
