/* PUT /v1/runs/{run}/policy, POST /v1/runs/{run}/attach, and weight updates in steps: POST …/begin, …/commit, …/cancel.
 */
#ifndef SERVER_API_POLICY_H
#define SERVER_API_POLICY_H

#include "server/api/server.h"
#include "server/http/http.h"
#include "server/store/policy_update.h"

/* The request's Idempotency-Key for an operation that outlives the request. *ret_owned is the caller's to free. */
void policy_take_key(const struct call *call, enum store_route route, char **ret_owned, struct store_step_key *ret_key);
/* Members of an open object: an update as policy steps show it. */
struct json_write;
void policy_write_update(struct json_write *json, struct text run, const struct store_policy_update *update);
/* Open updates are not back yet: nobody knows what may be dispatched. True: the request was refused. */
bool policy_refuse_early(const struct server *server, struct request *request);

#endif
