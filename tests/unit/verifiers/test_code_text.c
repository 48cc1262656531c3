/* Texts that the verifier code reads without running anything: the program in a completion, outputs, values, pickles, the forms
 * of references, and the choice of tests. */
#include "tests/unit/verifiers/grade.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/hash.h"
#include "server/base/json_big.h"
#include "verifiers/code/block.h"
#include "verifiers/code/choice.h"
#include "verifiers/code/compare.h"
#include "verifiers/code/forms.h"
#include "verifiers/code/pickle_private.h"

/* --- the program --- */

static void test_the_last_closed_block_of_the_language_is_the_program(void **state)
{
    static const struct {
        const char *completion;
        const char *code; /* NULL: none */
    } rows[] = {
        {"```python\na\n```", "a\n"},
        {"```python\na\n```\n```py\nb\n```", "b\n"},
        {"```PYTHON3 title=x\na\n```", "a\n"},
        {"```{.python}\na\n```", "a\n"},
        {"```python:main.py\na\n```", "a\n"},
        {"```\na\n```", "a\n"},
        {"```\na\n```\n```python\nb\n```\n```\nc\n```", "b\n"},
        {"```python\na\n```\n```bash\nb\n```", "a\n"},
        {"```pythonic\na\n```", NULL},
        {"~~~python\n```\n~~~", "```\n"},
        {"````python\n```\n````", "```\n"},
        {"```python\n````", NULL}, /* blank */
        {"```python\na", NULL},
        {"```python\na\n```\n```python\nb", NULL},
        {"```python\na\n```\n```c\nb", "a\n"},
        {"  ```python\n  if a:\n    b\n  ```", "if a:\n  b\n"},
        {"```python\r\na\r\nb\r\n```\r\n", "a\nb\n"},
        {"````text\n```python\na\n```\n````", NULL},
        {"a `python` word ```python\na\n```", NULL},
        {"<think>\n```python\na\n```\n</think>", NULL},
        {"<think>\n```python\na\n```\n", NULL},
        {"```python\na\n```\n<think>", NULL},
        {"<think></think>```python\na\n```", "a\n"},
        {"```python\nx = '</think>'\n```", "x = '</think>'\n"},
        {"```python\n<think>\n```", "<think>\n"},
        {"```python\na\n```\n</s>\n```python\nb\n```", "a\n"},
        {"```python\n'</s>'\n```", "'</s>'\n"},
        {"```Python3.11\na\n```", "a\n"},
        {"```pypy3\na\n```", "a\n"},
        {"```python2\na\n```", NULL},
        {"<answer>```python\nif a:\n  b\n```</answer>", "if a:\n  b\n"},
        {"```python\na\n```<|im_end|>\n```python\nb\n```", "a\n"},
        {"```python\na\n```</s>\n```python\nb\n```", "a\n"},
        {"- ```python\n  if a:\n    b\n  ```", "if a:\n  b\n"},
        {"12. ```python\n    if a:\n      b\n    ```", "if a:\n  b\n"},
        {"-- ```python\na\n```", NULL},
        {"12 ```python\na\n```", NULL},
        {"```python\na\n```x\nb\n```", "a\n```x\nb\n"},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_buffer_ struct buffer code;
        struct text span;
        buffer_init(&code, 1000);
        bool found = code_block_find(text_of(rows[i].completion), SANDBOX_PYTHON, &span, &code);
        if (found != (rows[i].code != NULL) || (found && !text_equals(buffer_text(&code), rows[i].code)))
            fail_msg("%s: %s, expected %s", rows[i].completion, found ? code.data : "none",
                     rows[i].code ? rows[i].code : "none");
    }
}

static void test_the_span_is_what_stands_between_the_fences(void **state)
{
    static const char completion[] = "So:\n  ```sh\n  echo 1\n  ```\n";
    _cleanup_buffer_ struct buffer code;
    struct text span;

    (void)state;
    buffer_init(&code, 1000);
    assert_true(code_block_find(text_of(completion), SANDBOX_SH, &span, &code));
    assert_int_equal(span.data - completion, strlen("So:\n  ```sh\n"));
    assert_int_equal(span.length_bytes, strlen("  echo 1\n"));
}

/* --- outputs --- */

struct output {
    enum compare_mode mode;
    const char *got;
    const char *expected;
    bool equal;
};

static const struct output outputs[] = {
    {COMPARE_LINES, "a\nb\n", "a\nb", true},
    {COMPARE_LINES, "a \r\nb\t\n\n\n", "a\nb", true},
    {COMPARE_LINES, " a", "a", false},
    {COMPARE_LINES, "a\n\nb", "a\nb", false},
    {COMPARE_LINES, "a", "a\nb", false},
    {COMPARE_LINES, "a\nb", "a", false},
    {COMPARE_LINES, "", "", true},
    {COMPARE_LINES, "\n", "", true},
    {COMPARE_LINES, "", "a", false},
    {COMPARE_EXACT, "a\n", "a\n", true},
    {COMPARE_EXACT, "a\n", "a", false},
    {COMPARE_TOKENS, " a\n\tb ", "a b", true},
    {COMPARE_TOKENS, "ab", "a b", false},
    {COMPARE_TOKENS, "a b c", "a b", false},
    {COMPARE_TOKENS, "1.0", "1", false},
    {COMPARE_FLOAT, "1.0000001 x", "1 x", true},
    {COMPARE_FLOAT, "1.001", "1", false},
    {COMPARE_FLOAT, "1e3", "1000.0", true},
    {COMPARE_FLOAT, "1E+3", "1000.0", true},
    {COMPARE_FLOAT, ".5 5. -0.0 +2.", "0.5 5.0 0.0 2.0", true},
    {COMPARE_FLOAT, "1000000000000000001", "1000000000000000000", false},
    {COMPARE_FLOAT, "007 -0 +5", "7 0 5", true},
    {COMPARE_FLOAT, "-7", "7", false},
    {COMPARE_FLOAT, "nan", "nan", false},
    {COMPARE_FLOAT, "NAN", "NAN", false},
    {COMPARE_FLOAT, "-nan", "-nan", false},
    {COMPARE_FLOAT, "nano", "nano", true},
    {COMPARE_FLOAT, "inf", "inf", true},
    {COMPARE_FLOAT, "inf", "-inf", false},
    {COMPARE_FLOAT, "nan", "0.3", false},
    {COMPARE_FLOAT, "inf", "1e308", false},
    {COMPARE_FLOAT, "1e999", "1e308", false},
    {COMPARE_FLOAT, "1e99999999999999999999", "1.0", false},
    {COMPARE_FLOAT, "0x10", "16.0", false},
    {COMPARE_FLOAT, "yes 1.0", "yes 1.0000000001", true},
    {COMPARE_FLOAT, ".", ".", true},
    {COMPARE_FLOAT, ".", "0.0", false},
    {COMPARE_JSON, "{\"a\": [1, 2.0], \"b\": null}", "{\"b\":null,\"a\":[1.0,2]}", true},
    {COMPARE_JSON, "[1]", "[1, 1]", false},
    {COMPARE_JSON, "\"\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"", true},
    {COMPARE_JSON, "100000000000000000000000000000000000000001", "100000000000000000000000000000000000000001", true},
    {COMPARE_JSON, "100000000000000000000000000000000000000001", "100000000000000000000000000000000000000002", false},
    {COMPARE_JSON, "true", "1", false},
    {COMPARE_JSON, "[1] x", "[1]", false},
    {COMPARE_JSON, "NaN", "NaN", false},
    {COMPARE_JSON, "{\"a\": 1, \"a\": 1}", "{\"a\": 1}", false},
};

static void test_outputs_are_compared_by_the_mode(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(outputs); i++) {
        const struct compare_rule rule = {
            outputs[i].mode,
            {outputs[i].mode == COMPARE_FLOAT ? 1e-6 : 0, outputs[i].mode == COMPARE_FLOAT ? 1e-6 : 0}};
        if (compare_output(text_of(outputs[i].got), text_of(outputs[i].expected), &rule) != outputs[i].equal)
            fail_msg("%s, %s against %s: expected %s", compare_mode_names[outputs[i].mode], outputs[i].got,
                     outputs[i].expected, outputs[i].equal ? "equal" : "different");
    }
    const struct compare_rule lines = {COMPARE_LINES, {0, 0}};
    assert_false(compare_output((struct text){"a\0", 2}, text_of("a"), &lines));
}

/* --- values --- */

struct pair {
    const char *tagged;
    const char *json;
    bool equal;
    double absolute;
};

static const struct pair pairs[] = {
    {"i5;", "5", true, 0},
    {"i5;", "6", false, 0},
    {"d5.0;", "5", true, 0},
    {"i5;", "5.0", true, 0},
    {"t", "true", true, 0},
    {"t", "1", false, 0},
    {"i1;", "true", false, 0},
    {"n", "null", true, 0},
    {"n", "0", false, 0},
    {"xc9f2c9cd04674edea40000001;", "1000000000000000000000000000001", true, 0},
    {"xc9f2c9cd04674edea40000000;", "1000000000000000000000000000001", false, 0},
    {"x-c9f2c9cd04674edea40000001;", "-1000000000000000000000000000001", true, 0},
    {"i9007199254740993;", "9007199254740992.0", false, 0},
    {"d0.30000000000000004;", "0.3", false, 0},
    {"d0.30000000000000004;", "0.3", true, 1e-9},
    {"dnan;", "null", false, 1},
    {"dinf;", "1e308", false, 1e300},
    {"s2:\xc3\xa9", "\"\\u00e9\"", true, 0},
    {"s1:5", "5", false, 0},
    {"T2:i1;L0:", "[1, []]", true, 0},
    {"L1:i1;", "[1, 2]", false, 0},
    {"M2:i3;i1;ni2;", "{\"null\": 2, \"3\": 1}", true, 0},
    {"M1:T1:i1;i1;", "{\"1\": 1}", false, 0},
    {"M2:i3;i1;s1:3i1;", "{\"3\": 1}", false, 0},
    {"S2:i1;i2;", "[1, 2]", false, 0},
    {"b1:a", "\"a\"", false, 0},
    {"u", "null", false, 0},
    {"D3:", "3", false, 0},
};

static void test_values_are_equal_as_json_has_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(pairs); i++) {
        _cleanup_value_ struct value got = {.nodes = NULL};
        _cleanup_value_ struct value expected = {.nodes = NULL};
        const struct tolerance tolerance = {pairs[i].absolute, 0};
        bool read = value_read_tagged(text_of(pairs[i].tagged), &got) == 0;
        assert_int_equal(value_read_json(text_of(pairs[i].json), &expected), 0);
        if ((read && value_equal(&got, &expected, &tolerance)) != pairs[i].equal)
            fail_msg("%s against %s: expected %s", pairs[i].tagged, pairs[i].json,
                     pairs[i].equal ? "equal" : "different");
    }
}

static void test_a_broken_tagged_value_is_refused(void **state)
{
    static const char *const broken[] = {"",
                                         "i5",
                                         "i;",
                                         "i5;i5;",
                                         "L2:i1;",
                                         "L-1:",
                                         "L99999999999:",
                                         "s5:abc",
                                         "s:",
                                         "M1:i1;",
                                         "i99999999999999999999;",
                                         "y",
                                         "L999999999:n",
                                         "r0;",
                                         "ti1;",
                                         "s1:"};
    static const char level[] = "L1:";
    char deep[400 * (sizeof level - 1) + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
        _cleanup_value_ struct value value = {.nodes = NULL};
        if (value_read_tagged(text_of(broken[i]), &value) == 0)
            fail_msg("%s was read", broken[i]);
    }
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = level[i % (sizeof level - 1)];
    deep[sizeof deep - 1] = 'n';
    _cleanup_value_ struct value value = {.nodes = NULL};
    assert_int_equal(value_read_tagged((struct text){deep, sizeof deep}, &value), -1);
}

/* --- pickles --- */

static void test_only_a_pickle_of_one_text_is_read(void **state)
{
#define PICKLE(bytes)                                                                                                  \
    {                                                                                                                  \
        bytes, sizeof(bytes) - 1                                                                                       \
    }
    static const struct text good[] = {
        PICKLE("\x80\x02X\x02\x00\x00\x00[]q\x00."),
        PICKLE("\x80\x04\x95\x06\x00\x00\x00\x00\x00\x00\x00\x8c\x02[]\x94."),
        PICKLE("\x80\x05\x8d\x02\x00\x00\x00\x00\x00\x00\x00[]\x94."),
        PICKLE("\x80\x03\x8c\x02[]r\x00\x00\x00\x00."),
    };
    static const struct text bad[] = {
        PICKLE(""),
        PICKLE("."),
        PICKLE("\x80\x04."),
        PICKLE("\x80\x06\x8c\x02[]."),
        PICKLE("\x80\x01\x8c\x02[]."),
        PICKLE("\x80\x04\x8c\x02[]"),
        PICKLE("\x80\x04\x8c\x02[].x"),
        PICKLE("\x80\x04\x8c\x03[]."),
        PICKLE("\x80\x04\x8c\x02[]\x8c\x02[]."),
        PICKLE("\x80\x04]\x8c\x02[]a."),
        PICKLE("\x80\x04"
               "C\x02[]."),
        PICKLE("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff[]."),
        PICKLE("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f\x8c\x02[]."),
        PICKLE("\x80\x04\x94\x8c\x02[]."),
        PICKLE("\x80\x02"
               "cos\nsystem\nX\x02\x00\x00\x00[]\x85R."),
    };
    struct text text;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(good); i++) {
        assert_int_equal(pickle_read(good[i], &text), 0);
        assert_true(text_equals(text, "[]"));
    }
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        if (pickle_read(bad[i], &text) == 0)
            fail_msg("pickle %zu was read", i);
}

/* --- the forms --- */

static int read_form(const char *reference, struct test_set *ret_set)
{
    struct verifier_problem problem;
    json_t *value = json_big_load(text_of(reference), JSON_DECODE_ANY, NULL);
    int result;

    assert_non_null(value);
    result = forms_read(value, TEXT_NONE, FORMS_UNPACK, ret_set, &problem);
    json_array_append_new(ret_set->kept, value);
    return result;
}

static void expect_form(const char *reference, enum test_kind kind, const char *tests)
{
    _cleanup_(test_set_finish) struct test_set set = {.tests = NULL};

    if (read_form(reference, &set) < 0)
        fail_msg("%s is refused", reference);
    _cleanup_free_ char *read = json_dumps(set.tests, JSON_COMPACT);
    assert_int_equal(set.kind, kind);
    assert_string_equal(read, tests);
}

static void test_each_form_becomes_one_list_of_tests(void **state)
{
    static const char call[] = "[{\"args\":\"[1,\\\"x\\\"]\",\"expect\":\"[2]\",\"wrapped\":true}]";

    (void)state;
    expect_form("{\"tests\": [{\"stdin\": \"a\", \"stdout\": \"b\"}]}", TESTS_STDIN,
                "[{\"stdin\":\"a\",\"stdout\":\"b\"}]");
    expect_form("{\"inputs\": [[\"a\", \"b\", 3]], \"outputs\": [7]}", TESTS_STDIN,
                "[{\"stdin\":\"a\\nb\\n3\",\"stdout\":\"7\"}]");
    expect_form("{\"inputs\": [[1, \"x\"]], \"outputs\": [[2]], \"fn_name\": \"f\"}", TESTS_CALLS, call);
    expect_form("{\"inputs\": [\"1\\n\\\"x\\\"\\n\"], \"outputs\": [\"[2]\"], \"fn_name\": \"f\"}", TESTS_CALLS, call);
    expect_form("\"{\\\"inputs\\\": [\\\"a\\\"], \\\"outputs\\\": [\\\"b\\\"], \\\"fn_name\\\": null}\"", TESTS_STDIN,
                "[{\"stdin\":\"a\",\"stdout\":\"b\"}]");
    expect_form(
        "{\"reward_model\": {\"style\": \"rule\", \"ground_truth\": \"{\\\"tests\\\": [{\\\"stdin\\\": \\\"a\\\", "
        "\\\"stdout\\\": \\\"b\\\"}]}\"}}",
        TESTS_STDIN, "[{\"stdin\":\"a\",\"stdout\":\"b\"}]");
    expect_form("{\"entry\": \"f\", \"calls\": [{\"args\": [100000000000000000000], \"expect\": null}]}", TESTS_CALLS,
                "[{\"args\":\"[100000000000000000000]\",\"expect\":\"null\",\"wrapped\":false}]");
    expect_form("{\"asserts\": [\"assert f()\"]}", TESTS_ASSERTS, "[\"assert f()\"]");
    expect_form("{\"prompt\": \"p\", \"entry_point\": \"f\", \"test\": \"def check(c): pass\"}", TESTS_ASSERTS,
                "[\"def check(c): pass\\n\\ncheck(f)\\n\"]");
}

static void test_a_row_brings_its_limits_and_its_language(void **state)
{
    _cleanup_(test_set_finish) struct test_set set = {.tests = NULL};

    (void)state;
    assert_int_equal(read_form("{\"verification_info\": \"{\\\"language\\\": \\\"cpp\\\", \\\"test_cases\\\": "
                               "[{\\\"input\\\": \\\"\\\", \\\"output\\\": \\\"\\\"}]}\", \"time_limit\": 1.5, "
                               "\"memory_limit\": 64}",
                               &set),
                     0);
    assert_string_equal(set.language, "cpp");
    assert_true(set.wall_ms == 1500 && set.memory_mb == 64);
}

/* A functional test without the name of its function. */
#define NAMELESS                                                                                                       \
    "{\"public_test_cases\": [{\"input\": \"1\", \"output\": \"1\", \"testtype\": \"functional\"}], "                  \
    "\"private_test_cases\": \"[]\", \"metadata\": \"{}\"}"

static void test_broken_forms_are_refused(void **state)
{
    static const char *const broken[] = {
        "1",
        "\"text\"",
        "\"[]\"",
        "{}",
        "{\"tests\": []}",
        "{\"tests\": {}}",
        "{\"tests\": [{\"stdin\": \"a\"}]}",
        "{\"tests\": [{\"stdin\": {}, \"stdout\": \"\"}]}",
        "{\"asserts\": [1]}",
        "{\"asserts\": []}",
        "{\"calls\": [{\"args\": [], \"expect\": 1}]}",
        "{\"entry\": \"f\", \"calls\": [{\"args\": [], \"value\": 1}]}",
        "{\"inputs\": [\"a\"], \"outputs\": []}",
        "{\"inputs\": [\"a\"]}",
        "{\"inputs\": [\"no json\"], \"outputs\": [\"1\"], \"fn_name\": \"f\"}",
        "{\"inputs\": [{\"a\": 1}], \"outputs\": [\"1\"], \"fn_name\": \"f\"}",
        "{\"test_cases\": [{\"input\": \"a\", \"output\": \"b\", \"type\": \"other\"}]}",
        "{\"test_cases\": [{\"input\": [1], \"output\": 1, \"type\": \"function_call\"}]}",
        "{\"public_test_cases\": \"[]\", \"private_test_cases\": \"[]\", \"metadata\": \"{}\"}",
        NAMELESS,
        "{\"entry_point\": \"f\", \"test\": 1}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
        _cleanup_(test_set_finish) struct test_set set = {.tests = NULL};
        if (read_form(broken[i], &set) == 0)
            fail_msg("%s is read", broken[i]);
    }
}

/* --- the choice --- */

static void test_the_choice_of_tests_is_the_documented_one(void **state)
{
    size_t chosen[200];
    size_t count;

    (void)state;
    choose_tests(3, 5, 1, chosen, &count);
    assert_int_equal(count, 3);
    assert_int_equal(chosen[2], 2);
    /* splitmix64 begun with 0 gives 0xE220A8397B1DCDAF, then 0x6E789E6AA1B965F4. Modulo 10 the first is 5: places 0 and 5 are
     * swapped; modulo 9 the second is 2: places 1 and 3. */
    choose_tests(10, 2, 0, chosen, &count);
    assert_int_equal(count, 2);
    assert_int_equal(chosen[0], 1 + UINT64_C(0x6E789E6AA1B965F4) % 9);
    assert_int_equal(chosen[1], UINT64_C(0xE220A8397B1DCDAF) % 10);
    choose_tests(200, 50, 7, chosen, &count);
    for (size_t i = 1; i < count; i++)
        assert_true(chosen[i - 1] < chosen[i] && chosen[i] < 200);
}

/* --- whole numbers --- */

static void test_whole_numbers_of_any_size_pass_through_a_tree(void **state)
{
    static const char json[] = "{\"a\":[18446744073709551616,-99999999999999999999,5],\"b\":\"18446744073709551616\"}";
    json_t *value = json_big_load(text_of(json), 0, NULL);
    const json_t *big = json_array_get(json_object_get(value, "a"), 0);

    (void)state;
    assert_non_null(value);
    assert_true(text_equals(json_big_digits(json_text_of(big)), "18446744073709551616"));
    assert_null(json_big_digits(json_text_of(json_object_get(value, "b"))).data);
    assert_true(json_big_is_in(value) && !json_big_is_in(json_object_get(value, "b")));
    _cleanup_free_ char *dumped = json_big_dump(value, JSON_COMPACT);
    assert_string_equal(dumped, json);
    json_decref(value);
    assert_null(json_big_load(text_of("[1e999]"), 0, NULL));
    assert_null(json_big_load(text_of("[18446744073709551616"), 0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_closed_block_of_the_language_is_the_program),
        cmocka_unit_test(test_the_span_is_what_stands_between_the_fences),
        cmocka_unit_test(test_outputs_are_compared_by_the_mode),
        cmocka_unit_test(test_values_are_equal_as_json_has_them),
        cmocka_unit_test(test_a_broken_tagged_value_is_refused),
        cmocka_unit_test(test_only_a_pickle_of_one_text_is_read),
        cmocka_unit_test(test_each_form_becomes_one_list_of_tests),
        cmocka_unit_test(test_a_row_brings_its_limits_and_its_language),
        cmocka_unit_test(test_broken_forms_are_refused),
        cmocka_unit_test(test_the_choice_of_tests_is_the_documented_one),
        cmocka_unit_test(test_whole_numbers_of_any_size_pass_through_a_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
