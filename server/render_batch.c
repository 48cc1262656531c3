/* Groups and batches, and the stream that shows a whole batch. */
#include "server/objective_json.h"
#include "server/render.h"

#include <math.h>
#include <stdio.h>

/* A part of a stream is sent when it has grown to this, or holds one group that is larger. */
enum { PART_BYTES = 256 * 1024 };

/* ---- groups
 * ----------------------------------------------------------------------------------------------------------------- */

/* A member without a row: pending while its batch runs; afterwards it is lost with it, and typed like any other loss.
 */
static void render_absent(struct json_write *json, const struct store_group *group, int64_t sample_index,
                          const struct render_scope *scope)
{
    struct store_rollout rollout;
    char id[ID_BYTES];
    id_of_rollout(group->id, sample_index, id);
    if (scope->batch_state == STORE_BATCH_RUNNING) {
        json_object_begin(json);
        json_put_string(json, "id", id);
        json_put_int(json, "sample_index", sample_index);
        json_put_string(json, "state", "pending");
        json_put_null(json, "reward");
        json_put_null(json, "advantage");
        json_put_null(json, "failure");
        json_object_end(json);
        return;
    }
    bool expired = scope->batch_state == STORE_BATCH_EXPIRED;
    store_rollout_init(&rollout);
    memcpy(rollout.id, id, ID_BYTES);
    rollout.sample_index = sample_index;
    rollout.incarnation = 0;
    rollout.trainable = false;
    rollout.state = expired ? STORE_ROLLOUT_FAILED : STORE_ROLLOUT_CANCELLED;
    rollout.failure =
        (struct store_failure){TEXT_LITERAL("sample"), expired ? TEXT_LITERAL("deadline") : TEXT_LITERAL("cancelled"),
                               TEXT_LITERAL("the batch ended before this rollout"), expired, 0};
    render_rollout(json, &rollout, scope);
}

static void render_members(struct json_write *json, const struct store_group *group, const struct render_scope *scope)
{
    size_t next = 0;
    json_key(json, "rollouts");
    json_array_begin(json);
    for (int64_t i = group->first_sample_index; i < group->first_sample_index + group->n; i++)
        if (next < group->rollout_count && group->rollouts[next].sample_index == i)
            render_rollout(json, &group->rollouts[next++], scope);
        else
            render_absent(json, group, i, scope);
    json_array_end(json);
}

static const char *group_state(const struct store_group *group, const struct render_scope *scope)
{
    if (group->state == STORE_GROUP_COMPLETE || scope->batch_state == STORE_BATCH_COMPLETE)
        return store_group_state_names[STORE_GROUP_COMPLETE];
    return store_batch_state_names[scope->batch_state];
}

static void put_raw_if_present(struct json_write *json, const char *key, struct text value)
{
    if (value.length_bytes)
        json_put_raw(json, key, value);
}

static void put_prompt_ids(struct json_write *json, const struct store_group *group, const struct render_scope *scope)
{
    if (scope->arrays == JSON_ARRAYS_NONE || !(scope->fields & render_field(TEXT_LITERAL("prompt_ids"))))
        return;
    if (group->prompt_ids)
        json_put_u32s(json, "prompt_ids", group->prompt_ids, group->prompt_id_count, scope->arrays);
    else
        json_put_null(json, "prompt_ids");
}

void render_group(struct json_write *json, const struct store_group *group, const struct render_scope *scope)
{
    struct render_scope inside = *scope;
    inside.alone = false;
    inside.group = group;
    json_object_begin(json);
    json_put_string(json, "id", group->id);
    if (scope->alone)
        json_put_string(json, "batch", group->batch_id);
    json_put_text(json, "task", group->task);
    json_put_int(json, "draw", group->draw);
    json_put_int(json, "n", group->n);
    json_put_int(json, "first_sample_index", group->first_sample_index);
    json_put_string(json, "state", group_state(group, scope));
    put_raw_if_present(json, "sampling", group->sampling);
    put_raw_if_present(json, "verifiers", group->verifiers);
    put_raw_if_present(json, "metadata", group->metadata);
    put_prompt_ids(json, group, scope);
    json_put_double(json, "reward_mean", group->reward_mean);
    json_put_double(json, "reward_std", group->reward_std);
    json_put_bool(json, "zero_variance", group->zero_variance);
    render_members(json, group, &inside);
    json_object_end(json);
}

/* ---- batches
 * ---------------------------------------------------------------------------------------------------------------- */

static void put_identity(struct json_write *json, const struct store_batch *batch)
{
    json_put_string(json, "id", batch->id);
    json_put_text(json, "run", batch->run);
    json_put_int(json, "incarnation", batch->incarnation);
    json_put_string(json, "purpose", store_purpose_names[batch->purpose]);
    json_put_string(json, "state", store_batch_state_names[batch->state]);
    json_put_int(json, "policy_revision", batch->policy_revision);
    json_put_int(json, "seed", (int64_t)batch->seed);
}

static void put_times(struct json_write *json, const struct store_batch *batch)
{
    json_put_time(json, "created_at", batch->created_at_us);
    json_put_time(json, "deadline_at", batch->deadline_us);
    json_put_time(json, "completed_at", batch->completed_at_us);
}

static void put_counts(struct json_write *json, const struct store_batch *batch)
{
    json_key(json, "counts");
    json_object_begin(json);
    json_put_int(json, "groups", batch->group_count);
    json_put_int(json, "rollouts", batch->rollout_count);
    json_put_int(json, "done", batch->scored + batch->failed + batch->cancelled);
    json_put_int(json, "scored", batch->scored);
    json_put_int(json, "failed", batch->failed);
    json_put_int(json, "cancelled", batch->cancelled);
    json_object_end(json);
}

static void put_outcome(struct json_write *json, const struct store_batch *batch)
{
    json_put_double(json, "loss", batch->loss);
    json_key(json, "totals");
    json_object_begin(json);
    json_put_int(json, "tokens", batch->total_tokens);
    json_put_int(json, "sequences", batch->total_sequences);
    json_put_int(json, "groups", batch->total_groups);
    json_object_end(json);
}

/* The objective is on record with every knob, so what the request changed follows from its preset. */
static void put_objective(struct json_write *json, const struct store_batch *batch, const struct render_terms *terms)
{
    json_put_raw(json, "objective", batch->objective);
    if (!terms->known)
        return;
    json_key(json, "overrides");
    objective_json_write_overrides(json, &terms->knobs);
}

void render_batch_members(struct json_write *json, const struct store_batch *batch, const struct render_terms *terms)
{
    char sha256[SHA256_HEX_BYTES];
    sha256_hex(batch->request_sha256, sha256);
    put_identity(json, batch);
    json_put_string(json, "request_sha256", sha256);
    put_times(json, batch);
    json_put_raw(json, "sampling", batch->sampling);
    json_put_raw(json, "verifiers", batch->verifiers);
    put_objective(json, batch, terms);
    put_raw_if_present(json, "metadata", batch->metadata);
    put_counts(json, batch);
    if (batch->state == STORE_BATCH_RUNNING)
        return;
    put_outcome(json, batch);
    json_put_raw(json, "notes", batch->notes.length_bytes ? batch->notes : TEXT_LITERAL("[]"));
    json_put_raw(json, "summary", batch->summary);
}

void render_batch_line(struct json_write *json, const struct store_batch *batch)
{
    json_object_begin(json);
    put_identity(json, batch);
    put_times(json, batch);
    put_counts(json, batch);
    if (batch->state != STORE_BATCH_RUNNING)
        put_outcome(json, batch);
    json_object_end(json);
}

/* ---- `return`
 * --------------------------------------------------------------------------------------------------------------- */

static render_fields read_names(const json_t *list, size_t *ret_bad)
{
    render_fields fields = RENDER_ALL & ~render_arrays();
    size_t index;
    json_t *name;
    *ret_bad = SIZE_MAX;
    json_array_foreach(list, index, name)
    {
        render_fields field =
            json_is_string(name) ? render_field((struct text){json_string_value(name), json_string_length(name)}) : 0;
        if (!(field & render_arrays())) {
            *ret_bad = index;
            return RENDER_ALL;
        }
        fields |= field;
    }
    return fields;
}

int render_read_returns(struct call *call, const json_t *list, render_fields *ret_fields)
{
    char path[32];
    size_t bad;
    *ret_fields = RENDER_ALL;
    if (!list)
        return 0;
    *ret_fields = read_names(list, &bad);
    if (bad == SIZE_MAX)
        return 0;
    snprintf(path, sizeof(path), "return[%zu]", bad);
    return call_refuse(call, ERR_INVALID_FIELD, path,
                       "expected prompt_ids, completion_ids, logprobs, completion_mask, surrogates or contributions");
}

render_fields render_stored_returns(struct text returns)
{
    if (!returns.data)
        return RENDER_ALL;
    size_t bad;
    json_t *list = json_loadb(returns.data, returns.length_bytes, 0, NULL);
    render_fields fields = list ? read_names(list, &bad) : RENDER_ALL;
    json_decref(list);
    return fields;
}

/* ---- the stream
 * ------------------------------------------------------------------------------------------------------------- */

struct batch_stream {
    struct stream stream;
    struct store_batch batch;
    struct render_terms terms;
    struct render_scope scope;
    struct json_write json;
    struct buffer first; /* the first part is made with the headers */
    int64_t next_group;
};

static void batch_stream_destroy(struct stream *stream)
{
    struct batch_stream *self = (struct batch_stream *)stream;
    store_batch_finish(&self->batch);
    buffer_finish(&self->first);
    free(self);
}

static int render_next_group(struct batch_stream *self, struct store_reader *reader)
{
    char id[ID_BYTES];
    struct store_group group;
    id_of_group(self->batch.id, self->next_group++, id);
    enum store_status status =
        store_read_group(reader, text_of(id), render_with(self->scope.fields, self->scope.arrays), &group);
    if (status == STORE_OK)
        render_group(&self->json, &group, &self->scope);
    store_group_finish(&group);
    return status == STORE_OK ? 0 : -1;
}

/* Groups until the part is large enough. 1: there are more. */
static int render_part(struct batch_stream *self, struct store_reader *reader, struct buffer *part)
{
    size_t before_bytes = part->length_bytes;
    self->json.out = part;
    int64_t count = self->batch.state == STORE_BATCH_RUNNING ? 0 : self->batch.group_count;
    while (self->next_group < count && part->length_bytes - before_bytes < PART_BYTES)
        if (!reader || render_next_group(self, reader) < 0)
            return -1;
    if (self->next_group < count)
        return 1;
    if (self->batch.state != STORE_BATCH_RUNNING)
        json_array_end(&self->json);
    json_object_end(&self->json);
    buffer_append_byte(part, '\n');
    return 0;
}

static int batch_stream_produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct batch_stream *self = (struct batch_stream *)stream;
    if (self->first.length_bytes == 0)
        return render_part(self, reader, part);
    buffer_append(part, self->first.data, self->first.length_bytes);
    buffer_finish(&self->first);
    return 1;
}

static void render_head(struct batch_stream *self, struct buffer *part)
{
    json_write_init(&self->json, part);
    json_object_begin(&self->json);
    render_batch_members(&self->json, &self->batch, &self->terms);
    if (self->batch.state == STORE_BATCH_RUNNING)
        return;
    json_key(&self->json, "groups");
    json_array_begin(&self->json);
}

/* A small batch is one reply with its length; a larger one goes out in parts. */
static int answer_in_parts(struct call *call, struct batch_stream *self)
{
    struct buffer *body = &call->reply.body;
    render_head(self, body);
    int more = render_part(self, call->reader, body);
    if (more < 0)
        return call_refuse(call, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be read");
    call->reply.status = 200;
    call->reply.content_type = "application/json";
    if (more == 0)
        return 0;
    self->first = *body;
    buffer_init(body, self->first.maximum_bytes);
    call->reply.stream = &self->stream;
    return 1;
}

void render_answer_batch(struct call *call, struct text batch_id)
{
    int arrays = JSON_ARRAYS_PLAIN;
    if (call_query_arrays(call, &arrays) < 0)
        return;
    struct batch_stream *self = xcalloc(1, sizeof(*self));
    self->stream = (struct stream){batch_stream_produce, batch_stream_destroy};
    enum store_status status =
        call->reader ? store_read_batch(call->reader, batch_id, &self->batch) : STORE_UNAVAILABLE;
    if (status == STORE_OK) {
        render_terms_init(&self->terms, &self->batch);
        self->scope = (struct render_scope){.fields = render_stored_returns(self->batch.returns),
                                            .arrays = (enum json_arrays)arrays,
                                            .batch_state = self->batch.state,
                                            .terms = &self->terms};
        if (answer_in_parts(call, self) == 1)
            return;
    } else if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "id", "no batch has this id");
    else
        call_refuse(call, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be read");
    batch_stream_destroy(&self->stream);
}
