/* What live batches write: rows, closed groups, closed batches. Asynchronous: each comes back as an event once it is on
 * disk. */
#include "server/batches/live.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/closing_group.h"
#include "server/batches/observer.h"
#include "server/batches/unstored.h"
#include "server/runtime/metrics.h"

#include <math.h>
#include <stdio.h>

/* --- a row ------------------------------------------------------------------------------------------------ */

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

static void submit_or_queue(struct flight *flight)
{
    struct batches *batches = flight->live->batches;
    if (!batches->backlog_first && store_submit(batches->uses.store, &flight->op))
        return;
    flight->backlog_next = NULL;
    *batches->backlog_last = flight;
    batches->backlog_last = &flight->backlog_next;
}

void batches_pump_backlog(struct batches *batches)
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
    live->jobs++;
    flight_destroy(flight);
    live_event(live, &(struct batch_event){.kind = EVENT_STORED, .index = rollout});
    live->jobs--;
}

static void rollout_stored(struct store_op *op);

void live_store_rollout(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = live->flights[rollout];
    uint32_t group = live->batch.rollouts[rollout].group;
    if (!flight)
        flight = flight_create(live, rollout);
    flight->stage = FLIGHT_STORING;
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
    batches_pump_backlog(arg);
}

static void tell_observers(const struct live_batch *live, enum store_status status)
{
    live_tell_held_up(live, status == STORE_DISK_FULL ? LIVE_DISK_FULL : LIVE_NOT_WRITTEN);
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
    tell_observers(flight->live, flight->op.status);
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
    live->jobs++;               /* it may end with this event */
    flight->op.reserved = true; /* its place in the queue is used up */
    flight_destroy(flight);
    live_event(live, &(struct batch_event){.kind = EVENT_STORED, .index = rollout});
    live->jobs--;
    live_destroy_if_done(live);
}

/* --- groups and batches --------------------------------------------------------------------------------------- */

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

static void group_closed(struct store_op *op);
static void batch_closed(struct store_op *op);

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
        .reward_mean = statistics->judged ? statistics->mean : NAN,
        .reward_std = statistics->judged ? statistics->std : NAN,
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

/* Groups [first, first + count) whose advantages follow from their rewards alone. */
static void close_by_rewards(struct live_batch *live, uint32_t first, uint32_t count)
{
    const struct batch_group *last = &live->batch.groups[first + count - 1];
    uint32_t begin = live->batch.groups[first].first;
    size_t members = last->first + last->count - begin;
    _cleanup_free_ struct objective_sequence *sequences = xcalloc(members + 1, sizeof(*sequences));
    _cleanup_free_ struct objective_group *groups = xcalloc(count, sizeof(*groups));
    struct objective_knobs knobs;
    struct objective_error error;

    for (size_t i = 0; i < members; i++)
        sequences[i] = (struct objective_sequence){.group = live->batch.rollouts[begin + i].group - first,
                                                   .reward = live->rewards[begin + i],
                                                   .judged = !isnan(live->rewards[begin + i])};
    objective_at_sampling(&live->spec->objective, &knobs);
    struct objective_request request = {
        .knobs = &knobs, .sequences = sequences, .sequence_count = members, .groups = groups, .group_count = count};
    bool computed = objective_advantages(&request, &error) == 0;
    for (uint32_t g = 0; g < count; g++) {
        const struct batch_group *group = &live->batch.groups[first + g];
        double *advantages = xcalloc(group->count + 1, sizeof(double));
        double *shaped = xcalloc(group->count + 1, sizeof(double));
        for (uint32_t i = 0; i < group->count; i++) {
            advantages[i] = computed ? sequences[group->first - begin + i].advantage : NAN;
            shaped[i] = live->rewards[group->first + i];
        }
        live_store_closing(live, first + g, &groups[g], advantages, shaped);
    }
}

/* By a rule over the whole batch advantages exist only when the last group is ready. */
void live_close_group(struct live_batch *live, uint32_t group)
{
    bool whole = objective_needs_whole_batch(&live->spec->objective);
    uint32_t first = whole ? 0 : group;
    uint32_t count = whole ? (uint32_t)live->batch.group_count : 1;

    if (whole && ++live->groups_ready < live->batch.group_count)
        return;
    if (group_record_is_needed(&live->spec->objective))
        live_close_by_record(live, first, count);
    else
        close_by_rewards(live, first, count);
}

static void group_closed(struct store_op *op)
{
    struct group_op *close = op->context;
    struct live_batch *live = close->live;
    if (store_desk_send_again(&close->errand)) {
        tell_observers(live, op->status);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_event(LOG_LEVEL_ERROR, "a group was refused by the store", "group", close->id, "why", op->message, NULL);
    if (!live->batch.groups[close->group].closed)
        live_tell_group_closed(live, close->group);
    live_event(live, &(struct batch_event){.kind = EVENT_GROUP_CLOSED, .index = close->group});
    free(close->advantages);
    free(close->shaped);
    free(close);
    live->jobs--;
    live_destroy_if_done(live);
}

static void batch_closed(struct store_op *op)
{
    struct close_job *close = op->context;
    struct live_batch *live = close->live;
    struct batches *batches = live->batches;
    if (store_desk_send_again(&close->errand)) {
        tell_observers(live, op->status);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_event(LOG_LEVEL_ERROR, "a batch was refused by the store", "batch", live->id, "why", op->message, NULL);
    batches->without_scored = close->scored > 0 ? 0 : batches->without_scored + 1;
    metric_set(METRIC_BATCHES_WITHOUT_SCORED, 0, (int64_t)batches->without_scored);
    live->scored = close->scored;
    live_event(live, &(struct batch_event){.kind = EVENT_BATCH_CLOSED});
    buffer_finish(&close->notes);
    buffer_finish(&close->summary);
    free(close);
    live->jobs--;
    live_destroy_if_done(live);
}

enum store_batch_state live_end_state(const struct live_batch *live)
{
    static const enum store_batch_state states[] = {[BATCH_COMPLETE] = STORE_BATCH_COMPLETE,
                                                    [BATCH_CANCELLED] = STORE_BATCH_CANCELLED,
                                                    [BATCH_EXPIRED] = STORE_BATCH_EXPIRED};
    return states[live->batch.outcome];
}

static void cannot_be_read(void *arg)
{
    live_tell_held_up(arg, LIVE_NOT_READ);
}

struct read_again live_read_again(struct live_batch *live)
{
    return (struct read_again){.loop = live->batches->uses.loop,
                               .workers = live->batches->uses.workers,
                               .batch = live->id,
                               .failed = cannot_be_read,
                               .arg = live};
}

static void close_computed(struct job *job)
{
    struct close_job *close = (struct close_job *)job;
    struct live_batch *live = close->live;
    if (close->status == STORE_UNAVAILABLE) {
        read_again_later(&close->again, &close->job);
        return;
    }
    close->errand = errand_of(live->batches);
    close->errand.op = (struct store_op){.kind = STORE_CLOSE_BATCH, .done = batch_closed, .context = close};
    close->errand.op.close_batch = (struct store_close_batch){
        .batch_id = close->batch_id,
        .state = live_end_state(live),
        .loss = close->loss,
        .total_tokens = (int64_t)close->totals.tokens,
        .total_sequences = (int64_t)close->totals.sequences,
        .total_groups = (int64_t)close->totals.groups,
        .notes = buffer_text(&close->notes),
        .summary = buffer_text(&close->summary),
        .completed_at_us = clock_utc_us(),
    };
    if (live->unstored)
        batch_closed(&close->errand.op);
    else
        store_desk_send(&close->errand);
}

/* Worker. */
static void close_unstored(struct job *job, struct store_reader *reader)
{
    struct close_job *close = (struct close_job *)job;
    close_compute(job, reader);
    unstored_render(close->live, close);
}

void live_close_batch(struct live_batch *live)
{
    struct close_job *close = xcalloc(1, sizeof(*close));
    close->live = live;
    close->again = live_read_again(live);
    close->spec = live->spec;
    snprintf(close->batch_id, sizeof(close->batch_id), "%s", live->id);
    close->job.lane = LANE_BATCH;
    close->job.run = live->unstored ? close_unstored : close_compute;
    close->job.done = close_computed;
    live->jobs++;
    workers_submit_reserved(live->batches->uses.workers, &close->job);
}

/* --- batches that could not be resumed -----------------------------------------------------------------------------
 */

struct unread_batch {
    struct store_errand errand;
    struct loop_timer timer; /* its deadline */
    char id[ID_BYTES];
    struct unread_batch *next;
};

static void unread_closed(struct store_op *op)
{
    struct unread_batch *unread = op->context;
    (void)store_desk_send_again(&unread->errand);
}

static void unread_ended(void *arg)
{
    struct unread_batch *unread = arg;
    struct store_op *op = &unread->errand.op;
    *op = (struct store_op){.kind = STORE_CLOSE_BATCH, .done = unread_closed, .context = unread};
    op->close_batch = (struct store_close_batch){
        .batch_id = unread->id,
        .state = STORE_BATCH_EXPIRED,
        .loss = NAN,
        .notes = TEXT_LITERAL("[\"after a restart the request could not be read: the rest was never sampled\"]"),
    };
    store_desk_send(&unread->errand);
}

void batches_add_unread(struct batches *batches, const char *batch_id, int64_t deadline_utc_us)
{
    struct unread_batch *unread = xcalloc(1, sizeof(*unread));
    unread->errand = errand_of(batches);
    unread->next = batches->unread;
    batches->unread = unread;
    snprintf(unread->id, sizeof(unread->id), "%s", batch_id);
    loop_timer_set(batches->uses.loop, &unread->timer, clock_monotonic_us() + deadline_utc_us - clock_utc_us(),
                   unread_ended, unread);
}

void batches_forget_unread(struct batches *batches)
{
    for (struct unread_batch *unread = batches->unread, *next; unread; unread = next) {
        next = unread->next;
        loop_timer_clear(batches->uses.loop, &unread->timer);
        store_desk_drop(&unread->errand);
        free(unread);
    }
}

/* --- the way back ------------------------------------------------------------------------------------------------ */

void store_ops_finished(struct batches *batches, struct store_op *list)
{
    while (list) {
        struct store_op *op = list;
        list = op->next;
        store_health_note(&batches->health, op);
        op->done(op);
    }
    if (!batches->health.failing) /* else its timer does */
        batches_pump_backlog(batches);
}
