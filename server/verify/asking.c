/* The calls of one completion and their replies: read out of the worker's reply, written into the next request. */
#include "server/verify/calls_private.h"

#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/base/utf8.h"
#include "server/settings/settings.h"
#include "server/verify/externals.h"
#include "verifiers/registry.h"
#include "verifiers/worker/worker.h"

#define CALL_TIMEOUT_US (60 * US_PER_S) /* of a verdict whose options name none */
#define SIDE_BY_SIDE 16                 /* calls that a pool of engines is sure to take at once */
#define PATH_MAX_BYTES 256
#define AGAIN_US (5 * US_PER_MS)
#define JSON_MARGIN_BYTES ((size_t)1 << 20) /* beside the bodies of replies */

/* --- life --------------------------------------------------------------------------------------------------------- */

static void asked_call_finish(struct asked_call *call)
{
    engine_release(call->engine);
    free(call->path);
    free(call->body);
    buffer_finish(&call->sent);
    buffer_finish(&call->reply);
}

static void asking_destroy(struct asking *asking)
{
    *asking->link = asking->next;
    if (asking->next)
        asking->next->link = asking->link;
    loop_timer_clear(asking->calls->uses.loop, &asking->again);
    for (size_t i = 0; i < asking->count; i++) {
        for (size_t c = 0; c < asking->verdicts[i].count; c++)
            asked_call_finish(&asking->verdicts[i].calls[c]);
        free(asking->verdicts[i].calls);
    }
    free(asking->verdicts);
    free(asking->reply);
    verifier_list_unref(asking->list);
    buffer_finish(&asking->frame);
    free(asking);
}

void asking_forget_all(struct verify_calls *calls)
{
    while (calls->first) {
        struct asking *asking = calls->first;
        for (size_t i = 0; i < asking->count; i++) {
            loop_timer_clear(calls->uses.loop, &asking->verdicts[i].deadline);
            for (size_t c = 0; c < asking->verdicts[i].count; c++)
                loop_timer_clear(calls->uses.loop, &asking->verdicts[i].calls[c].again);
        }
        asking_destroy(asking);
    }
}

int64_t call_timeout_us(const struct verifier_spec *spec)
{
    struct text timeout = option_text(spec->options, "timeout");
    int64_t timeout_us;

    if (spec->external)
        return spec->external->settings->timeout_us;
    return timeout.data && duration_parse(timeout, &timeout_us) && timeout_us > 0 ? timeout_us : CALL_TIMEOUT_US;
}

int64_t verify_calls_time_us(const struct verifier_list *list, int64_t *ret_share_us)
{
    int64_t longest_us = 0;

    *ret_share_us = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct verifier_spec *spec = &list->specs[i];
        if (!verifier_spec_asks(spec))
            continue;
        int64_t timeout_us = call_timeout_us(spec);
        longest_us = timeout_us > longest_us ? timeout_us : longest_us;
        *ret_share_us += timeout_us / (spec->external ? spec->external->settings->in_flight : SIDE_BY_SIDE);
    }
    return longest_us;
}

/* --- to a worker --------------------------------------------------------------------------------------------------- */

static void submit(void *arg)
{
    struct asking *asking = arg;
    const struct verify_calls_uses *uses = &asking->calls->uses;

    asking->job.lane = LANE_BATCH;
    asking->on_worker = workers_submit(uses->workers, &asking->job);
    if (!asking->on_worker)
        loop_timer_set(uses->loop, &asking->again, clock_monotonic_us() + AGAIN_US, submit, asking);
}

/* False: it was cancelled meanwhile, and is gone. */
static bool is_back(struct asking *asking)
{
    asking->on_worker = false;
    if (asking->verify)
        return true;
    asking_destroy(asking);
    return false;
}

/* --- what is asked -------------------------------------------------------------------------------------------------- */

/* Printable ASCII from a slash on: it becomes the first line of a request. */
static bool is_path(struct text path)
{
    if (path.length_bytes == 0 || path.length_bytes > PATH_MAX_BYTES || path.data[0] != '/')
        return false;
    for (size_t i = 0; i < path.length_bytes; i++)
        if (path.data[i] <= ' ' || path.data[i] > '~')
            return false;
    return true;
}

static bool is_object_text(struct text body)
{
    return body.length_bytes >= 2 && body.data[0] == '{' && body.data[body.length_bytes - 1] == '}';
}

static bool read_call(const json_t *value, struct asked_call *call)
{
    struct text path = json_text_of(json_object_get(value, "path"));
    struct text body = json_text_of(json_object_get(value, "body"));

    if (!is_path(path) || !is_object_text(body))
        return false;
    call->path = xstrndup(path.data, path.length_bytes);
    call->body = xcalloc(1, body.length_bytes + 1);
    memcpy(call->body, body.data, body.length_bytes);
    call->body_bytes = body.length_bytes;
    call->wants_model = json_is_true(json_object_get(value, "model"));
    return true;
}

/* The calls in the place of one verdict. Where there are none, or they are not of the form, the place is read as a
 * verdict later: nothing in it is believed. */
static void read_calls(struct asking *asking, size_t verifier, const json_t *calls)
{
    struct asked_verdict *verdict = &asking->verdicts[asking->count];
    size_t count = json_array_size(calls);
    bool fits = count > 0 && count <= VERIFIER_CALLS_MAX;
    const json_t *value;
    size_t i;

    if (!fits)
        return;
    *verdict = (struct asked_verdict){.asking = asking, .verifier = verifier, .count = count, .left = count};
    verdict->calls = xcalloc(count, sizeof verdict->calls[0]);
    json_array_foreach (calls, i, value) {
        verdict->calls[i].verdict = verdict;
        verdict->calls[i].number = i;
        fits = read_call(value, &verdict->calls[i]) && fits;
    }
    if (fits) {
        asking->count++;
        return;
    }
    for (i = 0; i < count; i++)
        asked_call_finish(&verdict->calls[i]);
    free(verdict->calls);
}

/* Worker. */
static void read_plan(struct job *job, struct store_reader *reader)
{
    struct asking *asking = (struct asking *)job;
    json_t *root = json_loadb(asking->reply, asking->reply_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    const json_t *verdicts = json_object_get(root, "verdicts");

    (void)reader;
    asking->verdicts = xcalloc(asking->list->count, sizeof asking->verdicts[0]);
    for (size_t i = 0; i < asking->list->count && json_array_size(verdicts) == asking->list->count; i++)
        if (asking->asks >> i & 1)
            read_calls(asking, i, json_object_get(json_array_get(verdicts, i), "calls"));
    json_decref(root);
}

static void planned(struct job *job)
{
    struct asking *asking = (struct asking *)job;
    struct verify_job *verify = asking->verify;

    if (!is_back(asking))
        return;
    verify->parts[WORKER_TEXT].reply = TAKE_PTR(asking->reply);
    if (asking->count == 0) {
        struct verify_pool *text = asking->calls->text;
        verify->asking = NULL;
        asking_destroy(asking);
        verify_pool_end_asking(text, verify);
        return;
    }
    asking->left = asking->count;
    for (size_t i = 0; i < asking->count; i++) {
        verify->asked |= UINT64_C(1) << asking->verdicts[i].verifier;
        calls_enter(&asking->verdicts[i]);
    }
}

/* Takes a job whose text workers have answered, until verify_pool_grade_replies() or verify_pool_end_asking(). */
void asking_begin(void *arg, struct verify_job *job)
{
    struct verify_calls *calls = arg;
    struct asking *asking = xcalloc(1, sizeof *asking);

    *asking = (struct asking){.job = {.run = read_plan, .done = planned},
                              .calls = calls,
                              .next = calls->first,
                              .link = &calls->first,
                              .verify = job,
                              .list = verifier_list_ref((struct verifier_list *)(uintptr_t)job->list),
                              .asks = job->asks,
                              .reply = TAKE_PTR(job->parts[WORKER_TEXT].reply),
                              .reply_bytes = job->parts[WORKER_TEXT].reply_bytes};
    if (asking->next)
        asking->next->link = &asking->next;
    calls->first = asking;
    snprintf(asking->name, sizeof asking->name, "%s",
             job->rollout      ? job->rollout
             : job->request_id ? job->request_id
                               : "verify");
    job->asking = asking;
    submit(asking);
}

/* Forgets it; its connections are closed. */
void asking_cancel(struct verify_job *job)
{
    struct asking *asking = TAKE_PTR(job->asking);

    asking->verify = NULL;
    if (asking->on_worker) /* is_back() ends it */
        return;
    for (size_t i = 0; i < asking->count; i++)
        calls_withdraw(&asking->verdicts[i]);
    asking_destroy(asking);
}

/* --- what came back ---------------------------------------------------------------------------------------------------- */

static void write_failure(struct json_write *json, const char *code, const char *message, bool retryable)
{
    json_key(json, "failure");
    json_object_begin(json);
    json_put_string(json, "code", code);
    json_put_string(json, "message", message);
    json_put_bool(json, "retryable", retryable);
    json_object_end(json);
}

/* left_bytes: of bodies, for the whole completion. */
static void write_reply(struct json_write *json, const struct asked_call *call, size_t *left_bytes)
{
    json_object_begin(json);
    if (!call->status) {
        write_failure(json, sample_failure_names[call->error.code], call->error.message, call->error.retryable);
    } else if (call->reply.length_bytes > *left_bytes) {
        write_failure(json, sample_failure_names[SAMPLE_INVALID_REPLY],
                      "the replies to one completion are larger than 4 MiB", false);
    } else {
        *left_bytes -= call->reply.length_bytes;
        json_put_int(json, "status", call->status);
        json_put_text(json, "body", buffer_text(&call->reply));
        if (!utf8_is_valid(buffer_text(&call->reply), NULL))
            json_put_bool(json, "mended", true);
    }
    json_put_string(json, "engine", call->engine_name[0] ? call->engine_name : NULL);
    json_put_string(json, "model", call->model[0] ? call->model : NULL);
    json_put_string(json, "version", call->version[0] ? call->version : NULL);
    json_object_end(json);
}

static const struct asked_verdict *verdict_of(const struct asking *asking, size_t verifier)
{
    for (size_t i = 0; i < asking->count; i++)
        if (asking->verdicts[i].verifier == verifier)
            return &asking->verdicts[i];
    return NULL;
}

/* Worker: `frame` is the request without its last brace. */
static void write_replies(struct job *job, struct store_reader *reader)
{
    struct asking *asking = (struct asking *)job;
    size_t left_bytes = VERIFIER_REPLIES_BYTES;
    struct json_write json;

    (void)reader;
    buffer_append_string(&asking->frame, ",\"replies\":");
    json_write_init(&json, &asking->frame);
    json_array_begin(&json);
    for (size_t i = 0; i < asking->list->count; i++) {
        const struct asked_verdict *verdict = verdict_of(asking, i);
        if (!verdict) {
            json_write_null(&json);
            continue;
        }
        json_array_begin(&json);
        for (size_t c = 0; c < verdict->count; c++)
            write_reply(&json, &verdict->calls[c], &left_bytes);
        json_array_end(&json);
    }
    json_array_end(&json);
    buffer_append_byte(&asking->frame, '}');
}

static void replies_are_written(struct job *job)
{
    struct asking *asking = (struct asking *)job;
    struct verify_pool *text = asking->calls->text;
    struct verify_job *verify = asking->verify;
    struct verify_part *part;
    size_t frame_bytes;

    if (!is_back(asking))
        return;
    part = &verify->parts[VERIFY_ANSWERS];
    verify->asking = NULL;
    verify->answers_frame = buffer_steal(&asking->frame, &frame_bytes);
    asking_destroy(asking);
    if (!verify->answers_frame || frame_bytes - REQUEST_HEADER_BYTES > WORKER_ANSWERS_FRAME_LIMIT_BYTES) {
        part->failure_code = "verifier_input_too_large";
        part->failure_message = "the replies are larger than a text worker reads";
        verify_pool_end_asking(text, verify);
        return;
    }
    verify->frame = verify->answers_frame;
    verify->frame_bytes = frame_bytes;
    frame_put_length(verify->frame, frame_bytes - REQUEST_HEADER_BYTES);
    verify_pool_grade_replies(text, verify);
}

void asking_verdict_over(struct asking *asking)
{
    struct verify_job *verify = asking->verify;

    if (--asking->left > 0)
        return;
    verify->calls_us = asking->began_us ? clock_monotonic_us() - asking->began_us : 0;
    buffer_init(&asking->frame, verify->frame_bytes + 2 * VERIFIER_REPLIES_BYTES + JSON_MARGIN_BYTES);
    buffer_append(&asking->frame, verify->frame, verify->frame_bytes - 1);
    asking->job.run = write_replies;
    asking->job.done = replies_are_written;
    submit(asking);
}
