#include "server/render/lease.h"

#include "server/record/group_record.h"
#include "server/render/render.h"
#include "server/spec/returns.h"

#include <math.h>

/* ---- parts
 * ----------------------------------------------------------------------------------------------------------------- */

void render_delivery(struct json_write *json, const struct store_delivery *delivery)
{
    json_key(json, "delivery");
    if (!delivery) {
        json_write_null(json);
        return;
    }
    json_object_begin(json);
    json_put_string(json, "state", store_delivery_state_names[delivery->state]);
    json_put_string(json, "lease", delivery->lease[0] ? delivery->lease : NULL);
    json_put_int(json, "deliveries", delivery->deliveries);
    json_put_int_or_null(json, "optimizer_step", delivery->optimizer_step);
    json_put_int_or_null(json, "staleness", delivery->staleness);
    json_object_end(json);
}

void render_delivery_counts(struct json_write *json, const struct store_delivery_counts *counts)
{
    json_key(json, "delivery");
    if (!counts) {
        json_write_null(json);
        return;
    }
    json_object_begin(json);
    for (size_t i = 0; i < STORE_DELIVERY_STATES; i++)
        json_put_int(json, store_delivery_state_names[i], counts->groups[i]);
    json_object_end(json);
}

void render_lease_members(struct json_write *json, const struct store_lease *lease)
{
    json_put_string(json, "lease", lease->id);
    json_put_string(json, "state", store_lease_state_names[lease->state]);
    json_put_time(json, "taken_at", lease->taken_at_us);
    json_put_time(json, "expires_at", lease->expires_at_us);
    json_put_time(json, "ended_at", lease->ended_at_us);
    json_put_int(json, "incarnation", lease->incarnation);
    json_put_int_or_null(json, "policy_revision", lease->policy_revision);
    json_put_int_or_null(json, "max_staleness", lease->max_staleness);
    json_put_int(json, "delivered", lease->group_count);
    json_put_int(json, "held", lease->held);
}

void render_lease_line(struct json_write *json, const struct store_lease *lease)
{
    json_object_begin(json);
    render_lease_members(json, lease);
    json_object_end(json);
}

/* ---- the batches of its groups
 * ----------------------------------------------------------------------------------------------------------------- */

/* Groups of one batch mostly stand together: the last one is kept. */
struct batch_cache {
    struct store_batch batch;
    struct render_terms terms;
    struct objective_knobs counting; /* what the totals are counted by */
};

static void count_by(const struct objective_knobs *knobs, struct objective_knobs *ret_counting)
{
    objective_at_sampling(knobs, ret_counting);
    if (objective_loss_reads_logprobs(ret_counting) || ret_counting->advantage.estimator == OBJECTIVE_ESTIMATOR_PROCESS)
        ret_counting->loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING; /* the counts are the same, and need no arrays */
}

static enum store_status find_batch(struct batch_cache *cache, struct store_reader *reader, const char *batch_id)
{
    if (strcmp(cache->batch.id, batch_id) == 0)
        return STORE_OK;
    store_batch_finish(&cache->batch);
    cache->batch = (struct store_batch){0};
    enum store_status status = store_read_batch(reader, text_of(batch_id), &cache->batch);
    if (status != STORE_OK)
        return status;
    render_terms_init(&cache->terms, &cache->batch);
    cache->terms.closed = false; /* the denominators are the lease's: contributions are not guessed */
    if (cache->terms.known)
        count_by(&cache->terms.knobs, &cache->counting);
    return STORE_OK;
}

/* ---- totals
 * ----------------------------------------------------------------------------------------------------------------- */

/* After reward, mask, `trainable` and the filter of its batch's objective, as in the totals of a batch. */
static void count_group(struct group_record *record, const struct batch_cache *cache, struct objective_totals *totals)
{
    struct objective_group group;
    struct objective_result result;
    struct objective_error error;
    group_record_reward_by_advantage(record);
    struct objective_request request = {.knobs = &cache->counting,
                                        .sequences = record->sequences,
                                        .sequence_count = record->count,
                                        .groups = &group,
                                        .group_count = 1,
                                        .advantages_given = true,
                                        .shaped_given = true};
    if (objective_evaluate(&request, &result, &error) < 0)
        return;
    totals->tokens += result.counted.tokens;
    totals->sequences += result.counted.sequences;
    totals->groups += result.counted.groups;
}

static void put_totals(struct json_write *json, const struct objective_totals *totals)
{
    json_key(json, "totals");
    json_object_begin(json);
    json_put_int(json, "tokens", (int64_t)totals->tokens);
    json_put_int(json, "sequences", (int64_t)totals->sequences);
    json_put_int(json, "groups", (int64_t)totals->groups);
    json_object_end(json);
}

/* ---- the stream
 * ----------------------------------------------------------------------------------------------------------------- */

/* Rollouts of all groups, one behind the other, where a share splits groups. */
struct lease_members {
    int64_t *weights;
    bool *shown;
    size_t count;
    size_t *first; /* of each group that is shown */
};

struct lease_stream {
    struct stream stream; /* first */
    struct lease_share share;
    struct lease_members members;
    struct store_lease lease;
    struct store_lease_groups groups;
    int64_t policy_revision; /* of the run, where there is no lease */
    struct objective_totals totals;
    unsigned returns; /* set of enum returns_array that at least one batch returns */
    struct batch_cache cache;
    struct render_scope scope;
    enum json_arrays arrays;
    bool in_lines;
    struct json_write json;
    bool begun;
    size_t at;                /* of the groups */
    struct group_piece piece; /* of that one, if in_group */
    bool in_group;
    const struct call *call; /* of a reply in one piece; NULL: it goes in parts */
};

static void lease_stream_destroy(struct stream *stream)
{
    struct lease_stream *self = (struct lease_stream *)stream;
    store_lease_groups_finish(&self->groups);
    store_batch_finish(&self->cache.batch);
    free(self->members.weights);
    free(self->members.shown);
    free(self->members.first);
    free(self);
}

static void put_head(struct lease_stream *self)
{
    if (self->lease.id[0]) {
        render_lease_members(&self->json, &self->lease);
    } else {
        json_put_null(&self->json, "lease");
        json_put_null(&self->json, "expires_at");
        json_put_int_or_null(&self->json, "policy_revision", self->policy_revision);
    }
    put_totals(&self->json, &self->totals);
}

static void begin_lease(struct lease_stream *self)
{
    self->begun = true;
    if (self->in_lines)
        return;
    json_object_begin(&self->json);
    put_head(self);
    json_key(&self->json, "groups");
    json_array_begin(&self->json);
}

static void end_lease(struct lease_stream *self)
{
    if (self->in_lines) {
        json_write_init(&self->json, self->json.out);
        json_object_begin(&self->json);
        json_key(&self->json, "lease");
        json_object_begin(&self->json);
        put_head(self);
        json_object_end(&self->json);
    } else {
        json_array_end(&self->json);
    }
    json_object_end(&self->json);
    buffer_append_byte(self->json.out, '\n');
}

/* Its batch's `return` says what is shown; in columns all groups have what one of them has. */
static enum store_status begin_group(struct lease_stream *self, struct store_reader *reader)
{
    const struct store_lease_group *group = &self->groups.groups[self->at];
    self->piece = (struct group_piece){0};
    if (!id_split_group(text_of(group->id), self->piece.batch_id, &self->piece.index))
        return STORE_NOT_FOUND;
    enum store_status status = find_batch(&self->cache, reader, self->piece.batch_id);
    if (status != STORE_OK)
        return status;
    self->scope.fields = self->scope.columns ? RENDER_ALL : render_stored_returns(self->cache.batch.returns);
    self->scope.arrays = self->arrays;
    self->scope.batch_state = self->cache.batch.state;
    self->scope.terms = &self->cache.terms;
    self->scope.delivered = group;
    self->scope.shown = self->members.shown ? self->members.shown + self->members.first[self->at] : NULL;
    self->in_group = true;
    if (self->in_lines) {
        json_write_init(&self->json, self->json.out);
        json_object_begin(&self->json);
        json_key(&self->json, "group");
    }
    return STORE_OK;
}

/* 1: the group has ended; 0: the part is full; -1: it cannot be read. */
static int write_group(struct lease_stream *self, struct store_reader *reader)
{
    if (!self->in_group && begin_group(self, reader) != STORE_OK)
        return -1;
    int ended = render_group_piece(&self->json, reader, self->stream.room_bytes, &self->scope, &self->piece);
    if (ended <= 0)
        return ended;
    self->in_group = false;
    self->at++;
    if (self->in_lines) {
        json_object_end(&self->json);
        buffer_append_byte(self->json.out, '\n');
    }
    return 1;
}

static bool is_futile(const struct lease_stream *self)
{
    return self->call &&
           (self->call->abandoned || self->json.out->failed || render_columns_failed(self->scope.columns));
}

static int lease_stream_produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct lease_stream *self = (struct lease_stream *)stream;
    self->json.out = part;
    if (!reader)
        return STREAM_CUT;
    if (!self->begun)
        begin_lease(self);
    while (self->at < self->groups.count) {
        int ended = write_group(self, reader);
        if (ended < 0 || is_futile(self))
            return STREAM_CUT;
        if (ended == 0 || part->length_bytes >= stream->room_bytes)
            return STREAM_MORE;
    }
    end_lease(self);
    return STREAM_LAST;
}

/* ---- reading
 * ----------------------------------------------------------------------------------------------------------------- */

/* The weights of a group's rollouts, where a share splits groups. */
static void weigh_members(struct lease_stream *self, size_t group, const struct group_record *record)
{
    struct lease_members *members = &self->members;
    members->weights = xrealloc(members->weights, (members->count + record->count + 1) * sizeof(*members->weights));
    members->first[group] = members->count;
    for (size_t i = 0; i < record->count; i++) {
        const struct store_member *member = &record->members.members[i];
        int64_t weight = self->share.by == SHARE_BY_TOKENS ? member->completion_tokens : 1;
        members->weights[members->count++] = isnan(member->reward) ? 0 : weight;
    }
}

/* Its batch is in the cache. */
static enum store_status read_group(struct lease_stream *self, struct store_reader *reader, size_t group)
{
    static const struct objective_knobs no_arrays;
    _cleanup_(group_record_finish) struct group_record record = {0};
    struct text id = text_of(self->groups.groups[group].id);
    enum store_status status = group_record_read(reader, id, &no_arrays, false, NULL, &record);
    if (status != STORE_OK)
        return status;
    if (self->members.first)
        weigh_members(self, group, &record);
    if (self->cache.terms.known)
        count_group(&record, &self->cache, &self->totals);
    return STORE_OK;
}

static enum store_status read_groups(struct lease_stream *self, struct store_reader *reader)
{
    if (self->share.ranks && self->share.by != SHARE_BY_GROUPS)
        self->members.first = xcalloc(self->groups.count + 1, sizeof(*self->members.first));
    for (size_t i = 0; i < self->groups.count; i++) {
        char batch_id[ID_BYTES];
        int64_t index;
        if (!id_split_group(text_of(self->groups.groups[i].id), batch_id, &index))
            return STORE_NOT_FOUND;
        enum store_status status = find_batch(&self->cache, reader, batch_id);
        if (status == STORE_OK)
            status = read_group(self, reader, i);
        if (status != STORE_OK)
            return status;
        self->returns |= returns_stored(self->cache.batch.returns) & ~(1U << RETURNS_CONTRIBUTIONS);
    }
    return STORE_OK;
}

/* Leaves the groups of the rank, in their order. */
static void keep_groups(struct lease_stream *self)
{
    size_t count = self->groups.count;
    size_t kept = 0;
    _cleanup_free_ int64_t *weights = xcalloc(count + 1, sizeof(*weights));
    _cleanup_free_ int64_t *ranks = xcalloc(count + 1, sizeof(*ranks));
    for (size_t i = 0; i < count; i++)
        weights[i] = 1;
    share_out(count, weights, self->share.ranks, ranks);
    for (size_t i = 0; i < count; i++)
        if (ranks[i] == self->share.rank)
            self->groups.groups[kept++] = self->groups.groups[i];
    self->groups.count = kept;
}

/* Leaves the groups of which the rank has a rollout, and marks those. */
static void keep_members(struct lease_stream *self)
{
    struct lease_members *members = &self->members;
    size_t kept = 0;
    _cleanup_free_ int64_t *ranks = xcalloc(members->count + 1, sizeof(*ranks));
    members->shown = xcalloc(members->count + 1, sizeof(*members->shown));
    share_out(members->count, members->weights, self->share.ranks, ranks);
    for (size_t group = 0; group < self->groups.count; group++) {
        size_t first = members->first[group];
        size_t end = group + 1 < self->groups.count ? members->first[group + 1] : members->count;
        bool has_one = false;
        for (size_t i = first; i < end; i++)
            has_one |= members->shown[i] = ranks[i] == self->share.rank;
        if (!has_one)
            continue;
        self->groups.groups[kept] = self->groups.groups[group];
        members->first[kept++] = first;
    }
    self->groups.count = kept;
}

static enum store_status read_lease(struct lease_stream *self, struct store_reader *reader, struct text run,
                                    struct text lease_id)
{
    if (lease_id.data) {
        enum store_status status = store_read_lease(reader, run, lease_id, &self->lease, &self->groups);
        if (status == STORE_OK)
            status = read_groups(self, reader);
        if (status == STORE_OK && self->members.first)
            keep_members(self);
        else if (status == STORE_OK && self->share.ranks)
            keep_groups(self);
        return status;
    }
    _cleanup_(store_run_detail_finish) struct store_run_detail detail = {0};
    enum store_status status = store_read_run(reader, run, &detail);
    self->policy_revision = detail.run.policy_revision;
    self->returns = RETURNS_ALL & ~(1U << RETURNS_CONTRIBUTIONS);
    return status;
}

/* NULL with the call refused. */
static struct lease_stream *open_lease(struct call *call, struct text run, struct text lease_id,
                                       const struct lease_share *share)
{
    int arrays = JSON_ARRAYS_PLAIN;
    if (call_query_arrays(call, &arrays) < 0)
        return NULL;
    struct lease_stream *self = xcalloc(1, sizeof(*self));
    self->stream = (struct stream){.produce = lease_stream_produce, .destroy = lease_stream_destroy};
    self->arrays = (enum json_arrays)arrays;
    self->share = share ? *share : (struct lease_share){0};
    json_write_init(&self->json, NULL);
    enum store_status status = call->reader ? read_lease(self, call->reader, run, lease_id) : STORE_UNAVAILABLE;
    if (status == STORE_OK)
        return self;
    lease_stream_destroy(&self->stream);
    if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "lease", "the run has no lease of this id");
    else
        call_refuse_unreadable(call);
    return NULL;
}

void render_answer_lease(struct call *call, struct text run, struct text lease_id, const struct lease_share *share)
{
    struct lease_stream *self = open_lease(call, run, lease_id, share);
    if (!self)
        return;
    self->in_lines = call->accept_ndjson;
    call->reply.status = 200;
    call->reply.content_type = self->in_lines ? "application/x-ndjson" : "application/json";
    call->reply.stream = &self->stream;
}

int render_lease_columns(struct call *call, struct text run, struct text lease_id, const struct lease_share *share,
                         struct render_columns *columns, struct buffer *ret_json)
{
    struct lease_stream *self = open_lease(call, run, lease_id, share);
    if (!self)
        return -1;
    columns->arrays = self->arrays == JSON_ARRAYS_NONE ? 0 : self->returns;
    self->scope.columns = columns;
    self->call = call;
    self->stream.room_bytes = SIZE_MAX;
    int state = lease_stream_produce(&self->stream, call->reader, ret_json);
    lease_stream_destroy(&self->stream);
    if (call->abandoned)
        return -1;
    if (ret_json->failed || render_columns_failed(columns))
        return call_refuse(call, ERR_INTERNAL, NULL,
                           "as tensors the lease is larger than memory_budget: GET /v1/runs/{run}/leases/%.*s has it as"
                           " JSON, or a share of it as tensors",
                           (int)lease_id.length_bytes, lease_id.data);
    return state == STREAM_LAST ? 0 : call_refuse_unreadable(call);
}
