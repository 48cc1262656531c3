/* The case files, in this process. */
#include "tests/unit/verifiers/judge.h"

/* What this version of math decides. In every other category a right answer may be undecided, but a wrong one is never
 * paid. */
static bool is_decided(const char *category)
{
    static const char *const decided[] = {"integer", "fraction", "tolerance", "unit",        "percent", "text", "base",
                                          "ratio",   "time",     "big",       "latex_noise", "extract", "hack"};
    for (size_t i = 0; i < ARRAY_LENGTH(decided); i++)
        if (strcmp(category, decided[i]) == 0)
            return true;
    return false;
}

static void check(const struct case_of_file *one, void *arg)
{
    char *options = json_dumps(one->options, 0);
    char *reference = one->reference ? json_dumps(one->reference, JSON_ENCODE_ANY) : NULL;
    struct verdict verdict = judge_text(one->name, options, reference, one->completion);
    bool all = strcmp(one->name, "math") != 0 || is_decided(one->category);

    (void)arg;
    if (verdict.kind == VERDICT_UNSCORED || (all ? verdict.score != one->score : verdict.score > one->score))
        fail_msg("%s (%s): score %g, %s; expected %g", one->id, one->category, verdict.score, verdict.reason,
                 one->score);
    verdict_finish(&verdict);
    free(options);
    free(reference);
}

static void test_format_and_regex_agree_with_every_case(void **state)
{
    (void)state;
    assert_true(each_case("format", check, NULL) > 30);
}

static void test_math_pays_no_wrong_case_and_refuses_no_right_one_that_it_decides(void **state)
{
    (void)state;
    assert_true(each_case("math", check, NULL) > 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_and_regex_agree_with_every_case),
        cmocka_unit_test(test_math_pays_no_wrong_case_and_refuses_no_right_one_that_it_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
