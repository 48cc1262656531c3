/* PUT /v1/runs/{run}/policy, and weight updates in steps: POST …/begin, …/commit, …/cancel. */
#ifndef SERVER_API_POLICY_H
#define SERVER_API_POLICY_H

#include "server/http.h"
#include "server/server.h"

void parse_policy(struct call *call);                                /* worker */
void declare_policy(struct server *server, struct request *request); /* loop */

/* api_policy_steps.c */
void parse_policy_begin(struct call *call);
void parse_policy_end(struct call *call);
void begin_policy(struct server *server, struct request *request);
void commit_policy(struct server *server, struct request *request);
void cancel_policy(struct server *server, struct request *request);

#endif
