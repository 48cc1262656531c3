#include "server/batches/budget.h"

#include "server/batches/batches.h"
#include "server/runtime/metrics.h"

static bool take_bytes(struct batches *batches, int64_t held_bytes, size_t bytes)
{
    if (held_bytes > 0 && batches->bytes + (int64_t)bytes > batches->bytes_max)
        return false;
    batches->bytes += (int64_t)bytes;
    metric_set(METRIC_MEMORY_USED_BYTES, 0, batches->bytes);
    return true;
}

bool batches_take_bytes(struct batches *batches, size_t bytes)
{
    return take_bytes(batches, batches->bytes, bytes);
}

void batches_give_bytes(struct batches *batches, size_t bytes)
{
    batches->bytes -= (int64_t)bytes;
    metric_set(METRIC_MEMORY_USED_BYTES, 0, batches->bytes);
}

bool batches_take_flight_bytes(struct batches *batches, size_t bytes)
{
    if (!take_bytes(batches, batches->flight_bytes, bytes))
        return false;
    batches->flight_bytes += (int64_t)bytes;
    return true;
}

void batches_give_flight_bytes(struct batches *batches, size_t bytes)
{
    batches->flight_bytes -= (int64_t)bytes;
    batches_give_bytes(batches, bytes);
}
