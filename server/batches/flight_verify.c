/* One rollout on its way: what the verifiers say of it, and completions that came with the request. */
#include "server/batches/flight.h"

#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/runs.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <stddef.h>

/* --- verifying ---------------------------------------------------------------------------------------------- */

static void judged(struct job *job)
{
    struct flight *flight = (struct flight *)job;
    flight->on_worker = false;
    if (flight->detached) {
        flight_destroy(flight);
        return;
    }
    live_post(flight->live, &(struct batch_event){
                                .kind = flight->reward.failure ? EVENT_VERIFY_FAILED : EVENT_JUDGED,
                                .index = flight->rollout,
                            });
}

/* Worker: reads the verdicts, combines the reward, writes what the record keeps. */
static void judge(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct flight *flight = (struct flight *)job;
    const struct verifier_list *asked = flight_group(flight)->verifiers;
    const struct verifier_list *list = flight->given ? flight->given->verifiers : asked;
    struct json_write json;

    flight->verify.list = asked; /* also where the verifiers were not asked */
    verdict_set_read(&flight->verify, &flight->verdicts);
    if (flight->given)
        verdict_set_add_given(&flight->verdicts, flight->given->given_scores, flight->given->given_count);
    metric_add(METRIC_VERDICTS_UNDECIDED, 0, (int64_t)verdict_set_undecided(&flight->verdicts));
    flight->has_verdicts = true;
    flight->reward = reward_combine(list, &flight->verdicts, (enum reward_missing)flight->live->spec->missing);
    json_write_init(&json, &flight->verdicts_json);
    verdict_set_write(&json, list, &flight->verdicts);
    json_write_init(&json, &flight->rewards_json);
    rewards_write(&json, list, &flight->verdicts);
    json_write_init(&json, &flight->heldout_json);
    heldout_write(&json, list, &flight->verdicts);
}

static void verified(struct verify_job *verify)
{
    struct flight *flight = (struct flight *)((char *)verify - offsetof(struct flight, verify));
    flight->verify_us = clock_monotonic_us() - flight->verify_began_us;
    metric_observe_us(METRIC_VERIFY_SECONDS, flight->verify_us);
    buffer_finish(&flight->frame);
    flight_submit(flight, judge, judged);
}

void flight_verify(struct flight *flight)
{
    char group_id[ID_BYTES];
    flight->verify_began_us = clock_monotonic_us();
    flight->verify.frame = flight->frame.data;
    flight->verify.frame_bytes = flight->frame.length_bytes;
    flight->verify.list = flight_group(flight)->verifiers;
    flight->verify.verifier_count = flight->verify.list->count;
    flight->verify.run = flight->live->run->name;
    flight->verify.rollout = flight->rollout_id;
    flight->verify.request_id = flight->live->request_id[0] ? flight->live->request_id : NULL;
    id_of_group(flight->live->id, flight->live->batch.rollouts[flight->rollout].group, group_id);
    id_of_rollout(group_id, flight_sample_index(flight), flight->rollout_id);
    flight->verify.lane = VERIFY_BULK;
    flight->verify.timeout_us = flight->live->batches->uses.settings->verify_timeout_us;
    flight->verify.done = verified;
    if (flight->frame_too_large) {
        flight->verify.failure_code = "verifier_input_too_large";
        flight->verify.failure_message = "the completion and its reference are larger than a worker reads";
    } else if (verify_submit(flight->live->batches->uses.verify_pool, &flight->verify)) {
        return;
    } else {
        flight->verify.failure_code = "verifier_unavailable";
        flight->verify.failure_message = "the queue of the text workers is full";
        metric_add(METRIC_QUEUE_REFUSALS, METRIC_QUEUE_VERIFY, 1);
    }
    flight_submit(flight, judge, judged);
}

void flight_stop_verifying(struct flight *flight)
{
    if (flight->on_worker) { /* judged() ends it */
        flight->detached = true;
        flight->live->flights[flight->rollout] = NULL;
        return;
    }
    if (flight->has_verdicts) /* they came behind what ends it */
        verdict_set_finish(&flight->verdicts);
    flight->has_verdicts = false;
    verify_cancel_job(flight->live->batches->uses.verify_pool, &flight->verify);
}

/* --- completions that came with the request ------------------------------------------------------------------- */

static bool given_failed(const struct flight *flight)
{
    return flight->given->failure.code.data || (flight->has_verdicts && flight->reward.failure);
}

static void prepared(struct job *job)
{
    struct flight *flight = (struct flight *)job;
    flight->on_worker = false;
    if (flight->detached) {
        flight_destroy(flight);
        return;
    }
    live_post(flight->live, &(struct batch_event){.kind = given_failed(flight) ? EVENT_SAMPLE_FAILED : EVENT_SAMPLED,
                                                  .index = flight->rollout,
                                                  .judged = flight_group(flight)->verifiers->count == 0});
}

/* Worker: the frame for the verifiers; if there are none to ask, the rewards of the request are the whole judgement. */
static void prepare(struct job *job, struct store_reader *reader)
{
    struct flight *flight = (struct flight *)job;
    const struct completion_spec *given = flight->given;
    const struct group_spec *group = flight_group(flight);

    if (given->failure.code.data)
        return;
    if (group->verifiers->count > 0)
        flight->frame_too_large = verify_request_build(group->verifiers, given->text, group->prompt,
                                                       given->ids ? (int64_t)given->token_count : -1,
                                                       group->reference_json, &flight->frame) < 0;
    else if (given->given_count > 0)
        judge(job, reader);
}

void flight_take_given(struct flight *flight)
{
    flight->dispatched_us = clock_monotonic_us();
    flight_submit(flight, prepare, prepared);
}
