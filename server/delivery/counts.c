/* Groups by their delivery, for the gauges: read by a worker, once at a time. */
#include "server/delivery/delivery_private.h"

#include "server/runtime/metrics.h"

#include <stddef.h>

static struct delivery *delivery_of(struct job *job)
{
    return (struct delivery *)((char *)job - offsetof(struct delivery, count_job));
}

static void count(struct job *job, struct store_reader *reader)
{
    struct delivery *delivery = delivery_of(job);
    delivery->counted = reader && store_count_deliveries(reader, TEXT_NONE, &delivery->counts) == STORE_OK;
}

static void counted(struct job *job)
{
    struct delivery *delivery = delivery_of(job);
    for (size_t i = 0; delivery->counted && i < STORE_DELIVERY_STATES; i++)
        metric_set(METRIC_GROUPS, i, delivery->counts.groups[i]);
    delivery->counting = false;
}

void delivery_set_gauges(struct delivery *delivery)
{
    metric_set(METRIC_LEASE_REQUESTS, 0, (int64_t)delivery->waiting);
    if (delivery->counting)
        return;
    delivery->count_job = (struct job){.lane = LANE_RECORD, .run = count, .done = counted};
    delivery->counting = workers_submit(delivery->uses.workers, &delivery->count_job);
}
