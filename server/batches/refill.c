#include "server/batches/refill_private.h"

#include "server/batches/live.h"

#include <math.h>

void refill_weigh_group(struct live_batch *live, uint32_t group)
{
    const struct batch_group *members = &live->batch.groups[group];
    bool flat =
        refill_is_flat(&live->spec->refill, &live->spec->objective, live->metrics + members->first, members->count);

    live_post(live, &(struct batch_event){.kind = EVENT_GROUP_WEIGHED, .index = group, .flat = flat});
}

void refill_describe_group(const struct live_batch *live, uint32_t group, struct objective_group *ret_statistics)
{
    const struct batch_group *members = &live->batch.groups[group];

    refill_describe(&live->spec->refill, &live->spec->objective, live->rewards + members->first, members->count,
                    ret_statistics);
}
