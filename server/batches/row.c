#include "server/batches/row.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/flight.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/unstored.h"
#include "server/record/store_desk.h"
#include "server/runtime/metrics.h"

#include <math.h>

/* --- what it says ------------------------------------------------------------------------------------------- */

/* An evaluation may be meant of older weights than the run's: then only a change while the sample was in flight counts.
 */
static int64_t revision_at_end(const struct flight *flight)
{
    const struct live_batch *live = flight->live;
    bool changed = flight->end_revision != flight->run_revision;
    if (flight->mixed_revision >= 0)
        return flight->mixed_revision;
    if (live->spec->purpose == STORE_EVAL && !live->was_current && !changed)
        return flight->revision;
    return flight->end_revision >= 0 ? flight->end_revision : flight->revision;
}

/* A weight update may have reached the engine before the sample was complete: its revision changed, the trainer went
 * back to a checkpoint (perhaps to one of the same number), or an update in mode straddle was open. */
static bool straddles(const struct flight *flight)
{
    return flight->row.revision_at_end != flight->row.policy_revision ||
           flight->end_incarnation != flight->incarnation || flight->mixed_revision >= 0;
}

/* Only where the engine named several: the weights of a whole sample are its engine_revision. */
static void write_segments(struct flight *flight)
{
    const struct sample *sample = &flight->sample;
    struct json_write json;
    json_write_init(&json, &flight->segments_json);
    json_array_begin(&json);
    for (size_t i = 0; i < sample->segment_count; i++) {
        json_object_begin(&json);
        json_put_int(&json, "start", (int64_t)sample->segments[i].start);
        json_put_int(&json, "end", (int64_t)sample->segments[i].end);
        json_put_text(&json, "engine_revision", sample->segments[i].revision);
        json_object_end(&json);
    }
    json_array_end(&json);
}

static void fill_sample(struct flight *flight)
{
    struct store_rollout *row = &flight->row;
    const struct sample *sample = &flight->sample;
    row->text = sample->text;
    row->text_replaced = (int64_t)sample->text_replaced;
    row->completion_ids = sample->ids;
    row->logprobs = sample->logprobs;
    row->token_count = sample->id_count;
    row->completion_tokens = (int64_t)sample->id_count;
    row->finish_reason = text_of(finish_reason_names[sample->finish]);
    row->eos_in_ids = sample->ids ? (sample->eos_in_ids ? STORE_KNOWN_YES : STORE_KNOWN_NO) : STORE_KNOWN_UNKNOWN;
    row->trainable = sample->trainable;
    row->logprobs_mode = sample->logprobs_mode == LOGPROBS_RAW         ? STORE_LOGPROBS_RAW
                         : sample->logprobs_mode == LOGPROBS_PROCESSED ? STORE_LOGPROBS_PROCESSED
                                                                       : STORE_LOGPROBS_UNKNOWN;
    row->engine_revision = sample->engine_revision;
    row->seed_sent = (int64_t)sample->seed_sent;
    row->seed_honoured = sample->seed_honoured ? STORE_KNOWN_YES : STORE_KNOWN_NO;
    row->revision_at_end = revision_at_end(flight);
    row->straddles = straddles(flight) || sample->segment_count > 1;
    if (sample->segment_count <= 1)
        return;
    write_segments(flight);
    row->segments = buffer_text(&flight->segments_json);
}

/* Sampled elsewhere: what is not said about it is not known. */
static void fill_given(struct flight *flight)
{
    struct store_rollout *row = &flight->row;
    const struct completion_spec *given = flight->given;
    row->text = given->text;
    row->completion_ids = given->ids;
    row->logprobs = given->logprobs;
    row->completion_mask = given->mask;
    row->token_count = given->token_count;
    row->completion_tokens = (int64_t)given->token_count;
    row->finish_reason = given->finish_reason;
    row->trainable = given->ids != NULL;
    row->engine = given->engine;
    row->seed_sent = given->seed;
    row->revision_at_end = row->policy_revision;
}

static void fill_common(struct flight *flight)
{
    struct live_batch *live = flight->live;
    const struct batch_rollout *rollout = &live->batch.rollouts[flight->rollout];
    flight->row = (struct store_rollout){
        .sample_index = flight_sample_index(flight),
        .incarnation = flight->incarnation,
        .reward = NAN,
        .advantage = NAN,
        .shaped_reward = NAN,
        .policy_revision = flight->revision >= 0 ? flight->revision : live->sampled_revision,
        .revision_at_end = -1,
        .resample = rollout->resample,
        .attempts = rollout->attempts,
        .seed = flight_seed(flight),
        .seed_sent = -1,
        .seed_honoured = STORE_KNOWN_UNKNOWN,
        .eos_in_ids = STORE_KNOWN_UNKNOWN,
        .engine = flight->engine ? text_of(flight->engine->name) : TEXT_NONE,
        .queued_us = (flight->dispatched_us ? flight->dispatched_us : clock_monotonic_us()) - live->admitted_us,
        .engine_us = flight->engine_us,
        .verify_us = flight->verify_us,
    };
    if (flight->has_sample)
        fill_sample(flight);
    if (flight->given)
        fill_given(flight);
    if (!flight->has_verdicts)
        return;
    flight->row.verdicts = buffer_text(&flight->verdicts_json);
    flight->row.rewards = buffer_text(&flight->rewards_json);
    flight->row.heldout = buffer_text(&flight->heldout_json);
}

static void fill_failure(struct flight *flight, enum rollout_end end)
{
    struct store_failure *failure = &flight->row.failure;
    failure->attempts = flight->live->batch.rollouts[flight->rollout].attempts;
    failure->stage = flight->has_sample || flight->given ? TEXT_LITERAL("verify") : TEXT_LITERAL("sample");
    if (end == END_DEADLINE) {
        failure->code = TEXT_LITERAL("deadline");
        failure->message = TEXT_LITERAL("the batch's deadline passed before this rollout was finished");
        failure->retryable = true;
    } else if (end == END_CANCELLED) {
        failure->code = TEXT_LITERAL("cancelled");
        failure->message = TEXT_LITERAL("the batch was cancelled");
    } else if (flight->given && flight->given->failure.code.data) {
        *failure = flight->given->failure;
    } else if (flight->has_verdicts) {
        failure->code = text_of(flight->reward.failure->failure_code);
        failure->message = text_of(flight->reward.failure->failure_message);
        failure->retryable = flight->reward.failure->retryable;
    } else {
        failure->code = text_of(sample_failure_names[flight->error.code]);
        failure->message = text_of(flight->error.message);
        failure->retryable = flight->error.retryable;
    }
}

static void fill_row(struct flight *flight)
{
    struct live_batch *live = flight->live;
    enum rollout_end end = live->batch.rollouts[flight->rollout].end;
    fill_common(flight);
    if (end == END_SCORED) {
        flight->row.state = STORE_ROLLOUT_SCORED;
        flight->row.reward = flight->has_verdicts && flight->reward.rewarded ? flight->reward.value : NAN;
        live->rewards[flight->rollout] = flight->row.reward;
        return;
    }
    flight->row.state = end == END_CANCELLED ? STORE_ROLLOUT_CANCELLED : STORE_ROLLOUT_FAILED;
    fill_failure(flight, end);
}

/* --- to the store ------------------------------------------------------------------------------------------- */

static void submit_or_queue(struct flight *flight)
{
    struct batches *batches = flight->live->batches;
    if (!batches->backlog_first && store_submit(batches->uses.store, &flight->op))
        return;
    flight->backlog_next = NULL;
    *batches->backlog_last = flight;
    batches->backlog_last = &flight->backlog_next;
}

void rows_pump_backlog(struct batches *batches)
{
    while (batches->backlog_first && store_submit(batches->uses.store, &batches->backlog_first->op)) {
        batches->backlog_first = batches->backlog_first->backlog_next;
        if (!batches->backlog_first)
            batches->backlog_last = &batches->backlog_first;
    }
}

/* Kept in memory is stored. */
static void keep_unstored(struct flight *flight)
{
    struct live_batch *live = flight->live;
    uint32_t rollout = flight->rollout;
    unstored_keep_rollout(flight);
    flight_destroy(flight);
    live_post(live, &(struct batch_event){.kind = EVENT_STORED, .index = rollout});
}

static void rollout_stored(struct store_op *op);

void live_store_rollout(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = live->flights[rollout];
    uint32_t group = live->batch.rollouts[rollout].group;
    if (!flight)
        flight = flight_create(live, rollout);
    fill_row(flight);
    if (live->unstored) {
        keep_unstored(flight);
        return;
    }
    id_of_group(live->id, group, flight->group_id);
    flight->op = (struct store_op){
        .kind = STORE_INSERT_ROLLOUT, .reserved = flight->dispatched, .done = rollout_stored, .context = flight};
    flight->op.insert_rollout = (struct store_insert_rollout){.group_id = flight->group_id,
                                                              .rollout = &flight->row,
                                                              .prompt_ids = live->group_prompt_ids[group],
                                                              .prompt_id_count = live->group_prompt_id_counts[group]};
    submit_or_queue(flight);
}

/* --- what the store says ------------------------------------------------------------------------------------ */

static void pump(void *arg)
{
    rows_pump_backlog(arg);
}

/* Nothing is given up: the row is written again until the disk takes it. */
static void write_again(struct flight *flight)
{
    struct batches *batches = flight->live->batches;
    flight->op.reserved = false;
    flight->backlog_next = NULL;
    *batches->backlog_last = flight;
    batches->backlog_last = &flight->backlog_next;
    loop_timer_set(batches->uses.loop, &batches->backlog_timer, clock_monotonic_us() + STORE_RETRY_US, pump, batches);
    live_tell_not_stored(flight->live, flight->op.status);
}

static void log_refused_row(const struct flight *flight)
{
    char rollout_id[ID_BYTES];
    id_of_rollout(flight->group_id, flight->row.sample_index, rollout_id);
    log_event(LOG_LEVEL_ERROR, "a rollout was refused by the store", "batch", flight->live->id, "rollout", rollout_id,
              "why", flight->op.message, NULL);
}

static void rollout_stored(struct store_op *op)
{
    struct flight *flight = op->context;
    struct live_batch *live = flight->live;
    uint32_t rollout = flight->rollout;

    if (store_failed_for_now(op->status)) {
        write_again(flight);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_refused_row(flight);
    metric_add(METRIC_ROLLOUTS, flight->row.state, 1);
    if (flight->row.failure.code.data)
        metric_add_named(METRIC_FAILURES, flight->row.failure.code.data, 1);
    metric_add(METRIC_COMPLETION_TOKENS, 0, flight->row.completion_tokens);
    flight->op.reserved = true; /* its place in the queue is used up */
    flight_destroy(flight);
    live_post(live, &(struct batch_event){.kind = EVENT_STORED, .index = rollout});
}
