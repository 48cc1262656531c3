/* Groups without variance and the reserve that replaces them, in the life of a batch. */
#include "tests/unit/server/batch_life.h"

/* Groups of one member each, the last ones a reserve. */
static void begin_refilled(struct life *life, size_t groups, size_t reserve, enum batch_exhausted exhausted)
{
    uint32_t members[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    struct batch_rules rules = {.refill = true,
                                .reserve = reserve,
                                .exhausted = exhausted,
                                .deadline_us = 101 * SECOND,
                                .rollout_timeout_us = 50 * SECOND,
                                .attempts_max = 3};
    *life = (struct life){.now_us = SECOND};
    batch_init(&life->batch, &rules, members, groups);
}

static void start_refilled(struct life *life)
{
    life->actions.count = 0;
    batch_step(&life->batch, &(struct batch_event){.kind = EVENT_STARTED}, life->now_us, &life->actions);
}

static void weigh(struct life *life, uint32_t group, bool flat)
{
    life->actions.count = 0;
    struct batch_event event = {.kind = EVENT_GROUP_WEIGHED, .index = group, .flat = flat};
    batch_step(&life->batch, &event, life->now_us, &life->actions);
}

static void test_a_group_without_variance_is_dropped_and_the_next_of_the_reserve_drawn(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 4, 2, EXHAUSTED_SHORT);
    start_refilled(&life);
    assert_int_equal(life.batch.rollout_count, 2);
    score(&life, 0);
    assert_true(acted(&life, ACTION_WEIGH_GROUP, 0));
    assert_false(acted(&life, ACTION_CLOSE_GROUP, 0));
    weigh(&life, 0, true);
    assert_true(acted(&life, ACTION_DROP_GROUP, 0));
    assert_true(life.batch.groups[0].draws);
    assert_int_equal(life.batch.group_count, 2); /* not before it is on record */
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_true(acted(&life, ACTION_GROUP_DROPPED, 0));
    assert_false(acted(&life, ACTION_TELL_GROUP, 0));
    assert_true(acted(&life, ACTION_DISPATCH, 0));
    assert_int_equal(life.batch.group_count, 3);
    score(&life, 1);
    weigh(&life, 1, false);
    assert_true(acted(&life, ACTION_CLOSE_GROUP, 1));
    happen(&life, EVENT_GROUP_CLOSED, 1);
    assert_false(acted(&life, ACTION_CLOSE_BATCH, 0));
    score(&life, 2);
    weigh(&life, 2, false);
    happen(&life, EVENT_GROUP_CLOSED, 2);
    assert_true(acted(&life, ACTION_CLOSE_BATCH, 0));
    assert_int_equal(life.batch.outcome, BATCH_COMPLETE);
    assert_int_equal(life.batch.dropped_groups, 1);
    end_life(&life);
}

static void test_one_drop_is_on_its_way_to_the_record_at_a_time(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 4, 2, EXHAUSTED_SHORT);
    start_refilled(&life);
    score(&life, 0);
    score(&life, 1);
    weigh(&life, 1, true);
    assert_true(acted(&life, ACTION_DROP_GROUP, 1));
    weigh(&life, 0, true);
    assert_int_equal(life.actions.count, 0);
    happen(&life, EVENT_GROUP_CLOSED, 1);
    assert_true(acted(&life, ACTION_DROP_GROUP, 0));
    assert_int_equal(life.batch.group_count, 3);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_int_equal(life.batch.group_count, 4);
    end_life(&life);
}

static void test_without_a_reserve_left_a_group_is_dropped_delivered_or_the_end_of_the_batch(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 1, 0, EXHAUSTED_SHORT);
    start_refilled(&life);
    score(&life, 0);
    weigh(&life, 0, true);
    assert_true(acted(&life, ACTION_DROP_GROUP, 0));
    assert_false(life.batch.groups[0].draws);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_true(acted(&life, ACTION_CLOSE_BATCH, 0));
    assert_int_equal(life.batch.outcome, BATCH_COMPLETE);
    end_life(&life);

    begin_refilled(&life, 1, 0, EXHAUSTED_DELIVER);
    start_refilled(&life);
    score(&life, 0);
    weigh(&life, 0, true);
    assert_true(acted(&life, ACTION_CLOSE_GROUP, 0));
    end_life(&life);

    begin_refilled(&life, 2, 0, EXHAUSTED_FAIL);
    start_refilled(&life);
    score(&life, 0);
    happen(&life, EVENT_DISPATCHED, 1);
    weigh(&life, 0, true);
    assert_true(acted(&life, ACTION_DROP_GROUP, 0));
    assert_true(acted(&life, ACTION_STOP_SAMPLE, 1));
    assert_int_equal(life.batch.rollouts[1].end, END_CANCELLED);
    assert_int_equal(life.batch.outcome, BATCH_CANCELLED);
    end_life(&life);
}

static void test_a_draw_that_comes_after_a_cancellation_shares_its_fate(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 2, 1, EXHAUSTED_SHORT);
    start_refilled(&life);
    score(&life, 0);
    weigh(&life, 0, true);
    happen(&life, EVENT_CANCEL, 0);
    assert_int_equal(life.batch.outcome, BATCH_COMPLETE); /* nothing was on its way */
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_true(acted(&life, ACTION_STORE, 1));
    assert_int_equal(life.batch.rollouts[1].end, END_CANCELLED);
    assert_int_equal(life.batch.outcome, BATCH_CANCELLED);
    happen(&life, EVENT_STORED, 1);
    weigh(&life, 1, true);
    happen(&life, EVENT_GROUP_CLOSED, 1);
    assert_true(acted(&life, ACTION_CLOSE_BATCH, 0));
    end_life(&life);
}

static void test_nothing_is_drawn_after_the_deadline(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 3, 1, EXHAUSTED_SHORT);
    start_refilled(&life);
    score(&life, 0);
    life.now_us = 101 * SECOND;
    happen(&life, EVENT_TIME, 0);
    weigh(&life, 0, true);
    assert_true(acted(&life, ACTION_DROP_GROUP, 0));
    assert_false(life.batch.groups[0].draws);
    assert_int_equal(life.batch.outcome, BATCH_EXPIRED);
    end_life(&life);
}

static void test_a_deadline_waits_for_what_is_drawn(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 2, 1, EXHAUSTED_SHORT);
    start_refilled(&life);
    score(&life, 0);
    weigh(&life, 0, true);
    assert_int_equal(batch_next_time(&life.batch), NEVER_US);
    life.now_us = 102 * SECOND;
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_int_equal(batch_next_time(&life.batch), 101 * SECOND);
    happen(&life, EVENT_TIME, 0);
    assert_int_equal(life.batch.rollouts[1].end, END_DEADLINE);
    assert_int_equal(life.batch.outcome, BATCH_EXPIRED);
    end_life(&life);
}

static void test_a_restart_continues_behind_what_was_drawn(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 3, 2, EXHAUSTED_SHORT);
    batch_restore_drawn(&life.batch);
    batch_restore_group(&life.batch, 0);
    batch_restore_dropped(&life.batch, 0);
    start_refilled(&life);
    assert_int_equal(life.batch.group_count, 2);
    assert_int_equal(batch_peek_queued(&life.batch), 1);
    score(&life, 1);
    weigh(&life, 1, true);
    assert_true(life.batch.groups[1].draws);
    happen(&life, EVENT_GROUP_CLOSED, 1);
    assert_int_equal(batch_peek_queued(&life.batch), 2);
    end_life(&life);
}

static void test_a_restart_ends_a_batch_that_had_failed(void **state)
{
    (void)state;
    struct life life;
    begin_refilled(&life, 2, 0, EXHAUSTED_FAIL);
    batch_restore_group(&life.batch, 0);
    batch_restore_dropped(&life.batch, 0);
    start_refilled(&life);
    assert_int_equal(life.batch.rollouts[1].end, END_CANCELLED);
    assert_int_equal(life.batch.outcome, BATCH_CANCELLED);
    end_life(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_without_variance_is_dropped_and_the_next_of_the_reserve_drawn),
        cmocka_unit_test(test_one_drop_is_on_its_way_to_the_record_at_a_time),
        cmocka_unit_test(test_without_a_reserve_left_a_group_is_dropped_delivered_or_the_end_of_the_batch),
        cmocka_unit_test(test_a_draw_that_comes_after_a_cancellation_shares_its_fate),
        cmocka_unit_test(test_nothing_is_drawn_after_the_deadline),
        cmocka_unit_test(test_a_deadline_waits_for_what_is_drawn),
        cmocka_unit_test(test_a_restart_continues_behind_what_was_drawn),
        cmocka_unit_test(test_a_restart_ends_a_batch_that_had_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
