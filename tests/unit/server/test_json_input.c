#include "server/base/clock.h"
#include "server/input/input.h"
#include "tests/unit/base/cmocka_all.h"

#include <math.h>
#include <stdio.h>

static const char *const lifted_names[] = {"logprobs", "mask", NULL};
static const char *const purposes[] = {"train", "eval", NULL};

/* --- a request with every kind of field --- */

struct target {
    bool strict;
    int64_t seed;
    int64_t n;
    double temperature;
    struct text run;
    int64_t deadline_us;
    int purpose;
    json_t *sampling;
    json_t *groups;
    json_t *items;
    json_t *reference;
    struct numbers logprobs;
};

#define AT(field) offsetof(struct target, field)
static const struct field table[] = {
    {"strict", FIELD_BOOL, 0, AT(strict), 0, 0, NULL},
    {"seed", FIELD_INT, FIELD_NULLABLE, AT(seed), 0, 9223372036854775807.0, NULL},
    {"n", FIELD_INT, 0, AT(n), 1, 64, NULL},
    {"temperature", FIELD_DOUBLE, 0, AT(temperature), 0, 2, NULL},
    {"run", FIELD_TEXT, FIELD_REQUIRED, AT(run), 0, 8, NULL},
    {"deadline", FIELD_DURATION, 0, AT(deadline_us), 0, 0, NULL},
    {"purpose", FIELD_CHOICE, 0, AT(purpose), 0, 0, purposes},
    {"sampling", FIELD_OBJECT, 0, AT(sampling), 0, 0, NULL},
    {"groups", FIELD_ARRAY, FIELD_LIFTED, AT(groups), 0, 0, NULL},
    {"items", FIELD_ARRAY, 0, AT(items), 0, 0, NULL},
    {"reference", FIELD_ANY, 0, AT(reference), 0, 0, NULL},
    {"logprobs", FIELD_NUMBERS, 0, AT(logprobs), 0, 0, NULL},
};

struct reading {
    struct call call;
    struct json_input input;
    struct target target;
    int result;
};

static void reading_finish(struct reading *reading)
{
    json_input_finish(&reading->input);
    call_finish(&reading->call);
}

#define _cleanup_reading_ _cleanup_(reading_finish)

static void read_bytes(struct reading *reading, const char *text, size_t length_bytes, const char *path)
{
    *reading = (struct reading){.target = {.n = 8}};
    call_init(&reading->call);
    reading->call.body = xcalloc(1, length_bytes + 1);
    memcpy(reading->call.body, text, length_bytes);
    reading->call.body_bytes = length_bytes;
    reading->result = json_input_init(&reading->input, &reading->call, lifted_names);
    if (reading->result == 0)
        reading->result =
            json_read_object(&reading->input, reading->input.root, path, table, ARRAY_LENGTH(table), &reading->target);
}

static void read_text(struct reading *reading, const char *text)
{
    read_bytes(reading, text, strlen(text), "");
}

static void assert_error(const struct reading *reading, const char *code, const char *path, const char *message_part)
{
    json_t *root = json_loadb(reading->call.reply.body.data, reading->call.reply.body.length_bytes, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    assert_int_equal(reading->result, -1);
    assert_int_equal(reading->call.reply.status, 400);
    assert_string_equal(json_string_value(json_object_get(error, "code")), code);
    if (path)
        assert_string_equal(json_string_value(json_object_get(error, "path")), path);
    else
        assert_true(json_is_null(json_object_get(error, "path")));
    if (!strstr(json_string_value(json_object_get(error, "message")), message_part))
        fail_msg("\"%s\" is not in \"%s\"", message_part, json_string_value(json_object_get(error, "message")));
    json_decref(root);
}

static void assert_text_refused(const char *text, const char *code, const char *path, const char *message_part)
{
    _cleanup_reading_ struct reading reading;
    read_text(&reading, text);
    assert_error(&reading, code, path, message_part);
}

static void test_every_kind_of_field_is_read(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    read_text(&reading,
              "{\"strict\": true, \"seed\": 9223372036854775807, \"n\": 64, \"temperature\": 1, \"run\": \"a\\u0000b\","
              "\"deadline\": \"120s\", \"purpose\": \"eval\", \"sampling\": {}, \"groups\": [1], \"reference\": null,"
              "\"logprobs\": [-0.5, null]}");
    assert_int_equal(reading.result, 0);
    const struct target *target = &reading.target;
    assert_true(target->strict && target->seed == INT64_MAX && target->n == 64 && target->temperature == 1);
    assert_int_equal(target->run.length_bytes, 3);
    assert_memory_equal(target->run.data, "a\0b", 3);
    assert_true(target->deadline_us == 120 * US_PER_S && target->purpose == 1);
    assert_true(json_is_object(target->sampling) && json_array_size(target->groups) == 1);
    assert_true(json_is_null(target->reference));
    assert_true(target->logprobs.count == 2 && target->logprobs.values[0] == -0.5 && isnan(target->logprobs.values[1]));
    assert_true(target->logprobs.has_null && !target->logprobs.all_integer);
}

static void test_absent_fields_leave_their_target(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    read_text(&reading, "{\"run\": \"a\", \"seed\": null}");
    assert_int_equal(reading.result, 0);
    assert_int_equal(reading.target.n, 8);
    assert_null(reading.target.sampling);
    assert_null(reading.target.logprobs.values);
}

static void test_a_missing_field_is_named(void **state)
{
    (void)state;
    assert_text_refused("{}", "missing_field", "run", "required");
}

static void test_an_unknown_field_is_named_with_its_neighbour(void **state)
{
    (void)state;
    assert_text_refused("{\"run\": \"a\", \"temprature\": 1}", "unknown_field", "temprature",
                        "did you mean \"temperature\"?");
    assert_text_refused("{\"run\": \"a\", \"sede\": 1}", "unknown_field", "sede", "did you mean \"seed\"?");
    assert_text_refused("{\"run\": \"a\", \"xyzzy\": 1}", "unknown_field", "xyzzy", "known are: strict, seed");
    assert_text_refused("{\"run\": \"a\", \"run_u32\": \"\"}", "unknown_field", "run_u32", "no field");
}

static void test_a_whole_number_is_an_integer_however_it_is_written(void **state)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t integer;
    } rows[] = {
        {"[8]", true, 8},
        {"[8.0]", true, 8},
        {"[8e0]", true, 8},
        {"[-0.0]", true, 0},
        {"[3.5]", false, 0},
        {"[9007199254740993]", true, INT64_C(9007199254740993)},
        {"[9007199254740991.0]", true, INT64_C(9007199254740991)},
        {"[9007199254740993.0]", false, 0}, /* reads as its neighbour */
        {"[1e300]", false, 0},
        {"[true]", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        int64_t integer = -1;
        json_t *array = json_loads(rows[i].text, 0, NULL);
        assert_int_equal(json_whole(json_array_get(array, 0), &integer), rows[i].whole);
        assert_int_equal(integer, rows[i].integer);
        json_decref(array);
    }
}

static void test_wrong_types_say_what_was_expected_and_what_came(void **state)
{
    (void)state;
    assert_text_refused("{\"run\": 1}", "invalid_field", "run", "expected a string, got an integer");
    assert_text_refused("{\"run\": null}", "invalid_field", "run", "expected a string, got null");
    assert_text_refused("{\"run\": \"a\", \"n\": 8.5}", "invalid_field", "n",
                        "expected an integer from 1 to 64, got a number");
    assert_text_refused("{\"run\": \"a\", \"n\": null}", "invalid_field", "n", "got null");
    assert_text_refused("{\"run\": \"a\", \"strict\": 1}", "invalid_field", "strict", "expected true or false");
    assert_text_refused("{\"run\": \"a\", \"temperature\": \"1\"}", "invalid_field", "temperature",
                        "expected a number from 0 to 2");
    assert_text_refused("{\"run\": \"a\", \"deadline\": 30}", "invalid_field", "deadline", "a duration like");
    assert_text_refused("{\"run\": \"a\", \"sampling\": []}", "invalid_field", "sampling",
                        "expected an object, got an array");
    assert_text_refused("{\"run\": \"a\", \"groups\": {}}", "invalid_field", "groups",
                        "expected an array, got an object");
    assert_text_refused("{\"run\": \"a\", \"purpose\": 1}", "invalid_field", "purpose",
                        "expected a text, got an integer; known are: train, eval");
    assert_text_refused("{\"run\": \"a\", \"logprobs\": \"x\"}", "invalid_field", "logprobs", "an array of numbers");
    assert_text_refused("[]", "invalid_field", NULL, "expected an object, got an array");
}

static void test_values_out_of_range_are_refused(void **state)
{
    (void)state;
    assert_text_refused("{\"run\": \"a\", \"n\": 0}", "invalid_field", "n", "an integer from 1 to 64");
    assert_text_refused("{\"run\": \"a\", \"n\": 65}", "invalid_field", "n", "an integer from 1 to 64");
    assert_text_refused("{\"run\": \"a\", \"seed\": -1}", "invalid_field", "seed", "from 0 to 9223372036854775807");
    assert_text_refused("{\"run\": \"a\", \"temperature\": 2.1}", "invalid_field", "temperature", "from 0 to 2");
    assert_text_refused("{\"run\": \"123456789\"}", "invalid_field", "run", "at most 8 bytes");
    assert_text_refused("{\"run\": \"a\", \"deadline\": \"5 minutes\"}", "invalid_field", "deadline",
                        "a duration like");
    assert_text_refused("{\"run\": \"a\", \"purpose\": \"test\"}", "invalid_field", "purpose",
                        "there is no such value; known are: train, eval");
}

static void test_paths_begin_with_the_object_s_own(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    static const char text[] = "{\"run\": \"a\", \"n\": 0}";
    read_bytes(&reading, text, sizeof(text) - 1, "groups[3]");
    assert_error(&reading, "invalid_field", "groups[3].n", "");
}

/* --- what jansson refuses --- */

static void test_broken_json_is_named_with_line_and_column(void **state)
{
    (void)state;
    assert_text_refused("{\n  \"run\": }", "invalid_json", NULL, "line 2, column 10");
    assert_text_refused("", "invalid_json", NULL, "line 1, column 1: the body is empty");
    assert_text_refused("{\"run\": \"a\"} x", "invalid_json", NULL, "line 1");
    assert_text_refused("\"run\"", "invalid_json", NULL, "line 1");
    assert_text_refused("{\"run\": NaN}", "invalid_json", NULL, "line 1");
    assert_text_refused("{\"run\": \"a\",\n\"run\": \"b\"}", "invalid_json", NULL,
                        "line 2, column 5: duplicate object key");
    assert_text_refused("{\"run\": \"\\ud800\"}", "invalid_json", NULL, "line 1");
    assert_text_refused("{\n\"run\": \"\xff\"}", "invalid_json", NULL, "line 2");
}

static void test_a_nul_behind_a_number_is_invalid_json(void **state)
{
    (void)state;
    static const char text[] = "{\"run\": \"a\",\n\"n\": 3\0}";
    _cleanup_reading_ struct reading reading;
    read_bytes(&reading, text, sizeof(text) - 1, "");
    assert_error(&reading, "invalid_json", NULL, "line 2, column 7: a NUL byte");
}

static void test_too_deep_nesting_is_invalid_json(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    char text[6000] = "{\"reference\":";
    memset(text + strlen(text), '[', 3000);
    read_text(&reading, text);
    assert_error(&reading, "invalid_json", NULL, "depth");
}

static void test_a_number_too_large_is_named_by_its_path(void **state)
{
    (void)state;
    assert_text_refused("{\"run\": \"a\", \"seed\": 9223372036854775808}", "invalid_field", "seed", "too large");
    assert_text_refused("{\"metadata\": [1, {\"x\": [0, -9223372036854775809]}]}", "invalid_field", "metadata[1].x[1]",
                        "too large");
    assert_text_refused("{\"reference\": [99999999999999999999], \"seed\": 99999999999999999999}", "invalid_field",
                        "seed", "too large");
    assert_text_refused("{\"verifiers\": [{\"reference\": 99999999999999999999}]}", "invalid_field",
                        "verifiers[0].reference", "too large");
    assert_text_refused("{\"temperature\": 1e400}", "invalid_field", "temperature", "too large");
    assert_text_refused("{\"mask\": [1,2,3,4,5,6,7,8,9,10,11,12,13,1e999]}", "invalid_field", "mask[13]", "too large");
    assert_text_refused("{\"a\": {\"b\": 1}, \"seed\": 99999999999999999999}", "invalid_field", "seed", "too large");
}

/* --- arrays of numbers --- */

#define LONG_ARRAY "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]"

static void test_long_arrays_are_read_like_short_ones(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    read_text(&reading, "{\"run\": \"a\", \"logprobs\": " LONG_ARRAY "}");
    assert_int_equal(reading.result, 0);
    assert_int_equal(reading.input.lifted.count, 1);
    assert_true(reading.target.logprobs.count == 16 && reading.target.logprobs.all_integer);
    for (size_t i = 0; i < 16; i++)
        assert_true(reading.target.logprobs.values[i] == (double)i);
}

static void test_packed_arrays_are_read_under_their_suffix(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double values[2];
        bool all_integer;
    } rows[] = {
        /* 1.0f and -2.0f; 1.0; 1 and 256; 7 and 255: little-endian */
        {"{\"run\": \"a\", \"logprobs_f32\": \"AACAPwAAAMA=\"}", {1, -2}, false},
        {"{\"run\": \"a\", \"logprobs_f64\": \"AAAAAAAA8D8AAAAAAAAAwA==\"}", {1, -2}, false},
        {"{\"run\": \"a\", \"logprobs_u32\": \"AQAAAAABAAA=\"}", {1, 256}, true},
        {"{\"run\": \"a\", \"logprobs_u8\": \"B/8=\"}", {7, 255}, true},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_reading_ struct reading reading;
        read_text(&reading, rows[i].text);
        assert_int_equal(reading.result, 0);
        assert_int_equal(reading.target.logprobs.count, 2);
        assert_true(reading.target.logprobs.values[0] == rows[i].values[0]);
        assert_true(reading.target.logprobs.values[1] == rows[i].values[1]);
        assert_int_equal(reading.target.logprobs.all_integer, rows[i].all_integer);
    }
}

static void test_spoiled_arrays_are_refused_by_name(void **state)
{
    (void)state;
    assert_text_refused("{\"run\": \"a\", \"logprobs\": [1, \"2\"]}", "invalid_field", "logprobs[1]",
                        "a number or null");
    assert_text_refused("{\"run\": \"a\", \"logprobs\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,[]]}", "invalid_field",
                        "logprobs[14]", "");
    assert_text_refused("{\"run\": \"a\", \"logprobs_f32\": \"AACAPw\"}", "invalid_field", "logprobs_f32", "base64");
    assert_text_refused("{\"run\": \"a\", \"logprobs_f32\": \"AACA\"}", "invalid_field", "logprobs_f32", "3 bytes");
    assert_text_refused("{\"run\": \"a\", \"logprobs_f32\": [1]}", "invalid_field", "logprobs_f32", "base64");
    assert_text_refused("{\"run\": \"a\", \"logprobs\": [], \"logprobs_f32\": \"\"}", "invalid_field", "logprobs_f32",
                        "two forms");
    assert_text_refused("{\"run\": \"a\", \"logprobs_f64\": \"\", \"logprobs_f32\": \"\"}", "invalid_field",
                        "logprobs_f64", "two forms");
}

static void test_empty_arrays_are_present(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    read_text(&reading, "{\"run\": \"a\", \"logprobs\": []}");
    assert_int_equal(reading.result, 0);
    assert_non_null(reading.target.logprobs.values);
    assert_int_equal(reading.target.logprobs.count, 0);
}

/* --- lifted arrays where nobody expects them --- */

static void assert_dumps(const json_t *value, const char *expected)
{
    _cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
}

static void test_json_that_is_kept_has_its_arrays_back(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    read_text(&reading, "{\"run\": \"a\", \"reference\": {\"x\": [{\"mask\": " LONG_ARRAY
                        "}]}, \"sampling\": {\"mask\": [0.5,1,null,"
                        "                             2]},\"items\": [{\"mask\": " LONG_ARRAY "}]}");
    assert_int_equal(reading.result, 0);
    assert_int_equal(reading.input.lifted.count, 3);
    assert_dumps(reading.target.reference, "{\"x\":[{\"mask\":" LONG_ARRAY "}]}");
    assert_dumps(reading.target.sampling, "{\"mask\":[0.5,1.0,null,2.0]}");
    assert_dumps(reading.target.items, "[{\"mask\":" LONG_ARRAY "}]");
}

static void test_elements_that_tables_read_stay_lifted(void **state)
{
    (void)state;
    _cleanup_reading_ struct reading reading;
    struct numbers numbers;
    read_text(&reading, "{\"run\": \"a\", \"groups\": [{\"mask\": " LONG_ARRAY "}]}");
    assert_int_equal(reading.result, 0);
    const json_t *mask = json_object_get(json_array_get(reading.target.groups, 0), "mask");
    assert_true(json_is_string(mask));
    assert_int_equal(json_read_numbers(&reading.input, mask, "groups[0].mask", &numbers), 0);
    assert_int_equal(numbers.count, 16);
}

static void test_a_lifted_array_is_no_string(void **state)
{
    (void)state;
    static const char *const names[] = {"run", NULL};
    struct call call;
    struct json_input input;
    struct target target = {0};
    call_init(&call);
    call.body = xstrdup("{\"run\": " LONG_ARRAY "}");
    call.body_bytes = strlen(call.body);
    assert_int_equal(json_input_init(&input, &call, names), 0);
    assert_int_equal(json_read_object(&input, input.root, "", table, ARRAY_LENGTH(table), &target), -1);
    assert_non_null(strstr(call.reply.body.data, "expected a string, got an array"));
    json_input_finish(&input);
    call_finish(&call);
}

static void test_paths_are_joined_with_one_dot(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    path_index(path, "", "groups", 3);
    assert_string_equal(path, "groups[3]");
    path_join(path, path, "sampling");
    assert_string_equal(path, "groups[3].sampling");
    path_index(path, path, "stop", 0);
    assert_string_equal(path, "groups[3].sampling.stop[0]");
    path_index(path, "a", ".b", 1);
    assert_string_equal(path, "a.b[1]");
    path_index(path, "a", "", 1);
    assert_string_equal(path, "a[1]");
    for (int i = 0; i < 100; i++)
        path_join(path, path, "longer");
    assert_true(strlen(path) < PATH_BYTES);
    path_index(path, path, "longer", 7);
    assert_true(strlen(path) < PATH_BYTES);
}

static void test_a_request_cut_anywhere_is_refused_without_harm(void **state)
{
    (void)state;
    static const char text[] =
        "{\"run\": \"a\", \"logprobs\": " LONG_ARRAY ", \"reference\": {\"mask\": " LONG_ARRAY "}, \"n\": 1e1}";
    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        _cleanup_reading_ struct reading reading;
        read_bytes(&reading, text, length, "");
        assert_error(&reading, "invalid_json", NULL, "line 1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_field_is_read),
        cmocka_unit_test(test_absent_fields_leave_their_target),
        cmocka_unit_test(test_a_missing_field_is_named),
        cmocka_unit_test(test_an_unknown_field_is_named_with_its_neighbour),
        cmocka_unit_test(test_a_whole_number_is_an_integer_however_it_is_written),
        cmocka_unit_test(test_wrong_types_say_what_was_expected_and_what_came),
        cmocka_unit_test(test_values_out_of_range_are_refused),
        cmocka_unit_test(test_paths_begin_with_the_object_s_own),
        cmocka_unit_test(test_broken_json_is_named_with_line_and_column),
        cmocka_unit_test(test_a_nul_behind_a_number_is_invalid_json),
        cmocka_unit_test(test_too_deep_nesting_is_invalid_json),
        cmocka_unit_test(test_a_number_too_large_is_named_by_its_path),
        cmocka_unit_test(test_long_arrays_are_read_like_short_ones),
        cmocka_unit_test(test_packed_arrays_are_read_under_their_suffix),
        cmocka_unit_test(test_spoiled_arrays_are_refused_by_name),
        cmocka_unit_test(test_empty_arrays_are_present),
        cmocka_unit_test(test_json_that_is_kept_has_its_arrays_back),
        cmocka_unit_test(test_elements_that_tables_read_stay_lifted),
        cmocka_unit_test(test_a_lifted_array_is_no_string),
        cmocka_unit_test(test_paths_are_joined_with_one_dot),
        cmocka_unit_test(test_a_request_cut_anywhere_is_refused_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
