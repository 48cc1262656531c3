#include "server/record/store_desk.h"

#include "server/base/clock.h"
#include "server/record/store_health.h"

static void send_now(void *arg)
{
    store_desk_send(arg);
}

static void send_later(struct store_errand *errand)
{
    loop_timer_set(errand->loop, &errand->timer, clock_monotonic_us() + STORE_RETRY_US, send_now, errand);
}

void store_desk_send(struct store_errand *errand)
{
    if (!store_submit(errand->store, &errand->op))
        send_later(errand);
}

bool store_desk_send_again(struct store_errand *errand)
{
    if (!store_failed_for_now(errand->op.status))
        return false;
    send_later(errand);
    return true;
}

void store_desk_drop(struct store_errand *errand)
{
    loop_timer_clear(errand->loop, &errand->timer);
}
