/* The life of a batch with a made-up clock: no engine, no store, no time passes. */
#include "tests/unit/server/batch_life.h"

static void begin_life(struct life *life, const uint32_t *members, size_t groups)
{
    struct batch_rules rules = {.deadline_us = 101 * SECOND,
                                .rollout_timeout_us = 50 * SECOND,
                                .backoff_min_us = 100 * US_PER_MS,
                                .backoff_max_us = 5 * SECOND,
                                .attempts_max = 3,
                                .jitter_seed = 7};
    *life = (struct life){.now_us = SECOND};
    batch_init(&life->batch, &rules, members, groups);
    batch_step(&life->batch, &(struct batch_event){.kind = EVENT_STARTED}, life->now_us, &life->actions);
}

static void sample_fails(struct life *life, uint32_t index, bool retryable, bool resample, int64_t retry_after_us)
{
    struct batch_event event = {.kind = EVENT_SAMPLE_FAILED, .index = index};
    event.failure.retryable = retryable;
    event.failure.resample = resample;
    event.failure.retry_after_us = retry_after_us;
    life->actions.count = 0;
    batch_step(&life->batch, &event, life->now_us, &life->actions);
}

static void test_a_batch_of_two_groups_is_scored_closed_and_answered_in_this_order(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){2, 1}, 2);
    assert_true(acted(&life, ACTION_DISPATCH, 0));
    assert_int_equal(batch_peek_queued(&life.batch), 0);
    score(&life, 0);
    assert_false(acted(&life, ACTION_CLOSE_GROUP, 0));
    score(&life, 1);
    assert_true(acted(&life, ACTION_CLOSE_GROUP, 0));
    score(&life, 2);
    assert_true(acted(&life, ACTION_CLOSE_GROUP, 1));
    happen(&life, EVENT_GROUP_CLOSED, 1);
    assert_true(acted(&life, ACTION_TELL_GROUP, 1));
    assert_int_equal(life.actions.count, 1);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_true(acted(&life, ACTION_TELL_GROUP, 0));
    assert_true(acted(&life, ACTION_CLOSE_BATCH, 0));
    assert_false(batch_is_terminal(&life.batch));
    happen(&life, EVENT_BATCH_CLOSED, 0);
    assert_true(acted(&life, ACTION_ANSWER, 0));
    assert_int_equal(life.batch.state, BATCH_COMPLETE);
    end_life(&life);
}

static void test_an_aborted_sample_is_queued_as_if_it_had_not_been_sent(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){2}, 1);
    happen(&life, EVENT_DISPATCHED, 0);
    life.now_us += 40 * SECOND;
    happen(&life, EVENT_ABORTED, 0);
    assert_true(acted(&life, ACTION_STOP_SAMPLE, 0));
    assert_true(acted(&life, ACTION_DISPATCH, 0));
    assert_int_equal(life.batch.rollouts[0].phase, PHASE_QUEUED);
    assert_int_equal(batch_peek_queued(&life.batch), 1);
    assert_int_equal(life.batch.rollouts[0].attempts, 1);
    assert_int_equal(batch_time_left(&life.batch, 0, life.now_us), 50 * SECOND);
    end_life(&life);
}

static void test_an_abort_takes_no_attempt_and_no_longer_pause(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    for (int i = 0; i < 5; i++) {
        happen(&life, EVENT_DISPATCHED, 0);
        happen(&life, EVENT_ABORTED, 0);
    }
    for (int attempt = 1; attempt <= 3; attempt++) { /* attempts_max */
        happen(&life, EVENT_DISPATCHED, 0);
        sample_fails(&life, 0, true, false, 0);
        assert_int_equal(life.batch.rollouts[0].phase, attempt < 3 ? PHASE_BACKOFF : PHASE_STORING);
        if (attempt < 3)
            life.now_us = batch_next_time(&life.batch);
        happen(&life, EVENT_TIME, 0);
    }
    assert_int_equal(life.batch.rollouts[0].attempts, 8);
    end_life(&life);
}

static void test_only_what_is_being_sampled_can_be_aborted(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    happen(&life, EVENT_ABORTED, 0);
    assert_int_equal(life.actions.count, 0);
    happen(&life, EVENT_DISPATCHED, 0);
    happen(&life, EVENT_SAMPLED, 0);
    happen(&life, EVENT_ABORTED, 0);
    assert_int_equal(life.actions.count, 0);
    assert_int_equal(life.batch.rollouts[0].phase, PHASE_VERIFYING);
    end_life(&life);
}

static void test_members_of_begun_groups_come_first_when_only_they_may_go(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){2, 2, 2}, 3);
    assert_int_equal(batch_peek_begun(&life.batch), -1);
    assert_int_equal(batch_count_owed(&life.batch), 0);
    happen(&life, EVENT_DISPATCHED, 0);
    sample_fails(&life, 0, true, false, 0);
    happen(&life, EVENT_DISPATCHED, 1);
    assert_int_equal(batch_count_owed(&life.batch), 1); /* the one that pauses */
    assert_int_equal(batch_peek_begun(&life.batch), -1);
    life.now_us = batch_next_time(&life.batch);
    happen(&life, EVENT_TIME, 0);
    assert_int_equal(batch_peek_queued(&life.batch), 2);
    assert_int_equal(batch_peek_begun(&life.batch), 0);
    assert_int_equal(batch_peek_queued(&life.batch), 0);
    happen(&life, EVENT_DISPATCHED, 0);
    assert_int_equal(batch_count_owed(&life.batch), 0);
    for (int64_t next = 2; next < 6; next++) { /* the others kept their order */
        assert_int_equal(batch_peek_queued(&life.batch), next);
        happen(&life, EVENT_DISPATCHED, (uint32_t)next);
    }
    end_life(&life);
}

static void test_a_retryable_failure_waits_longer_each_time_and_ends_after_the_attempts(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    int64_t waited_us[2];
    for (int i = 0; i < 2; i++) {
        happen(&life, EVENT_DISPATCHED, 0);
        sample_fails(&life, 0, true, false, 0);
        assert_int_equal(life.batch.rollouts[0].phase, PHASE_BACKOFF);
        waited_us[i] = batch_next_time(&life.batch) - life.now_us;
        life.now_us += waited_us[i];
        happen(&life, EVENT_TIME, 0);
        assert_true(acted(&life, ACTION_DISPATCH, 0));
        assert_int_equal(batch_peek_queued(&life.batch), 0);
    }
    assert_in_range(waited_us[0], 50 * US_PER_MS, 100 * US_PER_MS);
    assert_in_range(waited_us[1], 100 * US_PER_MS, 200 * US_PER_MS);
    happen(&life, EVENT_DISPATCHED, 0);
    sample_fails(&life, 0, true, false, 0);
    assert_true(acted(&life, ACTION_STORE, 0));
    assert_int_equal(life.batch.rollouts[0].end, END_FAILED);
    assert_int_equal(life.batch.rollouts[0].attempts, 3);
    end_life(&life);
}

static void test_a_dispatch_that_reached_no_engine_uses_up_no_attempt(void **state)
{
    (void)state;
    struct life life;
    struct batch_event nothing_sent = {.kind = EVENT_DISPATCHED, .index = 0, .sent = 0};
    begin_life(&life, (uint32_t[]){1}, 1);
    batch_step(&life.batch, &nothing_sent, life.now_us, &life.actions);
    sample_fails(&life, 0, false, false, 0);
    assert_int_equal(life.batch.rollouts[0].phase, PHASE_STORING);
    assert_int_equal(life.batch.rollouts[0].end, END_FAILED);
    assert_int_equal(life.batch.rollouts[0].attempts, 0);
    end_life(&life);
}

static void test_a_connection_that_was_not_taken_was_no_attempt(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    for (int i = 0; i < 10; i++) { /* more than attempts_max */
        struct batch_event refused = {.kind = EVENT_SAMPLE_FAILED, .index = 0, .failure = {true, true, false, 0}};
        happen(&life, EVENT_DISPATCHED, 0);
        batch_step(&life.batch, &refused, life.now_us, &life.actions);
        assert_int_equal(life.batch.rollouts[0].phase, PHASE_BACKOFF);
        assert_int_equal(life.batch.rollouts[0].attempts, 0);
        life.now_us = batch_next_time(&life.batch);
        happen(&life, EVENT_TIME, 0);
    }
    end_life(&life);
}

static void test_a_refused_whole_answer_draws_another_seed_and_a_cut_one_does_not(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    happen(&life, EVENT_DISPATCHED, 0);
    sample_fails(&life, 0, true, false, 0);
    assert_int_equal(life.batch.rollouts[0].resample, 0);
    life.now_us = batch_next_time(&life.batch);
    happen(&life, EVENT_TIME, 0);
    happen(&life, EVENT_DISPATCHED, 0);
    sample_fails(&life, 0, true, true, 0);
    assert_int_equal(life.batch.rollouts[0].resample, 1);
    end_life(&life);
}

static void test_retry_after_is_honoured_unless_it_reaches_beyond_the_deadline(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){2}, 1);
    happen(&life, EVENT_DISPATCHED, 0);
    sample_fails(&life, 0, true, false, 7 * SECOND);
    assert_int_equal(batch_next_time(&life.batch), life.now_us + 7 * SECOND);
    happen(&life, EVENT_DISPATCHED, 1);
    sample_fails(&life, 1, true, false, 200 * SECOND);
    assert_true(acted(&life, ACTION_STORE, 1));
    assert_int_equal(life.batch.rollouts[1].end, END_FAILED);
    end_life(&life);
}

static void test_a_deadline_that_passes_during_a_retry_ends_the_rollout_with_code_deadline(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){3}, 1);
    score(&life, 0);
    life.now_us = 100 * SECOND;
    happen(&life, EVENT_DISPATCHED, 1);
    sample_fails(&life, 1, true, false, 0);
    assert_int_equal(life.batch.rollouts[1].phase, PHASE_BACKOFF);
    life.now_us = 101 * SECOND;
    happen(&life, EVENT_TIME, 0);
    assert_false(acted(&life, ACTION_STORE, 0));
    assert_true(acted(&life, ACTION_STORE, 1));
    assert_true(acted(&life, ACTION_STORE, 2));
    assert_int_equal(life.batch.rollouts[1].end, END_DEADLINE);
    happen(&life, EVENT_STORED, 1);
    happen(&life, EVENT_STORED, 2);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    happen(&life, EVENT_BATCH_CLOSED, 0);
    assert_int_equal(life.batch.state, BATCH_EXPIRED);
    end_life(&life);
}

static void test_a_cancellation_stops_what_runs_and_keeps_what_is_done(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){4}, 1);
    score(&life, 0);
    happen(&life, EVENT_DISPATCHED, 1);
    happen(&life, EVENT_DISPATCHED, 2);
    happen(&life, EVENT_SAMPLED, 2);
    happen(&life, EVENT_CANCEL, 0);
    assert_true(acted(&life, ACTION_STOP_SAMPLE, 1));
    assert_true(acted(&life, ACTION_STOP_VERIFY, 2));
    for (uint32_t i = 1; i < 4; i++) {
        assert_true(acted(&life, ACTION_STORE, i));
        assert_int_equal(life.batch.rollouts[i].end, END_CANCELLED);
    }
    assert_int_equal(life.batch.rollouts[0].end, END_SCORED);
    assert_int_equal(batch_peek_queued(&life.batch), -1);
    assert_int_equal(batch_next_time(&life.batch), NEVER_US);
    end_life(&life);
}

static void
test_a_sample_that_fails_after_the_deadline_failed_by_it_even_if_its_news_come_before_the_timer_s(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    happen(&life, EVENT_DISPATCHED, 0);
    life.now_us = 101 * SECOND;
    sample_fails(&life, 0, true, false, 0);
    assert_true(acted(&life, ACTION_STORE, 0));
    assert_false(acted(&life, ACTION_STOP_SAMPLE, 0));
    assert_int_equal(life.batch.rollouts[0].end, END_DEADLINE);
    happen(&life, EVENT_TIME, 0);
    assert_int_equal(life.actions.count, 0);
    happen(&life, EVENT_STORED, 0);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    happen(&life, EVENT_BATCH_CLOSED, 0);
    assert_int_equal(life.batch.state, BATCH_EXPIRED);
    end_life(&life);
}

static void test_an_answer_that_comes_after_the_deadline_changes_nothing(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    happen(&life, EVENT_DISPATCHED, 0);
    life.now_us = 101 * SECOND;
    happen(&life, EVENT_TIME, 0);
    happen(&life, EVENT_SAMPLED, 0);
    assert_int_equal(life.actions.count, 0);
    assert_int_equal(life.batch.rollouts[0].end, END_DEADLINE);
    sample_fails(&life, 0, true, true, 0);
    assert_int_equal(life.actions.count, 0);
    end_life(&life);
}

static void test_a_deadline_after_everything_was_stored_leaves_the_batch_complete(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    score(&life, 0);
    assert_int_equal(batch_next_time(&life.batch), NEVER_US);
    life.now_us = 200 * SECOND;
    happen(&life, EVENT_TIME, 0);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    happen(&life, EVENT_BATCH_CLOSED, 0);
    assert_int_equal(life.batch.state, BATCH_COMPLETE);
    end_life(&life);
}

static void test_after_a_restart_only_the_missing_rollouts_are_queued_and_ready_groups_close(void **state)
{
    (void)state;
    struct life life = {.now_us = SECOND};
    struct batch_rules rules = {.deadline_us = 101 * SECOND, .rollout_timeout_us = SECOND, .attempts_max = 3};
    batch_init(&life.batch, &rules, (uint32_t[]){2, 2, 2}, 3);
    batch_restore_rollout(&life.batch, 0);
    batch_restore_rollout(&life.batch, 2);
    batch_restore_rollout(&life.batch, 3);
    batch_restore_group(&life.batch, 2);
    happen(&life, EVENT_STARTED, 0);
    assert_true(acted(&life, ACTION_CLOSE_GROUP, 1));
    assert_false(acted(&life, ACTION_CLOSE_GROUP, 0));
    assert_false(acted(&life, ACTION_CLOSE_GROUP, 2));
    assert_int_equal(batch_peek_queued(&life.batch), 1);
    score(&life, 1);
    assert_int_equal(batch_peek_queued(&life.batch), -1);
    happen(&life, EVENT_GROUP_CLOSED, 1);
    happen(&life, EVENT_GROUP_CLOSED, 1);
    assert_int_equal(life.batch.state, BATCH_RUNNING);
    happen(&life, EVENT_GROUP_CLOSED, 0);
    assert_true(acted(&life, ACTION_CLOSE_BATCH, 0));
    end_life(&life);
}

static void test_a_sample_with_nothing_to_verify_is_stored_at_once(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){1}, 1);
    happen(&life, EVENT_DISPATCHED, 0);
    life.actions.count = 0;
    batch_step(&life.batch, &(struct batch_event){.kind = EVENT_SAMPLED, .nothing_to_verify = true}, life.now_us,
               &life.actions);
    assert_true(acted(&life, ACTION_STORE, 0));
    assert_false(acted(&life, ACTION_VERIFY, 0));
    end_life(&life);
}

static void test_the_time_left_is_bounded_by_the_first_dispatch_and_by_the_deadline(void **state)
{
    (void)state;
    struct life life;
    begin_life(&life, (uint32_t[]){2}, 1);
    assert_int_equal(batch_time_left(&life.batch, 0, life.now_us), 50 * SECOND);
    happen(&life, EVENT_DISPATCHED, 0);
    life.now_us += 20 * SECOND;
    assert_int_equal(batch_time_left(&life.batch, 0, life.now_us), 30 * SECOND);
    assert_int_equal(batch_time_left(&life.batch, 1, 90 * SECOND), 11 * SECOND);
    assert_int_equal(batch_time_left(&life.batch, 1, 200 * SECOND), 0);
    end_life(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_of_two_groups_is_scored_closed_and_answered_in_this_order),
        cmocka_unit_test(test_an_aborted_sample_is_queued_as_if_it_had_not_been_sent),
        cmocka_unit_test(test_an_abort_takes_no_attempt_and_no_longer_pause),
        cmocka_unit_test(test_only_what_is_being_sampled_can_be_aborted),
        cmocka_unit_test(test_members_of_begun_groups_come_first_when_only_they_may_go),
        cmocka_unit_test(test_a_retryable_failure_waits_longer_each_time_and_ends_after_the_attempts),
        cmocka_unit_test(test_a_dispatch_that_reached_no_engine_uses_up_no_attempt),
        cmocka_unit_test(test_a_connection_that_was_not_taken_was_no_attempt),
        cmocka_unit_test(test_a_refused_whole_answer_draws_another_seed_and_a_cut_one_does_not),
        cmocka_unit_test(test_retry_after_is_honoured_unless_it_reaches_beyond_the_deadline),
        cmocka_unit_test(test_a_deadline_that_passes_during_a_retry_ends_the_rollout_with_code_deadline),
        cmocka_unit_test(test_a_cancellation_stops_what_runs_and_keeps_what_is_done),
        cmocka_unit_test(
            test_a_sample_that_fails_after_the_deadline_failed_by_it_even_if_its_news_come_before_the_timer_s),
        cmocka_unit_test(test_an_answer_that_comes_after_the_deadline_changes_nothing),
        cmocka_unit_test(test_a_deadline_after_everything_was_stored_leaves_the_batch_complete),
        cmocka_unit_test(test_after_a_restart_only_the_missing_rollouts_are_queued_and_ready_groups_close),
        cmocka_unit_test(test_a_sample_with_nothing_to_verify_is_stored_at_once),
        cmocka_unit_test(test_the_time_left_is_bounded_by_the_first_dispatch_and_by_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
