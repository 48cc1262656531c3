/* refill: groups without variance are dropped, and others drawn from the reserve in their place. The order and the bounds
 * are the state machine's (batch.h), the rule is the request's (spec/refill.h). Loop thread. */
#ifndef SERVER_BATCHES_REFILL_PRIVATE_H
#define SERVER_BATCHES_REFILL_PRIVATE_H

#include "server/objective/objective.h"

struct live_batch;

/* EVENT_GROUP_WEIGHED. All members are stored. */
void refill_weigh_group(struct live_batch *live, uint32_t group);

/* Mean, deviation and variance of the raw rewards of a group that is dropped. Any thread, once it is. */
void refill_describe_group(const struct live_batch *live, uint32_t group, struct objective_group *ret_statistics);

#endif
