/* flight: the state of one rollout on its way, from its dispatch (or from the moment it must be stored without one) to its
 * row on disk. Memory is proportional to what is in flight. Loop thread only.
 *
 * Each of the three has its file and its own work under way; none knows the others' insides but the row, which tells
 * them. A rollout that was never sent has no attempt; a completion that came with the request has a verification
 * instead. */
#ifndef SERVER_BATCHES_FLIGHT_PRIVATE_H
#define SERVER_BATCHES_FLIGHT_PRIVATE_H

#include "server/batches/reservation_private.h"

#include <stdint.h>

struct attempt;
struct verification;
struct live_batch;
struct row;

/* Zeroes: nothing is under way. */
struct flight {
    struct attempt *attempt;           /* at an engine */
    struct verification *verification; /* by the verifiers */
    struct row *row;                   /* on its way to the store */
    struct reservation reserved;
};

/* A completion that came with the request is prepared: EVENT_SAMPLED or EVENT_SAMPLE_FAILED. */
void flight_take_given(struct live_batch *live, uint32_t rollout);
/* EVENT_VERIFIED or EVENT_VERIFY_FAILED. */
void flight_verify(struct live_batch *live, uint32_t rollout);
/* The rollout is sampled no more, or not now. */
void flight_stop_sampling(struct live_batch *live, uint32_t rollout);
/* The sample stays. */
void flight_stop_verifying(struct live_batch *live, uint32_t rollout);
/* EVENT_STORED when it is on disk. */
void flight_store(struct live_batch *live, uint32_t rollout);
/* Gives all of it back; nothing of it is under way. */
void flight_end(struct live_batch *live, uint32_t rollout);

#endif
