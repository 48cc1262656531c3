#include "server/record/store_health.h"

#include "server/base/clock.h"
#include "server/base/log.h"

#define TRY_PERIOD_US (1 * US_PER_S)

bool store_failed_for_now(enum store_status status)
{
    return status == STORE_DISK_FULL || status == STORE_UNAVAILABLE;
}

void store_health_init(struct loop *loop, struct store *store, struct store_health *ret_health)
{
    *ret_health = (struct store_health){.loop = loop, .store = store};
}

void store_health_finish(struct store_health *health)
{
    loop_timer_clear(health->loop, &health->timer);
}

static void try_to_write(void *arg);

static void try_later(struct store_health *health)
{
    if (health->failing && !health->trying && !health->timer.place)
        loop_timer_set(health->loop, &health->timer, loop_now_us(health->loop) + TRY_PERIOD_US, try_to_write, health);
}

static void tried(struct store_op *op)
{
    struct store_health *health = op->context;
    health->trying = false;
    try_later(health);
}

static void try_to_write(void *arg)
{
    struct store_health *health = arg;
    if (!health->failing)
        return;
    health->op = (struct store_op){.kind = STORE_TRY_WRITE, .done = tried, .context = health};
    health->trying = store_submit(health->store, &health->op);
}

void store_health_note(struct store_health *health, const struct store_op *op)
{
    bool failing = store_failed_for_now(op->status);
    if (!failing && op->status != STORE_OK)
        return; /* it read and wrote nothing, which a full disk allows */
    if (failing && !health->failing)
        log_event(LOG_LEVEL_ERROR, "the store cannot write", "why", op->message, NULL);
    if (!failing && health->failing)
        log_event(LOG_LEVEL_INFO, "the store writes again", NULL);
    health->failing = failing;
    health->status = op->status;
    try_later(health);
}
