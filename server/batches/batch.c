#include "server/batches/batch.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/words.h"

const char *const batch_state_names[] = {"running", BATCH_STATE_WORDS(WORD_TEXT)};

/* --- actions ------------------------------------------------------------------------------------- */

static void act(struct actions *actions, enum action_kind kind, uint32_t index)
{
    if (actions->count == actions->capacity) {
        actions->capacity = actions->capacity ? 2 * actions->capacity : 16;
        actions->items = xrealloc(actions->items, actions->capacity * sizeof(struct action));
    }
    actions->items[actions->count++] = (struct action){kind, index};
}

void actions_finish(struct actions *actions)
{
    free(actions->items);
    *actions = (struct actions){0};
}

/* --- life ------------------------------------------------------------------------------------------ */

void batch_init(struct batch *batch, const struct batch_rules *rules, const uint32_t *members, size_t group_count)
{
    *batch = (struct batch){.rules = *rules,
                            .state = BATCH_RUNNING,
                            .outcome = BATCH_COMPLETE,
                            .group_count = group_count - rules->reserve,
                            .group_room = group_count,
                            .open_groups = group_count - rules->reserve,
                            .next_retry_us = NEVER_US};
    batch->groups = xcalloc(group_count, sizeof(struct batch_group));
    for (size_t g = 0; g < group_count; g++) {
        batch->groups[g] =
            (struct batch_group){.first = (uint32_t)batch->rollout_room, .count = members[g], .unstored = members[g]};
        batch->rollout_room += members[g];
        batch->rollout_count += g < batch->group_count ? members[g] : 0;
    }
    batch->rollouts = xcalloc(batch->rollout_room, sizeof(struct batch_rollout));
    batch->queue = xcalloc(batch->rollout_room, sizeof(uint32_t));
    for (size_t g = 0; g < group_count; g++)
        for (uint32_t i = 0; i < members[g]; i++)
            batch->rollouts[batch->groups[g].first + i].group = (uint32_t)g;
    batch->in_phase[PHASE_QUEUED] = batch->rollout_count;
}

void batch_finish(struct batch *batch)
{
    free(batch->groups);
    free(batch->rollouts);
    free(batch->queue);
    *batch = (struct batch){0};
}

static void set_phase(struct batch *batch, uint32_t index, enum rollout_phase phase)
{
    struct batch_rollout *rollout = &batch->rollouts[index];
    batch->in_phase[rollout->phase]--;
    batch->in_phase[phase]++;
    rollout->phase = (uint8_t)phase;
}

void batch_restore_rollout(struct batch *batch, uint32_t index)
{
    struct batch_rollout *rollout = &batch->rollouts[index];
    if (rollout->phase == PHASE_DONE)
        return;
    set_phase(batch, index, PHASE_DONE);
    rollout->end = END_SCORED;
    batch->groups[rollout->group].unstored--;
    batch->groups[rollout->group].begun = true;
}

void batch_restore_group(struct batch *batch, uint32_t index)
{
    struct batch_group *group = &batch->groups[index];
    for (uint32_t i = 0; i < group->count; i++)
        batch_restore_rollout(batch, group->first + i);
    if (!group->closed)
        batch->open_groups--;
    group->closed = true;
}

/* Returns the group. */
static uint32_t draw(struct batch *batch)
{
    uint32_t index = (uint32_t)batch->group_count++;
    batch->open_groups++;
    batch->rollout_count += batch->groups[index].count;
    batch->in_phase[PHASE_QUEUED] += batch->groups[index].count;
    return index;
}

void batch_restore_drawn(struct batch *batch)
{
    if (batch->group_count < batch->group_room)
        draw(batch);
}

void batch_restore_dropped(struct batch *batch, uint32_t index)
{
    batch->groups[index].dropped = true;
    batch->dropped_groups++;
}

void batch_restore_cut(struct batch *batch, enum batch_state outcome)
{
    batch->outcome = outcome;
}

/* --- the queue ----------------------------------------------------------------------------------------- */

static void enqueue(struct batch *batch, uint32_t index)
{
    batch->queue[(batch->queue_first + batch->queue_count++) % batch->rollout_room] = index;
}

/* Rollouts that were stopped while they waited stay in the ring until they come to its head. */
static void drop_stale_head(struct batch *batch)
{
    while (batch->queue_count > 0 && batch->rollouts[batch->queue[batch->queue_first]].phase != PHASE_QUEUED) {
        batch->queue_first = (batch->queue_first + 1) % batch->rollout_room;
        batch->queue_count--;
    }
}

int64_t batch_peek_queued(const struct batch *batch)
{
    return batch->queue_count > 0 ? (int64_t)batch->queue[batch->queue_first] : -1;
}

int64_t batch_peek_begun(struct batch *batch)
{
    size_t place = 0;
    while (place < batch->queue_count) {
        uint32_t index = batch->queue[(batch->queue_first + place) % batch->rollout_room];
        if (batch->rollouts[index].phase == PHASE_QUEUED && batch->groups[batch->rollouts[index].group].begun)
            break;
        place++;
    }
    if (place == batch->queue_count)
        return -1;
    uint32_t found = batch->queue[(batch->queue_first + place) % batch->rollout_room];
    for (; place > 0; place--)
        batch->queue[(batch->queue_first + place) % batch->rollout_room] =
            batch->queue[(batch->queue_first + place - 1) % batch->rollout_room];
    batch->queue[batch->queue_first] = found;
    return found;
}

size_t batch_count_owed(const struct batch *batch)
{
    size_t owed = 0;
    if (batch->in_phase[PHASE_QUEUED] + batch->in_phase[PHASE_BACKOFF] == 0)
        return 0;
    for (size_t i = 0; i < batch->rollout_count; i++)
        owed += batch->rollouts[i].phase <= PHASE_BACKOFF && batch->groups[batch->rollouts[i].group].begun;
    return owed;
}

/* --- time ------------------------------------------------------------------------------------------------ */

int64_t batch_next_time(const struct batch *batch)
{
    size_t settled = batch->in_phase[PHASE_STORING] + batch->in_phase[PHASE_DONE];
    if (batch->state != BATCH_RUNNING || settled == batch->rollout_count)
        return NEVER_US;
    return batch->next_retry_us < batch->rules.deadline_us ? batch->next_retry_us : batch->rules.deadline_us;
}

int64_t batch_time_left(const struct batch *batch, uint32_t index, int64_t now_us)
{
    int64_t began_us = batch->rollouts[index].first_dispatch_us;
    int64_t until_us = (began_us ? began_us : now_us) + batch->rules.rollout_timeout_us;
    until_us = until_us < batch->rules.deadline_us ? until_us : batch->rules.deadline_us;
    return until_us > now_us ? until_us - now_us : 0;
}

/* The spread is of the seed, the rollout and the attempt, so that tests can repeat it. */
static int64_t pause_us(const struct batch *batch, uint32_t index, int64_t retry_after_us)
{
    unsigned tries = batch->rollouts[index].tries;
    uint64_t spread = batch->rules.jitter_seed + index * UINT64_C(64) + tries + 1;
    int64_t delay_us = backoff_us(tries, batch->rules.backoff_min_us, batch->rules.backoff_max_us, spread);

    return delay_us > retry_after_us ? delay_us : retry_after_us;
}

/* --- steps -------------------------------------------------------------------------------------------------- */

static void store(struct batch *batch, uint32_t index, enum rollout_end end, struct actions *actions)
{
    batch->rollouts[index].end = (uint8_t)end;
    set_phase(batch, index, PHASE_STORING);
    act(actions, ACTION_STORE, index);
}

static void sample_failed(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    struct batch_rollout *rollout = &batch->rollouts[event->index];
    rollout->attempts = (uint16_t)(rollout->attempts + event->sent - event->failure.unsent);
    int64_t wait_us = pause_us(batch, event->index, event->failure.retry_after_us);
    bool again = event->failure.retryable && rollout->attempts < batch->rules.attempts_max + rollout->aborts &&
                 wait_us < batch_time_left(batch, event->index, now_us);
    if (!again) {
        store(batch, event->index, END_FAILED, actions);
        return;
    }
    rollout->resample = (uint16_t)(rollout->resample + event->failure.resample);
    rollout->retry_at_us = now_us + wait_us;
    set_phase(batch, event->index, PHASE_BACKOFF);
    act(actions, ACTION_PAUSE, event->index);
    if (rollout->retry_at_us < batch->next_retry_us)
        batch->next_retry_us = rollout->retry_at_us;
}

static void group_may_close(struct batch *batch, uint32_t group, struct actions *actions)
{
    if (batch->groups[group].unstored == 0 && !batch->groups[group].closed)
        act(actions, batch->rules.refill ? ACTION_WEIGH_GROUP : ACTION_CLOSE_GROUP, group);
}

static void batch_may_close(struct batch *batch, struct actions *actions)
{
    if (batch->open_groups > 0 || batch->state != BATCH_RUNNING)
        return;
    batch->state = BATCH_CLOSING;
    act(actions, ACTION_CLOSE_BATCH, 0);
}

/* Ends everything that is not on its way into the store. */
static void cut_short(struct batch *batch, enum batch_state outcome, enum rollout_end end, struct actions *actions)
{
    if (batch->state != BATCH_RUNNING)
        return;
    batch->cut = batch->cut == END_NONE ? end : batch->cut;
    for (uint32_t i = 0; i < batch->rollout_count; i++) {
        enum rollout_phase phase = batch->rollouts[i].phase;
        if (phase >= PHASE_STORING)
            continue;
        batch->outcome = batch->outcome == BATCH_COMPLETE ? outcome : batch->outcome;
        if (phase == PHASE_SAMPLING)
            act(actions, ACTION_STOP_SAMPLE, i);
        if (phase == PHASE_VERIFYING)
            act(actions, ACTION_STOP_VERIFY, i);
        store(batch, i, end, actions);
    }
    batch->queue_count = 0;
}

/* --- refill ---------------------------------------------------------------------------------------------------- */

static bool is_left(const struct batch *batch)
{
    return batch->group_count < batch->group_room && batch->cut == END_NONE;
}

/* The first one without variance that is not on its way. */
static uint32_t next_flat(const struct batch *batch)
{
    uint32_t index = 0;
    while (!batch->groups[index].flat)
        index++;
    return index;
}

static void deliver(struct batch *batch, uint32_t index, struct actions *actions)
{
    batch->groups[index].flat = false;
    batch->flat_groups--;
    act(actions, ACTION_CLOSE_GROUP, index);
}

/* A cut that leaves something undone ends the batch, also if no rollout was on its way. */
static void take_outcome_of_cut(struct batch *batch)
{
    if (batch->outcome == BATCH_COMPLETE && batch->cut != END_NONE)
        batch->outcome = batch->cut == END_DEADLINE ? BATCH_EXPIRED : BATCH_CANCELLED;
}

static void drop(struct batch *batch, uint32_t index, struct actions *actions)
{
    struct batch_group *group = &batch->groups[index];
    group->flat = false;
    group->dropped = true;
    group->draws = is_left(batch);
    batch->flat_groups--;
    batch->drops = true;
    act(actions, ACTION_DROP_GROUP, index);
    if (group->draws)
        return;
    if (batch->rules.exhausted == EXHAUSTED_FAIL && batch->cut == END_NONE)
        cut_short(batch, BATCH_CANCELLED, END_CANCELLED, actions);
    if (batch->rules.exhausted == EXHAUSTED_FAIL || batch->group_count < batch->group_room)
        take_outcome_of_cut(batch);
}

static void drop_next(struct batch *batch, struct actions *actions)
{
    while (batch->flat_groups > 0 && !batch->drops) {
        uint32_t index = next_flat(batch);
        if (batch->rules.exhausted == EXHAUSTED_DELIVER && !is_left(batch))
            deliver(batch, index, actions);
        else
            drop(batch, index, actions);
    }
}

static void on_group_weighed(struct batch *batch, const struct batch_event *event, int64_t now_us,
                             struct actions *actions)
{
    (void)now_us;
    struct batch_group *group = &batch->groups[event->index];
    if (group->closed || group->flat || group->dropped)
        return;
    if (!event->flat) {
        act(actions, ACTION_CLOSE_GROUP, event->index);
        return;
    }
    group->flat = true;
    batch->flat_groups++;
    drop_next(batch, actions);
}

/* Its members are queued, or share the fate of those that were cut short before. */
static void begin_drawn(struct batch *batch, struct actions *actions)
{
    uint32_t index = draw(batch);
    const struct batch_group *group = &batch->groups[index];
    for (uint32_t i = group->first; i < group->first + group->count; i++)
        if (batch->cut == END_NONE)
            enqueue(batch, i);
        else
            store(batch, i, batch->cut, actions);
    if (batch->cut == END_NONE)
        act(actions, ACTION_DISPATCH, 0);
    else
        take_outcome_of_cut(batch);
}

static void requeue_due(struct batch *batch, int64_t now_us, struct actions *actions)
{
    bool any = false;
    batch->next_retry_us = NEVER_US;
    for (uint32_t i = 0; i < batch->rollout_count && batch->in_phase[PHASE_BACKOFF] > 0; i++) {
        struct batch_rollout *rollout = &batch->rollouts[i];
        if (rollout->phase != PHASE_BACKOFF)
            continue;
        if (rollout->retry_at_us > now_us) {
            batch->next_retry_us =
                rollout->retry_at_us < batch->next_retry_us ? rollout->retry_at_us : batch->next_retry_us;
            continue;
        }
        set_phase(batch, i, PHASE_QUEUED);
        enqueue(batch, i);
        any = true;
    }
    if (any)
        act(actions, ACTION_DISPATCH, 0);
}

/* A drop without a draw while it failed for want of a reserve: the service died before the rest was cut short. */
static bool has_failed(const struct batch *batch)
{
    size_t drawn = batch->group_count - (batch->group_room - batch->rules.reserve);
    return batch->rules.refill && batch->rules.exhausted == EXHAUSTED_FAIL && batch->dropped_groups > drawn &&
           batch->cut == END_NONE && batch->outcome == BATCH_COMPLETE;
}

static void on_started(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)event;
    (void)now_us;
    if (has_failed(batch)) {
        cut_short(batch, BATCH_CANCELLED, END_CANCELLED, actions);
        take_outcome_of_cut(batch);
    }
    for (uint32_t i = 0; i < batch->rollout_count; i++)
        if (batch->rollouts[i].phase == PHASE_QUEUED)
            enqueue(batch, i);
    for (uint32_t g = 0; g < batch->group_count; g++)
        group_may_close(batch, g, actions);
    if (batch->queue_count > 0)
        act(actions, ACTION_DISPATCH, 0);
    batch_may_close(batch, actions);
}

static void on_dispatched(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)actions;
    struct batch_rollout *rollout = &batch->rollouts[event->index];
    rollout->tries++;
    rollout->attempts = (uint16_t)(rollout->attempts + event->sent);
    if (!rollout->first_dispatch_us)
        rollout->first_dispatch_us = now_us;
    batch->groups[rollout->group].begun = true;
    set_phase(batch, event->index, PHASE_SAMPLING);
    drop_stale_head(batch);
}

static void on_aborted(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)now_us;
    struct batch_rollout *rollout = &batch->rollouts[event->index];
    if (rollout->phase != PHASE_SAMPLING)
        return;
    rollout->tries--;
    rollout->aborts++;
    rollout->first_dispatch_us = 0;
    act(actions, ACTION_STOP_SAMPLE, event->index);
    set_phase(batch, event->index, PHASE_QUEUED);
    enqueue(batch, event->index);
    act(actions, ACTION_DISPATCH, 0);
}

static void on_sampled(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)now_us;
    struct batch_rollout *rollout = &batch->rollouts[event->index];
    if (rollout->phase != PHASE_SAMPLING)
        return;
    rollout->attempts = (uint16_t)(rollout->attempts + event->sent);
    if (event->nothing_to_verify) {
        store(batch, event->index, END_SCORED, actions);
        return;
    }
    set_phase(batch, event->index, PHASE_VERIFYING);
    act(actions, ACTION_VERIFY, event->index);
}

static void on_sample_failed(struct batch *batch, const struct batch_event *event, int64_t now_us,
                             struct actions *actions)
{
    struct batch_rollout *rollout = &batch->rollouts[event->index];
    if (rollout->phase != PHASE_SAMPLING)
        return;
    if (now_us < batch->rules.deadline_us) {
        sample_failed(batch, event, now_us, actions);
        return;
    }
    /* A transfer's own time ends with the batch's; where the machine stalls its news may come before the timer's. */
    rollout->attempts = (uint16_t)(rollout->attempts + event->sent - event->failure.unsent);
    batch->outcome = batch->outcome == BATCH_COMPLETE ? BATCH_EXPIRED : batch->outcome;
    store(batch, event->index, END_DEADLINE, actions);
}

static void on_verified(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)now_us;
    if (batch->rollouts[event->index].phase == PHASE_VERIFYING)
        store(batch, event->index, event->kind == EVENT_VERIFIED ? END_SCORED : END_FAILED, actions);
}

static void on_stored(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)now_us;
    set_phase(batch, event->index, PHASE_DONE);
    uint32_t group = batch->rollouts[event->index].group;
    batch->groups[group].unstored--;
    group_may_close(batch, group, actions);
}

static void on_group_closed(struct batch *batch, const struct batch_event *event, int64_t now_us,
                            struct actions *actions)
{
    (void)now_us;
    if (batch->groups[event->index].closed)
        return;
    struct batch_group *group = &batch->groups[event->index];
    group->closed = true;
    batch->open_groups--;
    if (group->dropped) {
        batch->dropped_groups++;
        batch->drops = false;
        if (group->draws)
            begin_drawn(batch, actions);
    }
    act(actions, group->dropped ? ACTION_GROUP_DROPPED : ACTION_TELL_GROUP, event->index);
    drop_next(batch, actions);
    batch_may_close(batch, actions);
}

static void on_batch_closed(struct batch *batch, const struct batch_event *event, int64_t now_us,
                            struct actions *actions)
{
    (void)event;
    (void)now_us;
    batch->state = batch->outcome;
    act(actions, ACTION_ANSWER, 0);
}

static void on_time(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)event;
    if (now_us >= batch->rules.deadline_us)
        cut_short(batch, BATCH_EXPIRED, END_DEADLINE, actions);
    else if (now_us >= batch->next_retry_us)
        requeue_due(batch, now_us, actions);
}

static void on_cancel(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    (void)event;
    (void)now_us;
    cut_short(batch, BATCH_CANCELLED, END_CANCELLED, actions);
}

void batch_step(struct batch *batch, const struct batch_event *event, int64_t now_us, struct actions *actions)
{
    static void (*const steps[])(struct batch *, const struct batch_event *, int64_t, struct actions *) = {
        [EVENT_STARTED] = on_started,
        [EVENT_DISPATCHED] = on_dispatched,
        [EVENT_ABORTED] = on_aborted,
        [EVENT_SAMPLED] = on_sampled,
        [EVENT_SAMPLE_FAILED] = on_sample_failed,
        [EVENT_VERIFIED] = on_verified,
        [EVENT_VERIFY_FAILED] = on_verified,
        [EVENT_STORED] = on_stored,
        [EVENT_GROUP_WEIGHED] = on_group_weighed,
        [EVENT_GROUP_CLOSED] = on_group_closed,
        [EVENT_BATCH_CLOSED] = on_batch_closed,
        [EVENT_TIME] = on_time,
        [EVENT_CANCEL] = on_cancel,
    };
    steps[event->kind](batch, event, now_us, actions);
}
