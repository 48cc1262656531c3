/* dispatch: chooses the next rollout and its engine. Loop thread only.
 *
 * In each queue (queues_private.h) batches take turns, one rollout each, so that a small batch does not wait behind a
 * large one. A sample is sent only when its places in all later queues and its bytes are reserved. */
#ifndef SERVER_BATCHES_DISPATCH_PRIVATE_H
#define SERVER_BATCHES_DISPATCH_PRIVATE_H

struct batches;

/* Sends what can be sent now. Called by step.c when no event is left; a change elsewhere calls batches_wake(). */
void dispatch(struct batches *batches);

#endif
