#include "server/batches/step_private.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/batches.h"
#include "server/batches/closing_private.h"
#include "server/batches/dispatch_private.h"
#include "server/batches/flight_private.h"
#include "server/batches/gather_private.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/queues_private.h"
#include "server/batches/refill_private.h"
#include "server/batches/runs.h"
#include "server/batches/weight_update.h"
#include "server/runtime/metrics.h"

/* --- effects --------------------------------------------------------------------------------------------- */

static void do_dispatch(struct live_batch *live, uint32_t index)
{
    (void)index;
    queues_add(live);
}

static void do_pause(struct live_batch *live, uint32_t index)
{
    metric_add(METRIC_ENGINE_RETRIES, 0, 1);
    flight_end(live, index);
}

static void do_tell_group(struct live_batch *live, uint32_t index)
{
    live_tell_group_closed(live, index);
}

static void do_group_dropped(struct live_batch *live, uint32_t index)
{
    (void)index;
    live_close_whole(live);
}

static void do_close_batch(struct live_batch *live, uint32_t index)
{
    (void)index;
    live_close_batch(live);
}

static void do_answer(struct live_batch *live, uint32_t index)
{
    (void)index;
    const struct batches_options *uses = &live->batches->uses;
    size_t label = live->batch.state == BATCH_COMPLETE    ? METRIC_BATCH_COMPLETE
                   : live->batch.state == BATCH_CANCELLED ? METRIC_BATCH_CANCELLED
                                                          : METRIC_BATCH_EXPIRED;
    metric_add(METRIC_BATCHES, label, 1);
    log_event(live->scored > 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "batch ended", "batch", live->id, "request_id",
              live->request_id[0] ? live->request_id : NULL, "run", live->run->name, "state",
              batch_state_names[live->batch.state], LOG_INT("scored", live->scored),
              LOG_INT("rollouts", live->batch.rollout_count), NULL);
    if (uses->batch_ended && !live->unstored)
        uses->batch_ended(uses->batch_ended_arg, live);
    live_tell_ended(live);
}

static void (*const effects[])(struct live_batch *live, uint32_t index) = {
    [ACTION_DISPATCH] = do_dispatch,
    [ACTION_VERIFY] = flight_verify,
    [ACTION_PAUSE] = do_pause,
    [ACTION_STORE] = flight_store,
    [ACTION_STOP_SAMPLE] = flight_stop_sampling,
    [ACTION_STOP_VERIFY] = flight_stop_verifying,
    [ACTION_WEIGH_GROUP] = refill_weigh_group,
    [ACTION_DROP_GROUP] = live_drop_group,
    [ACTION_CLOSE_GROUP] = live_close_group,
    [ACTION_TELL_GROUP] = do_tell_group,
    [ACTION_GROUP_DROPPED] = do_group_dropped,
    [ACTION_CLOSE_BATCH] = do_close_batch,
    [ACTION_ANSWER] = do_answer,
};

/* --- one batch --------------------------------------------------------------------------------------------- */

static void carry_out(struct live_batch *live, const struct batch_event *event)
{
    batch_step(&live->batch, event, clock_monotonic_us(), &live->actions);
    for (size_t i = 0; i < live->actions.count; i++) {
        struct action action = live->actions.items[i];
        effects[action.kind](live, action.index);
    }
    live->actions.count = 0;
    if (event->kind == EVENT_SAMPLED || event->kind == EVENT_SAMPLE_FAILED)
        gather_look(live, live->batch.rollouts[event->index].group);
}

static void time_has_come(void *arg)
{
    live_post(arg, &(struct batch_event){.kind = EVENT_TIME});
}

static void set_timer(struct live_batch *live)
{
    struct loop *loop = live->batches->uses.loop;
    int64_t at_us = batch_next_time(&live->batch);
    if (at_us == NEVER_US)
        loop_timer_clear(loop, &live->timer);
    else if (!live->timer.place || live->timer.at_us != at_us)
        loop_timer_set(loop, &live->timer, at_us, time_has_come, live);
}

/* Effects may post events of their own: those come behind. */
static void step_one(struct live_batch *live)
{
    for (size_t i = 0; i < live->event_count; i++) {
        struct batch_event event = live->events[i];
        carry_out(live, &event);
    }
    live->event_count = 0;
    live->is_posted = false;
    set_timer(live);
    if (batch_peek_queued(&live->batch) >= 0)
        batches_wake(live->batches);
    update_look(live->run);
    if (live_is_done(live))
        live_destroy(live);
}

/* --- all of them --------------------------------------------------------------------------------------------- */

static struct live_batch *take_posted(struct batches *batches)
{
    struct live_batch *live = batches->posted;
    if (!live)
        return NULL;
    batches->posted = live->posted_next;
    if (!batches->posted)
        batches->posted_last = &batches->posted;
    return live;
}

void batches_step(void *arg)
{
    struct batches *batches = arg;
    batches->stepping = true;
    do {
        struct live_batch *live;
        while ((live = take_posted(batches)))
            step_one(live);
        if (batches->awake)
            dispatch(batches);
    } while (batches->posted || batches->awake);
    batches->stepping = false;
}
