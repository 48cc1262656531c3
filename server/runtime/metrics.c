#include "server/runtime/metrics.h"

#include "server/base/json_write.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

/* --- label values --- */

static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx", NULL};
static const char *const alarm_kinds[] = {ALARM_WORDS(WORD_TEXT) NULL};
static const char *const batch_states[] = {BATCH_END_WORDS(WORD_TEXT) NULL};
static const char *const rollout_states[] = {ROLLOUT_STATE_WORDS(WORD_TEXT) NULL};
static const char *const delivery_states[] = {DELIVERY_STATE_WORDS(WORD_TEXT) NULL};
static const char *const queues[] = {"parse", "verify", "row", "batch", "code", NULL};
static const char *const code_reasons[] = {
    "pass",         "wrong_answer", "no_code",           "runtime_error",       "compile_error", "timeout",
    "memory_limit", "output_limit", "sandbox_violation", "sandbox_unavailable", "other",         NULL};
static const char *const incident_codes[] = {INCIDENT_WORDS(WORD_TEXT) NULL};
static const char *const engine_states[] = {ENGINE_STATE_WORDS(WORD_TEXT) NULL};
static const char *const engine_failures[] = {SAMPLE_FAILURE_WORDS(WORD_TEXT) "other", NULL};
static const char *const failure_codes[] = {FAILURE_WORDS(WORD_TEXT) "other", NULL};

/* --- buckets: upper bounds; the last, infinity, is not listed --- */

static const int64_t microseconds[] = {50,      100,     250,      500,      1000,     2500,      5000,
                                       10000,   25000,   50000,    100000,   250000,   500000,    1000000,
                                       2500000, 5000000, 10000000, 25000000, 50000000, 100000000, 250000000};
static const int64_t powers_of_two[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

struct buckets {
    const int64_t *bounds;
    size_t count;
    double unit; /* factor from a value to the shown one */
};

static const struct buckets seconds[] = {{microseconds, ARRAY_LENGTH(microseconds), 1e-6}};
static const struct buckets rows[] = {{powers_of_two, ARRAY_LENGTH(powers_of_two), 1}};

/* --- THE table --- */

struct metric_row {
    const char *name;
    const char *help;
    enum metric_kind kind;
    const char *label;               /* NULL: none */
    const char *const *label_values; /* NULL beside a label: the routes */
    const struct buckets *buckets;
};

#define NONE .label = NULL
#define BY(name, values) .label = (name), .label_values = (values)
#define LABEL(name, ...)                                                                                               \
    .label = (name), .label_values = (const char *const[])                                                             \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define BY_ROUTE .label = "route"
#define IN(bounds) .buckets = (bounds)

static const struct metric_row table[METRIC_COUNT] = {
#define METRIC(symbol, kind, name, label, help) {name, help, kind, label},
#include "server/runtime/metrics.def"
#undef METRIC
};

/* --- the cells --- */

enum { CLASSES = (int)ARRAY_LENGTH(classes) - 1 };

/* A histogram's cells: one per bucket, one for infinity, the sum. */
struct place {
    size_t first;
    size_t count;
};

static struct {
    const char *const *routes;
    size_t route_count;
    struct place places[METRIC_COUNT];
    _Atomic int64_t *cells;
} state;

static size_t count_values(const char *const *values)
{
    size_t count = 0;
    while (values[count])
        count++;
    return count;
}

static size_t count_cells(const struct metric_row *row)
{
    if (row->kind == HISTOGRAM)
        return row->buckets->count + 2;
    if (!row->label)
        return 1;
    return row->label_values ? count_values(row->label_values) : (state.route_count + 1) * CLASSES;
}

void metrics_setup(const char *const *routes, size_t route_count)
{
    size_t total = 0;
    metrics_finish();
    state.routes = routes;
    state.route_count = route_count;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        state.places[i] = (struct place){total, count_cells(&table[i])};
        total += state.places[i].count;
    }
    state.cells = xcalloc(total, sizeof(*state.cells));
}

void metrics_finish(void)
{
    free(state.cells);
    state.cells = NULL;
}

static _Atomic int64_t *cell(enum metric metric, size_t index)
{
    struct place place = state.places[metric];
    return &state.cells[place.first + (index < place.count ? index : place.count - 1)];
}

void metric_add(enum metric metric, size_t label, int64_t amount)
{
    if (state.cells)
        atomic_fetch_add_explicit(cell(metric, label), amount, memory_order_relaxed);
}

void metric_set(enum metric metric, size_t label, int64_t value)
{
    if (state.cells)
        atomic_store_explicit(cell(metric, label), value, memory_order_relaxed);
}

void metric_observe(enum metric metric, int64_t value)
{
    const struct buckets *buckets = table[metric].buckets;
    size_t bucket = 0;
    while (bucket < buckets->count && value > buckets->bounds[bucket])
        bucket++;
    metric_add(metric, bucket, 1);
    metric_add(metric, buckets->count + 1, value);
}

void metric_add_named(enum metric metric, const char *label_value, int64_t amount)
{
    size_t label = 0;
    while (table[metric].label_values[label] && strcmp(table[metric].label_values[label], label_value) != 0)
        label++;
    metric_add(metric, label, amount); /* beyond the last is the last: "other" */
}

void metric_http(size_t route, int status, int64_t duration_us)
{
    size_t class = status >= 100 && status < 600 ? (size_t)status / 100 - 1 : CLASSES - 1;
    size_t known = route < state.route_count ? route : state.route_count;
    metric_add(METRIC_HTTP_REQUESTS, known * CLASSES + class, 1);
    metric_observe(METRIC_HTTP_SECONDS, duration_us);
}

/* --- rendering --- */

static int64_t load(enum metric metric, size_t index)
{
    return atomic_load_explicit(cell(metric, index), memory_order_relaxed);
}

static void render_routes(struct buffer *out, enum metric metric)
{
    for (size_t i = 0; i < state.places[metric].count; i++) {
        int64_t value = load(metric, i);
        size_t route = i / CLASSES;
        if (value != 0) /* most of route times class never happens */
            buffer_append_format(out, "%s{route=\"%s\",class=\"%s\"} %" PRId64 "\n", table[metric].name,
                                 route < state.route_count ? state.routes[route] : "other", classes[i % CLASSES],
                                 value);
    }
}

static void render_values(struct buffer *out, enum metric metric)
{
    const struct metric_row *row = &table[metric];
    for (size_t i = 0; i < state.places[metric].count; i++) {
        buffer_append_string(out, row->name);
        if (row->label)
            buffer_append_format(out, "{%s=\"%s\"}", row->label, row->label_values[i]);
        buffer_append_format(out, " %" PRId64 "\n", load(metric, i));
    }
}

/* The count is the last bucket's, so that both agree while others observe. */
static void render_histogram(struct buffer *out, enum metric metric)
{
    const struct metric_row *row = &table[metric];
    const struct buckets *buckets = row->buckets;
    int64_t count = 0;
    for (size_t i = 0; i <= buckets->count; i++) {
        char bound[32] = "+Inf";
        if (i < buckets->count)
            snprintf(bound, sizeof(bound), "%g", (double)buckets->bounds[i] * buckets->unit);
        count += load(metric, i);
        buffer_append_format(out, "%s_bucket{le=\"%s\"} %" PRId64 "\n", row->name, bound, count);
    }
    buffer_append_format(out, "%s_sum %.15g\n", row->name, (double)load(metric, buckets->count + 1) * buckets->unit);
    buffer_append_format(out, "%s_count %" PRId64 "\n", row->name, count);
}

static const char *const kinds[] = {[COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"};

void metrics_render(struct buffer *out)
{
    if (!state.cells)
        return;
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metric_row *row = &table[metric];
        buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, kinds[row->kind]);
        if (row->kind == HISTOGRAM)
            render_histogram(out, metric);
        else if (row->label && !row->label_values)
            render_routes(out, metric);
        else
            render_values(out, metric);
    }
}

void metrics_write(struct json_write *json)
{
    json_array_begin(json);
    for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
        const struct metric_row *row = &table[metric];
        json_object_begin(json);
        json_put_string(json, "name", row->name);
        json_put_string(json, "kind", kinds[row->kind]);
        json_put_string(json, "help", row->help);
        json_put_string(json, "label", row->label);
        json_key(json, "values");
        json_array_begin(json);
        for (size_t i = 0; row->label_values && row->label_values[i]; i++)
            json_text(json, text_of(row->label_values[i]));
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}
