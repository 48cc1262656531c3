#include "server/base/cleanup.h"
#include "server/base/log.h"
#include "tests/unit/base/cmocka_all.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* The line that one call writes to standard error. */
static char line[4096];

static int begin_capture(void)
{
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    int saved = dup(STDERR_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[1]);
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    return saved << 16 | pipe_ends[0];
}

static void end_capture(int both)
{
    ssize_t length = read(both & 0xFFFF, line, sizeof(line) - 1);
    line[length > 0 ? length : 0] = '\0';
    dup2(both >> 16, STDERR_FILENO);
    close(both >> 16);
    close(both & 0xFFFF);
}

#define CAPTURE(call)                                                                                                  \
    do {                                                                                                               \
        int both_ = begin_capture();                                                                                   \
        call;                                                                                                          \
        end_capture(both_);                                                                                            \
    } while (0)

static void test_a_text_line_has_time_level_event_and_pairs(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    CAPTURE(log_event(LOG_LEVEL_WARNING, "sample failed", "batch", "b_01", "left_out", NULL, "code", "engine_timeout",
                      NULL));
    assert_int_equal(line[27], ' ');
    assert_string_equal(line + 28, "warning sample failed batch=b_01 code=engine_timeout\n");
}

static void test_a_value_cannot_forge_a_line(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    CAPTURE(log_event(LOG_LEVEL_INFO, "e", "task", "x\n2026 error y=z\x1b[31m", "empty", "", NULL));
    assert_string_equal(line + 28, "info e task=\"x\\n2026 error y=z\\u001b[31m\" empty=\"\"\n");
}

/* F25 */
static void test_line_ends_and_commands_beyond_ascii_are_defused(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    CAPTURE(log_event(LOG_LEVEL_INFO, "e", "s",
                      "a\u2028b\u2029c\xC2\x85"
                      "d\xC2\x9B"
                      "e\u00e9",
                      "cut", "\xC2", NULL));
    assert_non_null(strstr(line, "s=\"a?b?c?d?e\u00e9\""));
}

static void test_numbers_and_truth_values_are_no_texts(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
    CAPTURE(log_event(LOG_LEVEL_INFO, "e", LOG_INT("scored", 1), LOG_BOOL("ready", 1), "s", "1", NULL));
    assert_string_equal(line + 28, "info e scored=1 ready=true s=1\n");
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    CAPTURE(log_event(LOG_LEVEL_INFO, "e", LOG_INT("least", INT64_MIN), "left_out", NULL, LOG_BOOL("ready", 0), "s",
                      "1", NULL));
    json_t *object = json_loads(line, 0, NULL);
    assert_true(json_is_integer(json_object_get(object, "least")));
    assert_int_equal(json_integer_value(json_object_get(object, "least")), INT64_MIN);
    assert_true(json_is_false(json_object_get(object, "ready")));
    assert_string_equal(json_string_value(json_object_get(object, "s")), "1");
    assert_int_equal(json_object_size(object), 6);
    json_decref(object);
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
}

static void test_a_json_line_is_json_whatever_the_value(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    CAPTURE(log_event(LOG_LEVEL_ERROR, "e", "task", "\"\\\n\xff", NULL));
    json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "level")), "error");
    assert_string_equal(json_string_value(json_object_get(root, "task")), "\"\\\n\xef\xbf\xbd");
    json_decref(root);
}

static void test_long_values_are_cut_between_characters(void **state)
{
    (void)state;
    char value[1024] = "x";
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    for (int i = 0; i < 300; i++)
        strcat(value, "\xc3\xa9");
    CAPTURE(log_event(LOG_LEVEL_INFO, "e", "v", value, NULL));
    json_t *root = json_loads(line, 0, NULL);
    assert_int_equal(json_string_length(json_object_get(root, "v")), 511);
    json_decref(root);
}

static void test_a_line_below_the_minimum_level_is_not_written(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_WARNING, LOG_FORMAT_TEXT);
    CAPTURE(log_event(LOG_LEVEL_INFO, "quiet", NULL));
    assert_string_equal(line, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_line_has_time_level_event_and_pairs),
        cmocka_unit_test(test_a_value_cannot_forge_a_line),
        cmocka_unit_test(test_line_ends_and_commands_beyond_ascii_are_defused),
        cmocka_unit_test(test_numbers_and_truth_values_are_no_texts),
        cmocka_unit_test(test_a_json_line_is_json_whatever_the_value),
        cmocka_unit_test(test_long_values_are_cut_between_characters),
        cmocka_unit_test(test_a_line_below_the_minimum_level_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
