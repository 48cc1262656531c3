#include "server/api/page.h"
#include "server/api/routes.h"

#include "server/render/lease.h"
#include "server/render/list.h"
#include "server/render/render.h"
#include "server/render/rollout_list.h"
#include "server/settings/settings.h"
#include "server/spec/rollout_query.h"

#include <math.h>

#define FOUND_MAX 1000 /* batches of one key or request */

/* ---- common
 * ----------------------------------------------------------------------------------------------------------------- */

/* 0, or -1 with the call refused. `what`: "rollout", for the message. */
static int check_status(struct call *call, enum store_status status, const char *path, const char *what)
{
    if (status == STORE_OK)
        return 0;
    if (status == STORE_NOT_FOUND)
        return call_refuse(call, ERR_NOT_FOUND, path, "there is no %s of this %s", what,
                           strcmp(path, what) == 0 ? "name" : path);
    return call_refuse_unreadable(call);
}

static int enter_record(struct call *call)
{
    return call->reader ? 0 : call_refuse_unreadable(call);
}

/* The first checks of every handler: only known parameters, and a database. */
static int enter(struct call *call, const char *const *known)
{
    return call_check_query(call, known) < 0 ? -1 : enter_record(call);
}

/* Surrogates and contributions need the objective and the totals of the batch. */
static int read_terms(struct store_reader *reader, const char *batch_id, struct render_terms *ret_terms,
                      enum store_batch_state *ret_state)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    if (store_read_batch(reader, text_of(batch_id), &batch) != STORE_OK)
        return -1;
    render_terms_init(ret_terms, &batch);
    *ret_state = batch.state;
    return 0;
}

/* ---- rollouts
 * --------------------------------------------------------------------------------------------------------------- */

void list_rollouts(struct call *call)
{
    static const char *const known[] = {"order", "order_by", "limit", "cursor", "fields", "arrays", NULL};
    struct rollout_list_spec spec = {.form = ROLLOUT_LIST_PAGE, .fields = render_row()};
    struct page page;
    if (rollout_query_check(call, known) < 0 || enter_record(call) < 0 || rollout_query_read(call, &spec.filter) < 0 ||
        rollout_query_read_order(call, &spec.filter) < 0 || query_page(call, &page) < 0 ||
        query_fields(call, &spec.fields) < 0 ||
        query_check_cursor(call, store_rollouts_cursor_fits(&spec.filter, page.cursor)) < 0)
        return;
    int arrays = spec.fields & render_arrays() ? JSON_ARRAYS_PLAIN : JSON_ARRAYS_NONE;
    if (call_query_arrays(call, &arrays) < 0)
        return;
    spec.arrays = (enum json_arrays)arrays;
    spec.cursor = page.cursor;
    spec.limit = page.limit;
    rollout_list_answer(call, &spec);
}

void get_rollout(struct call *call)
{
    static const char *const known[] = {"arrays", "fields", NULL};
    _cleanup_(store_rollouts_finish) struct store_rollouts rollout = {0};
    struct render_scope scope = {.fields = RENDER_ALL, .alone = true};
    struct render_terms_cache cache = {.batch_id = ""};
    struct json_write json;
    int arrays = JSON_ARRAYS_PLAIN;
    if (enter(call, known) < 0 || call_query_arrays(call, &arrays) < 0 || query_fields(call, &scope.fields) < 0)
        return;
    scope.arrays = (enum json_arrays)arrays;
    enum store_status status =
        store_read_rollout(call->reader, call->args[0], render_with(scope.fields, scope.arrays), &rollout);
    if (check_status(call, status, "id", "rollout") < 0)
        return;
    json_write_init(&json, &call->reply.body);
    if (render_rollout_alone(&json, call->reader, rollout.rollouts, &scope, &cache) < 0)
        call_refuse_unreadable(call);
    else
        call_answer_json(call, 200);
}

/* ---- groups
 * ----------------------------------------------------------------------------------------------------------------- */

/* `fields` of a group adds members that it omits by default. 0, or -1 with the call refused. */
static int query_group_fields(struct call *call, render_fields *fields)
{
    render_fields named = 0;
    if (!call_query(call, "fields").data)
        return 0;
    if (query_fields(call, &named) < 0)
        return -1;
    named &= ~render_field(TEXT_LITERAL("id"));
    if (named & ~RENDER_TASK)
        return call_refuse(call, ERR_INVALID_FIELD, "fields",
                           "to a group prompt and reference can be added; its other members are always there");
    *fields |= named;
    return 0;
}

struct group_stream {
    struct stream stream; /* first */
    struct json_write json;
    struct render_terms terms;
    struct render_scope scope;
    struct group_piece piece;
    struct store_delivery delivery;
};

static void group_stream_destroy(struct stream *stream)
{
    free(stream);
}

static int group_stream_produce(struct stream *stream, struct store_reader *reader, struct buffer *part)
{
    struct group_stream *self = (struct group_stream *)stream;
    self->json.out = part;
    self->terms.reader = reader;
    int ended = render_group_piece(&self->json, reader, stream->room_bytes, &self->scope, &self->piece);
    if (ended <= 0)
        return ended < 0 ? STREAM_CUT : STREAM_MORE;
    buffer_append_byte(part, '\n');
    return STREAM_LAST;
}

static int read_delivery(struct call *call, struct group_stream *self)
{
    enum store_status status = store_read_delivery(call->reader, call->args[0], &self->delivery);
    self->scope.with_delivery = true;
    self->scope.delivery = status == STORE_OK ? &self->delivery : NULL;
    return status == STORE_OK || status == STORE_NOT_FOUND ? 0 : -1;
}

void get_group(struct call *call)
{
    static const char *const known[] = {"arrays", "fields", NULL};
    _cleanup_(store_group_finish) struct store_group group = {0};
    render_fields fields = RENDER_ALL;
    int arrays = JSON_ARRAYS_PLAIN;
    if (enter(call, known) < 0 || call_query_arrays(call, &arrays) < 0 || query_group_fields(call, &fields) < 0)
        return;
    enum store_status status = store_read_group_from(call->reader, call->args[0], 0, INT64_MIN, 1, &group);
    if (check_status(call, status, "id", "group") < 0)
        return;
    struct group_stream *self = xcalloc(1, sizeof(*self));
    self->stream = (struct stream){.produce = group_stream_produce, .destroy = group_stream_destroy};
    json_write_init(&self->json, NULL);
    self->scope = (struct render_scope){
        .fields = fields, .alone = true, .arrays = (enum json_arrays)arrays, .terms = &self->terms};
    memcpy(self->piece.batch_id, group.batch_id, ID_BYTES);
    self->piece.index = group.index;
    call->reply.status = 200;
    call->reply.content_type = "application/json";
    call->reply.stream = &self->stream;
    if (read_terms(call->reader, group.batch_id, &self->terms, &self->scope.batch_state) < 0 ||
        read_delivery(call, self) < 0)
        call_refuse_unreadable(call);
}

/* The cursor of a batch's groups is the id of the next one. */
static int first_group(struct call *call, struct text cursor, int64_t *ret_index)
{
    char batch_id[ID_BYTES];
    *ret_index = 0;
    return query_check_cursor(
        call, !cursor.data || (id_split_group(cursor, batch_id, ret_index) && text_equals(call->args[0], batch_id)));
}

struct group_list {
    struct record_list list; /* first */
    struct render_terms terms;
    struct render_scope scope;
    struct group_piece piece;
    int64_t group_count;
};

static int add_group(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    struct group_list *self = (struct group_list *)list;
    char next[ID_BYTES] = "";
    int ended = 0;
    (void)limits;
    if (self->piece.index < self->group_count)
        ended = render_group_piece(record_list_item(list), reader, list->stream.room_bytes, &self->scope, &self->piece);
    if (self->piece.index < self->group_count)
        id_of_group(self->piece.batch_id, self->piece.index, next);
    record_list_read(list, next, ended > 0, 0, 0);
    return ended < 0 ? -1 : 0;
}

void list_batch_groups(struct call *call)
{
    static const char *const known[] = {"arrays", "limit", "cursor", "fields", NULL};
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    render_fields fields = RENDER_ALL;
    struct page page;
    int64_t index;
    int arrays = JSON_ARRAYS_PLAIN;
    if (enter(call, known) < 0 || query_page(call, &page) < 0 || call_query_arrays(call, &arrays) < 0 ||
        query_group_fields(call, &fields) < 0 || first_group(call, page.cursor, &index) < 0 ||
        check_status(call, store_read_batch(call->reader, call->args[0], &batch), "id", "batch") < 0)
        return;
    struct group_list *self = xcalloc(1, sizeof(*self));
    record_list_init(&self->list, page.cursor, page.limit, INT64_MAX);
    self->list.add = add_group;
    render_terms_init(&self->terms, &batch);
    self->scope = (struct render_scope){
        .fields = fields, .arrays = (enum json_arrays)arrays, .batch_state = batch.state, .terms = &self->terms};
    memcpy(self->piece.batch_id, batch.id, ID_BYTES);
    self->piece.index = index;
    self->group_count = batch.group_count;
    record_list_answer(call, &self->list);
}

/* ---- batches
 * ---------------------------------------------------------------------------------------------------------------- */

struct batch_list {
    struct record_list list; /* first */
    struct text run;
    int state;
    bool descending;
};

/* Of a key, or a request: few, and all of them. 0: none was asked for; 1: answered; -1: refused. */
static int find_batches(struct call *call)
{
    struct text key = call_query(call, "idempotency_key");
    struct text request_id = call_query(call, "request_id");
    if (!key.data && !request_id.data)
        return 0;
    if (key.data && request_id.data)
        return call_refuse(call, ERR_INVALID_FIELD, "request_id", "give either idempotency_key or request_id");
    _cleanup_(store_batches_finish) struct store_batches found = {0};
    if (store_find_batches(call->reader, key.data ? STORE_BATCH_BY_KEY : STORE_BATCH_BY_REQUEST_ID,
                           key.data ? key : request_id, FOUND_MAX, &found) != STORE_OK)
        return call_refuse_unreadable(call);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < found.count; i++)
        if (!call_query(call, "run").data || text_same(call_query(call, "run"), found.batches[i].run))
            render_batch_line(&json, &found.batches[i]);
    json_array_end(&json);
    json_put_null(&json, "next");
    json_object_end(&json);
    call_answer_json(call, 200);
    return 1;
}

static int add_batches(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    const struct batch_list *self = (const struct batch_list *)list;
    _cleanup_(store_batches_finish) struct store_batches page = {0};
    if (store_list_batches(reader, self->run, self->state, self->descending, record_list_cursor(list), limits, &page) !=
        STORE_OK)
        return -1;
    for (size_t i = 0; i < page.count; i++)
        render_batch_line(record_list_item(list), &page.batches[i]);
    record_list_read(list, page.next, page.count, page.scanned, page.bytes);
    return 0;
}

void list_batches(struct call *call)
{
    static const char *const known[] = {"run",    "state",           "order",      "limit",
                                        "cursor", "idempotency_key", "request_id", NULL};
    struct page page;
    bool descending = false;
    int state = -1;
    if (enter(call, known) < 0 || query_page(call, &page) < 0 || query_read_descending(call, &descending) < 0 ||
        call_query_word(call, "state", store_batch_state_names, &state) < 0 ||
        query_check_cursor(call, store_batches_cursor_fits(call_query(call, "run"), state, descending, page.cursor)) <
            0 ||
        find_batches(call) != 0)
        return;
    struct batch_list *self = xcalloc(1, sizeof(*self));
    record_list_init(&self->list, page.cursor, page.limit, call->settings->scan_budget);
    self->list.add = add_batches;
    self->run = call_query(call, "run");
    self->state = state;
    self->descending = descending;
    record_list_answer(call, &self->list);
}

/* ---- runs
 * -------------------------------------------------------------------------------------------------------------------
 */

static void put_run(struct json_write *json, const struct store_run *run)
{
    json_put_text(json, "run", run->name);
    json_put_int(json, "incarnation", run->incarnation);
    json_put_int_or_null(json, "policy_revision", run->policy_revision);
    json_put_time(json, "created_at", run->created_at_us);
    json_key(json, "counts");
    json_object_begin(json);
    json_put_int(json, "batches", run->batches);
    json_put_int(json, "rollouts", run->scored + run->failed + run->cancelled);
    json_put_int(json, "scored", run->scored);
    json_put_int(json, "failed", run->failed);
    json_put_int(json, "cancelled", run->cancelled);
    json_put_int_or_null(json, "train_tokens", run->spent_tokens);
    json_object_end(json);
    json_put_int_or_null(json, "deletion", run->deletion);
    json_key(json, "update");
    if (!run->has_update) {
        json_write_null(json);
        return;
    }
    json_object_begin(json);
    update_write_record(json, &run->update);
    json_object_end(json);
}

static int add_runs(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    _cleanup_(store_runs_finish) struct store_runs page = {0};
    if (store_list_runs(reader, record_list_cursor(list), limits->rows, &page) != STORE_OK)
        return -1;
    for (size_t i = 0; i < page.count; i++) {
        struct json_write *json = record_list_item(list);
        json_object_begin(json);
        put_run(json, &page.runs[i]);
        json_object_end(json);
    }
    record_list_read(list, page.next, page.count, page.count, 0);
    return 0;
}

void list_runs(struct call *call)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    struct page page;
    if (enter(call, known) < 0 || query_page(call, &page) < 0 ||
        query_check_cursor(call, store_runs_cursor_fits(page.cursor)) < 0)
        return;
    struct record_list *list = xcalloc(1, sizeof(*list));
    record_list_init(list, page.cursor, page.limit, INT64_MAX);
    list->add = add_runs;
    record_list_answer(call, list);
}

static void put_incarnations(struct json_write *json, const struct store_run_detail *run)
{
    json_key(json, "incarnations");
    json_array_begin(json);
    for (size_t i = 0; i < run->incarnation_count; i++) {
        json_object_begin(json);
        json_put_int(json, "incarnation", run->incarnations[i].incarnation);
        json_put_time(json, "opened_at", run->incarnations[i].opened_at_us);
        json_put_int_or_null(json, "rewind_to_step", run->incarnations[i].rewind_to_step);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_revisions(struct json_write *json, const struct store_run_detail *run)
{
    json_put_int(json, "revisions_declared", run->revisions_declared);
    json_key(json, "revisions");
    json_array_begin(json);
    for (size_t i = 0; i < run->revision_count; i++) {
        json_object_begin(json);
        json_put_int(json, "incarnation", run->revisions[i].incarnation);
        json_put_int(json, "revision", run->revisions[i].revision);
        json_put_time(json, "declared_at", run->revisions[i].declared_at_us);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_objectives(struct json_write *json, const struct store_run_detail *run)
{
    json_key(json, "objectives");
    json_array_begin(json);
    for (size_t i = 0; i < run->objective_count; i++) {
        json_object_begin(json);
        json_put_raw(json, "objective", run->objectives[i].objective);
        json_put_string(json, "first_batch", run->objectives[i].first_batch_id);
        json_put_string(json, "purpose", store_purpose_names[run->objectives[i].purpose]);
        json_put_time(json, "first_used_at", run->objectives[i].first_used_at_us);
        json_object_end(json);
    }
    json_array_end(json);
}

void get_run(struct call *call)
{
    struct store_delivery_counts counts = {0};
    _cleanup_(store_run_detail_finish) struct store_run_detail run = {0};
    _cleanup_(store_manifest_finish) struct store_manifest manifest = {0};
    struct json_write json;
    if (enter_record(call) < 0 ||
        check_status(call, store_read_run(call->reader, call->args[0], &run), "run", "run") < 0)
        return;
    if (store_read_manifest(call->reader, call->args[0], &manifest) == STORE_UNAVAILABLE ||
        store_count_deliveries(call->reader, call->args[0], &counts) == STORE_UNAVAILABLE) {
        call_refuse_unreadable(call);
        return;
    }
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    put_run(&json, &run.run);
    json_put_raw(&json, "manifest", manifest.given);
    render_delivery_counts(&json, &counts);
    put_incarnations(&json, &run);
    put_revisions(&json, &run);
    put_objectives(&json, &run);
    json_object_end(&json);
    call_answer_json(call, 200);
}
