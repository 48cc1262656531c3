#include "server/batches/verification_private.h"

#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/live.h"
#include "server/batches/placement_private.h"
#include "server/batches/runs.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <stddef.h>

#define VERDICTS_MAX_BYTES ((size_t)16 << 20)
#define FRAME_MAX_BYTES ((size_t)256 << 20)

/* --- life -------------------------------------------------------------------------------------------------- */

struct verification *verification_create(struct live_batch *live, uint32_t rollout)
{
    struct verification *verification = xcalloc(1, sizeof(*verification));
    verification->live = live;
    verification->rollout = rollout;
    verification->given = live_given(live, rollout);
    verification->taken_us = clock_monotonic_us();
    buffer_init(&verification->frame, FRAME_MAX_BYTES);
    buffer_init(&verification->member, FRAME_MAX_BYTES);
    buffer_init(&verification->verdicts_json, VERDICTS_MAX_BYTES);
    buffer_init(&verification->rewards_json, VERDICTS_MAX_BYTES);
    buffer_init(&verification->heldout_json, VERDICTS_MAX_BYTES);
    live->jobs++;
    return verification;
}

void verification_destroy(struct verification *verification)
{
    if (!verification)
        return;
    if (verification->has_verdicts)
        verdict_set_finish(&verification->verdicts);
    verify_job_finish(&verification->verify);
    verdict_records_free(verification->told, live_group(verification->live, verification->rollout)->verifiers->count);
    buffer_finish(&verification->member);
    buffer_finish(&verification->frame);
    buffer_finish(&verification->verdicts_json);
    buffer_finish(&verification->rewards_json);
    buffer_finish(&verification->heldout_json);
    free(verification->token_ends);
    placement_destroy(verification->placement);
    live_leave(verification->live);
    free(verification);
}

void verification_take_frame(struct verification *verification, struct buffer *frame, bool too_large)
{
    verification->frame = *frame;
    verification->frame_too_large = too_large;
    buffer_init(frame, 0);
}

void verification_take_member(struct verification *verification, struct buffer *member)
{
    verification->member = *member;
    buffer_init(member, 0);
}

void verification_take_ends(struct verification *verification, const uint32_t *token_ends, size_t token_count,
                            struct placement *placement)
{
    verification->placement = placement;
    verification->token_count = token_count;
    if (!token_ends)
        return;
    verification->token_ends = xcalloc(token_count + 1, sizeof(uint32_t));
    memcpy(verification->token_ends, token_ends, token_count * sizeof(uint32_t));
}

/* To a worker: it holds a place already. */
static void submit(struct verification *verification, void (*run)(struct job *job, struct store_reader *reader),
                   void (*done)(struct job *job))
{
    verification->on_worker = true;
    verification->job.lane = LANE_BATCH;
    verification->job.run = run;
    verification->job.done = done;
    workers_submit_reserved(verification->live->batches->uses.workers, &verification->job);
}

/* --- verdicts ---------------------------------------------------------------------------------------------- */

static void place_on(struct verification *verification);

static void verdicts_are_read(struct job *job)
{
    struct verification *verification = (struct verification *)job;
    verification->on_worker = false;
    if (verification->detached) {
        verification_destroy(verification);
        return;
    }
    if (verification->is_placing) {
        place_on(verification);
        return;
    }
    live_post(verification->live, &(struct batch_event){
                                      .kind = verification->reward.failure ? EVENT_VERIFY_FAILED : EVENT_VERIFIED,
                                      .index = verification->rollout,
                                  });
}

/* By what the request says of its completion, the engine's reply of its sample, or what the engine was asked then. */
static void place_steps(struct verification *verification)
{
    const struct completion_spec *given = verification->given;
    const uint32_t *ends = given                      ? given->token_ends
                           : verification->token_ends ? verification->token_ends
                           : verification->placement  ? placement_ends(verification->placement)
                                                      : NULL;
    verdict_set_place_steps(&verification->verdicts, ends, given ? given->token_count : verification->token_count);
}

/* Worker: combines the reward, writes the texts for the record. */
static void settle_verdicts(struct verification *verification, const struct verifier_list *list)
{
    struct json_write json;

    place_steps(verification);
    verdict_set_count(&verification->verdicts, list);
    metric_add(METRIC_VERDICTS_UNDECIDED, 0, (int64_t)verdict_set_undecided(&verification->verdicts));
    verification->reward =
        reward_combine(list, &verification->verdicts, (enum reward_missing)verification->live->spec->missing);
    json_write_init(&json, &verification->verdicts_json);
    verdict_set_write(&json, list, &verification->verdicts);
    json_write_init(&json, &verification->rewards_json);
    rewards_write(&json, list, &verification->verdicts);
    json_write_init(&json, &verification->heldout_json);
    heldout_write(&json, list, &verification->verdicts);
}

/* Worker: reads the verdicts. They are settled at once, unless the engine has to be asked for the ends of their steps. */
static void read_verdicts(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct verification *verification = (struct verification *)job;
    const struct verifier_list *asked = live_group(verification->live, verification->rollout)->verifiers;

    verification->verify.list = asked; /* also where the verifiers were not asked */
    verification->verify.told = verification->told;
    verdict_set_read(&verification->verify, &verification->verdicts);
    verification->has_verdicts = true;
    if (verification->given)
        verdict_set_add_given(&verification->verdicts, verification->given->given, verification->given->given_count);
    verification->is_placing =
        verification->placement && placement_aim(verification->placement, &verification->verdicts);
    if (!verification->is_placing)
        settle_verdicts(verification, verification->given ? verification->given->verifiers : asked);
}

/* --- ends of steps that the engine is asked for --------------------------------------------------------------- */

static void read_answers(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct verification *verification = (struct verification *)job;

    verification->is_placing = placement_read(verification->placement);
    if (!verification->is_placing)
        settle_verdicts(verification, live_group(verification->live, verification->rollout)->verifiers);
}

static void replied(void *arg)
{
    struct verification *verification = arg;
    submit(verification, read_answers, verdicts_are_read);
}

static void place_on(struct verification *verification)
{
    placement_send(verification->placement, verification->live->batches->uses.settings->verify_timeout_us, replied,
                   verification);
}

static void verified(struct verify_job *verify)
{
    struct verification *verification = (struct verification *)((char *)verify - offsetof(struct verification, verify));
    verification->asked = false;
    verification->verify_us = clock_monotonic_us() - verification->asked_us;
    metric_observe_us(METRIC_VERIFY_SECONDS, verification->verify_us);
    buffer_finish(&verification->frame);
    submit(verification, read_verdicts, verdicts_are_read);
}

static void name_rollout(const struct live_batch *live, uint32_t rollout, char ret_id[ID_BYTES])
{
    char group_id[ID_BYTES];
    id_of_group(live->id, live->batch.rollouts[rollout].group, group_id);
    id_of_rollout(group_id, live_sample_index(live, rollout), ret_id);
}

int verification_build_frame(const struct live_batch *live, uint32_t rollout, struct text completion,
                             const uint32_t *ids, size_t id_count, struct buffer *out, struct buffer *ret_member)
{
    const struct group_spec *group = live_group(live, rollout);
    char id[ID_BYTES];
    name_rollout(live, rollout, id);
    struct verify_subject subject = {.completion = completion,
                                     .prompt = group->prompt,
                                     .reference_json = group->reference_json,
                                     .completion_tokens = ids ? (int64_t)id_count : -1,
                                     .id = text_of(id),
                                     .task = group->task,
                                     .messages_json = group->messages,
                                     .metadata_json = group->metadata_json,
                                     .completion_ids = ids,
                                     .completion_id_count = id_count};

    if (verifier_list_has_group(group->verifiers))
        verify_member_write(&subject, ret_member);
    return verify_request_build(group->verifiers, &subject, out);
}

static void fill_job(struct verification *verification)
{
    struct live_batch *live = verification->live;
    name_rollout(live, verification->rollout, verification->rollout_id);
    verification->verify.frame = verification->frame.data;
    verification->verify.frame_bytes = verification->frame.length_bytes;
    verify_job_ask(&verification->verify, live_group(live, verification->rollout)->verifiers,
                   live->batches->uses.settings->verify_timeout_us);
    verification->verify.run = live->run->name;
    verification->verify.rollout = verification->rollout_id;
    verification->verify.request_id = live->request_id[0] ? live->request_id : NULL;
    verification->verify.lane = VERIFY_BULK;
    verification->verify.done = verified;
}

void verification_ask(struct verification *verification)
{
    verification->asked_us = clock_monotonic_us();
    fill_job(verification);
    if (verification->frame_too_large) {
        verify_job_fail(&verification->verify, "verifier_input_too_large",
                        "the completion and its reference are larger than a worker reads");
    } else if (verify_submit(verification->live->batches->uses.verify_pool, &verification->verify)) {
        verification->asked = true;
        return;
    } else {
        verify_job_fail(&verification->verify, "verifier_unavailable", "the queue of the workers is full");
        metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_VERIFY, 1);
    }
    submit(verification, read_verdicts, verdicts_are_read);
}

void verification_stop(struct verification *verification)
{
    if (verification->on_worker) { /* verdicts_are_read() or prepared() ends it */
        verification->detached = true;
        return;
    }
    if (verification->asked)
        verify_cancel_job(verification->live->batches->uses.verify_pool, &verification->verify);
    verification_destroy(verification);
}

/* --- completions that came with the request ------------------------------------------------------------------- */

static bool given_failed(const struct verification *verification)
{
    return verification->given->failure.code.data || (verification->has_verdicts && verification->reward.failure);
}

static void prepared(struct job *job)
{
    struct verification *verification = (struct verification *)job;
    verification->on_worker = false;
    if (verification->detached) {
        verification_destroy(verification);
        return;
    }
    live_post(verification->live,
              &(struct batch_event){.kind = given_failed(verification) ? EVENT_SAMPLE_FAILED : EVENT_SAMPLED,
                                    .index = verification->rollout,
                                    .nothing_to_verify =
                                        live_group(verification->live, verification->rollout)->verifiers->count == 0});
}

/* Worker: the frame for the verifiers; if there are none to ask, the rewards of the request are all there is to read. */
static void prepare(struct job *job, struct store_reader *reader)
{
    struct verification *verification = (struct verification *)job;
    const struct completion_spec *given = verification->given;
    const struct group_spec *group = live_group(verification->live, verification->rollout);

    if (given->failure.code.data)
        return;
    if (group->verifiers->count > 0)
        verification->frame_too_large =
            verification_build_frame(verification->live, verification->rollout, given->text, given->ids,
                                     given->token_count, &verification->frame, &verification->member) < 0;
    else if (given->given_count > 0)
        read_verdicts(job, reader);
}

void verification_prepare(struct verification *verification)
{
    submit(verification, prepare, prepared);
}
