/* The score that decides whether a rollout is solved. */
#include "server/store/deciding_score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static double decide(const char *pass_verifier, const char *rewards, const char *heldout)
{
    return store_deciding_score(text_of(pass_verifier), text_of(rewards), text_of(heldout), 0.25);
}

static void test_without_a_held_out_score_the_reward_decides(void **state)
{
    (void)state;
    assert_true(decide(NULL, "{\"a\":{\"score\":1.0,\"weight\":1.0}}", "{}") == 0.25);
    assert_true(decide(NULL, NULL, NULL) == 0.25);
}

static void test_the_first_held_out_score_decides_also_where_it_is_null(void **state)
{
    (void)state;
    assert_true(decide(NULL, "{}", "{\"b\":{\"score\":0.5},\"a\":{\"score\":1.0}}") == 0.5);
    assert_true(isnan(decide(NULL, "{}", "{\"b\":{\"score\":null},\"a\":{\"score\":1.0}}")));
}

static void test_the_batch_s_verifier_decides_held_out_or_not(void **state)
{
    (void)state;
    assert_true(decide("a", "{\"a\":{\"score\":0.75,\"weight\":1.0}}", "{\"b\":{\"score\":1.0}}") == 0.75);
    assert_true(
        decide("b", "{\"a\":{\"score\":0.75,\"weight\":1.0}}", "{\"c\":{\"score\":0.0},\"b\":{\"score\":1.0}}") == 1);
    assert_true(isnan(decide("d", "{\"a\":{\"score\":0.75}}", "{\"b\":{\"score\":1.0}}")));
    assert_true(isnan(decide("d", NULL, NULL)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_held_out_score_the_reward_decides),
        cmocka_unit_test(test_the_first_held_out_score_decides_also_where_it_is_null),
        cmocka_unit_test(test_the_batch_s_verifier_decides_held_out_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
