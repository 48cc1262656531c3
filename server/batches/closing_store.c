#include "server/batches/closing_private.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/unstored.h"
#include "server/runtime/metrics.h"

#include <math.h>

struct group_op {
    struct store_errand errand;
    struct live_batch *live;
    uint32_t group;
    char id[ID_BYTES];
    double *advantages;
    double *shaped;
};

static struct store_errand errand_of(const struct batches *batches)
{
    return (struct store_errand){.loop = batches->uses.loop, .store = batches->uses.store};
}

/* --- groups --- */

static void group_closed(struct store_op *op)
{
    struct group_op *close = op->context;
    struct live_batch *live = close->live;
    if (store_desk_send_again(&close->errand)) {
        live_tell_not_stored(live, op->status);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_event(LOG_LEVEL_ERROR, "a group was refused by the store", "group", close->id, "why", op->message, NULL);
    live_post(live, &(struct batch_event){.kind = EVENT_GROUP_CLOSED, .index = close->group});
    free(close->advantages);
    free(close->shaped);
    free(close);
    live_leave(live);
}

void live_store_closing(struct live_batch *live, uint32_t group, const struct objective_group *statistics,
                        double *advantages, double *shaped)
{
    struct group_op *close = xcalloc(1, sizeof(*close));
    const struct batch_group *members = &live->batch.groups[group];
    close->errand = errand_of(live->batches);
    close->live = live;
    close->group = group;
    close->advantages = advantages;
    close->shaped = shaped;
    id_of_group(live->id, group, close->id);
    close->errand.op = (struct store_op){.kind = STORE_CLOSE_GROUP, .done = group_closed, .context = close};
    close->errand.op.close_group = (struct store_close_group){
        .group_id = close->id,
        .n = members->count,
        .advantage = close->advantages,
        .shaped_reward = close->shaped,
        .reward_mean = statistics->rewarded ? statistics->mean : NAN,
        .reward_std = statistics->rewarded ? statistics->std : NAN,
        .zero_variance = statistics->zero_variance,
    };
    live->jobs++;
    if (!live->unstored) {
        store_desk_send(&close->errand);
        return;
    }
    unstored_close_group(live, group, &close->errand.op.close_group);
    group_closed(&close->errand.op);
}

/* --- batches --- */

static void batch_closed(struct store_op *op)
{
    struct close_job *close = op->context;
    struct live_batch *live = close->live;
    struct batches *batches = live->batches;
    if (store_desk_send_again(&close->errand)) {
        live_tell_not_stored(live, op->status);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_event(LOG_LEVEL_ERROR, "a batch was refused by the store", "batch", live->id, "why", op->message, NULL);
    batches->without_scored = close->scored > 0 ? 0 : batches->without_scored + 1;
    metric_set(METRIC_BATCHES_WITHOUT_SCORED, 0, (int64_t)batches->without_scored);
    live->scored = close->scored;
    live_post(live, &(struct batch_event){.kind = EVENT_BATCH_CLOSED});
    buffer_finish(&close->notes);
    buffer_finish(&close->summary);
    free(close);
    live_leave(live);
}

void live_store_close(struct close_job *close)
{
    close->errand = errand_of(close->live->batches);
    close->errand.op = (struct store_op){.kind = STORE_CLOSE_BATCH, .done = batch_closed, .context = close};
    close->errand.op.close_batch = (struct store_close_batch){
        .batch_id = close->batch_id,
        .state = close->state,
        .loss = close->loss,
        .total_tokens = (int64_t)close->totals.tokens,
        .total_sequences = (int64_t)close->totals.sequences,
        .total_groups = (int64_t)close->totals.groups,
        .notes = buffer_text(&close->notes),
        .summary = buffer_text(&close->summary),
        .completed_at_us = clock_utc_us(),
    };
    if (close->live->unstored)
        batch_closed(&close->errand.op);
    else
        store_desk_send(&close->errand);
}
