/* One rollout on its way: its life, the exchange with the engine, the parsing. */
#include "server/batches/flight.h"

#include "server/base/clock.h"
#include "server/base/hash.h"
#include "server/base/log.h"
#include "server/batches/budget.h"
#include "server/batches/runs.h"
#include "server/batches/weight_update.h"
#include "server/engines/engines.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"

#include <stdio.h>

#define VERDICTS_MAX_BYTES ((size_t)16 << 20)
#define TIMEOUT_SLACK_US (20 * US_PER_MS) /* at the batch's deadline its timer comes first */
#define OUT_OF_BUDGET " (not repeated: the retry budget is used up)"
#define FRAME_MAX_BYTES ((size_t)256 << 20)

/* The completion of this rollout, if the request brought it. */
static const struct completion_spec *find_given(const struct live_batch *live, uint32_t rollout)
{
    uint32_t index = live->batch.rollouts[rollout].group;
    const struct group_spec *group = &live->spec->groups[index];
    return group->completions ? &group->completions[rollout - live->batch.groups[index].first] : NULL;
}

/* --- life --------------------------------------------------------------------------------------------- */

struct flight *flight_create(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = xcalloc(1, sizeof(*flight));
    flight->live = live;
    flight->rollout = rollout;
    flight->revision = live->group_revisions[live->batch.rollouts[rollout].group];
    flight->seed_revision = live->sampled_revision;
    flight->given = find_given(live, rollout);
    buffer_init(&flight->frame, FRAME_MAX_BYTES);
    buffer_init(&flight->verdicts_json, VERDICTS_MAX_BYTES);
    buffer_init(&flight->rewards_json, VERDICTS_MAX_BYTES);
    buffer_init(&flight->heldout_json, VERDICTS_MAX_BYTES);
    buffer_init(&flight->segments_json, VERDICTS_MAX_BYTES);
    live->flights[rollout] = flight;
    live->jobs++;
    return flight;
}

/* Gives back what the dispatch reserved; the row's place goes to the operation when it is submitted. */
static void give_back(struct flight *flight)
{
    struct batches *batches = flight->live->batches;
    if (!flight->dispatched)
        return;
    flight->dispatched = false;
    batches->places--;
    batches_give_flight_bytes(batches, flight->reserved_bytes);
    if (!flight->op.reserved)
        store_release(flight->live->batches->uses.store, 1);
    batches_wake(batches);
}

void flight_destroy(struct flight *flight)
{
    struct live_batch *live = flight->live;
    if (live->flights[flight->rollout] == flight)
        live->flights[flight->rollout] = NULL;
    give_back(flight);
    exchange_finish(&flight->exchange);
    engine_call_finish(&flight->call);
    buffer_finish(&flight->reply_body);
    if (flight->has_sample)
        sample_finish(&flight->sample);
    if (flight->has_verdicts)
        verdict_set_finish(&flight->verdicts);
    engine_release(flight->engine);
    free(flight->model);
    free(flight->verify.reply);
    buffer_finish(&flight->frame);
    buffer_finish(&flight->verdicts_json);
    buffer_finish(&flight->rewards_json);
    buffer_finish(&flight->heldout_json);
    buffer_finish(&flight->segments_json);
    free(flight);
    live_leave(live);
}

const struct group_spec *flight_group(const struct flight *flight)
{
    return &flight->live->spec->groups[flight->live->batch.rollouts[flight->rollout].group];
}

int64_t flight_sample_index(const struct flight *flight)
{
    const struct batch *batch = &flight->live->batch;
    uint32_t group = batch->rollouts[flight->rollout].group;
    return flight_group(flight)->first_sample_index + flight->rollout - batch->groups[group].first;
}

uint64_t flight_seed(const struct flight *flight)
{
    const struct live_batch *live = flight->live;
    const struct group_spec *group = flight_group(flight);
    if (flight->given) /* sampled elsewhere, with a seed that may not be known */
        return flight->given->seed < 0 ? 0 : (uint64_t)flight->given->seed;
    return sample_seed(live->spec->seed, flight->seed_revision, group->task, group->draw, flight_sample_index(flight),
                       live->batch.rollouts[flight->rollout].resample);
}

void flight_submit(struct flight *flight, void (*run)(struct job *job, struct store_reader *reader),
                   void (*done)(struct job *job))
{
    flight->on_worker = true;
    flight->job.lane = LANE_BATCH;
    flight->job.run = run;
    flight->job.done = done;
    workers_submit_reserved(flight->live->batches->uses.workers, &flight->job);
}

/* --- sampling -------------------------------------------------------------------------------------------- */

/* error NULL: it answered. A failure may have taken the engine down, and only a probe brings it back. */
static void leave_engine(struct flight *flight, const struct sample_error *error)
{
    struct pool_result result = {.error = error,
                                 .began_us = flight->dispatched_us,
                                 .token_count = !error && flight->has_sample ? flight->sample.id_count : 0,
                                 .allowed_us = flight->allowed_us,
                                 .tokens = flight->request.sampling.max_tokens};
    const struct batches_options *uses = &flight->live->batches->uses;
    int64_t now_us = clock_monotonic_us();
    metric_observe_us(METRIC_ENGINE_SECONDS, now_us - flight->dispatched_us);
    enum engine_state before = flight->engine->state;
    flight->at_engine = false;
    pool_end(uses->pool, flight->engine, &result, now_us);
    engine_log_change(flight->engine, before);
    if (error)
        engines_probe(uses->engines);
}

#define ABORT_TIMEOUT_US (2 * US_PER_S)
#define ABORT_REPLY_BYTES ((size_t)64 * 1024)

/* What is given up while the engine works on it: where closing the connection stops it late, it is told. */
static void abort_at_engine(const struct flight *flight)
{
    const struct batches_options *uses = &flight->live->batches->uses;
    struct engine_call call;

    if (!exchange_build_abort(&flight->exchange, &call))
        return;
    transport_send(uses->transport,
                   &(struct transfer_request){.base_url = flight->engine->url,
                                              .path = call.path,
                                              .method = call.method,
                                              .bearer_token = flight->engine->token,
                                              .timeout_us = ABORT_TIMEOUT_US,
                                              .connect_timeout_us = uses->settings->engine_connect_timeout_us,
                                              .reply_limit_bytes = ABORT_REPLY_BYTES},
                   &call.body);
    engine_call_finish(&call);
}

/* A refusal is believed at once only if there is nobody else to ask: it may be the engine's and not the request's. */
static bool may_ask_another(const struct flight *flight)
{
    const struct live_batch *live = flight->live;
    return flight->engine && !live->failed_at[flight->rollout] && flight->error.code != SAMPLE_CONTEXT_OVERFLOW &&
           pool_has_another(live->batches->uses.pool, flight->engine);
}

/* One can be found in the engine's own log by `request`: it was sent as X-Request-Id. */
static void log_failed_attempt(const struct flight *flight)
{
    const struct live_batch *live = flight->live;
    char group_id[ID_BYTES];
    char rollout_id[ID_BYTES];

    id_of_group(live->id, live->batch.rollouts[flight->rollout].group, group_id);
    id_of_rollout(group_id, flight_sample_index(flight), rollout_id);
    log_event(LOG_LEVEL_DEBUG, "sample failed", "batch", live->id, "group", group_id, "rollout", rollout_id, "engine",
              flight->engine ? flight->engine->name : NULL, "request",
              flight->request_id[0] ? flight->request_id : NULL, "code", sample_failure_names[flight->error.code],
              "message", flight->error.message, NULL);
}

/* Whether the budgets of its engine and of its batch allow another request. */
static bool may_be_repeated(struct flight *flight)
{
    struct live_batch *live = flight->live;
    const struct batch_rollout *rollout = &live->batch.rollouts[flight->rollout];
    bool wanted = flight->error.retryable || may_ask_another(flight);
    unsigned counted = rollout->attempts + flight->resends - rollout->aborts;
    if (!wanted || !flight->engine || counted >= (unsigned)live->batch.rules.attempts_max)
        return wanted;
    if (pool_take_retry(live->batches->uses.pool, flight->engine, &live->retries, &flight->error,
                        live->failed_at[flight->rollout], clock_monotonic_us()))
        return true;
    metric_add(METRIC_ENGINE_RETRIES_REFUSED, 0, 1);
    size_t length = strnlen(flight->error.message, SAMPLE_MESSAGE_BYTES - sizeof(OUT_OF_BUDGET));
    snprintf(flight->error.message + length, SAMPLE_MESSAGE_BYTES - length, OUT_OF_BUDGET);
    return false;
}

static void note_failure(struct flight *flight)
{
    struct live_batch *live = flight->live;
    struct engine **failed_at = &live->failed_at[flight->rollout];

    if (!flight->engine)
        return;
    metric_add_named(METRIC_ENGINE_FAILURES, sample_failure_names[flight->error.code], 1);
    engine_hold(flight->engine);
    engine_release(*failed_at);
    *failed_at = flight->engine;
}

/* The sample cannot come from this attempt. If the machine wants another one, ACTION_PAUSE ends this flight. */
static void sample_failed(struct flight *flight)
{
    struct live_batch *live = flight->live;
    struct batch_event event = {.kind = EVENT_SAMPLE_FAILED, .index = flight->rollout, .sent = flight->resends};
    event.failure.retryable = may_be_repeated(flight);
    event.failure.resample = flight->error.resample;
    event.failure.unsent = flight->unsent;
    if (flight->engine)
        event.failure.retry_after_us = pool_retry_after_us(live->batches->uses.pool, flight->engine, &flight->error);
    log_failed_attempt(flight);
    note_failure(flight);
    live_post(live, &event);
}

void flight_fail(struct flight *flight, const struct sample_error *error)
{
    flight->error = *error;
    sample_failed(flight);
}

static void learn_prompt(struct flight *flight, const uint32_t *ids, size_t count)
{
    struct live_batch *live = flight->live;
    uint32_t group = live->batch.rollouts[flight->rollout].group;
    if (!ids || count == 0 || live->group_prompt_ids[group] || live->spec->groups[group].prompt_ids)
        return;
    uint32_t *copy = malloc(count * sizeof(uint32_t));
    if (!copy)
        return;
    memcpy(copy, ids, count * sizeof(uint32_t));
    live->group_prompt_ids[group] = copy;
    live->group_prompt_id_counts[group] = count;
}

static void send_call(struct flight *flight);

/* Siblings that were sent the same text must have been read as the same ids: the advantage compares them, and the
 * record has one prompt for all. */
static bool is_of_another_prompt(const struct flight *flight)
{
    const struct live_batch *live = flight->live;
    const struct sample *sample = &flight->sample;
    uint32_t group = live->batch.rollouts[flight->rollout].group;
    const uint32_t *known = live->group_prompt_ids[group];
    size_t count = live->group_prompt_id_counts[group];

    return known && sample->prompt_ids &&
           (sample->prompt_id_count != count || memcmp(sample->prompt_ids, known, count * sizeof(*known)) != 0);
}

static void refuse_another_prompt(struct flight *flight)
{
    flight->error = (struct sample_error){.code = SAMPLE_INVALID_REPLY, .retryable = true, .resample = true};
    snprintf(flight->error.message, sizeof(flight->error.message),
             "the engine read the prompt as other ids (%zu) than a sibling's", flight->sample.prompt_id_count);
    sample_finish(&flight->sample);
    flight->has_sample = false;
    flight->outcome = EXCHANGE_ERROR;
}

/* Most replies do not say whether the seed was honoured; probes do. One that does say so (it repeats another seed) is
 * believed. */
static void judge_seed(struct flight *flight)
{
    enum capability seeds = flight->engine->facts.capabilities.seeds;
    if (seeds == CAPABILITY_NO)
        flight->sample.seed_honoured = false;
    else if (seeds == CAPABILITY_YES && !flight->engine->adapter->repeats_seed)
        flight->sample.seed_honoured = true;
}

static void parsed(struct job *job)
{
    struct flight *flight = (struct flight *)job;
    struct live_batch *live = flight->live;

    flight->on_worker = false;
    if (flight->has_sample && !flight->detached && is_of_another_prompt(flight))
        refuse_another_prompt(flight);
    bool failed = flight->outcome == EXCHANGE_ERROR;

    if (flight->has_sample)
        judge_seed(flight);
    if (flight->outcome != EXCHANGE_NEXT || flight->detached)
        leave_engine(flight, failed ? &flight->error : NULL);
    if (flight->detached) {
        flight_destroy(flight);
        return;
    }
    learn_prompt(flight, flight->exchange.prompt_ids, flight->exchange.prompt_id_count);
    if (flight->outcome == EXCHANGE_NEXT) {
        send_call(flight);
        return;
    }
    if (failed) {
        sample_failed(flight);
        return;
    }
    learn_prompt(flight, flight->sample.prompt_ids, flight->sample.prompt_id_count);
    flight->engine_us = clock_monotonic_us() - flight->dispatched_us;
    update_stamp_end(flight);
    live_post(live, &(struct batch_event){.kind = EVENT_SAMPLED,
                                          .index = flight->rollout,
                                          .judged = flight_group(flight)->verifiers->count == 0,
                                          .sent = flight->resends});
}

/* Worker: reads the reply; a sample's frame for the verifiers is built here too. */
static void parse(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct flight *flight = (struct flight *)job;
    const struct group_spec *group = flight_group(flight);

    flight->outcome = exchange_parse(&flight->exchange, &flight->reply, &flight->sample, &flight->error);
    buffer_finish(&flight->reply_body);
    flight->has_sample = flight->outcome == EXCHANGE_SAMPLE;
    if (!flight->has_sample || group->verifiers->count == 0)
        return;
    int64_t tokens = flight->sample.ids ? (int64_t)flight->sample.id_count : -1;
    flight->frame_too_large = verify_request_build(group->verifiers, flight->sample.text, group->prompt, tokens,
                                                   group->reference_json, &flight->frame) < 0;
    buffer_trim(&flight->frame); /* it may wait long, beside thousands */
}

/* Its time was over before a connection usually is there: that says nothing about the engine either. */
static void forgive_connection(struct flight *flight)
{
    int64_t elapsed_us = clock_monotonic_us() - flight->dispatched_us;

    if (!flight->error.not_connected || elapsed_us < flight->allowed_us ||
        flight->allowed_us >= flight->live->batches->uses.settings->engine_connect_timeout_us)
        return;
    flight->error.code = SAMPLE_ENGINE_TIMEOUT;
    flight->error.not_connected = false;
}

static void transfer_failed(struct flight *flight, const struct transfer_reply *reply)
{
    sample_error_of_transfer(reply, &flight->error);
    forgive_connection(flight);
    flight->unsent = reply->sends == 0;
    if (reply->connected)
        abort_at_engine(flight);
    leave_engine(flight, &flight->error);
    sample_failed(flight);
}

static void replied(void *arg, struct transfer_reply *reply)
{
    struct flight *flight = arg;
    flight->transfer = NULL;
    if (!exchange_is_preparing(&flight->exchange) && reply->sends > 1)
        flight->resends += reply->sends - 1;
    engine_call_finish(&flight->call);
    if (reply->result != TRANSFER_DONE) {
        transfer_failed(flight, reply);
        return;
    }
    flight->reply_body = reply->body;
    buffer_init(&reply->body, 0);
    snprintf(flight->reply_type, sizeof(flight->reply_type), "%s", reply->content_type);
    snprintf(flight->reply_retry_after, sizeof(flight->reply_retry_after), "%s", reply->retry_after);
    flight->reply = (struct engine_reply){.status = reply->status,
                                          .content_type = text_of(flight->reply_type),
                                          .retry_after = text_of(flight->reply_retry_after),
                                          .body = buffer_text(&flight->reply_body),
                                          .now_utc_us = clock_utc_us()};
    flight_submit(flight, parse, parsed);
}

/* What becomes of it says nothing about the engine. */
static void leave_untold(struct flight *flight)
{
    if (!flight->at_engine)
        return;
    flight->at_engine = false;
    pool_end_cancelled(flight->live->batches->uses.pool, flight->engine);
}

static void send_call(struct flight *flight)
{
    struct live_batch *live = flight->live;
    if (!exchange_build(&flight->exchange, &flight->call, &flight->error)) {
        leave_untold(flight);
        sample_failed(flight);
        return;
    }
    struct transfer_request request = {
        .base_url = flight->engine->url,
        .path = flight->call.path,
        .method = flight->call.method,
        .bearer_token = flight->engine->token,
        .request_id = flight->request_id,
        .body = flight->call.body.length_bytes ? buffer_text(&flight->call.body) : TEXT_NONE,
        .timeout_us = batch_time_left(&live->batch, flight->rollout, clock_monotonic_us()) + TIMEOUT_SLACK_US,
        .connect_timeout_us = live->batches->uses.settings->engine_connect_timeout_us,
        .reply_limit_bytes = exchange_reply_limit_bytes(&flight->exchange),
    };
    flight->transfer = transport_start(live->batches->uses.transport, &request, replied, flight);
}

/* What an engine's probe has shown of its log-probabilities, in the words of the adapters. */
static enum logprobs_mode logprobs_mode_of(const struct engine *engine)
{
    enum logprobs_kind kind = engine->facts.capabilities.logprobs_kind;
    return kind == LOGPROBS_KIND_RAW         ? LOGPROBS_RAW
           : kind == LOGPROBS_KIND_PROCESSED ? LOGPROBS_PROCESSED
                                             : LOGPROBS_UNKNOWN;
}

static void fill_request(struct flight *flight)
{
    struct live_batch *live = flight->live;
    const struct group_spec *group = flight_group(flight);
    const struct batch_rollout *rollout = &live->batch.rollouts[flight->rollout];
    uint32_t index = rollout->group;

    snprintf(flight->request_id, sizeof(flight->request_id), "%s-%05u-%05lld.%u", live->id, index,
             (long long)flight_sample_index(flight), rollout->attempts);
    snprintf(flight->cache_salt, sizeof(flight->cache_salt), "%.36s.%lld", live->run->name,
             (long long)flight->revision);
    if (!live->spec->model.data && flight->engine->model)
        flight->model = xstrdup(flight->engine->model);
    flight->request = (struct sample_request){
        .prompt_ids = group->prompt_ids ? group->prompt_ids : live->group_prompt_ids[index],
        .prompt_id_count = group->prompt_ids ? group->prompt_id_count : live->group_prompt_id_counts[index],
        .prompt = group->prompt,
        .messages = group->messages,
        .tools = group->tools,
        .sampling = group->sampling,
        .model = live->spec->model.data ? live->spec->model : text_of(flight->model),
        .seed = flight_seed(flight),
        .cache_salt = text_of(flight->cache_salt),
        .request_id = text_of(flight->request_id),
        .logprobs_mode = logprobs_mode_of(flight->engine),
    };
}

void flight_dispatch(struct flight *flight, struct engine *engine)
{
    struct live_batch *live = flight->live;
    uint32_t group = live->batch.rollouts[flight->rollout].group;
    bool current = live->spec->policy_revision < 0 && live->run->revision > live->sampled_revision;

    /* A batch that names no revision gets the one current when the group is first dispatched. */
    if (live->group_revisions[group] < 0)
        live->group_revisions[group] = current ? live->run->revision : live->sampled_revision;
    flight->revision = live->group_revisions[group];
    flight->engine = engine;
    engine_hold(engine);
    flight->incarnation = live->run->incarnation;
    flight->run_revision = live->run->revision;
    flight->dispatched_us = clock_monotonic_us();
    flight->allowed_us = batch_time_left(&live->batch, flight->rollout, flight->dispatched_us);
    pool_begin(live->batches->uses.pool, engine, flight->dispatched_us);
    flight->at_engine = true;
    if (live->batch.rollouts[flight->rollout].tries == 1)
        pool_count_first(live->batches->uses.pool, engine, &live->retries);
    else
        pool_count_retry(live->batches->uses.pool, engine);
    fill_request(flight);
    exchange_init(&flight->exchange, engine->adapter, &flight->request);
    send_call(flight);
}

void flight_stop_sampling(struct flight *flight)
{
    struct live_batch *live = flight->live;
    if (!flight)
        return;
    if (flight->on_worker) { /* parsed() or prepared() ends it */
        flight->detached = true;
        live->flights[flight->rollout] = NULL;
        return;
    }
    if (flight->transfer) {
        transport_cancel(TAKE_PTR(flight->transfer));
        abort_at_engine(flight);
    }
    leave_untold(flight);
    flight_destroy(flight);
}
