/* Live batches: made, stepped, ended. */
#include "server/batches/live.h"

#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/base/log.h"
#include "server/batches/observer.h"
#include "server/batches/unstored.h"
#include "server/engines/engines.h"
#include "server/runtime/memory.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <math.h>

#define ROLLOUT_BYTES ((size_t)16 * 1024) /* what one leaves behind, roughly */

/* --- the registry ---------------------------------------------------------------------------------- */

static void forget_run(struct batches *batches, struct run_state *run)
{
    for (size_t i = 0; i < batches->queue_count; i++)
        if (batches->queues[i]->run == run)
            batches->queues[i]->run = NULL;
    HASH_DEL(batches->runs, run);
    free(run->name);
    free(run);
}

static void engines_changed(void *arg)
{
    dispatch(arg);
}

struct batches *batches_create(const struct batches_options *options)
{
    struct batches *batches = xcalloc(1, sizeof(*batches));
    batches->uses = *options;
    batches->places_max = (size_t)options->settings->verify_queue;
    batches->bytes_max = memory_for_batches_bytes(options->settings);
    batches->backlog_last = &batches->backlog_first;
    if (options->engines)
        engines_subscribe(options->engines, engines_changed, batches);
    store_health_init(options->loop, options->store, &batches->health);
    return batches;
}

void batches_destroy(struct batches *batches)
{
    if (!batches)
        return;
    struct run_state *run;
    struct run_state *next;
    HASH_ITER(hh, batches->runs, run, next)
    {
        forget_run(batches, run);
    }
    loop_timer_clear(batches->uses.loop, &batches->dispatch_timer);
    loop_timer_clear(batches->uses.loop, &batches->backlog_timer);
    store_health_finish(&batches->health);
    batches_forget_unread(batches);
    updates_finish(batches);
    dispatch_finish(batches);
    free(batches);
}

struct live_batch *batches_find(struct batches *batches, struct text id)
{
    struct live_batch *live;
    HASH_FIND(hh, batches->by_id, id.data, id.length_bytes, live);
    return live && !live->unstored ? live : NULL;
}

static struct run_state *find_run(struct batches *batches, struct text name)
{
    struct run_state *run;
    HASH_FIND(hh, batches->runs, name.data, name.length_bytes, run);
    return run;
}

static struct run_state *find_or_add_run(struct batches *batches, struct text name)
{
    struct run_state *run = find_run(batches, name);
    if (run)
        return run;
    run = xcalloc(1, sizeof(*run));
    run->name = xstrndup(name.data, name.length_bytes);
    run->revision = -1;
    run->update = update_find(batches, name);
    HASH_ADD_KEYPTR(hh, batches->runs, run->name, name.length_bytes, run);
    return run;
}

void batches_declared(struct batches *batches, const struct store_declare_policy *declared)
{
    bool resuming = !batches->resumed;
    struct run_state *run = resuming ? find_or_add_run(batches, declared->run) : find_run(batches, declared->run);
    if (!run)
        return; /* the next batch of the run reads it from the record */
    run->revision = declared->current_revision;
    run->incarnation = declared->incarnation;
}

void batches_resumed(struct batches *batches)
{
    struct run_state *run;
    struct run_state *next;
    batches->resumed = true;
    HASH_ITER(hh, batches->runs, run, next)
    {
        if (run->batches == 0)
            forget_run(batches, run);
    }
}

/* Its last batch has gone. While unfinished batches are read back another one may come, which was read before the
 * trainer declared what is known here. */
static void leave_run(struct batches *batches, struct run_state *run)
{
    if (--run->batches == 0 && batches->resumed)
        forget_run(batches, run);
}

/* One thing always fits where nothing else of its kind is held, so that nothing waits for ever. */
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

/* --- life -------------------------------------------------------------------------------------------- */

static void init_machine(struct live_batch *live, int64_t deadline_us)
{
    const struct settings *settings = live->batches->uses.settings;
    const struct batch_spec *spec = live->spec;
    struct batch_rules rules = {.deadline_us = deadline_us,
                                .rollout_timeout_us = spec->rollout_timeout_us,
                                .backoff_min_us = settings->engine_backoff_min_us,
                                .backoff_max_us = settings->engine_backoff_max_us,
                                .attempts_max = (int)settings->engine_attempts};
    _cleanup_free_ uint32_t *members = xcalloc(spec->group_count, sizeof(uint32_t));

    random_bytes(&rules.jitter_seed, sizeof(rules.jitter_seed));
    for (size_t g = 0; g < spec->group_count; g++)
        members[g] = (uint32_t)spec->groups[g].n;
    batch_init(&live->batch, &rules, members, spec->group_count);
}

struct live_batch *live_create(struct batches *batches, struct batch_spec *spec, const char *id,
                               int64_t deadline_utc_us)
{
    struct live_batch *live = xcalloc(1, sizeof(*live));
    live->batches = batches;
    live->spec = spec;
    live->run = find_or_add_run(batches, spec->run);
    live->run->batches++;
    if (spec->origin == BATCH_SAMPLED)
        live->queue = dispatch_queue(batches, spec->pool.data ? spec->pool : text_of(POOL_DEFAULT));
    if (live->queue)
        pool_named_pin(live->queue->pool);
    live->retries = RETRY_BUDGET_NEW;
    live->deadline_utc_us = deadline_utc_us;
    live->admitted_us = loop_now_us(live->batches->uses.loop);
    live->admitted_utc_us = clock_utc_us();
    snprintf(live->id, sizeof(live->id), "%s", id);
    init_machine(live, live->admitted_us + deadline_utc_us - live->admitted_utc_us);

    live->flights = xcalloc(spec->rollout_count, sizeof(struct flight *));
    live->rewards = xcalloc(spec->rollout_count, sizeof(double));
    live->failed_at = xcalloc(spec->rollout_count, sizeof(struct engine *));
    live->group_revisions = xcalloc(spec->group_count, sizeof(int64_t));
    live->group_prompt_ids = xcalloc(spec->group_count, sizeof(uint32_t *));
    live->group_prompt_id_counts = xcalloc(spec->group_count, sizeof(size_t));
    live->group_prefixes = xcalloc(spec->group_count, sizeof(uint64_t));
    for (size_t i = 0; i < spec->rollout_count; i++)
        live->rewards[i] = NAN;
    for (size_t g = 0; g < spec->group_count; g++)
        live->group_revisions[g] = -1;

    HASH_ADD_KEYPTR(hh, batches->by_id, live->id, strlen(live->id), live);
    live->next = batches->first;
    if (batches->first)
        batches->first->previous = live;
    batches->first = live;
    batches->count++;
    metric_set(METRIC_BATCHES_RUNNING, 0, (int64_t)batches->count);
    return live;
}

static void live_destroy(struct live_batch *live)
{
    struct batches *batches = live->batches;
    HASH_DEL(batches->by_id, live);
    if (live->previous)
        live->previous->next = live->next;
    else
        batches->first = live->next;
    if (live->next)
        live->next->previous = live->previous;
    batches->count--;
    metric_set(METRIC_BATCHES_RUNNING, 0, (int64_t)batches->count);

    dispatch_remove(live);
    leave_run(batches, live->run);
    loop_timer_clear(live->batches->uses.loop, &live->timer);
    batches_give_bytes(batches, live->reserved_bytes);
    memory_freed(live->batches->uses.trim, live->reserved_bytes + ROLLOUT_BYTES * live->spec->rollout_count);
    for (size_t g = 0; g < live->spec->group_count; g++)
        free(live->group_prompt_ids[g]);
    for (size_t i = 0; i < live->spec->rollout_count; i++)
        engine_release(live->failed_at[i]);
    pool_reap(live->batches->uses.pool);
    if (live->queue)
        pool_named_unpin(live->queue->pool);
    free(live->flights);
    free(live->rewards);
    free(live->failed_at);
    free(live->group_revisions);
    free(live->group_prompt_ids);
    free(live->group_prompt_id_counts);
    free(live->group_prefixes);
    unstored_destroy(live->unstored, live->spec->rollout_count);
    actions_finish(&live->actions);
    batch_finish(&live->batch);
    batch_spec_destroy(live->spec);
    free(live);
    dispatch(batches); /* another run may have waited for this one to leave the pool */
}

void live_destroy_if_done(struct live_batch *live)
{
    if (batch_is_terminal(&live->batch) && live->jobs == 0 && !live->observers && !live->stepping)
        live_destroy(live);
}

/* --- steps --------------------------------------------------------------------------------------------- */

static void time_has_come(void *arg)
{
    struct live_batch *live = arg;
    live_event(live, &(struct batch_event){.kind = EVENT_TIME});
}

static void set_timer(struct live_batch *live)
{
    int64_t at_us = batch_next_time(&live->batch);
    if (at_us == NEVER_US)
        loop_timer_clear(live->batches->uses.loop, &live->timer);
    else if (!live->timer.place || live->timer.at_us != at_us)
        loop_timer_set(live->batches->uses.loop, &live->timer, at_us, time_has_come, live);
}

static void do_dispatch(struct live_batch *live, uint32_t index)
{
    (void)index;
    dispatch_add(live);
}

static void do_verify(struct live_batch *live, uint32_t index)
{
    flight_verify(live->flights[index]);
}

static void do_stop_sample(struct live_batch *live, uint32_t index)
{
    flight_stop_sampling(live->flights[index]);
}

static void do_stop_verify(struct live_batch *live, uint32_t index)
{
    flight_stop_verifying(live->flights[index]);
}

static void do_close_batch(struct live_batch *live, uint32_t index)
{
    (void)index;
    live_close_batch(live);
}

static void do_answer(struct live_batch *live, uint32_t index)
{
    (void)index;
    size_t label = live->batch.state == BATCH_COMPLETE    ? METRIC_BATCH_COMPLETE
                   : live->batch.state == BATCH_CANCELLED ? METRIC_BATCH_CANCELLED
                                                          : METRIC_BATCH_EXPIRED;
    metric_add(METRIC_BATCHES, label, 1);
    log_event(live->scored > 0 ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "batch ended", "batch", live->id, "request_id",
              live->request_id[0] ? live->request_id : NULL, "run", live->run->name, "state",
              batch_state_names[live->batch.state], LOG_INT("scored", live->scored),
              LOG_INT("rollouts", live->batch.rollout_count), NULL);
    live_tell_ended(live);
}

static void (*const effects[])(struct live_batch *live, uint32_t index) = {
    [ACTION_DISPATCH] = do_dispatch,       [ACTION_VERIFY] = do_verify,
    [ACTION_STORE] = live_store_rollout,   [ACTION_STOP_SAMPLE] = do_stop_sample,
    [ACTION_STOP_VERIFY] = do_stop_verify, [ACTION_CLOSE_GROUP] = live_close_group,
    [ACTION_CLOSE_BATCH] = do_close_batch, [ACTION_ANSWER] = do_answer,
};

/* Effects may bring events of their own: those append to the same list, which the outermost call works off. */
void live_event(struct live_batch *live, const struct batch_event *event)
{
    batch_step(&live->batch, event, clock_monotonic_us(), &live->actions);
    if (live->stepping)
        return;
    live->stepping = true;
    for (size_t i = 0; i < live->actions.count; i++) {
        struct action action = live->actions.items[i];
        effects[action.kind](live, action.index);
    }
    live->actions.count = 0;
    live->stepping = false;
    set_timer(live);
    if (batch_peek_queued(&live->batch) >= 0)
        dispatch(live->batches);
    update_look(live->run);
    live_destroy_if_done(live);
}

void live_start(struct live_batch *live)
{
    live->jobs++;
    if (clock_monotonic_us() >= live->batch.rules.deadline_us) /* it passed while the service was down */
        live_event(live, &(struct batch_event){.kind = EVENT_TIME});
    if (live->batch.outcome == BATCH_CANCELLED) /* it died in the middle of that */
        live_event(live, &(struct batch_event){.kind = EVENT_CANCEL});
    live_event(live, &(struct batch_event){.kind = EVENT_STARTED});
    live->jobs--;
    live_destroy_if_done(live);
}
