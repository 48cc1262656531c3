/* metrics: the counters for Prometheus, from one table (metrics.def). Any thread; one atomic addition per event.
 *
 * A label has a closed set of values: an index into it, never text from outside. Durations come in as microseconds and
 * are shown as seconds. Before metrics_setup() every call does nothing. */
#ifndef SERVER_RUNTIME_METRICS_H
#define SERVER_RUNTIME_METRICS_H

#include "server/base/buffer.h"
#include "server/base/words.h"

#include <stddef.h>
#include <stdint.h>

struct json_write;

enum metric {
#define METRIC(symbol, ...) METRIC_##symbol,
#include "server/runtime/metrics.def"
#undef METRIC
    METRIC_COUNT
};

enum { METRIC_QUEUE_PARSE, METRIC_QUEUE_VERIFY, METRIC_QUEUE_ROW, METRIC_QUEUE_BATCH, METRIC_QUEUE_CODE };
enum { METRIC_SLOTS_BUSY, METRIC_SLOTS_IDLE };
#define METRIC_BATCH_END(name, word) METRIC_BATCH_##name,
enum { BATCH_END_WORDS(METRIC_BATCH_END) };

/* routes: the templates, "/v1/rollouts/{id}", …; the array and its strings must live as long as the process. A request
 * that matched none counts under index route_count, "other". Call once, before threads. */
void metrics_setup(const char *const *routes, size_t route_count);
void metrics_finish(void);

/* label: index of its value, 0 for a metric without labels. One out of range counts as the last value. */
void metric_add(enum metric metric, size_t label, int64_t amount);
void metric_set(enum metric metric, size_t label, int64_t value);
void metric_observe(enum metric metric, int64_t value); /* histograms; microseconds for those in seconds */
#define metric_observe_us metric_observe

/* The label by its value; one that is not in the set counts as "other". */
void metric_add_named(enum metric metric, const char *label_value, int64_t amount);
void metric_http(size_t route, int status, int64_t duration_us);

/* Prometheus text format 0.0.4. */
void metrics_render(struct buffer *out);
/* [{"name","kind","label","values","help"}]: what there is; `values` of a label, [] for routes, null without one. */
void metrics_write(struct json_write *json);

#endif
