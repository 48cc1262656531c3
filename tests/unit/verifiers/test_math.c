#include "tests/unit/verifiers/grade.h"

#include <stdio.h>

static void right(const char *reference, const char *completion)
{
    expect("math", NULL, reference, completion, 1, NULL);
}

static void wrong(const char *reference, const char *completion)
{
    expect("math", NULL, reference, completion, 0, NULL);
}

static void test_the_last_box_is_the_answer(void **state)
{
    (void)state;
    right("\"7\"", "First \\boxed{6}, but on review \\boxed{7}");
    wrong("\"6\"", "First \\boxed{6}, but on review \\boxed{7}");
    right("\"1/2\"", "\\boxed{\\frac{1}{2}}");
    right("\"5\"", "\\fbox{5}");
    right("\"5\"", "mark it with \\boxed ... here: \\boxed{5}");
}

static void test_a_truncated_last_box_is_no_answer_and_no_earlier_one_stands_in(void **state)
{
    (void)state;
    expect("math", NULL, "\"5\"", "\\boxed{5} and \\boxed{", 0, "no_answer");
    expect("math", NULL, "\"5\"", "\\boxed{5", 0, "no_answer");
}

static void test_only_what_stands_after_the_reasoning_counts(void **state)
{
    (void)state;
    expect("math", NULL, "\"42\"", "<think>\\boxed{42}", 0, "no_answer");
    expect("math", NULL, "\"42\"", "<think>\\boxed{42}</think> done", 0, "no_answer");
    right("\"42\"", "<think>\\boxed{41}</think>\\boxed{42}");
    right("\"42\"", "a</think>b</think>\\boxed{42}");
    expect("math", NULL, "\"42\"", "\\boxed{42}</think> <think> \\boxed{42}", 0, "no_answer");
}

static void test_without_any_box_the_last_answer_tag_counts(void **state)
{
    (void)state;
    right("\"42\"", "<think>\n6*7\n</think>\n<answer>\n42\n</answer>");
    wrong("\"42\"", "<answer>42</answer> <answer>43</answer>");
    wrong("\"42\"", "<answer>42</answer> <answer>43");
    wrong("\"42\"", "<answer>42</answer> \\boxed{43}");
}

static void test_numbers_are_exact(void **state)
{
    (void)state;
    right("\"\\\\frac{1}{3}\"", "\\boxed{0.\\overline{3}}");
    wrong("\"\\\\frac{1}{3}\"", "\\boxed{0.3333333333333333333333}");
    right("\"0.5\"", "\\boxed{\\frac12}");
    right("\"1/2\"", "\\boxed{.50}");
    wrong("\"\\\\frac{1}{2^{99}}\"", "\\boxed{\\frac{1}{2^{98}}}");
    right("\"10^{30}+1\"", "\\boxed{1000000000000000000000000000001}");
    wrong("\"10^{30}+1\"", "\\boxed{1.0\\times10^{30}}");
    wrong("\"50000000000000001\"", "\\boxed{50000000000000000}");
}

static void test_thousands_are_groups_of_exactly_three(void **state)
{
    (void)state;
    right("\"1234567\"", "\\boxed{1,234,567}");
    right("\"1234567\"", "\\boxed{1{,}234{,}567}");
    right("\"1234567\"", "\\boxed{1\\,234\\,567}");
    right("\"2500\"", "\\boxed{\\$2,500.00}");
    wrong("\"1000000\"", "\\boxed{1,000,00}");
    wrong("\"106\"", "\\boxed{10 6}");
    wrong("\"12\"", "\\boxed{1,2}");
}

static void test_a_mixed_number_is_a_sum_and_a_dot_makes_a_product(void **state)
{
    (void)state;
    right("\"17/12\"", "\\boxed{1\\frac{5}{12}}");
    right("\"17/12\"", "\\boxed{1 5/12}");
    right("\"-3/2\"", "\\boxed{-1\\frac{1}{2}}");
    wrong("\"17/12\"", "\\boxed{1\\cdot\\frac{5}{12}}");
    right("\"5/12\"", "\\boxed{1\\cdot\\frac{5}{12}}");
}

static void test_digits_side_by_side_are_never_a_product(void **state)
{
    (void)state;
    wrong("\"8\"", "\\boxed{\\mathbf{4}\\mathbf{2}}");
    wrong("\"36\"", "\\boxed{12{3}}");
    right("\"36\"", "\\boxed{12(3)}");
}

static void test_one_value_asked_is_one_value_given(void **state)
{
    (void)state;
    wrong("\"42\"", "\\boxed{42 \\text{ or } 43}");
    wrong("\"42\"", "\\boxed{\\{42\\}}");
    wrong("\"42\"", "\\boxed{42, 42}");
    wrong("\"42\"", "\\boxed{42\\text{ (or possibly }43)}");
    wrong("\"42\"", "\\boxed{42=43}");
    wrong("\"7\"", "\\boxed{\\pm 7}");
}

static void test_a_list_is_a_set_and_a_tuple_has_an_order(void **state)
{
    (void)state;
    right("\"1,-2\"", "\\boxed{-2, 1}");
    right("\"1,-2\"", "\\boxed{-2, 1, 1}");
    wrong("\"1,-2\"", "\\boxed{-2}");
    wrong("\"1,-2\"", "\\boxed{(1,-2)}");
    wrong("\"(3,-2)\"", "\\boxed{(-2,3)}");
    right("\"(3,-2)\"", "\\boxed{\\left(3.0, -2\\right)}");
    wrong("\"[0,1)\"", "\\boxed{[0,1]}");
    right("\"(10,100)\"", "\\boxed{(10, 100)}");
    wrong("\"10100\"", "\\boxed{(10,100)}");
    right("\"10100\"", "\\boxed{(10{,}100)}");
}

static void test_a_unit_on_one_side_is_ignored_and_two_different_ones_differ(void **state)
{
    (void)state;
    right("\"12\"", "\\boxed{12\\text{ cm}}");
    right("\"12 cm\"", "\\boxed{12}");
    right("\"5\\\\text{ km}\"", "\\boxed{5\\text{ kilometers}}");
    wrong("\"5\\\\text{ km}\"", "\\boxed{5\\text{ m}}");
    wrong("\"12\"", "\\boxed{12^2}");
}

static void test_a_word_that_changes_the_number_is_no_unit(void **state)
{
    (void)state;
    wrong("\"5\"", "\\boxed{5\\text{ million}}");
    wrong("\"5\"", "\\boxed{5\\text{ halves}}");
    wrong("\"42\"", "\\boxed{42i}");
    wrong("\"42\"", "\\boxed{42\\mathrm{i}}");
    wrong("\"2\"", "\\boxed{2ab}");
    wrong("\"2ab\"", "\\boxed{2}");
    wrong("\"2\\\\pi\"", "\\boxed{2}");
}

static void test_a_percent_sign_counts_by_value_unless_it_is_declared_a_unit(void **state)
{
    (void)state;
    right("\"50\\\\%\"", "\\boxed{0.5}");
    wrong("\"50\\\\%\"", "\\boxed{50}");
    wrong("\"25\"", "\\boxed{25\\%}");
    expect("math", "{\"percent\":\"unit\"}", "\"25\"", "\\boxed{25\\%}", 1, NULL);
    expect("math", "{\"percent\":\"unit\"}", "\"25\"", "\\boxed{25\\%\\%}", 0, NULL);
}

static void test_a_tolerance_is_the_decimal_that_was_written(void **state)
{
    (void)state;
    expect("math", "{\"abs_tol\":0.05}", "\"66.7\"", "\\boxed{66.75}", 1, NULL);
    expect("math", "{\"abs_tol\":0.05}", "\"66.7\"", "\\boxed{66.7500001}", 0, NULL);
    expect("math", "{\"rel_tol\":0.01}", "\"200\"", "\\boxed{202}", 1, NULL);
    expect("math", "{\"rel_tol\":0.01}", "\"200\"", "\\boxed{202.0001}", 0, NULL);
}

static void test_a_name_is_ignored_but_another_name_is_not(void **state)
{
    (void)state;
    right("\"5\"", "\\boxed{x = 5}");
    right("\"x=5\"", "\\boxed{5}");
    wrong("\"x=5\"", "\\boxed{y=5}");
    wrong("\"x=3,y=5\"", "\\boxed{5,3}");
}

static void test_a_number_in_another_base_keeps_its_base(void **state)
{
    (void)state;
    right("\"2516_{8}\"", "\\boxed{2516_8}");
    right("\"2516_8\"", "\\boxed{2516}"); /* digits of the base that was asked for */
    wrong("\"2516_8\"", "\\boxed{2516_7}");
    wrong("\"10\"", "\\boxed{1010_2}");
}

static void test_powers_beyond_any_size_are_never_paid(void **state)
{
    (void)state;
    expect("math", NULL, "\"5\"", "\\boxed{5^{5^{5^{5^{5}}}}}", 0, "undecided");
    expect("math", NULL, "\"0\"", "\\boxed{10^{-10^{10}}}", 0, NULL);
    expect("math", NULL, "\"1\"", "\\boxed{100000!}", 0, NULL);
}

static void test_a_value_may_be_written_in_any_way(void **state)
{
    (void)state;
    expect("math", NULL, "\"2\\\\sqrt{2}\"", "\\boxed{\\sqrt8}", 1, "equal");
    expect("math", NULL, "\"2\\\\sqrt{2}\"", "\\boxed{2.8284271247}", 0, "different");
    expect("math", NULL, "\"x^{10}\"", "\\boxed{x^10}", 1, "equal");
    expect("math", NULL, "\"(x+1)^2\"", "\\boxed{x^2+2x+1}", 1, "equal");
    wrong("\"x^{10}\"", "\\boxed{x^{1}0}");
    right("\"\\\\text{even}\"", "\\boxed{Even}");
    wrong("\"abc\"", "\\boxed{ABC}");
}

static void test_strange_bytes_are_no_answer(void **state)
{
    (void)state;
    wrong("\"42\"", "\\boxed{4\u00a02}");
    wrong("\"42\"", "\\boxed{\u202e24}");
    right("\"42\"", "\\boxed{\uff14\uff12}");
    expect("math", "{\"unicode_digits\":\"reject\"}", "\"42\"", "\\boxed{\uff14\uff12}", 0, NULL);
    struct verdict verdict = grade_text("math", NULL, "\"42\"", TEXT_LITERAL("\\boxed{42\0}"));
    assert_int_equal(verdict.kind, VERDICT_INCORRECT);
    verdict_finish(&verdict);
}

static void test_a_broken_or_missing_reference_is_a_failure_and_no_score(void **state)
{
    (void)state;
    static const char *const broken[] = {NULL, "null", "\"\"",        "\"  \"",         "0.5",
                                         "{}", "[]",   "[\"1\", {}]", "\"\\\\frac{1\"", "\"a\\u0000b\""};
    for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
        struct verdict verdict = grade("math", NULL, broken[i], "\\boxed{1}");
        assert_int_equal(verdict.kind, VERDICT_UNSCORED);
        assert_string_equal(verdict.failure_code, "reference_unreadable");
        verdict_finish(&verdict);
    }
}

static void test_any_of_a_list_of_references_is_accepted(void **state)
{
    (void)state;
    right("[\"41\", \"42\"]", "\\boxed{42}");
    right("[41, 42]", "\\boxed{42}");
    wrong("[\"41\", \"42\"]", "\\boxed{43}");
}

static void test_detail_says_what_was_read_and_where(void **state)
{
    (void)state;
    struct verdict verdict = grade("math", NULL, "\"42\"", "So \\boxed{ 42 }.");
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "extracted")), "42");
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "start")), 11);
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "end")), 13);
    verdict_finish(&verdict);
}

static const char *detail_of(const struct verdict *verdict, const char *name)
{
    const char *value = json_string_value(json_object_get(verdict->detail, name));

    assert_non_null(value);
    return value;
}

static void test_detail_says_how_the_answer_was_read_and_decided(void **state)
{
    (void)state;
    struct verdict verdict = grade("math", NULL, "\"1/2\"", "\\boxed{\\dfrac{1}{2}}");
    assert_string_equal(detail_of(&verdict, "read"), "\\frac{1}{2}");
    assert_string_equal(detail_of(&verdict, "decision"), "equal");
    assert_string_equal(detail_of(&verdict, "method"), "rational");
    verdict_finish(&verdict);
    verdict = grade("math", NULL, "\"1\"", "\\boxed{42=43}");
    assert_string_equal(detail_of(&verdict, "decision"), "undefined");
    assert_string_equal(verdict.reason, "different");
    verdict_finish(&verdict);
}

static void test_a_normal_form_that_is_too_long_to_show_ends_with_an_ellipsis(void **state)
{
    char completion[4096] = "\\boxed{1";
    struct verdict verdict;
    const char *read;

    (void)state;
    for (size_t i = 0; i < 600; i++)
        strcat(completion, "+1");
    strcat(completion, "}");
    verdict = grade("math", NULL, "\"601\"", completion);
    read = detail_of(&verdict, "read");
    assert_int_equal(verdict.kind, VERDICT_CORRECT);
    assert_string_equal(read + strlen(read) - 3, "\xE2\x80\xA6");
    verdict_finish(&verdict);
}

static void test_detail_says_where_reading_stopped(void **state)
{
    (void)state;
    struct verdict verdict = grade("math", NULL, "\"1/2\"", "\\boxed{\\frac{1}{}}");
    assert_string_equal(verdict.reason, "unparsed_answer");
    assert_true(strlen(detail_of(&verdict, "expected")) > 0);
    assert_true(json_is_integer(json_object_get(verdict.detail, "expected_at")));
    verdict_finish(&verdict);
}

static void broken(const char *reference, const char *part)
{
    struct verdict verdict = grade("math", NULL, reference, "\\boxed{1/0}");

    assert_int_equal(verdict.kind, VERDICT_UNSCORED);
    assert_string_equal(verdict.failure_code, "reference_unreadable");
    if (!strstr(verdict.failure_message, part))
        fail_msg("%s does not say %s", verdict.failure_message, part);
    verdict_finish(&verdict);
}

static void test_a_reference_that_cannot_be_read_says_where(void **state)
{
    (void)state;
    broken("\"\\\\frac{1\"", "at byte ");
    broken("[\"1\", \"\\\\frac{1\"]", "expected at byte ");
    broken("\" \"", "blank");
}

static void test_a_reference_without_a_value_is_broken(void **state)
{
    (void)state;
    broken("\"1/0\"", "no value");
    broken("\"42=43\"", "no value");
}

static void formed(const char *form, const char *reference, const char *answer, bool fine)
{
    char options[64], wanted[256], completion[256];

    snprintf(options, sizeof options, "{\"form\":\"%s\"}", form);
    snprintf(wanted, sizeof wanted, "\"%s\"", reference);
    snprintf(completion, sizeof completion, "\\boxed{%s}", answer);
    expect("math", options, wanted, completion, fine, fine ? "equal" : "wrong_form");
}

static void test_evaluated_wants_a_number_and_not_a_task(void **state)
{
    (void)state;
    formed("evaluated", "391", "391", true);
    formed("evaluated", "391", "17\\cdot 23", false);
    formed("evaluated", "391", "\\frac{782}{2}", false);
    formed("evaluated", "391", "400-9", false);
    formed("evaluated", "391", "3.91\\times 10^2", true);
    formed("evaluated", "1/2", "\\frac{1}{2}", true);
    formed("evaluated", "1/2", "\\sin 30^\\circ", false);
    formed("evaluated", "1024", "2^{10}", false);
    formed("evaluated", "2x+3", "2x+1+2", false);
    formed("evaluated", "2x+3", "3+2x", true);
    formed("evaluated", "6", "3!", false);
    formed("evaluated", "\\\\{1,2\\\\}", "2,1", true);
    formed("evaluated", "\\\\{1,2\\\\}", "2,2-1", false);
    formed("evaluated", "55", "\\sum_{k=1}^{10}k", false);
    formed("evaluated", "\\\\frac{\\\\pi}{4}", "\\pi/4", true);
    formed("evaluated", "2^{100}", "2^{100}", true);
    formed("evaluated", "e^2", "e\\cdot e", true);
}

static void test_evaluated_wants_terms_collected_and_numbers_multiplied_out(void **state)
{
    (void)state;
    formed("evaluated", "2\\\\pi", "\\pi+\\pi", false);
    formed("evaluated", "\\\\pi", "\\frac{3\\pi}{2}-\\frac{\\pi}{2}", false);
    formed("evaluated", "2xy", "xy+yx", false);
    formed("evaluated", "x^2+x", "x+x^2", true);
    formed("evaluated", "3+4i", "(2+i)^2", false);
    formed("evaluated", "1+3i", "(1+i)(2+i)", false);
    formed("evaluated", "1+3i", "3i+1", true);
    formed("evaluated", "6+2\\\\sqrt5", "(1+\\sqrt5)^2", false);
    formed("evaluated", "6+2\\\\sqrt5", "2(3+\\sqrt5)", true);
    formed("evaluated", "x^2+2x+1", "(x+1)^2", true);
}

static void test_evaluated_wants_no_two_signs_and_no_function_with_a_known_value(void **state)
{
    (void)state;
    formed("evaluated", "391", "-(-391)", false);
    formed("evaluated", "x+3", "x-(-3)", false);
    formed("evaluated", "1/2", "\\frac{-1}{-2}", false);
    formed("evaluated", "1/2", "-\\frac{-1}{2}", false);
    formed("evaluated", "-1/2", "\\frac{-1}{2}", true);
    formed("evaluated", "\\\\pi/4", "\\arctan 1", false);
    formed("evaluated", "\\\\pi", "2\\arcsin 1", false);
    formed("evaluated", "\\\\pi/12", "\\arctan(2-\\sqrt3)", false);
    formed("evaluated", "\\\\arctan 2", "\\tan^{-1}2", true);
    formed("evaluated", "\\\\sqrt3/2", "\\sin 60^\\circ", false);
    formed("evaluated", "\\\\sin 1", "\\sin(1)", true);
}

static void test_reduced_wants_lowest_terms_and_no_square_under_a_root(void **state)
{
    (void)state;
    formed("reduced", "1/2", "1/2", true);
    formed("reduced", "1/2", "\\frac{2}{4}", false);
    formed("reduced", "2\\\\sqrt{2}", "2\\sqrt2", true);
    formed("reduced", "2\\\\sqrt{2}", "\\sqrt8", false);
    formed("reduced", "\\\\sqrt2/2", "\\frac{\\sqrt2}{2}", true);
    formed("reduced", "\\\\sqrt2/2", "\\frac{2\\sqrt2}{4}", false);
    formed("reduced", "\\\\frac{1+\\\\sqrt5}{2}", "\\frac{\\sqrt5+1}{2}", true);
    formed("reduced", "\\\\frac{1+\\\\sqrt5}{2}", "\\frac{2+2\\sqrt5}{4}", false);
    formed("reduced", "\\\\frac{1+\\\\sqrt5}{2}", "\\frac12\\cdot\\frac{2+2\\sqrt5}{2}", false);
    formed("reduced", "\\\\pi/2", "\\frac{2\\pi}{4}", false);
    formed("reduced", "\\\\pi/2", "\\frac12\\pi", true);
    formed("reduced", "\\\\frac{1}{x+1}", "\\frac{2}{2x+2}", false);
    formed("reduced", "\\\\frac{1}{x+1}", "\\frac{x+2}{(x+1)(x+2)}", false);
    formed("reduced", "x", "\\frac{x^2}{x}", false);
    formed("reduced", "\\\\frac{x}{y}", "x/y", true);
}

static void test_factored_wants_the_factors_of_the_reference_in_any_order(void **state)
{
    (void)state;
    formed("factored", "(x+1)(x+2)", "(x+2)(x+1)", true);
    formed("factored", "(x+1)(x+2)", "(2+x)(-1-x)(-1)", true);
    formed("factored", "(x+1)(x+2)", "x^2+3x+2", false);
    formed("factored", "(x+1)^2", "(x+1)(x+1)", true);
    formed("factored", "2(x+1)(x+2)", "(2x+2)(x+2)", false);
    formed("factored", "y=(x+1)(x+2)", "y=(x+2)(x+1)", true);
    formed("factored", "2^3\\\\cdot 3", "2\\cdot 2\\cdot 2\\cdot 3", true);
    formed("factored", "2^3\\\\cdot 3", "24", false);
}

static void test_running_text_may_go_on_after_the_number_but_not_with_another_one(void **state)
{
    (void)state;
    expect("math", "{\"extract\":\"gsm8k\"}", "\"18\"", "so\n#### 18 apples", 1, NULL);
    expect("math", "{\"extract\":\"gsm8k\"}", "\"18\"", "so\n#### 18 or 19", 0, NULL);
    expect("math", "{\"extract\":\"answer_is\"}", "\"5\"", "**Answer: 5**", 1, NULL);
    expect("math", "{\"extract\":\"answer_is\"}", "\"4\"", "Answer: 4\nWait.\nAnswer: 5", 0, NULL);
    expect("math", "{\"extract\":\"last_number\"}", "\"7\"", "The range is 5-7", 1, NULL);
    expect("math", "{\"extract\":\"last_number\"}", "\"29\"", "It costs $29.00.", 1, NULL);
}

static void test_a_fallback_is_for_nothing_at_all_and_not_for_what_was_cut_off(void **state)
{
    (void)state;
    expect("math", "{\"fallback\":\"answer_is\"}", "\"5\"", "The answer is 5.", 1, NULL);
    expect("math", "{\"fallback\":\"answer_is\"}", "\"5\"", "\\boxed{6} The answer is 5.", 0, "different");
    expect("math", "{\"fallback\":\"answer_is\"}", "\"5\"", "\\boxed{ The answer is 5.", 0, "no_answer");
    expect("math", "{\"fallback\":\"answer_is\"}", "\"5\"", "<answer> The answer is 5.", 0, "no_answer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_box_is_the_answer),
        cmocka_unit_test(test_a_truncated_last_box_is_no_answer_and_no_earlier_one_stands_in),
        cmocka_unit_test(test_only_what_stands_after_the_reasoning_counts),
        cmocka_unit_test(test_without_any_box_the_last_answer_tag_counts),
        cmocka_unit_test(test_numbers_are_exact),
        cmocka_unit_test(test_thousands_are_groups_of_exactly_three),
        cmocka_unit_test(test_a_mixed_number_is_a_sum_and_a_dot_makes_a_product),
        cmocka_unit_test(test_digits_side_by_side_are_never_a_product),
        cmocka_unit_test(test_one_value_asked_is_one_value_given),
        cmocka_unit_test(test_a_list_is_a_set_and_a_tuple_has_an_order),
        cmocka_unit_test(test_a_unit_on_one_side_is_ignored_and_two_different_ones_differ),
        cmocka_unit_test(test_a_word_that_changes_the_number_is_no_unit),
        cmocka_unit_test(test_a_percent_sign_counts_by_value_unless_it_is_declared_a_unit),
        cmocka_unit_test(test_a_tolerance_is_the_decimal_that_was_written),
        cmocka_unit_test(test_a_name_is_ignored_but_another_name_is_not),
        cmocka_unit_test(test_a_number_in_another_base_keeps_its_base),
        cmocka_unit_test(test_powers_beyond_any_size_are_never_paid),
        cmocka_unit_test(test_a_value_may_be_written_in_any_way),
        cmocka_unit_test(test_strange_bytes_are_no_answer),
        cmocka_unit_test(test_a_broken_or_missing_reference_is_a_failure_and_no_score),
        cmocka_unit_test(test_any_of_a_list_of_references_is_accepted),
        cmocka_unit_test(test_detail_says_what_was_read_and_where),
        cmocka_unit_test(test_evaluated_wants_a_number_and_not_a_task),
        cmocka_unit_test(test_evaluated_wants_terms_collected_and_numbers_multiplied_out),
        cmocka_unit_test(test_evaluated_wants_no_two_signs_and_no_function_with_a_known_value),
        cmocka_unit_test(test_reduced_wants_lowest_terms_and_no_square_under_a_root),
        cmocka_unit_test(test_factored_wants_the_factors_of_the_reference_in_any_order),
        cmocka_unit_test(test_detail_says_how_the_answer_was_read_and_decided),
        cmocka_unit_test(test_a_normal_form_that_is_too_long_to_show_ends_with_an_ellipsis),
        cmocka_unit_test(test_detail_says_where_reading_stopped),
        cmocka_unit_test(test_a_reference_that_cannot_be_read_says_where),
        cmocka_unit_test(test_a_reference_without_a_value_is_broken),
        cmocka_unit_test(test_a_fallback_is_for_nothing_at_all_and_not_for_what_was_cut_off),
        cmocka_unit_test(test_running_text_may_go_on_after_the_number_but_not_with_another_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
