#include "server/batches/row_private.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/attempt_private.h"
#include "server/batches/flight_private.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/unstored.h"
#include "server/batches/verification_private.h"
#include "server/engines/engines.h"
#include "server/record/store_desk.h"
#include "server/runtime/metrics.h"

#include <math.h>

#define SEGMENTS_MAX_BYTES ((size_t)16 << 20)

/* --- what it says ------------------------------------------------------------------------------------------- */

/* An evaluation may be meant of older weights than the run's: then only a change while the sample was in flight counts.
 */
static int64_t revision_at_end(const struct live_batch *live, const struct attempt *attempt)
{
    bool changed = attempt->end_revision != attempt->run_revision;
    if (attempt->mixed_revision >= 0)
        return attempt->mixed_revision;
    if (live->spec->purpose == STORE_EVAL && !live->was_current && !changed)
        return attempt->revision;
    return attempt->end_revision >= 0 ? attempt->end_revision : attempt->revision;
}

/* A weight update may have reached the engine before the sample was complete: its revision changed, the trainer went
 * back to a checkpoint (perhaps to one of the same number), or an update in mode straddle was open. */
static bool straddles(const struct store_rollout *values, const struct attempt *attempt)
{
    return values->revision_at_end != values->policy_revision || attempt->end_incarnation != attempt->incarnation ||
           attempt->mixed_revision >= 0;
}

/* Only where the engine named several: the weights of a whole sample are its engine_revision. */
static void write_segments(const struct sample *sample, struct buffer *out)
{
    struct json_write json;
    json_write_init(&json, out);
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

static void fill_sample(struct row *row, const struct attempt *attempt)
{
    struct store_rollout *values = &row->values;
    const struct sample *sample = &attempt->sample;
    values->text = sample->text;
    values->packed_text = attempt->packed_sample.length_bytes ? buffer_text(&attempt->packed_sample) : TEXT_NONE;
    values->text_replaced = (int64_t)sample->text_replaced;
    values->completion_ids = sample->ids;
    values->logprobs = sample->logprobs;
    values->token_count = sample->id_count;
    values->completion_tokens = (int64_t)sample->id_count;
    values->finish_reason = text_of(finish_reason_names[sample->finish]);
    values->eos_in_ids = sample->ids ? (sample->eos_in_ids ? STORE_KNOWN_YES : STORE_KNOWN_NO) : STORE_KNOWN_UNKNOWN;
    values->trainable = sample->trainable;
    values->logprobs_mode = sample->logprobs_mode == LOGPROBS_RAW         ? STORE_LOGPROBS_RAW
                            : sample->logprobs_mode == LOGPROBS_PROCESSED ? STORE_LOGPROBS_PROCESSED
                                                                          : STORE_LOGPROBS_UNKNOWN;
    values->engine_revision = sample->engine_revision;
    values->seed_sent = (int64_t)sample->seed_sent;
    values->seed_honoured = sample->seed_honoured ? STORE_KNOWN_YES : STORE_KNOWN_NO;
    values->revision_at_end = revision_at_end(row->live, attempt);
    values->straddles = straddles(values, attempt) || sample->segment_count > 1;
    if (sample->segment_count <= 1)
        return;
    write_segments(sample, &row->segments_json);
    values->segments = buffer_text(&row->segments_json);
}

/* Sampled elsewhere: what is not said about it is not known. */
static void fill_given(struct store_rollout *values, const struct completion_spec *given)
{
    values->text = given->text;
    values->packed_text = given->packed_text;
    values->completion_ids = given->ids;
    values->logprobs = given->logprobs;
    values->completion_mask = given->mask;
    values->token_count = given->token_count;
    values->completion_tokens = (int64_t)given->token_count;
    values->finish_reason = given->finish_reason;
    values->trainable = given->ids != NULL;
    values->engine = given->engine;
    values->seed_sent = given->seed;
    values->revision_at_end = values->policy_revision;
}

static void fill_verification(struct store_rollout *values, const struct verification *verification)
{
    values->verify_us = verification->verify_us;
    if (!verification->has_verdicts)
        return;
    values->verdicts = buffer_text(&verification->verdicts_json);
    values->rewards = buffer_text(&verification->rewards_json);
    values->heldout = buffer_text(&verification->heldout_json);
}

static struct text word_or_none(const char *word)
{
    return *word ? text_of(word) : TEXT_NONE;
}

static void fill_attempt(struct row *row, const struct attempt *attempt)
{
    struct store_rollout *values = &row->values;
    values->incarnation = attempt->incarnation;
    values->policy_revision = attempt->revision;
    values->seed = attempt->seed;
    values->engine = attempt->engine ? text_of(attempt->engine->name) : TEXT_NONE;
    values->engine_us = attempt->engine_us;
    values->engine_model = word_or_none(attempt->engine_model);
    values->engine_version = word_or_none(attempt->engine_version);
    values->tokenizer_sha256 = word_or_none(attempt->tokenizer_sha256);
}

/* When it left the queue; now, if it never did. */
static int64_t taken_us(const struct flight *flight)
{
    if (flight->attempt && flight->attempt->dispatched_us)
        return flight->attempt->dispatched_us;
    if (!flight->attempt && flight->verification)
        return flight->verification->taken_us;
    return clock_monotonic_us();
}

static void fill_common(struct row *row)
{
    struct live_batch *live = row->live;
    const struct flight *flight = &live->flights[row->rollout];
    const struct batch_rollout *rollout = &live->batch.rollouts[row->rollout];
    const struct completion_spec *given = live_given(live, row->rollout);
    row->values = (struct store_rollout){
        .sample_index = live_sample_index(live, row->rollout),
        .reward = NAN,
        .advantage = NAN,
        .shaped_reward = NAN,
        .policy_revision = live->group_revisions[rollout->group],
        .revision_at_end = -1,
        .resample = rollout->resample,
        .attempts = rollout->attempts,
        .seed = live_seed(live, row->rollout),
        .seed_sent = -1,
        .seed_honoured = STORE_KNOWN_UNKNOWN,
        .eos_in_ids = STORE_KNOWN_UNKNOWN,
        .rolloutd_version = TEXT_LITERAL(ROLLOUTD_VERSION),
        .queued_us = taken_us(flight) - live->admitted_us,
    };
    if (flight->attempt)
        fill_attempt(row, flight->attempt);
    if (row->values.policy_revision < 0)
        row->values.policy_revision = live->sampled_revision;
    if (flight->attempt && flight->attempt->has_sample)
        fill_sample(row, flight->attempt);
    if (given)
        fill_given(&row->values, given);
    if (flight->verification)
        fill_verification(&row->values, flight->verification);
}

static void fill_cut(struct store_failure *failure, enum rollout_end end)
{
    if (end == END_DEADLINE) {
        failure->code = TEXT_LITERAL("deadline");
        failure->message = TEXT_LITERAL("the batch's deadline passed before this rollout was finished");
        failure->retryable = true;
    } else {
        failure->code = TEXT_LITERAL("cancelled");
        failure->message = TEXT_LITERAL("the batch was cancelled");
    }
}

static void fill_failure(struct row *row, enum rollout_end end)
{
    struct live_batch *live = row->live;
    struct store_failure *failure = &row->values.failure;
    const struct completion_spec *given = live_given(live, row->rollout);
    const struct attempt *attempt = live->flights[row->rollout].attempt;
    const struct verification *verification = live->flights[row->rollout].verification;
    bool sampled = given || (attempt && attempt->has_sample);

    failure->attempts = live->batch.rollouts[row->rollout].attempts;
    failure->stage = sampled ? TEXT_LITERAL("verify") : TEXT_LITERAL("sample");
    if (end != END_FAILED) {
        fill_cut(failure, end);
    } else if (given && given->failure.code.data) {
        *failure = given->failure;
    } else if (verification && verification->has_verdicts) {
        failure->code = text_of(verification->reward.failure->failure_code);
        failure->message = text_of(verification->reward.failure->failure_message);
        failure->retryable = verification->reward.failure->retryable;
    } else if (attempt) {
        failure->code = text_of(sample_failure_names[attempt->error.code]);
        failure->message = text_of(attempt->error.message);
        failure->retryable = attempt->error.retryable;
    }
}

static void fill(struct row *row)
{
    struct live_batch *live = row->live;
    const struct verification *verification = live->flights[row->rollout].verification;
    enum rollout_end end = live->batch.rollouts[row->rollout].end;
    fill_common(row);
    if (end == END_SCORED) {
        bool rewarded = verification && verification->has_verdicts && verification->reward.rewarded;
        row->values.state = STORE_ROLLOUT_SCORED;
        row->values.reward = rewarded ? verification->reward.value : NAN;
        live->rewards[row->rollout] = row->values.reward;
        if (live->metrics)
            live->metrics[row->rollout] =
                refill_metric(&live->spec->refill, row->values.reward, row->values.rewards, row->values.heldout);
        return;
    }
    row->values.state = end == END_CANCELLED ? STORE_ROLLOUT_CANCELLED : STORE_ROLLOUT_FAILED;
    fill_failure(row, end);
}

/* --- life --------------------------------------------------------------------------------------------------- */

struct row *row_create(struct live_batch *live, uint32_t rollout,
                       void (*stored)(struct live_batch *live, uint32_t rollout))
{
    struct row *row = xcalloc(1, sizeof(*row));
    row->live = live;
    row->rollout = rollout;
    row->stored = stored;
    buffer_init(&row->segments_json, SEGMENTS_MAX_BYTES);
    id_of_group(live->id, live->batch.rollouts[rollout].group, row->group_id);
    live->jobs++;
    fill(row);
    return row;
}

void row_destroy(struct row *row)
{
    if (!row)
        return;
    buffer_finish(&row->segments_json);
    live_leave(row->live);
    free(row);
}

/* --- to the store ------------------------------------------------------------------------------------------- */

static void queue(struct row *row)
{
    struct batches *batches = row->live->batches;
    row->backlog_next = NULL;
    *batches->backlog_last = row;
    batches->backlog_last = &row->backlog_next;
}

void rows_pump_backlog(struct batches *batches)
{
    while (batches->backlog_first && store_submit(batches->uses.store, &batches->backlog_first->op)) {
        batches->backlog_first = batches->backlog_first->backlog_next;
        if (!batches->backlog_first)
            batches->backlog_last = &batches->backlog_first;
    }
}

static void pump(void *arg)
{
    rows_pump_backlog(arg);
}

static void write_again(struct row *row)
{
    struct batches *batches = row->live->batches;
    row->op.reserved = false;
    queue(row);
    loop_timer_set(batches->uses.loop, &batches->backlog_timer, clock_monotonic_us() + STORE_RETRY_US, pump, batches);
    live_tell_not_stored(row->live, row->op.status);
}

static void log_refused_row(const struct row *row)
{
    char rollout_id[ID_BYTES];
    id_of_rollout(row->group_id, row->values.sample_index, rollout_id);
    log_event(LOG_LEVEL_ERROR, "a rollout was refused by the store", "batch", row->live->id, "rollout", rollout_id,
              "why", row->op.message, NULL);
}

static void rollout_stored(struct store_op *op)
{
    struct row *row = op->context;

    if (store_failed_for_now(op->status)) {
        write_again(row);
        return;
    }
    if (op->status != STORE_OK && op->status != STORE_EXISTS)
        log_refused_row(row);
    metric_add(METRIC_ROLLOUTS, row->values.state, 1);
    if (row->values.failure.code.data)
        metric_add_named(METRIC_FAILURES, row->values.failure.code.data, 1);
    metric_add(METRIC_COMPLETION_TOKENS, 0, row->values.completion_tokens);
    row->stored(row->live, row->rollout);
}

void row_store(struct row *row)
{
    struct live_batch *live = row->live;
    struct flight *flight = &live->flights[row->rollout];
    uint32_t group = live->batch.rollouts[row->rollout].group;

    if (live->unstored) { /* kept in memory is stored */
        unstored_keep_rollout(live, row->rollout, &row->values, flight->verification);
        row->stored(live, row->rollout);
        return;
    }
    row->op = (struct store_op){
        .kind = STORE_INSERT_ROLLOUT, .reserved = flight->reserved.row, .done = rollout_stored, .context = row};
    flight->reserved.row = false;
    row->op.insert_rollout = (struct store_insert_rollout){.group_id = row->group_id,
                                                           .rollout = &row->values,
                                                           .prompt_ids = live->group_prompt_ids[group],
                                                           .prompt_id_count = live->group_prompt_id_counts[group],
                                                           .settings = live->batches->uses.engines->in_force};
    if (live->batches->backlog_first || !store_submit(live->batches->uses.store, &row->op))
        queue(row);
}
