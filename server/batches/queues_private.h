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
/* No effect on a batch that is already in, or already out. */
void queues_add(struct live_batch *live);
void queues_remove(struct live_batch *live);
/* `live` has had its turn and comes last; the next turn is `first`'s, of the same queue. */
void queues_move_behind(struct live_batch *live, struct live_batch *first);
/* The batch waits because another run has its pool. */
bool queues_wait_for_run(const struct live_batch *live);

#endif
