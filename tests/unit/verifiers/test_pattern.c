#include "tests/unit/verifiers/grade.h"
#include "verifiers/text/pattern.h"

static struct pattern *create(const char *source)
{
    char problem[PATTERN_PROBLEM_BYTES];
    struct pattern *pattern = pattern_create(text_of(source), problem);

    if (!pattern)
        fail_msg("%s: %s", source, problem);
    return pattern;
}

static void test_a_pattern_that_does_not_compile_says_why_and_where(void **state)
{
    char problem[PATTERN_PROBLEM_BYTES] = "";

    (void)state;
    assert_null(pattern_create(TEXT_LITERAL("a(b"), problem));
    assert_non_null(strstr(problem, "at byte 3"));
}

static void test_matches_are_found_one_after_the_other_with_their_groups(void **state)
{
    _cleanup_(pattern_destroyp) struct pattern *pattern = create("n=(\\d+)(x)?");
    struct text text = TEXT_LITERAL("n=1x and n=23");

    (void)state;
    assert_int_equal(pattern_group_count(pattern), 2);
    assert_int_equal(pattern_match(pattern, text, 0, false), PATTERN_MATCH);
    assert_true(text_equals(pattern_group(pattern, 1), "1"));
    assert_true(text_equals(pattern_group(pattern, 2), "x"));
    assert_int_equal(pattern_match(pattern, text, 4, false), PATTERN_MATCH);
    assert_true(text_equals(pattern_group(pattern, 0), "n=23"));
    assert_null(pattern_group(pattern, 2).data);
    assert_int_equal(pattern_match(pattern, text, text.length_bytes, false), PATTERN_NO_MATCH);
    assert_int_equal(pattern_match(pattern, text, 0, true), PATTERN_NO_MATCH);
}

static void test_the_work_of_all_matches_together_is_bounded(void **state)
{
    _cleanup_(pattern_destroyp) struct pattern *pattern = create("(a*)*[bc]");
    char text[40];
    int matches = 0;

    (void)state;
    memset(text, 'a', sizeof text);
    assert_int_equal(pattern_match(pattern, (struct text){text, sizeof text}, 0, false), PATTERN_WORK_LIMIT);
    assert_int_equal(pattern_match(pattern, TEXT_LITERAL("b"), 0, false), PATTERN_WORK_LIMIT);

    _cleanup_(pattern_destroyp) struct pattern *cheap = create("a");
    while (pattern_match(cheap, (struct text){text, sizeof text}, 0, false) == PATTERN_MATCH)
        assert_true(++matches < 1000000);
}

static void test_a_text_that_is_no_utf8_is_not_searched(void **state)
{
    _cleanup_(pattern_destroyp) struct pattern *pattern = create(".");

    (void)state;
    assert_int_equal(pattern_match(pattern, TEXT_LITERAL("\xff"), 0, false), PATTERN_GAVE_UP);
    assert_true(pattern_error(pattern) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pattern_that_does_not_compile_says_why_and_where),
        cmocka_unit_test(test_matches_are_found_one_after_the_other_with_their_groups),
        cmocka_unit_test(test_the_work_of_all_matches_together_is_bounded),
        cmocka_unit_test(test_a_text_that_is_no_utf8_is_not_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
