#include "server/record/read_again.h"

#include "server/base/clock.h"
#include "server/base/log.h"

#define PAUSE_MIN_US (100 * US_PER_MS)
#define PAUSE_MAX_US (1 * US_PER_S)

static void submit(void *arg)
{
    struct read_again *again = arg;
    workers_submit_reserved(again->workers, again->job);
}

void read_again_later(struct read_again *again, struct job *job)
{
    int64_t doubled_us = 2 * again->pause_us;

    if (again->pause_us == 0)
        log_event(LOG_LEVEL_ERROR, "a batch cannot be closed: the record cannot be read", "batch", again->batch, NULL);
    again->pause_us = doubled_us < PAUSE_MIN_US ? PAUSE_MIN_US : doubled_us > PAUSE_MAX_US ? PAUSE_MAX_US : doubled_us;
    again->job = job;
    loop_timer_set(again->loop, &again->timer, clock_monotonic_us() + again->pause_us, submit, again);
    again->failed(again->arg);
}
