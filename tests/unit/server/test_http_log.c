#include "server/base/clock.h"
#include "server/http/log_private.h"
#include "tests/unit/base/cmocka_all.h"

static unsigned take(struct log_budget *budget, unsigned wanted, int64_t now_us)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < wanted; i++)
        taken += log_budget_take(budget, now_us);
    return taken;
}

/* F25 */
static void test_a_flood_is_cut_and_counted(void **state)
{
    (void)state;
    struct log_budget budget = {0};
    int64_t now_us = 1000 * US_PER_S;
    assert_int_equal(take(&budget, 5000, now_us), 1000);
    assert_int_equal(budget.left_out, 4000);
    assert_int_equal(take(&budget, 5000, now_us + US_PER_S), 10);
    assert_int_equal(budget.left_out, 4000 + 4990);
}

static void test_a_quiet_log_may_write_a_burst_again_and_no_more(void **state)
{
    (void)state;
    struct log_budget budget = {0};
    assert_int_equal(take(&budget, 1000, US_PER_S), 1000);
    assert_int_equal(take(&budget, 1, US_PER_S + US_PER_S / 20), 0);
    assert_int_equal(take(&budget, 2000, 3600 * US_PER_S), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flood_is_cut_and_counted),
        cmocka_unit_test(test_a_quiet_log_may_write_a_burst_again_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
