#include "server/batches/live.h"

#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/batches/budget.h"
#include "server/batches/flight_private.h"
#include "server/batches/queues_private.h"
#include "server/batches/runs.h"
#include "server/batches/unstored.h"
#include "server/runtime/memory.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <math.h>
#include <stdio.h>

#define ROLLOUT_BYTES ((size_t)16 * 1024) /* what one leaves behind, roughly */

/* --- events ------------------------------------------------------------------------------------------ */

/* While step.c works it comes to this by itself. */
static void step_soon(struct batches *batches)
{
    if (!batches->stepping && !batches->step_timer.place)
        loop_timer_set(batches->uses.loop, &batches->step_timer, 0, batches->step, batches);
}

void batches_wake(struct batches *batches)
{
    batches->awake = true;
    step_soon(batches);
}

void live_look(struct live_batch *live)
{
    struct batches *batches = live->batches;
    if (live->is_posted)
        return;
    live->is_posted = true;
    live->posted_next = NULL;
    *batches->posted_last = live;
    batches->posted_last = &live->posted_next;
    step_soon(batches);
}

void live_post(struct live_batch *live, const struct batch_event *event)
{
    if (live->event_count == live->event_capacity) {
        live->event_capacity = live->event_capacity ? 2 * live->event_capacity : 4;
        live->events = xrealloc(live->events, live->event_capacity * sizeof(*live->events));
    }
    live->events[live->event_count++] = *event;
    live_look(live);
}

void live_leave(struct live_batch *live)
{
    live->jobs--;
    live_look(live);
}

/* --- life -------------------------------------------------------------------------------------------- */

struct live_batch *batches_find(struct batches *batches, struct text id)
{
    struct live_batch *live;
    HASH_FIND(hh, batches->by_id, id.data, id.length_bytes, live);
    return live && !live->unstored ? live : NULL;
}

static const enum batch_exhausted exhausted[] = {
    [REFILL_SHORT] = EXHAUSTED_SHORT, [REFILL_DELIVER] = EXHAUSTED_DELIVER, [REFILL_FAIL] = EXHAUSTED_FAIL};

static void init_machine(struct live_batch *live, int64_t deadline_us)
{
    const struct settings *settings = live->batches->uses.settings;
    const struct batch_spec *spec = live->spec;
    struct batch_rules rules = {.refill = spec->refill.wanted,
                                .reserve = refill_draws_max(spec),
                                .exhausted = exhausted[spec->refill.exhausted],
                                .deadline_us = deadline_us,
                                .rollout_timeout_us = spec->rollout_timeout_us,
                                .backoff_min_us = settings->engine_backoff_min_us,
                                .backoff_max_us = settings->engine_backoff_max_us,
                                .attempts_max = (int)settings->engine_attempts};
    size_t count = spec->first_group_count + rules.reserve;
    _cleanup_free_ uint32_t *members = xcalloc(count, sizeof(uint32_t));

    random_bytes(&rules.jitter_seed, sizeof(rules.jitter_seed));
    for (size_t g = 0; g < count; g++)
        members[g] = (uint32_t)spec->groups[g].n;
    batch_init(&live->batch, &rules, members, count);
}

struct live_batch *live_create(struct batches *batches, struct batch_spec *spec, const char *id,
                               int64_t deadline_utc_us)
{
    struct live_batch *live = xcalloc(1, sizeof(*live));
    live->batches = batches;
    live->spec = spec;
    live->run = runs_find_or_add(batches, spec->run);
    live->run->batches++;
    if (spec->origin == BATCH_SAMPLED)
        live->queue = queues_of_pool(batches, spec->pool.data ? spec->pool : text_of(POOL_DEFAULT));
    if (live->queue)
        pool_named_pin(live->queue->pool);
    live->retries = RETRY_BUDGET_NEW;
    live->deadline_utc_us = deadline_utc_us;
    live->admitted_us = loop_now_us(live->batches->uses.loop);
    live->admitted_utc_us = clock_utc_us();
    snprintf(live->id, sizeof(live->id), "%s", id);
    init_machine(live, live->admitted_us + deadline_utc_us - live->admitted_utc_us);

    live->flights = xcalloc(spec->rollout_count, sizeof(struct flight));
    live->rewards = xcalloc(spec->rollout_count, sizeof(double));
    live->failed_at = xcalloc(spec->rollout_count, sizeof(struct engine *));
    live->group_revisions = xcalloc(spec->group_count, sizeof(int64_t));
    live->group_prompt_ids = xcalloc(spec->group_count, sizeof(uint32_t *));
    live->group_prompt_id_counts = xcalloc(spec->group_count, sizeof(size_t));
    live->group_prefixes = xcalloc(spec->group_count, sizeof(uint64_t));
    live->metrics = spec->refill.wanted ? xcalloc(spec->rollout_count, sizeof(double)) : NULL;
    for (size_t i = 0; i < spec->rollout_count; i++)
        live->rewards[i] = NAN;
    for (size_t i = 0; live->metrics && i < spec->rollout_count; i++)
        live->metrics[i] = NAN;
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

void live_start(struct live_batch *live)
{
    live->done_before = live->batch.in_phase[PHASE_DONE];
    if (clock_monotonic_us() >= live->batch.rules.deadline_us) /* it passed while the service was down */
        live_post(live, &(struct batch_event){.kind = EVENT_TIME});
    if (live->batch.outcome == BATCH_CANCELLED) /* it died in the middle of that */
        live_post(live, &(struct batch_event){.kind = EVENT_CANCEL});
    live_post(live, &(struct batch_event){.kind = EVENT_STARTED});
}

bool live_is_done(const struct live_batch *live)
{
    return batch_is_terminal(&live->batch) && live->jobs == 0 && !live->observers && !live->is_posted;
}

void live_destroy(struct live_batch *live)
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

    queues_remove(live);
    live->run->batches--;
    runs_forget_if_idle(batches, live->run);
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
    free(live->gathers);
    free(live->rewards);
    free(live->metrics);
    free(live->failed_at);
    free(live->group_revisions);
    free(live->group_prompt_ids);
    free(live->group_prompt_id_counts);
    free(live->group_prefixes);
    unstored_destroy(live->unstored, live->spec->rollout_count);
    actions_finish(&live->actions);
    free(live->events);
    batch_finish(&live->batch);
    batch_spec_destroy(live->spec);
    free(live);
    batches_wake(batches); /* another run may have waited for this one to leave the pool */
}

/* --- one rollout -------------------------------------------------------------------------------------- */

const struct group_spec *live_group(const struct live_batch *live, uint32_t rollout)
{
    return &live->spec->groups[live->batch.rollouts[rollout].group];
}

static uint32_t place_in_group(const struct live_batch *live, uint32_t rollout)
{
    return rollout - live->batch.groups[live->batch.rollouts[rollout].group].first;
}

const struct completion_spec *live_given(const struct live_batch *live, uint32_t rollout)
{
    const struct group_spec *group = live_group(live, rollout);
    return group->completions ? &group->completions[place_in_group(live, rollout)] : NULL;
}

int64_t live_sample_index(const struct live_batch *live, uint32_t rollout)
{
    return live_group(live, rollout)->first_sample_index + place_in_group(live, rollout);
}

uint64_t live_seed(const struct live_batch *live, uint32_t rollout)
{
    const struct group_spec *group = live_group(live, rollout);
    const struct completion_spec *given = live_given(live, rollout);
    if (given)
        return given->seed < 0 ? 0 : (uint64_t)given->seed;
    return sample_seed(live->spec->seed, live->sampled_revision, group->task, group->draw,
                       live_sample_index(live, rollout), live->batch.rollouts[rollout].resample);
}
