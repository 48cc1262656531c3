/* The record, read: GET /v1/rollouts, /v1/groups, /v1/batches, /v1/runs. All on a worker, with its read connection. */
#ifndef SERVER_API_RECORDS_H
#define SERVER_API_RECORDS_H

struct call;

void list_rollouts(struct call *call);
void get_rollout(struct call *call); /* {id} */
void get_group(struct call *call);   /* {id} */
void list_batches(struct call *call);
void list_batch_groups(struct call *call); /* {id} */
void get_batch_request(struct call *call); /* {id} */
void list_runs(struct call *call);
void get_run(struct call *call); /* {run} */

#endif
