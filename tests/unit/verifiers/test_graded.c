/* Verdicts on the steps of a completion, as a worker gives them. Their table of verifiers is this one. */
#include "tests/unit/base/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "verifiers/registry.h"
#include "verifiers/worker/worker.h"

/* "ok…" is right, "broken" cannot be judged. */
static void grade_text(const struct verifier_input *input, struct verdict *ret_verdict)
{
    assert_null(input->pieces);
    if (text_equals(input->completion, "broken"))
        verdict_fail(ret_verdict, "reference_unreadable", "this one");
    else
        verdict_set(ret_verdict, input->completion.length_bytes >= 2 && memcmp(input->completion.data, "ok", 2) == 0,
                    "seen");
    ret_verdict->detail = json_object();
}

/* A score for each step: its number. "short" forgets one, "none" all of them. */
static void grade_pieces(const struct verifier_input *input, struct verdict *ret_verdict)
{
    static const double scores[] = {0, 1, 2, 3};
    bool forgets = input->piece_count > 0 && text_equals(input->pieces[0].text, "short");

    if (!input->pieces || text_equals(input->pieces[0].text, "none"))
        verdict_set(ret_verdict, true, "whole");
    else
        verdict_set_steps(ret_verdict, scores, input->piece_count - (forgets ? 1 : 0));
}

static const struct verifier each = {.name = "each", .version = "1", .help = "", .grade = grade_text};
static const struct verifier all = {
    .name = "all", .version = "1", .help = "", .grades_pieces = true, .grade = grade_pieces};

const struct verifier *const verifiers[] = {&each, &all};
const size_t verifier_count = 2;

static json_t *answer(const json_t *request)
{
    static const struct worker_means means = {.slot_fd = -1};
    _cleanup_free_ char *text = json_dumps(request, 0);
    _cleanup_buffer_ struct buffer out;

    buffer_init(&out, WORKER_REPLY_LIMIT_BYTES);
    assert_int_equal(worker_answer(text_of(text), 0, &means, 0, &out), 0);
    json_t *reply = json_loadb(out.data, out.length_bytes, 0, NULL);
    assert_non_null(reply);
    json_t *verdicts = json_incref(json_object_get(reply, "verdicts"));
    json_decref(reply);
    return verdicts;
}

static json_t *verdict_on(const char *verifier, const char *steps, const char *completion)
{
    json_t *request = json_pack("{s:s, s:[{s:s, s:{}, s:s*}]}", "completion", completion, "verifiers", "name", verifier,
                                "options", "steps", steps);
    json_t *verdicts = answer(request);
    json_t *verdict = json_incref(json_array_get(verdicts, 0));

    json_decref(request);
    json_decref(verdicts);
    return verdict;
}

/* The verdict's score, reason and steps as one JSON text. */
static void expect(const char *verifier, const char *steps, const char *completion, const char *expected)
{
    json_t *verdict = verdict_on(verifier, steps, completion);
    json_t *shown = json_pack(
        "[o, o, o]", json_incref(json_object_get(verdict, "score")), json_incref(json_object_get(verdict, "reason")),
        json_object_get(verdict, "steps") ? json_incref(json_object_get(verdict, "steps")) : json_null());
    _cleanup_free_ char *text = json_dumps(shown, JSON_COMPACT);

    assert_string_equal(text, expected);
    json_decref(shown);
    json_decref(verdict);
}

static void test_each_step_is_judged_as_a_completion(void **state)
{
    (void)state;
    expect("each", "per_line", "ok\nbad\n\nok", "[0.66666666666666663,\"steps\",[[3,1.0],[7,0.0],[10,1.0]]]");
    expect("each", "per_paragraph", "ok\nbad\n\nbad", "[0.5,\"steps\",[[7,1.0],[11,0.0]]]");
    expect("each", NULL, "ok\nbad", "[1.0,\"seen\",null]");
}

static void test_a_completion_without_steps_is_wrong(void **state)
{
    (void)state;
    expect("each", "per_line", " \n\n", "[0.0,\"no_answer\",[]]");
    expect("all", "per_line", "", "[0.0,\"no_answer\",[]]");
}

static void test_one_unscored_step_makes_the_verdict_unscored(void **state)
{
    json_t *verdict = verdict_on("each", "per_line", "ok\nbroken\nok");
    const json_t *failure = json_object_get(verdict, "failure");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(failure, "code")), "reference_unreadable");
    assert_string_equal(json_string_value(json_object_get(failure, "message")), "step 1: this one");
    assert_null(json_object_get(verdict, "steps"));
    json_decref(verdict);
}

static void test_a_verifier_may_grade_all_pieces_at_once(void **state)
{
    (void)state;
    expect("all", "per_line", "a\nb\nc", "[1.0,\"steps\",[[2,0.0],[4,1.0],[5,2.0]]]");
    expect("all", "per_line", "short\nb", "[null,\"verifier_crashed\",null]");
    expect("all", "per_line", "none\nb", "[null,\"verifier_crashed\",null]");
    expect("all", NULL, "a", "[1.0,\"whole\",null]");
}

/* Steps of two bytes. */
static void fill_lines(char *text, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        text[2 * i] = 'a';
        text[2 * i + 1] = '\n';
    }
    text[2 * steps] = 0;
}

static void test_more_steps_than_the_limit_are_wrong(void **state)
{
    _cleanup_free_ char *text = xcalloc(2 * (size_t)PIECES_MAX + 3, 1);

    (void)state;
    fill_lines(text, PIECES_MAX + 1);
    expect("each", "per_line", text, "[0.0,\"too_many_steps\",[]]");
    fill_lines(text, PIECES_MAX);
    json_t *verdict = verdict_on("each", "per_line", text);
    assert_int_equal(json_array_size(json_object_get(verdict, "steps")), PIECES_MAX);
    json_decref(verdict);
}

static void test_steps_that_do_not_fit_into_the_reply_are_no_verdict(void **state)
{
    _cleanup_free_ char *text = xcalloc(2 * (size_t)PIECES_MAX + 1, 1);
    json_t *list = json_array();
    size_t failed = 0;

    (void)state;
    fill_lines(text, PIECES_MAX);
    for (size_t i = 0; i < VERIFIER_LIST_LIMIT; i++)
        json_array_append_new(list, json_pack("{s:s, s:{}, s:s}", "name", "each", "options", "steps", "per_line"));
    json_t *request = json_pack("{s:s, s:o}", "completion", text, "verifiers", list);
    json_t *verdicts = answer(request);
    for (size_t i = 0; i < VERIFIER_LIST_LIMIT; i++) {
        const json_t *reason = json_object_get(json_array_get(verdicts, i), "reason");
        failed += strcmp(json_string_value(reason), "verifier_input_too_large") == 0;
    }
    assert_in_range(failed, 1, VERIFIER_LIST_LIMIT - 1);
    json_decref(verdicts);
    json_decref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_step_is_judged_as_a_completion),
        cmocka_unit_test(test_a_completion_without_steps_is_wrong),
        cmocka_unit_test(test_one_unscored_step_makes_the_verdict_unscored),
        cmocka_unit_test(test_a_verifier_may_grade_all_pieces_at_once),
        cmocka_unit_test(test_more_steps_than_the_limit_are_wrong),
        cmocka_unit_test(test_steps_that_do_not_fit_into_the_reply_are_no_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
