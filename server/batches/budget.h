/* budget: the memory that batches and what is in flight for them may take. Loop thread only.
 *
 * One thing always fits where nothing else of its kind is held, so that nothing waits for ever. */
#ifndef SERVER_BATCHES_BUDGET_H
#define SERVER_BATCHES_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

struct batches;

bool batches_take_bytes(struct batches *batches, size_t bytes); /* false: it is used up */
void batches_give_bytes(struct batches *batches, size_t bytes);
bool batches_take_flight_bytes(struct batches *batches, size_t bytes); /* likewise, for one rollout */
void batches_give_flight_bytes(struct batches *batches, size_t bytes);

#endif
