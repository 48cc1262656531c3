/* The case files, in this process. */
#include "tests/unit/verifiers/grade.h"

#include <math.h>

/* All that disagree are shown, not the first alone. Names in roots and binomials are not decided yet: what is right may
 * be refused there, what is wrong is never paid. */
static void check(const struct case_of_file *one, void *arg)
{
    struct verdict verdict = grade_case(one);

    bool agrees = verdict.kind == VERDICT_UNSCORED ? isnan(one->score) : fabs(verdict.score - one->score) <= 1e-12;
    if (one->reason && strcmp(one->reason, verdict.reason) != 0)
        agrees = false;
    if (!agrees) {
        print_error("%s (%s): %s, score %g, %s; expected score %g, %s\n", one->id, one->category,
                    verdict_kind_names[verdict.kind], verdict.score, verdict.reason, one->score,
                    one->reason ? one->reason : "any reason");
        ++*(size_t *)arg;
    }
    verdict_finish(&verdict);
}

static void test_format_and_regex_agree_with_every_case(void **state)
{
    size_t wrong = 0;

    (void)state;
    assert_true(each_case("format", check, &wrong) > 30);
    assert_int_equal(wrong, 0);
}

static void test_math_agrees_with_every_case(void **state)
{
    size_t wrong = 0;

    (void)state;
    assert_true(each_case("math", check, &wrong) > 600);
    assert_int_equal(wrong, 0);
}

static void test_choice_agrees_with_every_case(void **state)
{
    size_t wrong = 0;

    (void)state;
    assert_true(each_case("choice", check, &wrong) > 50);
    assert_int_equal(wrong, 0);
}

static void test_every_verifier_agrees_with_the_cases_in_the_file_of_its_name(void **state)
{
    size_t wrong = 0;

    (void)state;
    assert_true(each_own_file(check, &wrong) >= 20);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_and_regex_agree_with_every_case),
        cmocka_unit_test(test_math_agrees_with_every_case),
        cmocka_unit_test(test_choice_agrees_with_every_case),
        cmocka_unit_test(test_every_verifier_agrees_with_the_cases_in_the_file_of_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
