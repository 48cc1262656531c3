/* Dispatch of a run while its weights are updated, with a made-up clock. */
#include "server/batches/weight_hold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BEGUN_US 1000
#define DEADLINE_US 9000

static struct weight_hold begin(enum hold_mode mode)
{
    struct weight_hold hold;
    hold_begin(&hold, mode, DEADLINE_US);
    return hold;
}

static void test_wait_sends_the_rest_of_begun_groups_until_nothing_is_in_flight_or_owed(void **state)
{
    (void)state;
    struct weight_hold hold = begin(HOLD_WAIT);
    assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_BEGUN_GROUPS);
    assert_false(hold_look(&hold, 3, 0));
    assert_false(hold_look(&hold, 0, 2));
    assert_false(hold_may_commit(&hold));
    assert_true(hold_look(&hold, 0, 0));
    assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_NOTHING);
    assert_true(hold_may_commit(&hold));
}

static void test_abort_sends_nothing_and_waits_for_what_is_in_flight_only(void **state)
{
    (void)state;
    struct weight_hold hold = begin(HOLD_ABORT);
    assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_NOTHING);
    assert_false(hold_look(&hold, 1, 5));
    assert_true(hold_look(&hold, 0, 5));
}

static void test_straddle_is_quiet_at_once_and_what_ends_then_is_mixed(void **state)
{
    (void)state;
    struct weight_hold hold = begin(HOLD_STRADDLE);
    assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_NOTHING);
    assert_true(hold_look(&hold, 7, 7));
    assert_true(hold_mixes(&hold));
    hold_end(&hold);
    assert_false(hold_mixes(&hold));
}

static void test_samples_that_wait_and_abort_let_end_are_not_mixed(void **state)
{
    (void)state;
    struct weight_hold wait = begin(HOLD_WAIT);
    struct weight_hold abort = begin(HOLD_ABORT);
    assert_false(hold_mixes(&wait));
    assert_false(hold_mixes(&abort));
}

static void test_it_becomes_quiet_once(void **state)
{
    (void)state;
    struct weight_hold hold = begin(HOLD_WAIT);
    assert_true(hold_look(&hold, 0, 0));
    assert_false(hold_look(&hold, 0, 0));
    assert_false(hold_look(&hold, 1, 1));
    assert_int_equal(hold.phase, HOLD_QUIET);
}

static void test_a_restored_hold_sends_nothing_in_any_mode(void **state)
{
    (void)state;
    for (enum hold_mode mode = HOLD_WAIT; mode <= HOLD_STRADDLE; mode++) {
        struct weight_hold hold;
        hold_restore(&hold, mode, DEADLINE_US);
        assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_NOTHING);
        assert_true(hold_may_commit(&hold));
    }
}

static void test_the_deadline_ends_a_hold_in_every_mode_and_phase_once(void **state)
{
    (void)state;
    for (enum hold_mode mode = HOLD_WAIT; mode <= HOLD_STRADDLE; mode++)
        for (int quiet = 0; quiet < 2; quiet++) {
            struct weight_hold hold = begin(mode);
            if (quiet)
                hold_look(&hold, 0, 0);
            assert_false(hold_expire(&hold, DEADLINE_US - 1));
            assert_int_not_equal(hold_allows(&hold, DEADLINE_US - 1), ALLOWS_ALL);
            assert_int_equal(hold_allows(&hold, DEADLINE_US), ALLOWS_ALL);
            assert_true(hold_expire(&hold, DEADLINE_US));
            assert_false(hold_expire(&hold, DEADLINE_US));
            assert_false(hold_look(&hold, 0, 0));
            assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_ALL);
        }
}

static void test_an_ended_hold_does_not_expire(void **state)
{
    (void)state;
    struct weight_hold hold = begin(HOLD_WAIT);
    hold_end(&hold);
    assert_int_equal(hold_allows(&hold, BEGUN_US), ALLOWS_ALL);
    assert_false(hold_expire(&hold, DEADLINE_US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait_sends_the_rest_of_begun_groups_until_nothing_is_in_flight_or_owed),
        cmocka_unit_test(test_abort_sends_nothing_and_waits_for_what_is_in_flight_only),
        cmocka_unit_test(test_straddle_is_quiet_at_once_and_what_ends_then_is_mixed),
        cmocka_unit_test(test_samples_that_wait_and_abort_let_end_are_not_mixed),
        cmocka_unit_test(test_it_becomes_quiet_once),
        cmocka_unit_test(test_a_restored_hold_sends_nothing_in_any_mode),
        cmocka_unit_test(test_the_deadline_ends_a_hold_in_every_mode_and_phase_once),
        cmocka_unit_test(test_an_ended_hold_does_not_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
