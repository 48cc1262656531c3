#include "server/batches/judgement.h"

#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <stddef.h>

#define VERDICTS_MAX_BYTES ((size_t)16 << 20)
#define FRAME_MAX_BYTES ((size_t)256 << 20)

/* --- life -------------------------------------------------------------------------------------------------- */

struct judgement *judgement_create(struct live_batch *live, uint32_t rollout)
{
    struct judgement *judgement = xcalloc(1, sizeof(*judgement));
    judgement->live = live;
    judgement->rollout = rollout;
    judgement->given = live_given(live, rollout);
    judgement->taken_us = clock_monotonic_us();
    buffer_init(&judgement->frame, FRAME_MAX_BYTES);
    buffer_init(&judgement->verdicts_json, VERDICTS_MAX_BYTES);
    buffer_init(&judgement->rewards_json, VERDICTS_MAX_BYTES);
    buffer_init(&judgement->heldout_json, VERDICTS_MAX_BYTES);
    live->jobs++;
    return judgement;
}

void judgement_destroy(struct judgement *judgement)
{
    if (!judgement)
        return;
    if (judgement->has_verdicts)
        verdict_set_finish(&judgement->verdicts);
    free(judgement->verify.reply);
    buffer_finish(&judgement->frame);
    buffer_finish(&judgement->verdicts_json);
    buffer_finish(&judgement->rewards_json);
    buffer_finish(&judgement->heldout_json);
    live_leave(judgement->live);
    free(judgement);
}

void judgement_take_frame(struct judgement *judgement, struct buffer *frame, bool too_large)
{
    judgement->frame = *frame;
    judgement->frame_too_large = too_large;
    buffer_init(frame, 0);
}

/* To a worker: it holds a place already. */
static void submit(struct judgement *judgement, void (*run)(struct job *job, struct store_reader *reader),
                   void (*done)(struct job *job))
{
    judgement->on_worker = true;
    judgement->job.lane = LANE_BATCH;
    judgement->job.run = run;
    judgement->job.done = done;
    workers_submit_reserved(judgement->live->batches->uses.workers, &judgement->job);
}

/* --- verdicts ---------------------------------------------------------------------------------------------- */

static void judged(struct job *job)
{
    struct judgement *judgement = (struct judgement *)job;
    judgement->on_worker = false;
    if (judgement->detached) {
        judgement_destroy(judgement);
        return;
    }
    live_post(judgement->live, &(struct batch_event){
                                   .kind = judgement->reward.failure ? EVENT_VERIFY_FAILED : EVENT_JUDGED,
                                   .index = judgement->rollout,
                               });
}

/* Worker: reads the verdicts, combines the reward, writes what the record keeps. */
static void judge(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct judgement *judgement = (struct judgement *)job;
    const struct verifier_list *asked = live_group(judgement->live, judgement->rollout)->verifiers;
    const struct verifier_list *list = judgement->given ? judgement->given->verifiers : asked;
    struct json_write json;

    judgement->verify.list = asked; /* also where the verifiers were not asked */
    verdict_set_read(&judgement->verify, &judgement->verdicts);
    if (judgement->given)
        verdict_set_add_given(&judgement->verdicts, judgement->given->given_scores, judgement->given->given_count);
    metric_add(METRIC_VERDICTS_UNDECIDED, 0, (int64_t)verdict_set_undecided(&judgement->verdicts));
    judgement->has_verdicts = true;
    judgement->reward = reward_combine(list, &judgement->verdicts, (enum reward_missing)judgement->live->spec->missing);
    json_write_init(&json, &judgement->verdicts_json);
    verdict_set_write(&json, list, &judgement->verdicts);
    json_write_init(&json, &judgement->rewards_json);
    rewards_write(&json, list, &judgement->verdicts);
    json_write_init(&json, &judgement->heldout_json);
    heldout_write(&json, list, &judgement->verdicts);
}

static void verified(struct verify_job *verify)
{
    struct judgement *judgement = (struct judgement *)((char *)verify - offsetof(struct judgement, verify));
    judgement->asked = false;
    judgement->verify_us = clock_monotonic_us() - judgement->asked_us;
    metric_observe_us(METRIC_VERIFY_SECONDS, judgement->verify_us);
    buffer_finish(&judgement->frame);
    submit(judgement, judge, judged);
}

static void fill_job(struct judgement *judgement)
{
    struct live_batch *live = judgement->live;
    char group_id[ID_BYTES];
    id_of_group(live->id, live->batch.rollouts[judgement->rollout].group, group_id);
    id_of_rollout(group_id, live_sample_index(live, judgement->rollout), judgement->rollout_id);
    judgement->verify.frame = judgement->frame.data;
    judgement->verify.frame_bytes = judgement->frame.length_bytes;
    judgement->verify.list = live_group(live, judgement->rollout)->verifiers;
    judgement->verify.verifier_count = judgement->verify.list->count;
    judgement->verify.run = live->run->name;
    judgement->verify.rollout = judgement->rollout_id;
    judgement->verify.request_id = live->request_id[0] ? live->request_id : NULL;
    judgement->verify.lane = VERIFY_BULK;
    judgement->verify.timeout_us = live->batches->uses.settings->verify_timeout_us;
    judgement->verify.done = verified;
}

void judgement_ask(struct judgement *judgement)
{
    judgement->asked_us = clock_monotonic_us();
    fill_job(judgement);
    if (judgement->frame_too_large) {
        judgement->verify.failure_code = "verifier_input_too_large";
        judgement->verify.failure_message = "the completion and its reference are larger than a worker reads";
    } else if (verify_submit(judgement->live->batches->uses.verify_pool, &judgement->verify)) {
        judgement->asked = true;
        return;
    } else {
        judgement->verify.failure_code = "verifier_unavailable";
        judgement->verify.failure_message = "the queue of the text workers is full";
        metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_VERIFY, 1);
    }
    submit(judgement, judge, judged);
}

void judgement_stop(struct judgement *judgement)
{
    if (judgement->on_worker) { /* judged() or prepared() ends it */
        judgement->detached = true;
        return;
    }
    if (judgement->asked)
        verify_cancel_job(judgement->live->batches->uses.verify_pool, &judgement->verify);
    judgement_destroy(judgement);
}

/* --- completions that came with the request ------------------------------------------------------------------- */

static bool given_failed(const struct judgement *judgement)
{
    return judgement->given->failure.code.data || (judgement->has_verdicts && judgement->reward.failure);
}

static void prepared(struct job *job)
{
    struct judgement *judgement = (struct judgement *)job;
    judgement->on_worker = false;
    if (judgement->detached) {
        judgement_destroy(judgement);
        return;
    }
    live_post(judgement->live,
              &(struct batch_event){.kind = given_failed(judgement) ? EVENT_SAMPLE_FAILED : EVENT_SAMPLED,
                                    .index = judgement->rollout,
                                    .judged = live_group(judgement->live, judgement->rollout)->verifiers->count == 0});
}

/* Worker: the frame for the verifiers; if there are none to ask, the rewards of the request are the whole judgement. */
static void prepare(struct job *job, struct store_reader *reader)
{
    struct judgement *judgement = (struct judgement *)job;
    const struct completion_spec *given = judgement->given;
    const struct group_spec *group = live_group(judgement->live, judgement->rollout);

    if (given->failure.code.data)
        return;
    if (group->verifiers->count > 0)
        judgement->frame_too_large = verify_request_build(group->verifiers, given->text, group->prompt,
                                                          given->ids ? (int64_t)given->token_count : -1,
                                                          group->reference_json, &judgement->frame) < 0;
    else if (given->given_count > 0)
        judge(job, reader);
}

void judgement_prepare(struct judgement *judgement)
{
    submit(judgement, prepare, prepared);
}
