/* code: what a verdict makes of what a slot says. Programs that really run are in tests/cases/code.jsonl and
 * tests/cases/own/code.jsonl. */
#include "tests/unit/verifiers/grade.h"
#include "tests/unit/verifiers/scripted_slot.h"

#include <stdio.h>
#include <stdlib.h>

#define PROGRAM "```python\nprint(input())\n```\n"
#define TWO_TESTS "{\"tests\": [{\"stdin\": \"1\", \"stdout\": \"one\"}, {\"stdin\": \"2\", \"stdout\": \"two\"}]}"
#define THREE_CALLS                                                                                                    \
    "{\"entry\": \"f\", \"calls\": [{\"args\": [1], \"expect\": 1}, {\"args\": [2], \"expect\": 2}, {\"args\": [3], "  \
    "\"expect\": 3}]}"
#define THREE_ASSERTS "{\"asserts\": [\"assert f(1) == 1\", \"assert f(2) == 2\", \"assert f(3) == 3\"]}"
#define FRACTION "{\"score\": \"fraction\"}"
#define TESTLIB                                                                                                        \
    "{\"tests\": [{\"stdin\": \"in\", \"stdout\": \"answer\"}], \"checker\": {\"source\": \"x\", \"language\": "       \
    "\"c\", "                                                                                                          \
    "\"protocol\": \"testlib\"}}"
#define OPEN_R1                                                                                                        \
    "{\"tests\": [{\"stdin\": \"in\", \"stdout\": \"answer\"}], \"checker\": {\"source\": \"x\", \"language\": "       \
    "\"python\", \"protocol\": \"openr1\"}}"

static struct verdict grade_with_slot(const char *options, const char *reference, const char *completion)
{
    json_t *given = options ? json_loads(options, 0, NULL) : NULL;
    json_t *wanted = json_loads(reference, JSON_DECODE_ANY, NULL);
    struct verifier_problem problem;
    struct verdict verdict;
    json_t *filled;

    assert_non_null(wanted);
    filled = registry_fill_options(registry_find(text_of("code")), given, &problem);
    if (!filled)
        fail_msg("options %s: %s %s", options, problem.name, problem.message);
    struct verifier_input input = {text_of(completion), TEXT_NONE, wanted, filled, -1, 0};
    registry_grade(registry_find(text_of("code")), &input, &verdict);
    json_decref(given);
    json_decref(wanted);
    json_decref(filled);
    return verdict;
}

/* One verdict from scripted results: its score and reason, and that all of the script was used. */
static void expect_script(const char *options, const char *reference, const struct scripted_result *results,
                          size_t count, double score, const char *reason)
{
    script_results(results, count);
    struct verdict verdict = grade_with_slot(options, reference, PROGRAM);

    if (verdict.kind == VERDICT_UNSCORED ? score >= 0 : verdict.score < score - 1e-9 || verdict.score > score + 1e-9)
        fail_msg("score %g, %s (%s), expected %g, %s", verdict.score, verdict.reason, verdict.failure_message, score,
                 reason);
    assert_string_equal(verdict.reason, reason);
    assert_int_equal(script_programs(), count);
    verdict_finish(&verdict);
}

#define UNSCORED (-1.0)
#define EXPECT(options, reference, score, reason, ...)                                                                 \
    expect_script(options, reference, (const struct scripted_result[]){__VA_ARGS__},                                   \
                  sizeof((const struct scripted_result[]){__VA_ARGS__}) / sizeof(struct scripted_result), score,       \
                  reason)

static void test_an_end_is_a_reason(void **state)
{
    (void)state;
    EXPECT(NULL, TWO_TESTS, 0, "timeout", {.outcome = SANDBOX_TIMEOUT, .output = "one"});
    EXPECT(NULL, TWO_TESTS, 0, "memory_limit", {.outcome = SANDBOX_MEMORY, .output = "one"});
    EXPECT(NULL, TWO_TESTS, 0, "output_limit", {.outcome = SANDBOX_OUTPUT, .output = "one"});
    EXPECT(NULL, TWO_TESTS, 0, "sandbox_violation", {.outcome = SANDBOX_VIOLATION, .output = "one"});
    EXPECT(NULL, TWO_TESTS, 0, "compile_error", {.outcome = SANDBOX_NOT_COMPILED});
    EXPECT(NULL, TWO_TESTS, 0, "runtime_error", {.exit_code = 1, .output = "one"});
    EXPECT(NULL, TWO_TESTS, 0, "runtime_error", {.signal = 11, .output = "one"});
    EXPECT(NULL, TWO_TESTS, 0, "wrong_answer", {.output = "two"});
    EXPECT(NULL, TWO_TESTS, 1, "pass", {.output = "one"}, {.output = "two"});
}

static void test_a_slot_that_runs_nothing_is_no_wrong_answer(void **state)
{
    (void)state;
    EXPECT(NULL, TWO_TESTS, UNSCORED, "sandbox_unavailable", {.outcome = SANDBOX_BROKEN});
    EXPECT(FRACTION, TWO_TESTS, UNSCORED, "sandbox_unavailable", {.output = "two"}, {.outcome = SANDBOX_BROKEN});
    EXPECT(NULL, TESTLIB, UNSCORED, "sandbox_unavailable", {.output = "x"}, {.outcome = SANDBOX_BROKEN});
    script_lost_slot();
    struct verdict verdict = grade_with_slot(NULL, TWO_TESTS, PROGRAM);
    assert_string_equal(verdict.failure_code, "sandbox_unavailable");
    verdict_finish(&verdict);
    verdict = grade("code", NULL, TWO_TESTS, PROGRAM);
    assert_string_equal(verdict.failure_code, "sandbox_unavailable");
    verdict_finish(&verdict);
}

static void test_the_first_failure_ends_a_trial_unless_a_fraction_is_wanted(void **state)
{
    (void)state;
    EXPECT(NULL, TWO_TESTS, 0, "wrong_answer", {.output = "no"});
    EXPECT(FRACTION, TWO_TESTS, 0.5, "wrong_answer", {.output = "no"}, {.output = "two"});
    EXPECT(FRACTION, TWO_TESTS, 0, "wrong_answer", {.output = "no"}, {.exit_code = 1});
    EXPECT(FRACTION, TWO_TESTS, 1, "pass", {.output = "one"}, {.output = "two"});
}

static void test_the_detail_shows_the_program_and_not_what_is_expected(void **state)
{
    char *long_output = calloc(1, 10001);
    struct verdict verdict;
    char *detail;

    (void)state;
    memset(long_output, 'x', 10000);
    script_results((const struct scripted_result[]){{.output = "one"}, {.output = long_output, .error = "oops"}}, 2);
    verdict = grade_with_slot(NULL, TWO_TESTS, PROGRAM);
    const json_t *failed = json_object_get(verdict.detail, "first_failed");
    assert_int_equal(json_integer_value(json_object_get(failed, "index")), 1);
    assert_int_equal(json_string_length(json_object_get(failed, "stdout")), 4096);
    assert_string_equal(json_string_value(json_object_get(failed, "stderr")), "oops");
    assert_int_equal(json_integer_value(json_object_get(failed, "exit_code")), 0);
    assert_true(json_is_null(json_object_get(failed, "signal")));
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "language")), "python");
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "start")), strlen("```python\n"));
    detail = json_dumps(verdict.detail, 0);
    assert_null(strstr(detail, "two"));
    free(detail);
    free(long_output);
    verdict_finish(&verdict);
}

static void test_calls_are_counted_by_their_records_alone(void **state)
{
    (void)state;
    EXPECT(NULL, THREE_CALLS, 1, "pass", {.records = "v0:3:i1;\nv1:3:i2;\nv2:3:i3;\n"});
    EXPECT(NULL, THREE_CALLS, 0, "wrong_answer", {.records = "v0:3:i1;\nv1:3:i3;\nv2:3:i3;\n"});
    EXPECT(NULL, THREE_CALLS, 0, "runtime_error", {.records = "v0:3:i1;\ne1:10:ValueError\nv2:3:i3;\n"});
    EXPECT(NULL, THREE_CALLS, 0, "runtime_error", {.output = "all passed"});
    EXPECT(NULL, THREE_CALLS, 0, "compile_error", {.records = "c0:11:SyntaxError\n"});
    EXPECT(FRACTION, THREE_CALLS, 0, "runtime_error", {.records = "l0:10:SystemExit\n"});
}

static void test_records_that_a_harness_would_not_write_are_wrong(void **state)
{
    static const char *const forged[] = {
        "v0:3:i1;\nv0:3:i1;\nv1:3:i2;\nv2:3:i3;\n",          /* one more */
        "v0:3:i1;\nv1:3:i2;\nv2:3:i3;\nv3:3:i4;\n",          /* of a call that is not there */
        "v1:3:i2;\nv0:3:i1;\nv2:3:i3;\n",                    /* in another order */
        "v0:3:i1;\nv1:3:i2;\nv2:3:i3;\nx",                   /* and something else */
        "noise\nv0:3:i1;\nv1:3:i2;\nv2:3:i3;\n",             /* before it */
        "v0:99999999999999999999:i1;\nv1:3:i2;\nv2:3:i3;\n", /* a length beyond all */
        "v0:-3:i1;\nv1:3:i2;\nv2:3:i3;\n",
        "V0:3:i1;\nv1:3:i2;\nv2:3:i3;\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(forged); i++)
        EXPECT(NULL, THREE_CALLS, 0, "wrong_answer", {.records = forged[i]});
}

static void test_a_call_without_an_answer_gets_a_sandbox_of_its_own(void **state)
{
    (void)state;
    EXPECT(NULL, THREE_CALLS, 1, "pass", {.outcome = SANDBOX_TIMEOUT, .records = "v0:3:i1;\nv1:3:"},
           {.records = "v0:3:i2;\nv1:3:i3;\n"});
    EXPECT(NULL, THREE_CALLS, 0, "timeout", {.outcome = SANDBOX_TIMEOUT, .records = "v0:3:i1;\n"},
           {.outcome = SANDBOX_TIMEOUT});
    EXPECT(FRACTION, THREE_CALLS, 2.0 / 3, "memory_limit", {.records = "v0:3:i1;\n"}, {.outcome = SANDBOX_MEMORY},
           {.records = "v0:3:i3;\n"});
    assert_string_equal(script_text(0, "calls"), "[\"f\",\"\"]\n[3]");
    assert_string_equal(script_text(0, "program.py"), "print(input())\n");
}

static void test_asserts_are_counted_by_the_records_of_the_test_s_side(void **state)
{
    (void)state;
    EXPECT(NULL, THREE_ASSERTS, 1, "pass", {.records = "0p\n1p\n2p\n"}, {.exit_code = 0});
    EXPECT(NULL, THREE_ASSERTS, 1, "pass", {.records = "0p\n1p\n2p\n"}, {.exit_code = 1});
    EXPECT(NULL, THREE_ASSERTS, 0, "wrong_answer", {.records = "0p\n1w\n2p\n"}, {.output = "OK"});
    EXPECT(NULL, THREE_ASSERTS, 0, "runtime_error", {.records = "0p\n1e\n"}, {.exit_code = 0});
    EXPECT(NULL, THREE_ASSERTS, 0, "runtime_error", {.records = "0p\n1m\n"}, {.exit_code = 0});
    EXPECT(FRACTION, THREE_ASSERTS, 0, "compile_error", {.records = "0c\n"}, {.exit_code = 0});
    EXPECT(NULL, THREE_ASSERTS, UNSCORED, "reference_unreadable", {.records = "0p\n1r\n"}, {.exit_code = 0});
    EXPECT(NULL, THREE_ASSERTS, 0, "runtime_error", {.output = "0p\n1p\n2p\n"}, {.records = "0p\n1p\n2p\n"});
    EXPECT(NULL, THREE_ASSERTS, 0, "timeout", {.exit_code = 0}, {.outcome = SANDBOX_TIMEOUT});
}

static void test_an_assert_at_which_the_program_ended_is_its_last_one_there(void **state)
{
    (void)state;
    EXPECT(NULL, THREE_ASSERTS, 0, "memory_limit", {.records = "0g\n"}, {.outcome = SANDBOX_MEMORY});
    EXPECT(FRACTION, THREE_ASSERTS, 2.0 / 3, "runtime_error", {.records = "0p\n1g\n"}, {.exit_code = 0},
           {.records = "2p\n"}, {.exit_code = 0});
    assert_non_null(strstr(script_text(0, "input"), "\"first\":2"));
    assert_non_null(strstr(script_text(0, "input"), "assert f(3) == 3"));
    assert_null(strstr(script_text(1, "given"), "assert"));
    assert_null(strstr(script_text(1, "source"), "assert f"));
}

static void test_a_judge_of_the_reference_decides_by_its_exit_code(void **state)
{
    (void)state;
    EXPECT(NULL, TESTLIB, 1, "pass", {.output = "mine"}, {.exit_code = 0, .output = "wrong"});
    assert_string_equal(script_text(0, "output"), "mine");
    assert_string_equal(script_text(0, "answer"), "answer");
    assert_string_equal(script_program(0)->arguments[1], "output");
    assert_int_equal(script_program(0)->language, SANDBOX_C);
    EXPECT(NULL, TESTLIB, 0, "wrong_answer", {.output = "mine"}, {.exit_code = 1, .output = "ok"});
    EXPECT(NULL, TESTLIB, 0, "wrong_answer", {.output = "mine"}, {.exit_code = 2});
    EXPECT(NULL, TESTLIB, 0, "timeout", {.outcome = SANDBOX_TIMEOUT});
}

static void test_a_judge_that_breaks_is_asked_about_the_answer_file(void **state)
{
    (void)state;
    EXPECT(NULL, TESTLIB, UNSCORED, "checker_failed", {.output = "mine"}, {.signal = 11}, {.signal = 11});
    assert_string_equal(script_text(0, "output"), "answer");
    EXPECT(NULL, TESTLIB, UNSCORED, "checker_failed", {.output = "mine"}, {.outcome = SANDBOX_TIMEOUT},
           {.outcome = SANDBOX_TIMEOUT});
    EXPECT(NULL, TESTLIB, UNSCORED, "checker_failed", {.output = "mine"}, {.outcome = SANDBOX_NOT_COMPILED},
           {.outcome = SANDBOX_NOT_COMPILED});
    EXPECT(NULL, TESTLIB, 0, "wrong_answer", {.output = "mine"}, {.signal = 11}, {.exit_code = 0});
    EXPECT(NULL, TESTLIB, 0, "wrong_answer", {.output = "mine"}, {.signal = 11}, {.exit_code = 1});
}

static void test_a_judge_that_blames_the_answer_is_believed_if_the_output_would_be_a_good_answer(void **state)
{
    (void)state;
    /* The answer file is worse than the output. */
    EXPECT(NULL, TESTLIB, UNSCORED, "checker_failed", {.output = "mine"}, {.exit_code = 3}, {.exit_code = 0},
           {.exit_code = 1});
    assert_string_equal(script_text(0, "output"), "answer");
    assert_string_equal(script_text(0, "answer"), "mine");
    /* The output made the judge stumble. */
    EXPECT(NULL, TESTLIB, 0, "wrong_answer", {.output = "mine"}, {.exit_code = 3}, {.exit_code = 0}, {.exit_code = 3});
    EXPECT(NULL, TESTLIB, 0, "wrong_answer", {.output = "mine"}, {.exit_code = 3}, {.exit_code = 0}, {.signal = 6});
    /* The judge always says so. */
    EXPECT(NULL, TESTLIB, UNSCORED, "checker_failed", {.output = "mine"}, {.exit_code = 3}, {.exit_code = 3});
}

static void test_the_last_word_of_an_openr1_judge_is_the_score(void **state)
{
    (void)state;
    EXPECT(NULL, OPEN_R1, 1, "pass", {.output = "mine"}, {.output = "score 0\n1.0\n"});
    EXPECT(NULL, OPEN_R1, 0, "wrong_answer", {.output = "mine"}, {.output = "0.5"});
    EXPECT(FRACTION, OPEN_R1, 0.5, "wrong_answer", {.output = "mine"}, {.output = "0.5"});
    EXPECT(NULL, OPEN_R1, UNSCORED, "checker_failed", {.output = "mine"}, {.output = "2"}, {.output = "2"});
    EXPECT(NULL, OPEN_R1, UNSCORED, "checker_failed", {.output = "mine"}, {.output = "nan"}, {.output = "nan"});
    EXPECT(NULL, OPEN_R1, UNSCORED, "checker_failed", {.output = "mine"}, {.exit_code = 1, .output = "1"},
           {.exit_code = 1, .output = "1"});
    EXPECT(NULL, OPEN_R1, 0, "wrong_answer", {.output = "mine"}, {.output = "?"}, {.output = "1"});
    assert_string_equal(script_program(0)->arguments[1], "answer");
    assert_string_equal(script_program(0)->arguments[2], "output");
}

static void test_limits_come_from_the_options_then_the_row_then_the_defaults(void **state)
{
    static const char row[] = "{\"inputs\": [\"1\"], \"outputs\": [\"one\"], \"time_limit\": 2, \"memory_limit\": 64}";

    (void)state;
    EXPECT(NULL, row, 1, "pass", {.output = "one"});
    assert_int_equal(script_program(0)->limits.wall_ms, 2000);
    assert_int_equal(script_program(0)->limits.cpu_ms, 2000);
    assert_int_equal(script_program(0)->limits.memory_bytes, 64 << 20);
    EXPECT("{\"limits\": {\"wall_ms\": 700, \"memory_mb\": 32, \"procs\": 3}}", row, 1, "pass", {.output = "one"});
    assert_int_equal(script_program(0)->limits.wall_ms, 700);
    assert_int_equal(script_program(0)->limits.memory_bytes, 32 << 20);
    assert_int_equal(script_program(0)->limits.processes, 3);
    EXPECT(NULL, TWO_TESTS, 0, "wrong_answer", {.output = ""});
    assert_int_equal(script_program(0)->limits.wall_ms, 10000);
}

static void test_the_time_of_a_verdict_is_that_of_its_programs(void **state)
{
    static const char options[] = "{\"score\": \"fraction\", \"limits\": {\"wall_ms\": 600, \"total_ms\": 1000}}";

    (void)state;
    EXPECT(options, TWO_TESTS, 1, "pass", {.output = "one", .wall_ms = 500}, {.output = "two", .wall_ms = 400});
    assert_int_equal(script_program(0)->limits.wall_ms, 500);
    EXPECT(options, TWO_TESTS, 0.5, "timeout", {.output = "one", .wall_ms = 1000});
    EXPECT(options, THREE_CALLS, 1.0 / 3, "timeout",
           {.outcome = SANDBOX_TIMEOUT, .records = "v0:3:i1;\n", .wall_ms = 1000});
}

static void test_options_that_say_nothing_sensible_are_refused(void **state)
{
    static const char *const refused[] = {
        "{\"limits\": {\"wall\": 1}}",
        "{\"limits\": {\"wall_ms\": \"1\"}}",
        "{\"limits\": {\"wall_ms\": 0}}",
        "{\"limits\": []}",
        "{\"compare\": {\"mode\": \"near\"}}",
        "{\"compare\": {\"mode\": 1}}",
        "{\"compare\": {\"abs\": -1}}",
        "{\"compare\": {\"tolerance\": 1}}",
        "{\"language\": \"cobol\"}",
        "{\"max_tests\": 0}",
        "{\"score\": \"some\"}",
    };
    struct verifier_problem problem;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
        json_t *given = json_loads(refused[i], 0, NULL);
        json_t *filled = registry_fill_options(registry_find(text_of("code")), given, &problem);
        if (filled)
            fail_msg("%s is not refused", refused[i]);
        json_decref(given);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_end_is_a_reason),
        cmocka_unit_test(test_a_slot_that_runs_nothing_is_no_wrong_answer),
        cmocka_unit_test(test_the_first_failure_ends_a_trial_unless_a_fraction_is_wanted),
        cmocka_unit_test(test_the_detail_shows_the_program_and_not_what_is_expected),
        cmocka_unit_test(test_calls_are_counted_by_their_records_alone),
        cmocka_unit_test(test_records_that_a_harness_would_not_write_are_wrong),
        cmocka_unit_test(test_a_call_without_an_answer_gets_a_sandbox_of_its_own),
        cmocka_unit_test(test_asserts_are_counted_by_the_records_of_the_test_s_side),
        cmocka_unit_test(test_an_assert_at_which_the_program_ended_is_its_last_one_there),
        cmocka_unit_test(test_a_judge_of_the_reference_decides_by_its_exit_code),
        cmocka_unit_test(test_a_judge_that_breaks_is_asked_about_the_answer_file),
        cmocka_unit_test(test_a_judge_that_blames_the_answer_is_believed_if_the_output_would_be_a_good_answer),
        cmocka_unit_test(test_the_last_word_of_an_openr1_judge_is_the_score),
        cmocka_unit_test(test_limits_come_from_the_options_then_the_row_then_the_defaults),
        cmocka_unit_test(test_the_time_of_a_verdict_is_that_of_its_programs),
        cmocka_unit_test(test_options_that_say_nothing_sensible_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
