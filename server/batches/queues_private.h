/* queues: where batches wait for the dispatcher, one queue for each named pool and one for completions that came with
 * their request. In a queue batches take turns. Loop thread only. */
#ifndef SERVER_BATCHES_QUEUES_PRIVATE_H
#define SERVER_BATCHES_QUEUES_PRIVATE_H

#include "server/base/text.h"

#include <stdbool.h>

struct batches;
struct live_batch;
struct named_pool;
struct run_state;

/* A pool that is full or down does not hold up another's. */
struct pool_queue {
    struct named_pool *pool;
    struct live_batch *ring;     /* the next to be asked */
    const struct run_state *run; /* whose weights the pool has now */
};

struct pool_queue *queues_of_pool(struct batches *batches, struct text pool); /* made if need be */
void queues_finish(struct batches *batches);
/* Nothing happens to a batch that is there already, or is not there. */
void queues_add(struct live_batch *live);
void queues_remove(struct live_batch *live);
/* It is `first`'s turn, and `live`, of the same queue, had its own: it comes last. */
void queues_move_behind(struct live_batch *live, struct live_batch *first);
/* Another run has the batch's pool, and this one has to wait for it. */
bool queues_wait_for_run(const struct live_batch *live);

#endif
