/* Groups and batches, and the stream that shows a whole batch. */
#include "server/render/render.h"

#include "server/render/lease.h"
#include "server/spec/objective.h"
#include "server/spec/returns.h"

#define READ_SHARE 8 /* of the room: numbers take several times as much as JSON */

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

/* From one sample_index to the end of what was read. Returns where the next ones begin. */
static int64_t render_members(struct json_write *json, const struct store_group *group, int64_t from,
                              const struct render_scope *scope)
{
    size_t next = 0;
    int64_t end =
        group->more ? group->rollouts[group->rollout_count - 1].sample_index + 1 : group->first_sample_index + group->n;
    for (int64_t i = from; i < end; i++) {
        bool there = next < group->rollout_count && group->rollouts[next].sample_index == i;
        const struct store_rollout *rollout = there ? &group->rollouts[next++] : NULL;
        if (scope->shown && !scope->shown[i - group->first_sample_index])
            continue;
        if (rollout)
            render_rollout(json, rollout, scope);
        else
            render_absent(json, group, i, scope);
    }
    return end;
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
    if (scope->columns) {
        render_columns_add_group(scope->columns, group);
        return;
    }
    if (scope->arrays == JSON_ARRAYS_NONE || !(scope->fields & render_field(TEXT_LITERAL("prompt_ids"))))
        return;
    if (group->prompt_ids)
        json_put_u32s(json, "prompt_ids", group->prompt_ids, group->prompt_id_count, scope->arrays);
    else
        json_put_null(json, "prompt_ids");
}

static void put_delivered(struct json_write *json, const struct store_lease_group *group)
{
    json_put_int(json, "staleness", group->staleness);
    json_put_int(json, "deliveries", group->delivery);
    render_delivery(json, &group->on_record);
}

/* Up to its first rollout. */
static void begin_group(struct json_write *json, const struct store_group *group, const struct render_scope *scope)
{
    json_object_begin(json);
    json_put_string(json, "id", group->id);
    if (scope->alone)
        json_put_string(json, "batch", group->batch_id);
    json_put_text(json, "task", group->task);
    json_put_text(json, "set", group->set);
    json_put_text(json, "split", group->split);
    json_put_int(json, "draw", group->draw);
    json_put_int(json, "n", group->n);
    json_put_int(json, "first_sample_index", group->first_sample_index);
    json_put_string(json, "state", group_state(group, scope));
    put_raw_if_present(json, "sampling", group->sampling);
    put_raw_if_present(json, "verifiers", group->verifiers);
    put_raw_if_present(json, "metadata", group->metadata);
    json_put_raw(json, "tags", group->tags.length_bytes ? group->tags : TEXT_LITERAL("{}"));
    render_task(json, scope->fields, group->prompt, group->reference);
    put_prompt_ids(json, group, scope);
    json_put_double(json, "reward_mean", group->reward_mean);
    json_put_double(json, "reward_std", group->reward_std);
    json_put_bool(json, "zero_variance", group->zero_variance);
    json_put_bool(json, "drawn", group->drawn);
    json_put_bool(json, "dropped", group->dropped);
    if (scope->delivered)
        put_delivered(json, scope->delivered);
    else if (scope->with_delivery)
        render_delivery(json, scope->delivery);
    json_key(json, "rollouts");
    json_array_begin(json);
}

static void end_group(struct json_write *json)
{
    json_array_end(json);
    json_object_end(json);
}

static struct render_scope inside_of(const struct store_group *group, const struct render_scope *scope)
{
    struct render_scope inside = *scope;
    inside.alone = false;
    inside.group = group;
    return inside;
}

void render_group(struct json_write *json, const struct store_group *group, const struct render_scope *scope)
{
    struct render_scope inside = inside_of(group, scope);
    begin_group(json, group, scope);
    (void)render_members(json, group, group->first_sample_index, &inside);
    end_group(json);
}

/* Terms that depend on the other members need all of them at once. */
static size_t read_at_once_bytes(size_t room_bytes, const struct render_scope *scope)
{
    bool whole = scope->terms && scope->terms->known && objective_terms_need_group(&scope->terms->knobs);
    return whole ? SIZE_MAX : room_bytes / READ_SHARE;
}

/* 1: the group has ended; 0: not yet; -1: it cannot be read. */
static int render_some(struct json_write *json, struct store_reader *reader, size_t bytes_max,
                       const struct render_scope *scope, struct group_piece *piece)
{
    _cleanup_(store_group_finish) struct store_group group = {0};
    char id[ID_BYTES];
    id_of_group(piece->batch_id, piece->index, id);
    render_fields fields =
        piece->begun ? scope->fields & ~RENDER_TASK : scope->fields; /* they stand at its beginning */
    if (!reader || store_read_group_from(reader, text_of(id), render_with(fields, scope->arrays),
                                         piece->begun ? piece->next_member : INT64_MIN, bytes_max, &group) != STORE_OK)
        return -1;
    if (group.dropped && scope->skip_dropped) {
        piece->index++;
        return 1;
    }
    struct render_scope inside = inside_of(&group, scope);
    if (!piece->begun)
        begin_group(json, &group, scope);
    piece->next_member =
        render_members(json, &group, piece->begun ? piece->next_member : group.first_sample_index, &inside);
    piece->begun = group.more;
    if (group.more)
        return 0;
    end_group(json);
    piece->index++;
    return 1;
}

int render_group_piece(struct json_write *json, struct store_reader *reader, size_t room_bytes,
                       const struct render_scope *scope, struct group_piece *piece)
{
    size_t bytes_max = read_at_once_bytes(room_bytes, scope);
    int ended = 0;
    while (ended == 0 && json->out->length_bytes < room_bytes)
        ended = render_some(json, reader, bytes_max, scope, piece);
    return ended;
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

void render_batch_members(struct json_write *json, const struct store_batch *batch, const struct render_terms *terms,
                          const struct store_provenance *provenance)
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
    render_provenance(json, provenance);
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
    json_put_text(json, "idempotency_key", batch->idempotency_key);
    json_put_text(json, "request_id", batch->request_id);
    put_times(json, batch);
    put_counts(json, batch);
    if (batch->state != STORE_BATCH_RUNNING)
        put_outcome(json, batch);
    json_put_raw(json, "summary", batch->summary.length_bytes ? batch->summary : TEXT_LITERAL("null"));
    json_object_end(json);
}

render_fields render_stored_returns(struct text returns)
{
    unsigned arrays = returns_stored(returns);
    render_fields fields = RENDER_ALL & ~render_arrays();
    for (size_t i = 0; i < RETURNS_COUNT; i++)
        if (arrays & 1U << i)
            fields |= render_field(text_of(returns_names[i]));
    return fields;
}

/* ---- the stream
 * ------------------------------------------------------------------------------------------------------------- */

struct batch_stream {
    struct stream stream;
    struct store_batch batch;
    struct store_provenance provenance;
    struct render_terms terms;
    struct render_scope scope;
    struct json_write json;
    bool begun;
    struct group_piece piece;
    struct call *call; /* of a reply in one piece; NULL: it goes in parts */
};

static void batch_stream_destroy(struct stream *stream)
{
    struct batch_stream *self = (struct batch_stream *)stream;
    store_batch_finish(&self->batch);
    store_provenance_finish(&self->provenance);
    free(self);
}

static void render_head(struct batch_stream *self)
{
    json_object_begin(&self->json);
    render_batch_members(&self->json, &self->batch, &self->terms, &self->provenance);
    self->begun = true;
    if (self->batch.state == STORE_BATCH_RUNNING)
        return;
    json_key(&self->json, "groups");
    json_array_begin(&self->json);
}

/* A reply in one piece that is too large, or that nobody waits for. */
static bool is_futile(const struct batch_stream *self)
{
    return self->call &&
           (self->call->abandoned || self->json.out->failed || render_columns_failed(self->scope.columns));
}

static int batch_stream_produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct batch_stream *self = (struct batch_stream *)stream;
    int64_t count = self->batch.state == STORE_BATCH_RUNNING ? 0 : self->batch.group_count;
    self->json.out = part;
    if (!self->begun)
        render_head(self);
    while (self->piece.index < count) {
        int ended = render_group_piece(&self->json, reader, stream->room_bytes, &self->scope, &self->piece);
        if (ended < 0 || is_futile(self))
            return STREAM_CUT;
        if (ended == 0)
            return STREAM_MORE;
    }
    if (self->batch.state != STORE_BATCH_RUNNING)
        json_array_end(&self->json);
    json_object_end(&self->json);
    buffer_append_byte(part, '\n');
    return STREAM_LAST;
}

/* Takes both. */
static struct stream *batch_stream_create(const struct store_batch *batch, const struct store_provenance *provenance,
                                          enum json_arrays arrays)
{
    struct batch_stream *self = xcalloc(1, sizeof(*self));
    self->stream = (struct stream){.produce = batch_stream_produce, .destroy = batch_stream_destroy};
    self->batch = *batch;
    self->provenance = *provenance;
    render_terms_init(&self->terms, &self->batch);
    self->scope = (struct render_scope){.fields = render_stored_returns(batch->returns),
                                        .arrays = arrays,
                                        .batch_state = batch->state,
                                        .skip_dropped = true,
                                        .terms = &self->terms};
    json_write_init(&self->json, NULL);
    memcpy(self->piece.batch_id, batch->id, ID_BYTES);
    return &self->stream;
}

/* 0, or -1 with the call refused. */
static int read_batch(struct call *call, struct text batch_id, struct store_batch *ret_batch,
                      struct store_provenance *ret_provenance)
{
    enum store_status status = call->reader ? store_read_batch(call->reader, batch_id, ret_batch) : STORE_UNAVAILABLE;
    if (status == STORE_OK)
        status = store_read_provenance(call->reader, batch_id, ret_provenance);
    if (status == STORE_OK)
        return 0;
    store_batch_finish(ret_batch);
    store_provenance_finish(ret_provenance);
    if (status == STORE_NOT_FOUND)
        return call_refuse(call, ERR_NOT_FOUND, "id", "no batch has this id");
    return call_refuse_unreadable(call);
}

void render_answer_batch(struct call *call, struct text batch_id)
{
    struct store_batch batch = {0};
    struct store_provenance provenance = {0};
    int arrays = JSON_ARRAYS_PLAIN;
    if (call_query_arrays(call, &arrays) < 0 || read_batch(call, batch_id, &batch, &provenance) < 0)
        return;
    call->reply.status = 200;
    call->reply.content_type = "application/json";
    call->reply.stream = batch_stream_create(&batch, &provenance, (enum json_arrays)arrays);
}

int render_batch_columns(struct call *call, struct text batch_id, struct render_columns *columns,
                         struct buffer *ret_json)
{
    struct store_batch batch = {0};
    struct store_provenance provenance = {0};
    int arrays = JSON_ARRAYS_PLAIN;
    if (call_query_arrays(call, &arrays) < 0 || read_batch(call, batch_id, &batch, &provenance) < 0)
        return -1;
    if (batch.state == STORE_BATCH_RUNNING) {
        store_batch_finish(&batch);
        store_provenance_finish(&provenance);
        return 1;
    }
    columns->arrays = arrays == JSON_ARRAYS_NONE ? 0 : returns_stored(batch.returns);
    struct batch_stream *self =
        (struct batch_stream *)batch_stream_create(&batch, &provenance, (enum json_arrays)arrays);
    self->scope.columns = columns;
    self->call = call;
    self->stream.room_bytes = SIZE_MAX;
    int state = batch_stream_produce(&self->stream, call->reader, ret_json);
    batch_stream_destroy(&self->stream);
    if (call->abandoned)
        return -1;
    if (ret_json->failed || render_columns_failed(columns))
        return call_refuse(call, ERR_INTERNAL, NULL,
                           "as tensors the batch is larger than memory_budget; GET …/groups shows it in pages");
    return state == STREAM_LAST ? 0 : call_refuse_unreadable(call);
}
