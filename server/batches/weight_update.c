#include "server/batches/weight_update.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/record/store_desk.h"

#include <stdio.h>

struct weight_update {
    struct batches *batches;
    char *run;
    struct store_policy_update record;
    struct weight_hold hold;
    struct begin_waiter *waiters;
    struct loop_timer timer;
    UT_hash_handle hh; /* in the order of their beginning */
};

/* --- the registry ------------------------------------------------------------------------------------------- */

static struct weight_update *find(struct batches *batches, struct text run)
{
    struct weight_update *update;
    HASH_FIND(hh, batches->updates, run.data, run.length_bytes, update);
    return update;
}

struct weight_update *update_find(struct batches *batches, struct text run)
{
    struct weight_update *update = find(batches, run);
    return update && update->hold.phase != HOLD_ENDED ? update : NULL;
}

bool updates_are_full(const struct batches *batches)
{
    size_t open = 0;
    for (const struct weight_update *update = batches->updates; update; update = update->hh.next)
        open += update->hold.phase != HOLD_ENDED;
    return open >= UPDATES_MAX;
}

static void forget(struct weight_update *update)
{
    loop_timer_clear(update->batches->uses.loop, &update->timer);
    HASH_DEL(update->batches->updates, update);
    free(update->run);
    free(update);
}

void update_forget_warning(struct batches *batches, struct text run)
{
    struct weight_update *update = find(batches, run);
    if (update && update->hold.phase == HOLD_ENDED)
        forget(update);
}

/* The number of updates kept for their warnings is bounded. */
static void make_room(struct batches *batches)
{
    struct weight_update *update = batches->updates;
    if (HASH_COUNT(batches->updates) < 2U * UPDATES_MAX)
        return;
    while (update && update->hold.phase != HOLD_ENDED)
        update = update->hh.next;
    if (update)
        forget(update);
}

static struct run_state *run_of(const struct weight_update *update)
{
    return runs_find(update->batches, text_of(update->run));
}

/* --- waiters -------------------------------------------------------------------------------------------------- */

static void wait_for(struct weight_update *update, struct begin_waiter *waiter)
{
    waiter->update = update;
    waiter->next = update->waiters;
    update->waiters = waiter;
}

void update_leave(struct begin_waiter *waiter)
{
    struct begin_waiter **place = &waiter->update->waiters;
    while (*place != waiter)
        place = &(*place)->next;
    *place = waiter->next;
    waiter->update = NULL;
}

static void tell_waiters(struct weight_update *update, enum begin_end end)
{
    for (struct begin_waiter *waiter; (waiter = update->waiters);) {
        update_leave(waiter);
        waiter->done(waiter->arg, end, &update->record);
    }
}

/* --- what is in flight ---------------------------------------------------------------------------------------- */

static void count(const struct weight_update *update, size_t *ret_in_flight, size_t *ret_owed)
{
    const struct run_state *run = run_of(update);
    *ret_in_flight = 0;
    *ret_owed = 0;
    for (const struct live_batch *live = update->batches->first; live; live = live->next) {
        if (live->run != run || live->spec->origin != BATCH_SAMPLED)
            continue;
        *ret_in_flight += live->batch.in_phase[PHASE_SAMPLING];
        if (*ret_in_flight == 0) /* else it does not matter yet */
            *ret_owed += batch_count_owed(&live->batch);
    }
}

static void look(struct weight_update *update)
{
    size_t in_flight;
    size_t owed;
    if (update->hold.phase != HOLD_STOPPING)
        return;
    count(update, &in_flight, &owed);
    if (hold_look(&update->hold, in_flight, owed))
        tell_waiters(update, BEGIN_HOLDS);
}

void update_look(const struct run_state *run)
{
    if (run->update)
        look(run->update);
}

bool update_may_be_committed(struct batches *batches, struct text run, size_t *ret_in_flight)
{
    const struct weight_update *update = update_find(batches, run);
    size_t owed;
    *ret_in_flight = 0;
    if (!update || hold_may_commit(&update->hold))
        return true;
    count(update, ret_in_flight, &owed);
    *ret_in_flight += owed;
    return false;
}

/* --- its end -------------------------------------------------------------------------------------------------- */

static void resume(struct weight_update *update)
{
    struct batches *batches = update->batches;
    struct run_state *run = run_of(update);
    loop_timer_clear(batches->uses.loop, &update->timer);
    hold_end(&update->hold);
    if (!run)
        return;
    run->update = NULL;
    run->resumed_us = clock_monotonic_us();
    runs_forget_if_idle(batches, run);
}

/* An update ended by its deadline is stored as soon as the store can write. */
struct expiry {
    struct store_errand errand;
    struct batches *batches;
    char *run;
    struct expiry *next;
};

static void expiry_destroy(struct expiry *expiry)
{
    struct expiry **place = &expiry->batches->expiries;
    while (*place != expiry)
        place = &(*place)->next;
    *place = expiry->next;
    store_desk_drop(&expiry->errand);
    free(expiry->run);
    free(expiry);
}

static void update_expired(struct store_op *op)
{
    struct expiry *expiry = op->context;
    if (!store_desk_send_again(&expiry->errand))
        expiry_destroy(expiry);
}

static void record_expiry(const struct weight_update *update)
{
    struct expiry *expiry = xcalloc(1, sizeof(*expiry));
    struct batches *batches = update->batches;
    struct store_op *op = &expiry->errand.op;
    expiry->errand.loop = batches->uses.loop;
    expiry->errand.store = batches->uses.store;
    expiry->batches = batches;
    expiry->run = xstrdup(update->run);
    expiry->next = batches->expiries;
    batches->expiries = expiry;
    *op = (struct store_op){.kind = STORE_UPDATE_POLICY, .done = update_expired, .context = expiry};
    op->update_policy =
        (struct store_update_policy){.step = STORE_STEP_EXPIRE, .run = text_of(expiry->run), .update = update->record};
    store_desk_send(&expiry->errand);
}

static void expire(void *arg)
{
    struct weight_update *update = arg;
    struct batches *batches = update->batches;
    if (!hold_expire(&update->hold, clock_monotonic_us()))
        return;
    log_event(LOG_LEVEL_WARNING, "a weight update was not committed before its deadline: its run continues unchanged",
              "run", update->run, LOG_INT("revision", update->record.revision), "mode",
              store_update_mode_names[update->record.mode], NULL);
    update->record.state = STORE_UPDATE_EXPIRED;
    update->record.ended_at_us = clock_utc_us();
    record_expiry(update);
    tell_waiters(update, BEGIN_CUT_SHORT);
    resume(update);
    batches_wake(batches);
}

void updates_finish(struct batches *batches)
{
    while (batches->expiries)
        expiry_destroy(batches->expiries);
    while (batches->updates)
        forget(batches->updates);
}

/* Members without a row are sampled at the new revision; store/policy_update.h says of which batches. */
static void move_batches(struct batches *batches, const struct run_state *run, const struct store_policy_update *record)
{
    int64_t previous = record->previous_revision < 0 ? 0 : record->previous_revision;
    for (struct live_batch *live = batches->first; live; live = live->next) {
        if (live->run != run || live->unstored ||
            (live->spec->purpose != STORE_TRAIN && live->sampled_revision != previous))
            continue;
        live->sampled_revision = record->revision;
        live->moved = true;
        for (size_t g = 0; g < live->batch.group_count; g++)
            live->group_revisions[g] = -1;
    }
}

static void leave(struct weight_update *update, enum store_update_state state)
{
    struct batches *batches = update->batches;
    update->record.state = state;
    tell_waiters(update, BEGIN_CUT_SHORT);
    resume(update);
    forget(update);
    batches_wake(batches);
}

void update_cancelled(struct batches *batches, struct text run, const struct store_policy_update *record)
{
    struct weight_update *update = find(batches, run);
    if (update)
        leave(update, record->state);
}

void update_ended(struct batches *batches, const struct store_op *op)
{
    const struct store_update_policy *step = &op->update_policy;
    struct weight_update *update = find(batches, step->run);
    if (op->status != STORE_OK || step->repeated)
        return;
    if (step->update.state == STORE_UPDATE_COMMITTED) {
        struct store_declare_policy declared = {
            .run = step->run, .current_revision = step->current_revision, .incarnation = step->incarnation};
        runs_declared(batches, &declared);
    }
    if (!update)
        return;
    if (step->update.state == STORE_UPDATE_COMMITTED && step->update.mode == STORE_UPDATE_ABORT && run_of(update))
        move_batches(batches, run_of(update), &step->update);
    leave(update, step->update.state);
}

/* --- its beginning -------------------------------------------------------------------------------------------- */

static struct weight_update *add(struct batches *batches, struct text run, const struct store_policy_update *record)
{
    struct weight_update *update = xcalloc(1, sizeof(*update));
    struct run_state *state;
    update_forget_warning(batches, run);
    make_room(batches);
    update->batches = batches;
    update->run = xstrndup(run.data, run.length_bytes);
    update->record = *record;
    HASH_ADD_KEYPTR(hh, batches->updates, update->run, run.length_bytes, update);
    state = runs_find_or_add(batches, run);
    state->update = update;
    loop_timer_set(batches->uses.loop, &update->timer, clock_monotonic_us() + record->deadline_us - clock_utc_us(),
                   expire, update);
    return update;
}

void update_restore(struct batches *batches, struct text run, const struct store_policy_update *record)
{
    struct weight_update *update = add(batches, run, record);
    hold_restore(&update->hold, (enum hold_mode)record->mode, update->timer.at_us);
}

/* Takes back the samples that engines work on, and those whose reply is being read: it may be the first half of an
 * exchange. */
static void abort_samples(const struct weight_update *update)
{
    const struct run_state *run = run_of(update);
    for (struct live_batch *live = update->batches->first; live; live = live->next) {
        if (live->run != run || live->spec->origin != BATCH_SAMPLED)
            continue;
        for (uint32_t i = 0; i < live->batch.rollout_count; i++)
            if (live->batch.rollouts[i].phase == PHASE_SAMPLING)
                live_post(live, &(struct batch_event){.kind = EVENT_ABORTED, .index = i});
    }
}

void update_begun(struct batches *batches, const struct store_op *op, struct begin_waiter *waiter)
{
    const struct store_update_policy *step = &op->update_policy;
    struct weight_update *update = find(batches, step->run);
    bool fresh = op->status == STORE_OK && !step->repeated;
    if (!fresh && update && update->record.begun_at_us != step->update.begun_at_us)
        update = NULL; /* a key's, which has ended long ago */
    bool expired = update && update->hold.phase == HOLD_ENDED && update->record.begun_at_us == step->update.begun_at_us;
    bool given_up = step->update.state == STORE_UPDATE_CANCELLED || step->update.state == STORE_UPDATE_EXPIRED;
    if ((expired || given_up) && waiter)
        waiter->done(waiter->arg, BEGIN_OVER, given_up ? &step->update : &update->record);
    if (expired || given_up)
        return;
    if (fresh) {
        update = add(batches, step->run, &step->update);
        hold_begin(&update->hold, (enum hold_mode)step->update.mode, update->timer.at_us);
        if (update->hold.mode == HOLD_ABORT && run_of(update))
            abort_samples(update);
    }
    if (update && update->hold.phase == HOLD_STOPPING) {
        if (waiter)
            wait_for(update, waiter);
        look(update);
    } else if (waiter)
        waiter->done(waiter->arg, BEGIN_HOLDS, &step->update);
}

/* --- for the dispatcher and for flights ------------------------------------------------------------------------- */

int64_t update_next_rollout(struct live_batch *live, bool *ret_held)
{
    const struct weight_update *update = live->run->update;
    int64_t next = batch_peek_queued(&live->batch);
    enum hold_allows allows = update ? hold_allows(&update->hold, clock_monotonic_us()) : ALLOWS_ALL;
    *ret_held = false;
    if (next < 0 || allows == ALLOWS_ALL)
        return next;
    next = allows == ALLOWS_BEGUN_GROUPS ? batch_peek_begun(&live->batch) : -1;
    *ret_held = next < 0;
    return next;
}

int64_t update_mixed_revision(const struct run_state *run)
{
    const struct weight_update *update = run->update;
    return update && hold_mixes(&update->hold) ? update->record.revision : -1;
}

bool update_holds(const struct live_batch *live)
{
    return live->run->update && live->spec->origin == BATCH_SAMPLED;
}

/* --- views -------------------------------------------------------------------------------------------------------- */

const struct weight_update *updates_next(const struct batches *batches, const struct weight_update *previous,
                                         struct update_view *ret_view)
{
    const struct weight_update *update = previous ? previous->hh.next : batches->updates;
    size_t owed;
    if (!update)
        return NULL;
    *ret_view = (struct update_view){.run = update->run, .record = &update->record, .phase = update->hold.phase};
    if (update->hold.phase != HOLD_ENDED)
        count(update, &ret_view->in_flight, &owed);
    return update;
}
