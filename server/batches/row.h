/* row: what comes on record of one rollout, and its way there. Loop thread only.
 *
 * Nothing is given up: a row that the store cannot take now is written again until it is on disk; then EVENT_STORED. */
#ifndef SERVER_BATCHES_ROW_H
#define SERVER_BATCHES_ROW_H

#include <stdint.h>

struct batches;
struct live_batch;

void live_store_rollout(struct live_batch *live, uint32_t rollout);
/* Rows that found the store's queue full: as many as it takes now. */
void rows_pump_backlog(struct batches *batches);

#endif
