#include "server/render/rollout_list.h"

#include "server/render/csv_private.h"
#include "server/render/list.h"
#include "server/settings/settings.h"

#include <inttypes.h>
#include <stdlib.h>

struct rollout_list {
    struct record_list list; /* first */
    struct rollout_list_spec spec;
    struct render_scope scope;
    struct render_terms_cache cache;
    struct buffer row; /* of CSV: the rollout as JSON */
};

/* ---- one rollout ------------------------------------------------------------------------------------------------- */

static int read_terms(struct store_reader *reader, const char *batch_id, struct render_terms_cache *cache)
{
    _cleanup_(store_batch_finish) struct store_batch batch = {0};
    if (strcmp(cache->batch_id, batch_id) == 0)
        return 0;
    if (store_read_batch(reader, text_of(batch_id), &batch) != STORE_OK)
        return -1;
    render_terms_init(&cache->terms, &batch);
    memcpy(cache->batch_id, batch_id, ID_BYTES);
    return 0;
}

int render_rollout_alone(struct json_write *json, struct store_reader *reader, const struct store_rollout *rollout,
                         const struct render_scope *scope, struct render_terms_cache *cache)
{
    struct render_scope own = *scope;
    own.terms = NULL;
    if (scope->arrays != JSON_ARRAYS_NONE && scope->fields & render_arrays()) {
        if (read_terms(reader, rollout->batch_id, cache) < 0)
            return -1;
        cache->terms.reader = reader;
        own.terms = &cache->terms;
    }
    render_rollout(json, rollout, &own);
    return 0;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static int add_line(struct rollout_list *self, struct store_reader *reader, const struct store_rollout *rollout)
{
    struct json_write json;
    json_write_init(&json, record_list_item(&self->list)->out);
    if (render_rollout_alone(&json, reader, rollout, &self->scope, &self->cache) < 0)
        return -1;
    buffer_append_byte(json.out, '\n');
    return 0;
}

static int add_csv(struct rollout_list *self, struct store_reader *reader, const struct store_rollout *rollout)
{
    struct buffer *part = record_list_item(&self->list)->out;
    struct json_write json;
    self->row.length_bytes = 0;
    json_write_init(&json, &self->row);
    if (render_rollout_alone(&json, reader, rollout, &self->scope, &self->cache) < 0 || self->row.failed)
        return -1;
    csv_add_row(part, self->scope.fields, buffer_text(&self->row));
    return 0;
}

static int add_item(struct rollout_list *self, struct store_reader *reader, const struct store_rollout *rollout)
{
    return render_rollout_alone(record_list_item(&self->list), reader, rollout, &self->scope, &self->cache);
}

static void begin_lines(struct record_list *list)
{
    (void)list;
}

static int64_t rows_of(const struct record_list *list)
{
    return ((const struct rollout_list *)list)->spec.limit - list->rows_left;
}

static void end_lines(struct record_list *list)
{
    struct json_write json;
    json_write_init(&json, list->json.out);
    json_object_begin(&json);
    json_key(&json, "end");
    json_object_begin(&json);
    json_put_int(&json, "rows", rows_of(list));
    json_put_string(&json, "next", list->next[0] ? list->next : NULL);
    json_object_end(&json);
    json_object_end(&json);
}

static void begin_csv(struct record_list *list)
{
    csv_add_header(list->json.out, ((const struct rollout_list *)list)->scope.fields);
}

static void end_csv(struct record_list *list)
{
    buffer_append_format(list->json.out, "# end,%" PRId64 "%s%s", rows_of(list), list->next[0] ? "," : "", list->next);
}

static const struct record_list_frame lines_frame = {begin_lines, end_lines};
static const struct record_list_frame csv_frame = {begin_csv, end_csv};

static const struct {
    const char *content_type;
    const struct record_list_frame *frame; /* NULL: a page's */
    int (*add)(struct rollout_list *self, struct store_reader *reader, const struct store_rollout *rollout);
} forms[] = {
    [ROLLOUT_LIST_PAGE] = {"application/json", NULL, add_item},
    [ROLLOUT_LIST_LINES] = {"application/x-ndjson", &lines_frame, add_line},
    [ROLLOUT_LIST_CSV] = {"text/csv; charset=utf-8", &csv_frame, add_csv},
};

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static int add(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits)
{
    struct rollout_list *self = (struct rollout_list *)list;
    _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
    if (store_list_rollouts(reader, &self->spec.filter, record_list_cursor(list), limits,
                            render_with(self->scope.fields, self->scope.arrays), &page) != STORE_OK)
        return -1;
    for (size_t i = 0; i < page.count; i++)
        if (forms[self->spec.form].add(self, reader, &page.rollouts[i]) < 0)
            return -1;
    record_list_read(list, page.next, page.count, page.scanned, page.bytes);
    return 0;
}

static void destroy(struct stream *stream)
{
    struct rollout_list *self = (struct rollout_list *)stream;
    buffer_finish(&self->row);
    free(self);
}

void rollout_list_answer(struct call *call, const struct rollout_list_spec *spec)
{
    struct rollout_list *self = xcalloc(1, sizeof(*self));
    bool is_page = spec->form == ROLLOUT_LIST_PAGE;
    record_list_init(&self->list, spec->cursor, spec->limit, is_page ? call->settings->scan_budget : INT64_MAX);
    self->list.add = add;
    self->list.stream.destroy = destroy;
    if (!is_page) {
        self->list.frame = forms[spec->form].frame;
        self->list.bytes_left = INT64_MAX;
    }
    self->spec = *spec;
    self->scope = (struct render_scope){.fields = spec->fields, .arrays = spec->arrays, .alone = true};
    buffer_init(&self->row, CSV_ROW_BYTES_MAX);
    record_list_answer(call, &self->list);
    call->reply.content_type = forms[spec->form].content_type;
}
