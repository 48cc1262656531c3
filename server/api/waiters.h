/* waiters: requests that wait for a live batch. Each has an end: the batch's, its own wait, its client's hang-up, or the
 * service's. Loop thread only. */
#ifndef SERVER_API_WAITERS_H
#define SERVER_API_WAITERS_H

#include "server/batches/live.h"
#include "server/http/http.h"

struct waiter_rules {
    int64_t until_us; /* CLOCK_MONOTONIC; NEVER_US: until the batch has ended */
    bool created;     /* a POST: a wait that ends first is answered 202 */
};
/* Answers the request when it need not wait. A request that accepts NDJSON gets a line for each group when it is closed,
 * whatever its `wait`; the others wait for the end. */
void waiter_add(struct loop *loop, struct live_batch *live, struct request *request, const struct waiter_rules *rules);
/* Sends a batch that has ended, from the record. */
void request_answer_batch(struct request *request, const char *batch_id);

#endif
