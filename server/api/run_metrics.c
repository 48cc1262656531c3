/* /v1/runs/{run}/metrics: the trainer's own numbers, by optimizer step. */
#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/base/json_write.h"
#include "server/http/http.h"
#include "server/input/input.h"

enum { METRICS_MAX = 256, METRIC_NAME_BYTES_MAX = 128 };

/* From the worker part to the loop part, and then the store's until it is on record. */
struct recording {
    struct store_wait wait; /* first */
    char *run;
    struct buffer numbers;
};

static void recording_destroy(void *parsed)
{
    struct recording *recording = parsed;
    buffer_finish(&recording->numbers);
    free(recording->run);
    free(recording);
}

/* --- recorded ------------------------------------------------------------------------------------------------- */

struct metrics_fields {
    int64_t optimizer_step;
    int64_t revision;
    json_t *values;
};

#define AT(field) offsetof(struct metrics_fields, field)
static const struct field metrics_table[] = {
    {"optimizer_step", FIELD_INT, FIELD_REQUIRED, AT(optimizer_step), 0, 9223372036854775807.0, NULL},
    {"revision", FIELD_INT, FIELD_REQUIRED, AT(revision), 0, 9223372036854775807.0, NULL},
    {"values", FIELD_OBJECT, FIELD_REQUIRED, AT(values), 0, 0, NULL},
};
#undef AT

static int refuse_value(struct call *call, struct text name)
{
    char path[PATH_BYTES];
    _cleanup_free_ char *copy = xstrndup(name.data, name.length_bytes);
    path_join(path, "values", copy);
    return call_refuse(call, ERR_INVALID_FIELD, path,
                       "expected a finite number; a number that there is not at this step is left out");
}

/* 0, or -1 with the call refused. */
static int write_values(struct call *call, json_t *values, struct json_write *json)
{
    const char *name;
    size_t name_bytes;
    json_t *value;
    json_object_begin(json);
    json_object_keylen_foreach(values, name, name_bytes, value)
    {
        struct text key = {name, name_bytes};
        if (name_bytes < 1 || name_bytes > METRIC_NAME_BYTES_MAX)
            return call_refuse(call, ERR_INVALID_FIELD, "values", "the name of a number has 1 to %d bytes",
                               METRIC_NAME_BYTES_MAX);
        if (!json_is_number(value))
            return refuse_value(call, key);
        json_key_text(json, key);
        if (json_is_integer(value))
            json_int(json, json_integer_value(value));
        else
            json_double(json, json_real_value(value));
    }
    json_object_end(json);
    return 0;
}

static int read_metrics(struct call *call, struct recording *recording)
{
    struct json_input input;
    struct json_write json;
    struct metrics_fields fields = {0};
    if (json_input_init(&input, call, NULL) < 0)
        return -1;
    buffer_init(&recording->numbers, 256 * 1024);
    json_write_init(&json, &recording->numbers);
    int result = json_read_object(&input, input.root, "", metrics_table, ARRAY_LENGTH(metrics_table), &fields);
    if (result == 0 && (json_object_size(fields.values) == 0 || json_object_size(fields.values) > METRICS_MAX))
        result = call_refuse(call, ERR_INVALID_FIELD, "values", "expected 1 to %d numbers by their names", METRICS_MAX);
    if (result == 0)
        result = write_values(call, fields.values, &json);
    recording->wait.op.record_metrics =
        (struct store_record_metrics){.run = {recording->run, call->args[0].length_bytes},
                                      .optimizer_step = fields.optimizer_step,
                                      .revision = fields.revision,
                                      .numbers = buffer_text(&recording->numbers)};
    json_input_finish(&input);
    return result;
}

void parse_metrics(struct call *call)
{
    struct recording *recording = xcalloc(1, sizeof(*recording));
    recording->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    call->parsed = recording;
    call->parsed_destroy = recording_destroy;
    read_metrics(call, recording);
}

static void put_metric(struct json_write *json, int64_t incarnation, int64_t step, int64_t revision, int64_t at_us)
{
    json_put_int(json, "incarnation", incarnation);
    json_put_int(json, "optimizer_step", step);
    json_put_int(json, "revision", revision);
    json_put_time(json, "recorded_at", at_us);
}

static void answer(struct request *request, const struct store_record_metrics *recorded)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_text(&json, "run", recorded->run);
    put_metric(&json, recorded->incarnation, recorded->optimizer_step, recorded->revision, recorded->recorded_at_us);
    json_put_bool(&json, "replaced", recorded->replaced);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void metrics_recorded(struct store_op *op)
{
    struct recording *recording = op->context;
    struct request *request = recording->wait.request;
    if (request && op->status == STORE_OK)
        answer(request, &op->record_metrics);
    else if (request && op->status == STORE_NOT_FOUND)
        request_refuse(request, ERR_NOT_FOUND, "run", "there is no run of this name");
    else
        store_wait_refuse(&recording->wait, "");
    recording_destroy(recording);
}

/* The operation outlives the request if the client hangs up, so the call gives it away. */
void record_metrics(void *owner, struct request *request)
{
    struct server *server = owner;
    struct recording *recording = TAKE_PTR(request_call(request)->parsed);
    recording->wait.op.kind = STORE_RECORD_METRICS;
    recording->wait.op.done = metrics_recorded;
    if (!store_wait_submit(&recording->wait, server->store, request))
        recording_destroy(recording);
}

/* --- listed --------------------------------------------------------------------------------------------------- */

static void answer_page(struct call *call, const struct store_trainer_metrics *page)
{
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < page->count; i++) {
        const struct store_trainer_metric *metric = &page->metrics[i];
        json_object_begin(&json);
        put_metric(&json, metric->incarnation, metric->optimizer_step, metric->revision, metric->recorded_at_us);
        json_put_raw(&json, "values", metric->numbers);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_put_string(&json, "next", *page->next ? page->next : NULL);
    json_object_end(&json);
    call_answer_json(call, 200);
}

void list_metrics(struct call *call)
{
    static const char *const known[] = {"optimizer_step", "limit", "cursor", NULL};
    _cleanup_(store_trainer_metrics_finish) struct store_trainer_metrics metrics = {0};
    struct page page;
    int64_t step = -1;
    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0 ||
        call_query_int(call, "optimizer_step", 0, INT64_MAX, &step) < 0)
        return;
    enum store_status status = STORE_UNAVAILABLE;
    if (call->reader)
        status = store_list_metrics(call->reader, call->args[0], step, page.cursor, (size_t)page.limit, &metrics);
    if (status == STORE_OK)
        answer_page(call, &metrics);
    else
        page_refuse_run(call, status);
}
