/* gather: the members of a group that wait for their siblings, because a verifier judges all of them at once.
 *
 * A member that is sampled joins; when none of the group is left to be sampled, each such verifier is asked once, and
 * its verdicts go back to the members, which are then judged by their other verifiers. Members without a completion are
 * named as such. A batch that is cut short takes its members back. Loop thread, except what its jobs do on a worker. */
#ifndef SERVER_BATCHES_GATHER_PRIVATE_H
#define SERVER_BATCHES_GATHER_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

struct live_batch;

/* Its verification waits from now on, without a place in the queues, until verification_ask(). */
void gather_join(struct live_batch *live, uint32_t rollout);
/* Something may have happened to a member of this group: asks when all are there. */
void gather_look(struct live_batch *live, uint32_t group);
/* The rollout's verification waits no more: it is stopped. */
void gather_leave(struct live_batch *live, uint32_t rollout);

#endif
