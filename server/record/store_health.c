/* Whether the store can write, from what its operations say. */
#include "server/batches/live.h"

#include "server/base/clock.h"
#include "server/base/log.h"

#define TRY_PERIOD_US (1 * US_PER_S)

bool store_failed_for_now(enum store_status status)
{
    return status == STORE_DISK_FULL || status == STORE_UNAVAILABLE;
}

static void store_tried(struct store_op *op);

static void try_store(void *arg)
{
    struct batches *batches = arg;
    if (!batches->store_failing)
        return;
    batches->try_op = (struct store_op){.kind = STORE_TRY_WRITE, .done = store_tried, .context = batches};
    batches->trying = store_submit(batches->server->store, &batches->try_op);
}

void store_note_health(struct batches *batches, const struct store_op *op)
{
    struct loop *loop = batches->server->loop;
    bool failing = store_failed_for_now(op->status);
    if (!failing && op->status != STORE_OK)
        return; /* it read and wrote nothing, which a full disk allows */
    if (failing && !batches->store_failing)
        log_event(LOG_LEVEL_ERROR, "the store cannot write", "why", op->message, NULL);
    if (!failing && batches->store_failing)
        log_event(LOG_LEVEL_INFO, "the store writes again", NULL);
    batches->store_failing = failing;
    batches->store_failure = op->status;
    if (failing && !batches->trying && !batches->try_timer.place)
        loop_timer_set(loop, &batches->try_timer, loop_now_us(loop) + TRY_PERIOD_US, try_store, batches);
}

static void store_tried(struct store_op *op)
{
    struct batches *batches = op->context;
    struct loop *loop = batches->server->loop;
    batches->trying = false;
    if (batches->store_failing && !batches->try_timer.place)
        loop_timer_set(loop, &batches->try_timer, loop_now_us(loop) + TRY_PERIOD_US, try_store, batches);
}
