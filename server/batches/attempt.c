#include "server/batches/attempt_private.h"

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/batches/flight_private.h"
#include "server/batches/live.h"
#include "server/batches/runs.h"
#include "server/batches/verification_private.h"
#include "server/batches/weight_update.h"
#include "server/engines/engines.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <stdio.h>

#define TIMEOUT_SLACK_US (20 * US_PER_MS) /* at the batch's deadline its timer comes first */
#define OUT_OF_BUDGET " (not repeated: the retry budget is used up)"
#define FRAME_MAX_BYTES ((size_t)256 << 20)
#define ABORT_TIMEOUT_US (2 * US_PER_S)
#define ABORT_REPLY_BYTES ((size_t)64 * 1024)

/* --- life -------------------------------------------------------------------------------------------------- */

static struct attempt *attempt_create(struct live_batch *live, uint32_t rollout)
{
    struct attempt *attempt = xcalloc(1, sizeof(*attempt));
    attempt->live = live;
    attempt->rollout = rollout;
    attempt->revision = live->group_revisions[live->batch.rollouts[rollout].group];
    attempt->seed = live_seed(live, rollout);
    buffer_init(&attempt->frame, FRAME_MAX_BYTES);
    buffer_init(&attempt->member, FRAME_MAX_BYTES);
    buffer_init(&attempt->packed_sample, FRAME_MAX_BYTES);
    live->flights[rollout].attempt = attempt;
    live->jobs++;
    return attempt;
}

void attempt_destroy(struct attempt *attempt)
{
    if (!attempt)
        return;
    reservation_release(attempt->live->batches, &attempt->reserved);
    exchange_finish(&attempt->exchange);
    engine_call_finish(&attempt->call);
    buffer_finish(&attempt->reply_body);
    if (attempt->has_sample)
        sample_finish(&attempt->sample);
    buffer_finish(&attempt->packed_sample);
    engine_release(attempt->engine);
    free(attempt->model);
    buffer_finish(&attempt->frame);
    buffer_finish(&attempt->member);
    live_leave(attempt->live);
    free(attempt);
}

/* --- the engine -------------------------------------------------------------------------------------------- */

/* error NULL: it answered. A failure may have taken the engine down, and only a probe brings it back. */
static void leave_engine(struct attempt *attempt, const struct sample_error *error)
{
    struct pool_result result = {.error = error,
                                 .began_us = attempt->dispatched_us,
                                 .token_count = !error && attempt->has_sample ? attempt->sample.id_count : 0,
                                 .allowed_us = attempt->allowed_us,
                                 .tokens = attempt->request.sampling.max_tokens};
    const struct batches_options *uses = &attempt->live->batches->uses;
    int64_t now_us = clock_monotonic_us();
    metric_observe_us(METRIC_ENGINE_SECONDS, now_us - attempt->dispatched_us);
    enum engine_state before = attempt->engine->state;
    attempt->at_engine = false;
    pool_end(uses->pool, attempt->engine, &result, now_us);
    engine_log_change(attempt->engine, before);
    if (error)
        engines_probe(uses->engines);
}

/* Its outcome does not count for or against the engine. */
static void leave_untold(struct attempt *attempt)
{
    if (!attempt->at_engine)
        return;
    attempt->at_engine = false;
    pool_end_cancelled(attempt->live->batches->uses.pool, attempt->engine);
}

/* Tells an engine that stops late when its connection closes that the sample is given up. */
static void abort_at_engine(const struct attempt *attempt)
{
    const struct batches_options *uses = &attempt->live->batches->uses;
    struct engine_call call;

    if (!exchange_build_abort(&attempt->exchange, &call))
        return;
    transport_send(uses->transport,
                   &(struct transfer_request){.base_url = attempt->engine->url,
                                              .path = call.path,
                                              .method = call.method,
                                              .bearer_token = attempt->engine->token,
                                              .timeout_us = ABORT_TIMEOUT_US,
                                              .connect_timeout_us = uses->settings->engine_connect_timeout_us,
                                              .reply_limit_bytes = ABORT_REPLY_BYTES},
                   &call.body);
    engine_call_finish(&call);
}

/* --- failures -------------------------------------------------------------------------------------------- */

/* A refusal is final at once only if there is no other engine: it may be the engine's and not the request's. */
static bool may_ask_another(const struct attempt *attempt)
{
    const struct live_batch *live = attempt->live;
    return attempt->engine && !live->failed_at[attempt->rollout] && attempt->error.code != SAMPLE_CONTEXT_OVERFLOW &&
           pool_has_another(live->batches->uses.pool, attempt->engine);
}

/* One can be found in the engine's own log by `request`: it was sent as X-Request-Id. */
static void log_failed_attempt(const struct attempt *attempt)
{
    const struct live_batch *live = attempt->live;
    char group_id[ID_BYTES];
    char rollout_id[ID_BYTES];

    id_of_group(live->id, live->batch.rollouts[attempt->rollout].group, group_id);
    id_of_rollout(group_id, live_sample_index(live, attempt->rollout), rollout_id);
    log_event(LOG_LEVEL_DEBUG, "sample failed", "batch", live->id, "group", group_id, "rollout", rollout_id, "engine",
              attempt->engine ? attempt->engine->name : NULL, "request",
              attempt->request_id[0] ? attempt->request_id : NULL, "code", sample_failure_names[attempt->error.code],
              "message", attempt->error.message, NULL);
}

/* Whether the budgets of its engine and of its batch allow another request. */
static bool may_be_repeated(struct attempt *attempt)
{
    struct live_batch *live = attempt->live;
    const struct batch_rollout *rollout = &live->batch.rollouts[attempt->rollout];
    bool wanted = attempt->error.retryable || may_ask_another(attempt);
    unsigned counted = rollout->attempts + attempt->resends - rollout->aborts;
    if (!wanted || !attempt->engine || counted >= (unsigned)live->batch.rules.attempts_max)
        return wanted;
    if (pool_take_retry(live->batches->uses.pool, attempt->engine, &live->retries, &attempt->error,
                        live->failed_at[attempt->rollout], clock_monotonic_us()))
        return true;
    metric_add(METRIC_ENGINE_RETRIES_REFUSED, 0, 1);
    size_t length = strnlen(attempt->error.message, SAMPLE_MESSAGE_BYTES - sizeof(OUT_OF_BUDGET));
    snprintf(attempt->error.message + length, SAMPLE_MESSAGE_BYTES - length, OUT_OF_BUDGET);
    return false;
}

static void note_failure(struct attempt *attempt)
{
    struct live_batch *live = attempt->live;
    struct engine **failed_at = &live->failed_at[attempt->rollout];

    if (!attempt->engine)
        return;
    metric_add_named(METRIC_ENGINE_FAILURES, sample_failure_names[attempt->error.code], 1);
    engine_hold(attempt->engine);
    engine_release(*failed_at);
    *failed_at = attempt->engine;
}

/* The sample cannot come from this attempt. If the machine wants another one, ACTION_PAUSE ends this one. */
static void sample_failed(struct attempt *attempt)
{
    struct live_batch *live = attempt->live;
    struct batch_event event = {.kind = EVENT_SAMPLE_FAILED, .index = attempt->rollout, .sent = attempt->resends};
    event.failure.retryable = may_be_repeated(attempt);
    event.failure.resample = attempt->error.resample;
    event.failure.unsent = attempt->unsent;
    if (attempt->engine)
        event.failure.retry_after_us = pool_retry_after_us(live->batches->uses.pool, attempt->engine, &attempt->error);
    log_failed_attempt(attempt);
    note_failure(attempt);
    live_post(live, &event);
}

/* --- replies --------------------------------------------------------------------------------------------- */

static void learn_prompt(struct attempt *attempt, const uint32_t *ids, size_t count)
{
    struct live_batch *live = attempt->live;
    uint32_t group = live->batch.rollouts[attempt->rollout].group;
    if (!ids || count == 0 || live->group_prompt_ids[group] || live->spec->groups[group].prompt_ids)
        return;
    uint32_t *copy = malloc(count * sizeof(uint32_t));
    if (!copy)
        return;
    memcpy(copy, ids, count * sizeof(uint32_t));
    live->group_prompt_ids[group] = copy;
    live->group_prompt_id_counts[group] = count;
}

static void send_call(struct attempt *attempt);

/* Siblings that were sent the same text must have been read as the same ids: the advantage compares them, and the
 * record has one prompt for all. */
static bool is_of_another_prompt(const struct attempt *attempt)
{
    const struct live_batch *live = attempt->live;
    const struct sample *sample = &attempt->sample;
    uint32_t group = live->batch.rollouts[attempt->rollout].group;
    const uint32_t *known = live->group_prompt_ids[group];
    size_t count = live->group_prompt_id_counts[group];

    return known && sample->prompt_ids &&
           (sample->prompt_id_count != count || memcmp(sample->prompt_ids, known, count * sizeof(*known)) != 0);
}

static void refuse_another_prompt(struct attempt *attempt)
{
    attempt->error = (struct sample_error){.code = SAMPLE_INVALID_REPLY, .retryable = true, .resample = true};
    snprintf(attempt->error.message, sizeof(attempt->error.message),
             "the engine read the prompt as other ids (%zu) than a sibling's", attempt->sample.prompt_id_count);
    sample_finish(&attempt->sample);
    attempt->has_sample = false;
    attempt->outcome = EXCHANGE_ERROR;
}

/* Most replies do not say whether the seed was honoured; probes find out. A reply that repeats another seed decides by
 * itself. */
static void decide_seed(struct attempt *attempt)
{
    enum capability seeds = attempt->engine->facts.capabilities.seeds;
    if (seeds == CAPABILITY_NO)
        attempt->sample.seed_honoured = false;
    else if (seeds == CAPABILITY_YES && !attempt->engine->adapter->repeats_seed)
        attempt->sample.seed_honoured = true;
}

static void parsed(struct job *job)
{
    struct attempt *attempt = (struct attempt *)job;
    struct live_batch *live = attempt->live;

    attempt->on_worker = false;
    if (attempt->has_sample && !attempt->detached && is_of_another_prompt(attempt))
        refuse_another_prompt(attempt);
    bool failed = attempt->outcome == EXCHANGE_ERROR;

    if (attempt->has_sample)
        decide_seed(attempt);
    if (attempt->outcome != EXCHANGE_NEXT || attempt->detached)
        leave_engine(attempt, failed ? &attempt->error : NULL);
    if (attempt->detached) {
        attempt_destroy(attempt);
        return;
    }
    learn_prompt(attempt, attempt->exchange.prompt_ids, attempt->exchange.prompt_id_count);
    if (attempt->outcome == EXCHANGE_NEXT) {
        send_call(attempt);
        return;
    }
    if (failed) {
        sample_failed(attempt);
        return;
    }
    learn_prompt(attempt, attempt->sample.prompt_ids, attempt->sample.prompt_id_count);
    attempt->engine_us = clock_monotonic_us() - attempt->dispatched_us;
    attempt->end_revision = live->run->revision;
    attempt->end_incarnation = live->run->incarnation;
    attempt->mixed_revision = update_mixed_revision(live->run);
    live_post(live,
              &(struct batch_event){.kind = EVENT_SAMPLED,
                                    .index = attempt->rollout,
                                    .nothing_to_verify = live_group(live, attempt->rollout)->verifiers->count == 0,
                                    .sent = attempt->resends});
}

/* Worker: reads the reply; what the record and the verifiers get of a sample is made here, too. */
static void parse(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct attempt *attempt = (struct attempt *)job;
    const struct group_spec *group = live_group(attempt->live, attempt->rollout);

    attempt->outcome = exchange_parse(&attempt->exchange, &attempt->reply, &attempt->sample, &attempt->error);
    buffer_finish(&attempt->reply_body);
    attempt->has_sample = attempt->outcome == EXCHANGE_SAMPLE;
    if (attempt->has_sample && attempt->live->spec->store) {
        (void)store_pack_text(attempt->sample.text, &attempt->packed_sample);
        buffer_trim(&attempt->packed_sample);
    }
    if (!attempt->has_sample || group->verifiers->count == 0)
        return;
    attempt->frame_too_large =
        verification_build_frame(attempt->live, attempt->rollout, attempt->sample.text, attempt->sample.ids,
                                 attempt->sample.id_count, &attempt->frame, &attempt->member) < 0;
    buffer_trim(&attempt->frame); /* it may wait long, beside thousands */
}

/* Its time was over before a connection usually is there: that says nothing about the engine either. */
static void forgive_connection(struct attempt *attempt)
{
    int64_t elapsed_us = clock_monotonic_us() - attempt->dispatched_us;

    if (!attempt->error.not_connected || elapsed_us < attempt->allowed_us ||
        attempt->allowed_us >= attempt->live->batches->uses.settings->engine_connect_timeout_us)
        return;
    attempt->error.code = SAMPLE_ENGINE_TIMEOUT;
    attempt->error.not_connected = false;
}

static void transfer_failed(struct attempt *attempt, const struct transfer_reply *reply)
{
    sample_error_of_transfer(reply, &attempt->error);
    forgive_connection(attempt);
    attempt->unsent = reply->sends == 0;
    if (reply->connected)
        abort_at_engine(attempt);
    leave_engine(attempt, &attempt->error);
    sample_failed(attempt);
}

static void replied(void *arg, struct transfer_reply *reply)
{
    struct attempt *attempt = arg;
    attempt->transfer = NULL;
    if (!exchange_is_preparing(&attempt->exchange) && reply->sends > 1)
        attempt->resends += reply->sends - 1;
    engine_call_finish(&attempt->call);
    if (reply->result != TRANSFER_DONE) {
        transfer_failed(attempt, reply);
        return;
    }
    attempt->reply_body = reply->body;
    buffer_init(&reply->body, 0);
    snprintf(attempt->reply_type, sizeof(attempt->reply_type), "%s", reply->content_type);
    snprintf(attempt->reply_retry_after, sizeof(attempt->reply_retry_after), "%s", reply->retry_after);
    attempt->reply = (struct engine_reply){.status = reply->status,
                                           .content_type = text_of(attempt->reply_type),
                                           .retry_after = text_of(attempt->reply_retry_after),
                                           .body = buffer_text(&attempt->reply_body),
                                           .now_utc_us = clock_utc_us()};
    attempt->on_worker = true;
    attempt->job.lane = LANE_BATCH;
    attempt->job.run = parse;
    attempt->job.done = parsed;
    workers_submit_reserved(attempt->live->batches->uses.workers, &attempt->job);
}

/* --- requests -------------------------------------------------------------------------------------------- */

static void send_call(struct attempt *attempt)
{
    struct live_batch *live = attempt->live;
    if (!exchange_build(&attempt->exchange, &attempt->call, &attempt->error)) {
        leave_untold(attempt);
        sample_failed(attempt);
        return;
    }
    struct transfer_request request = {
        .base_url = attempt->engine->url,
        .path = attempt->call.path,
        .method = attempt->call.method,
        .bearer_token = attempt->engine->token,
        .request_id = attempt->request_id,
        .body = attempt->call.body.length_bytes ? buffer_text(&attempt->call.body) : TEXT_NONE,
        .timeout_us = batch_time_left(&live->batch, attempt->rollout, clock_monotonic_us()) + TIMEOUT_SLACK_US,
        .connect_timeout_us = live->batches->uses.settings->engine_connect_timeout_us,
        .reply_limit_bytes = exchange_reply_limit_bytes(&attempt->exchange),
    };
    attempt->transfer = transport_start(live->batches->uses.transport, &request, replied, attempt);
}

/* The kind of log-probabilities that the probe found, in the words of the adapters. */
static enum logprobs_mode logprobs_mode_of(const struct engine *engine)
{
    enum logprobs_kind kind = engine->facts.capabilities.logprobs_kind;
    return kind == LOGPROBS_KIND_RAW         ? LOGPROBS_RAW
           : kind == LOGPROBS_KIND_PROCESSED ? LOGPROBS_PROCESSED
                                             : LOGPROBS_UNKNOWN;
}

static void fill_request(struct attempt *attempt)
{
    struct live_batch *live = attempt->live;
    const struct group_spec *group = live_group(attempt->live, attempt->rollout);
    const struct batch_rollout *rollout = &live->batch.rollouts[attempt->rollout];
    uint32_t index = rollout->group;

    snprintf(attempt->request_id, sizeof(attempt->request_id), "%s-%05u-%05lld.%u", live->id, index,
             (long long)live_sample_index(live, attempt->rollout), rollout->attempts);
    snprintf(attempt->cache_salt, sizeof(attempt->cache_salt), "%.36s.%lld", live->run->name,
             (long long)attempt->revision);
    if (!live->spec->model.data && attempt->engine->model)
        attempt->model = xstrdup(attempt->engine->model);
    attempt->request = (struct sample_request){
        .prompt_ids = group->prompt_ids ? group->prompt_ids : live->group_prompt_ids[index],
        .prompt_id_count = group->prompt_ids ? group->prompt_id_count : live->group_prompt_id_counts[index],
        .prompt = group->prompt,
        .messages = group->messages,
        .tools = group->tools,
        .sampling = group->sampling,
        .model = live->spec->model.data ? live->spec->model : text_of(attempt->model),
        .seed = attempt->seed,
        .cache_salt = text_of(attempt->cache_salt),
        .request_id = text_of(attempt->request_id),
        .logprobs_mode = logprobs_mode_of(attempt->engine),
        .wants_token_ends = verifier_list_grades_steps(group->verifiers),
    };
}

/* A batch that names no revision gets the one current when the group is first dispatched. */
static int64_t revision_of_group(struct live_batch *live, uint32_t group)
{
    bool current = live->spec->policy_revision < 0 && live->run->revision > live->sampled_revision;
    if (live->group_revisions[group] < 0)
        live->group_revisions[group] = current ? live->run->revision : live->sampled_revision;
    return live->group_revisions[group];
}

static void take_place(struct attempt *attempt)
{
    struct live_batch *live = attempt->live;
    struct pool *pool = live->batches->uses.pool;
    engine_hold(attempt->engine);
    pool_begin(pool, attempt->engine, attempt->dispatched_us);
    attempt->at_engine = true;
    if (live->batch.rollouts[attempt->rollout].tries == 1)
        pool_count_first(pool, attempt->engine, &live->retries);
    else
        pool_count_retry(pool, attempt->engine);
}

/* One that is restarted with another model must not change what is said of this sample. A model that the batch names is
 * the one that samples, if the engine lists it. */
static void note_engine(struct attempt *attempt)
{
    const struct engine_facts *facts = &attempt->engine->facts;
    struct text named = attempt->live->spec->model;
    bool listed = named.data && engine_facts_list(facts, named);
    struct text model = listed ? named : text_of(facts->model);
    snprintf(attempt->engine_model, sizeof(attempt->engine_model), "%.*s", (int)model.length_bytes, model.data);
    snprintf(attempt->engine_version, sizeof(attempt->engine_version), "%s", facts->version);
    snprintf(attempt->tokenizer_sha256, sizeof(attempt->tokenizer_sha256), "%s", facts->tokenizer_sha256);
}

void attempt_send(struct live_batch *live, uint32_t rollout, struct engine *engine)
{
    struct attempt *attempt = attempt_create(live, rollout);
    attempt->revision = revision_of_group(live, live->batch.rollouts[rollout].group);
    attempt->engine = engine;
    attempt->incarnation = live->run->incarnation;
    attempt->run_revision = live->run->revision;
    attempt->dispatched_us = clock_monotonic_us();
    attempt->allowed_us = batch_time_left(&live->batch, rollout, attempt->dispatched_us);
    take_place(attempt);
    note_engine(attempt);
    fill_request(attempt);
    exchange_init(&attempt->exchange, engine->adapter, &attempt->request);
    send_call(attempt);
}

void attempt_fail(struct live_batch *live, uint32_t rollout, const struct sample_error *error)
{
    struct attempt *attempt = attempt_create(live, rollout);
    attempt->error = *error;
    sample_failed(attempt);
}

void attempt_stop(struct attempt *attempt, struct reservation *reserved)
{
    if (attempt->on_worker) { /* parsed() ends it */
        attempt->detached = true;
        attempt->reserved = *reserved;
        *reserved = (struct reservation){0};
        return;
    }
    if (attempt->transfer) {
        transport_cancel(TAKE_PTR(attempt->transfer));
        abort_at_engine(attempt);
    }
    leave_untold(attempt);
    attempt_destroy(attempt);
}
