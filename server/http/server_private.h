/* The one thing server.c needs of checks.c beside request_private.h. */
#ifndef SERVER_HTTP_SERVER_PRIVATE_H
#define SERVER_HTTP_SERVER_PRIVATE_H

#include "server/http/request_private.h"

/* The only moment at which a status can be chosen before the body: framing, route, token, media type, size, draining.
 * 0, or -1 with the call refused. Fills route, arguments, query and headers of the call. */
int check_first_call(struct request *request, const char *method, const char *version);

#endif
