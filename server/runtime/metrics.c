#include "server/runtime/metrics.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

/* --- label values --- */

static const char *const classes[] = {"1xx", "2xx", "3xx", "4xx", "5xx", NULL};
static const char *const batch_states[] = {"complete", "cancelled", "expired", NULL};
static const char *const rollout_states[] = {"scored", "failed", "cancelled", NULL};
static const char *const queues[] = {"parse", "verify", "row", "batch", NULL};
static const char *const incident_codes[] = {"verifier_crashed", "verifier_timeout", NULL};
static const char *const engine_states[] = {"unknown",  "up",      "cooling", "half_open", "down",
                                            "draining", "refused", "probing", NULL};
static const char *const engine_failures[] = {"engine_timeout",
                                              "engine_unreachable",
                                              "engine_error",
                                              "engine_overloaded",
                                              "invalid_reply",
                                              "non_finite_logprob",
                                              "context_overflow",
                                              "empty_completion",
                                              "other",
                                              NULL};
static const char *const failure_codes[] = {"engine_timeout",
                                            "engine_unreachable",
                                            "engine_error",
                                            "engine_overloaded",
                                            "invalid_reply",
                                            "non_finite_logprob",
                                            "context_overflow",
                                            "verifier_timeout",
                                            "verifier_crashed",
                                            "verifier_unavailable",
                                            "verifier_input_too_large",
                                            "empty_completion",
                                            "reference_unreadable",
                                            "sandbox_unavailable",
                                            "deadline",
                                            "cancelled",
                                            "other",
                                            NULL};

/* --- buckets: upper bounds; the last, infinity, is not listed --- */

static const int64_t microseconds[] = {50,      100,     250,      500,      1000,     2500,      5000,
                                       10000,   25000,   50000,    100000,   250000,   500000,    1000000,
                                       2500000, 5000000, 10000000, 25000000, 50000000, 100000000, 250000000};
static const int64_t powers_of_two[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

struct buckets {
    const int64_t *bounds;
    size_t count;
    double unit; /* of the values, in what is shown */
};

static const struct buckets seconds = {microseconds, ARRAY_LENGTH(microseconds), 1e-6};
static const struct buckets rows = {powers_of_two, ARRAY_LENGTH(powers_of_two), 1};

/* --- THE table --- */

struct metric_row {
    const char *name;
    const char *help;
    enum metric_kind kind;
    const char *label;               /* NULL: none */
    const char *const *label_values; /* NULL beside a label: the routes */
    const struct buckets *buckets;
};

static const struct metric_row table[METRIC_COUNT] = {
    [METRIC_HTTP_REQUESTS] = {"rolloutd_http_requests_total", "Requests answered.", COUNTER, "route", NULL, NULL},
    [METRIC_HTTP_SECONDS] = {"rolloutd_http_request_seconds", "Time from a request's first byte to its reply.",
                             HISTOGRAM, NULL, NULL, &seconds},
    [METRIC_CONNECTIONS] = {"rolloutd_connections", "Open client connections.", GAUGE, NULL, NULL, NULL},
    [METRIC_BATCHES] = {"rolloutd_batches_total", "Batches ended.", COUNTER, "state", batch_states, NULL},
    [METRIC_BATCHES_RUNNING] = {"rolloutd_batches_running", "Batches not ended.", GAUGE, NULL, NULL, NULL},
    [METRIC_ROLLOUTS] = {"rolloutd_rollouts_total", "Rollouts ended.", COUNTER, "state", rollout_states, NULL},
    [METRIC_FAILURES] = {"rolloutd_failures_total", "Failed rollouts.", COUNTER, "code", failure_codes, NULL},
    [METRIC_COMPLETION_TOKENS] = {"rolloutd_completion_tokens_total", "Sampled tokens.", COUNTER, NULL, NULL, NULL},
    [METRIC_SAMPLES_IN_FLIGHT] = {"rolloutd_samples_in_flight", "Samples at the engines.", GAUGE, NULL, NULL, NULL},
    [METRIC_SAMPLES_QUEUED] = {"rolloutd_samples_queued", "Samples not dispatched yet.", GAUGE, NULL, NULL, NULL},
    [METRIC_ENGINE_RETRIES] = {"rolloutd_engine_retries_total", "Requests to engines beyond the first of a sample.",
                               COUNTER, NULL, NULL, NULL},
    [METRIC_ENGINE_RETRIES_REFUSED] = {"rolloutd_engine_retries_refused_total",
                                       "Requests that were not repeated because a retry budget was used up.", COUNTER,
                                       NULL, NULL, NULL},
    [METRIC_ENGINE_FAILURES] = {"rolloutd_engine_failures_total", "Requests to engines that gave no sample.", COUNTER,
                                "code", engine_failures, NULL},
    [METRIC_ENGINE_SECONDS] = {"rolloutd_engine_request_seconds",
                               "Time of one sample at its engine, answered or failed.", HISTOGRAM, NULL, NULL,
                               &seconds},
    [METRIC_ENGINES_UP] = {"rolloutd_engines_up", "Engines that answer.", GAUGE, NULL, NULL, NULL},
    [METRIC_ENGINES] = {"rolloutd_engines", "Engines by their state.", GAUGE, "state", engine_states, NULL},
    [METRIC_VERIFY_SECONDS] = {"rolloutd_verify_seconds", "Time of one completion with its verifiers.", HISTOGRAM, NULL,
                               NULL, &seconds},
    [METRIC_VERDICTS_UNDECIDED] = {"rolloutd_verdicts_undecided_total",
                                   "Verdicts that mathematics could not decide within its limits.", COUNTER, NULL, NULL,
                                   NULL},
    [METRIC_VERIFIER_INCIDENTS] = {"rolloutd_verifier_incidents_total",
                                   "Verdicts lost because a completion crashed or hung a verifier.", COUNTER, "code",
                                   incident_codes, NULL},
    [METRIC_VERIFIER_ALARMS] = {"rolloutd_verifier_alarms",
                                "Runs and verifiers with more incidents lately than crashes.alarm allows.", GAUGE, NULL,
                                NULL, NULL},
    [METRIC_QUEUE_DEPTH] = {"rolloutd_queue_depth", "Jobs that wait.", GAUGE, "queue", queues, NULL},
    [METRIC_QUEUE_REFUSALS] = {"rolloutd_queue_refusals_total", "Jobs refused because their queue was full.", COUNTER,
                               "queue", queues, NULL},
    [METRIC_COMMIT_SECONDS] = {"rolloutd_commit_seconds", "Time of one commit.", HISTOGRAM, NULL, NULL, &seconds},
    [METRIC_COMMIT_ROWS] = {"rolloutd_commit_rows", "Operations in one commit.", HISTOGRAM, NULL, NULL, &rows},
    [METRIC_WAL_BYTES] = {"rolloutd_wal_bytes", "Size of the write-ahead log.", GAUGE, NULL, NULL, NULL},
    [METRIC_MEMORY_USED_BYTES] = {"rolloutd_memory_used_bytes", "Bytes of memory_budget in use.", GAUGE, NULL, NULL,
                                  NULL},
    [METRIC_MEMORY_LIMIT_BYTES] = {"rolloutd_memory_limit_bytes",
                                   "memory_budget without the record's caches and what is kept for the next body.",
                                   GAUGE, NULL, NULL, NULL},
    [METRIC_TEXT_WORKERS_ALIVE] = {"rolloutd_text_workers_alive", "Locked-down text workers.", GAUGE, NULL, NULL, NULL},
    [METRIC_TEXT_WORKERS_REPLACED] = {"rolloutd_text_workers_replaced_total", "Text workers killed or died.", COUNTER,
                                      NULL, NULL, NULL},
    [METRIC_BATCHES_WITHOUT_SCORED] = {"rolloutd_batches_without_scored_rollout",
                                       "How many of the last batches, without a gap, ended without a scored rollout.",
                                       GAUGE, NULL, NULL, NULL},
    [METRIC_START_TIME_SECONDS] = {"rolloutd_start_time_seconds", "Unix time of the start.", GAUGE, NULL, NULL, NULL},
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

int64_t metric_read(enum metric metric, size_t label)
{
    int64_t count = 0;
    if (!state.cells)
        return 0;
    if (table[metric].kind != HISTOGRAM)
        return atomic_load_explicit(cell(metric, label), memory_order_relaxed);
    for (size_t i = 0; i <= table[metric].buckets->count; i++)
        count += atomic_load_explicit(cell(metric, i), memory_order_relaxed);
    return count;
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

void metrics_render(struct buffer *out)
{
    static const char *const kinds[] = {[COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"};
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
