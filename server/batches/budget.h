/* budget: the memory that batches and their flights may take. Loop thread only.
 *
 * The first batch, and the first flight, always fits, so that nothing waits for ever. */
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
