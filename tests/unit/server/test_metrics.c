#include "server/runtime/metrics.h"
#include "tests/unit/base/cmocka_all.h"

#include <stdio.h>

enum { SCORED }; /* the first of a rollout's states */

static const char *const routes[] = {"/v1/batches", "/v1/rollouts/{id}"};

static int set_up(void **state)
{
    (void)state;
    metrics_setup(routes, ARRAY_LENGTH(routes));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    metrics_finish();
    return 0;
}

static void assert_shown(const char *line)
{
    _cleanup_buffer_ struct buffer out;
    char wanted[256];
    buffer_init(&out, 1000000);
    buffer_append_byte(&out, '\n');
    metrics_render(&out);
    snprintf(wanted, sizeof(wanted), "\n%s\n", line);
    if (!strstr(out.data, wanted))
        fail_msg("no line %s", line);
}

static void test_counters_and_gauges_are_shown_with_their_label(void **state)
{
    (void)state;
    metric_add(METRIC_ROLLOUTS, SCORED, 3);
    metric_add(METRIC_ROLLOUTS, SCORED, 4);
    metric_set(METRIC_QUEUE_DEPTH, METRIC_QUEUE_ROW, 9);
    metric_set(METRIC_WAL_BYTES, 0, 4096);
    assert_shown("rolloutd_rollouts_total{state=\"scored\"} 7");
    assert_shown("rolloutd_rollouts_total{state=\"failed\"} 0");
    assert_shown("rolloutd_queue_depth{queue=\"row\"} 9");
    assert_shown("rolloutd_wal_bytes 4096");
}

static void test_a_label_outside_of_its_set_counts_as_other(void **state)
{
    (void)state;
    metric_add_named(METRIC_FAILURES, "engine_timeout", 1);
    metric_add_named(METRIC_FAILURES, "engine\"} 1\nforged", 2);
    assert_shown("rolloutd_failures_total{code=\"engine_timeout\"} 1");
    assert_shown("rolloutd_failures_total{code=\"other\"} 2");
}

static void test_requests_count_by_route_and_class(void **state)
{
    (void)state;
    metric_http(1, 404, 1500);
    metric_http(2, 200, 10);
    metric_http(99, 9999, 10);
    assert_shown("rolloutd_http_requests_total{route=\"/v1/rollouts/{id}\",class=\"4xx\"} 1");
    assert_shown("rolloutd_http_requests_total{route=\"other\",class=\"2xx\"} 1");
    assert_shown("rolloutd_http_requests_total{route=\"other\",class=\"5xx\"} 1");
    assert_shown("rolloutd_http_request_seconds_count 3");
}

static void test_a_histogram_is_cumulative_in_seconds(void **state)
{
    (void)state;
    metric_observe_us(METRIC_COMMIT_SECONDS, 1000);
    metric_observe_us(METRIC_COMMIT_SECONDS, 1001);
    metric_observe_us(METRIC_COMMIT_SECONDS, INT64_C(3600000000));
    metric_observe(METRIC_COMMIT_ROWS, 3);
    assert_shown("rolloutd_commit_seconds_bucket{le=\"0.0005\"} 0");
    assert_shown("rolloutd_commit_seconds_bucket{le=\"0.001\"} 1");
    assert_shown("rolloutd_commit_seconds_bucket{le=\"0.0025\"} 2");
    assert_shown("rolloutd_commit_seconds_bucket{le=\"250\"} 2");
    assert_shown("rolloutd_commit_seconds_bucket{le=\"+Inf\"} 3");
    assert_shown("rolloutd_commit_seconds_count 3");
    assert_shown("rolloutd_commit_seconds_sum 3600.002001");
    assert_shown("rolloutd_commit_rows_bucket{le=\"2\"} 0");
    assert_shown("rolloutd_commit_rows_bucket{le=\"4\"} 1");
    assert_shown("rolloutd_commit_rows_sum 3");
}

/* Prometheus, "Exposition formats": HELP and TYPE once, before the samples of their metric; counters end in _total. */
static void test_every_metric_is_described_once(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out;
    size_t types = 0;
    buffer_init(&out, 1000000);
    metrics_render(&out);
    for (char *line = out.data, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        if (strncmp(line, "# TYPE ", 7) != 0)
            continue;
        char name[128];
        char kind[32];
        char doubled[160];
        assert_int_equal(sscanf(line, "# TYPE %127s %31s", name, kind), 2);
        assert_int_equal(strcmp(kind, "counter") == 0,
                         strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0);
        snprintf(doubled, sizeof(doubled), "# TYPE %s ", name);
        assert_null(strstr(next, doubled));
        types++;
    }
    assert_int_equal(types, METRIC_COUNT);
}

static void test_before_the_setup_nothing_happens(void **state)
{
    (void)state;
    _cleanup_buffer_ struct buffer out;
    metrics_finish();
    metric_add(METRIC_ROLLOUTS, SCORED, 1);
    metric_http(0, 200, 1);
    buffer_init(&out, 100);
    metrics_render(&out);
    assert_int_equal(out.length_bytes, 0);
}

#define WITH_METRICS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_METRICS(test_counters_and_gauges_are_shown_with_their_label),
        WITH_METRICS(test_a_label_outside_of_its_set_counts_as_other),
        WITH_METRICS(test_requests_count_by_route_and_class),
        WITH_METRICS(test_a_histogram_is_cumulative_in_seconds),
        WITH_METRICS(test_every_metric_is_described_once),
        WITH_METRICS(test_before_the_setup_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
