/* The end of a search: the name that was meant, then the list. */
#include "server/base/nearest.h"
#include "tests/unit/base/cmocka_all.h"

static const char *const presets[] = {"grpo", "dapo", "rloo", NULL};

static void advice_is(const char *name, const char *const *list, const char *expected)
{
    char advice[ADVICE_BYTES];
    names_advise_list(text_of(name), list, advice);
    assert_string_equal(advice, expected);
}

static void test_a_typing_error_names_what_was_meant_and_then_everything(void **state)
{
    (void)state;
    advice_is("grop", presets, "did you mean \"grpo\"? known are: grpo, dapo, rloo");
}

static void test_a_name_that_is_like_nothing_gets_the_list_alone(void **state)
{
    (void)state;
    advice_is("supervised", presets, "known are: grpo, dapo, rloo");
    advice_is("", presets, "known are: grpo, dapo, rloo");
}

static void test_the_name_that_another_service_has_for_it_comes_before_the_nearest(void **state)
{
    static const char *const group[] = {"task", "reference", "sampling", NULL};
    static const char *const sampling[] = {"n", "max_tokens", "stop", NULL};
    (void)state;
    advice_is("answer", group, "did you mean \"reference\"? known are: task, reference, sampling");
    advice_is("ground_truth", group, "did you mean \"reference\"? known are: task, reference, sampling");
    advice_is("max_completion_tokens", sampling, "did you mean \"max_tokens\"? known are: n, max_tokens, stop");
}

/* F26 */
static void test_case_and_marks_between_words_are_no_errors(void **state)
{
    static const char *const names[] = {"math", "token_mean", NULL};
    (void)state;
    advice_is("GRPO", presets, "did you mean \"grpo\"? known are: grpo, dapo, rloo");
    advice_is("Token-Mean", names, "did you mean \"token_mean\"? known are: math, token_mean");
}

static void test_half_of_a_name_and_more_than_it_name_it(void **state)
{
    static const char *const models[] = {"qwen-7b", "demo-1b", "multiply", NULL};
    (void)state;
    advice_is("demo", models, "did you mean \"demo-1b\"? known are: qwen-7b, demo-1b, multiply");
    advice_is("demo-1b-instruct", models, "did you mean \"demo-1b\"? known are: qwen-7b, demo-1b, multiply");
    advice_is("mult", models, "did you mean \"multiply\"? known are: qwen-7b, demo-1b, multiply");
    advice_is("demo-1bis-instruct", models, "known are: qwen-7b, demo-1b, multiply");
}

static void test_a_field_of_an_inner_object_is_named_with_its_object(void **state)
{
    static const char *const batch[] = {"seed", "sampling", "objective", NULL};
    static const char *const sampling[] = {"n", "max_tokens", "engine_options", NULL};
    (void)state;
    advice_is("temperature", batch, "did you mean \"sampling\"? known are: seed, sampling, objective");
    advice_is("beta", batch, "did you mean \"objective\"? known are: seed, sampling, objective");
    advice_is("min_tokens", sampling, "did you mean \"engine_options\"? known are: n, max_tokens, engine_options");
}

static void test_a_foreign_name_means_nothing_where_its_meaning_is_not_known(void **state)
{
    (void)state;
    advice_is("answer", presets, "known are: grpo, dapo, rloo");
}

static void test_a_name_of_a_megabyte_or_with_a_nul_is_no_trouble(void **state)
{
    static char name[1 << 20];
    char advice[ADVICE_BYTES];
    (void)state;
    memset(name, 'x', sizeof(name));
    names_advise_list((struct text){name, sizeof(name)}, presets, advice);
    assert_string_equal(advice, "known are: grpo, dapo, rloo");
    names_advise_list((struct text){"grp\0o", 5}, presets, advice);
    assert_non_null(strstr(advice, "known are: grpo"));
}

static void test_a_list_beyond_the_room_is_cut(void **state)
{
    static const char *many[201];
    char advice[ADVICE_BYTES];
    (void)state;
    for (size_t i = 0; i < 200; i++)
        many[i] = "a_name_of_some_length";
    names_advise_list(TEXT_LITERAL("zzzz"), many, advice);
    assert_int_equal(strlen(advice), ADVICE_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_typing_error_names_what_was_meant_and_then_everything),
        cmocka_unit_test(test_a_name_that_is_like_nothing_gets_the_list_alone),
        cmocka_unit_test(test_the_name_that_another_service_has_for_it_comes_before_the_nearest),
        cmocka_unit_test(test_case_and_marks_between_words_are_no_errors),
        cmocka_unit_test(test_half_of_a_name_and_more_than_it_name_it),
        cmocka_unit_test(test_a_field_of_an_inner_object_is_named_with_its_object),
        cmocka_unit_test(test_a_foreign_name_means_nothing_where_its_meaning_is_not_known),
        cmocka_unit_test(test_a_name_of_a_megabyte_or_with_a_nul_is_no_trouble),
        cmocka_unit_test(test_a_list_beyond_the_room_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
