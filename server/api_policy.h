/* PUT /v1/runs/{run}/policy. */
#ifndef SERVER_API_POLICY_H
#define SERVER_API_POLICY_H

#include "server/http.h"
#include "server/server.h"

void parse_policy(struct call *call);                                /* worker */
void declare_policy(struct server *server, struct request *request); /* loop */

#endif
