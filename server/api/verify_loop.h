/* The loop part of POST /v1/verify. */
#ifndef SERVER_API_VERIFY_LOOP_H
#define SERVER_API_VERIFY_LOOP_H

#include "server/api/server.h"
#include "server/http/http.h"

void verify_on_loop(void *owner, struct request *request);

#endif
