/* The pool on a real loop with a real spawner and real workers. Its runs are in test_verify_pool_runs.c. */
#include "tests/unit/server/verify_pool_fixture.h"

#include "server/base/clock.h"

#include <signal.h>
#include <stdlib.h>

static void test_a_thousand_jobs_are_answered_each_with_its_own_reply(void **state)
{
    static struct verify_job jobs[JOBS];
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    for (size_t i = 0; i < JOBS; i++)
        submit(&jobs[i], &frame, PATIENT_US);
    run_until_done();
    for (size_t i = 0; i < JOBS; i++)
        expect_answer(&jobs[i]);
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.jobs_done, JOBS);
    assert_true(counts.workers_alive == 1 || counts.workers_alive == 2); /* the second one may come too late */
    assert_int_equal(counts.crashes + counts.timeouts, 0);
}

static void test_a_worker_that_served_enough_is_replaced_and_no_job_notices(void **state)
{
    static struct verify_job jobs[JOBS];
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    for (int turn = 0; turn <= VERIFY_SERVED_MAX / JOBS; turn++) {
        for (size_t i = 0; i < JOBS; i++)
            submit(&jobs[i], &frame, PATIENT_US);
        run_until_done();
        for (size_t i = 0; i < JOBS; i++)
            expect_answer(&jobs[i]);
    }
    expect_one_more_is_answered();
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.workers_retired, 1);
    assert_int_equal(counts.crashes + counts.timeouts, 0);
}

static void test_the_queue_is_bounded(void **state)
{
    static struct verify_job jobs[JOBS + 1];
    _cleanup_buffer_ struct buffer frame;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    for (size_t i = 0; i < JOBS; i++) /* no worker is there yet: all of them wait */
        submit(&jobs[i], &frame, PATIENT_US);
    assert_false(verify_pool_has_room(pool));
    jobs[JOBS] = (struct verify_job){.frame = frame.data, .frame_bytes = frame.length_bytes, .done = job_done};
    assert_false(verify_submit(pool, &jobs[JOBS]));
    run_until_done();
    for (size_t i = 0; i < JOBS; i++)
        free(jobs[i].parts[WORKER_TEXT].reply);
}

static void test_a_job_past_its_deadline_costs_its_worker_and_nobody_else(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;
    struct verify_job job;

    (void)state;
    put_slow_frame(&frame);
    submit(&job, &frame, 1);
    run_until_done();
    assert_null(job.parts[WORKER_TEXT].reply);
    assert_string_equal(job.parts[WORKER_TEXT].failure_code, "verifier_timeout");
    assert_int_equal(job.parts[WORKER_TEXT].attempts, 1);
    expect_one_more_is_answered();
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.timeouts, 1);
}

static void test_a_large_job_passes_in_parts(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job job;

    (void)state;
    put_slow_frame(&frame);
    submit(&job, &frame, PATIENT_US);
    run_until_done();
    assert_null(job.parts[WORKER_TEXT].failure_code);
    assert_non_null(strstr(job.parts[WORKER_TEXT].reply, "\"verdict\":\"incorrect\""));
    free(job.parts[WORKER_TEXT].reply);
}

static void test_a_job_that_kills_its_worker_twice_has_crashed(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;
    struct verify_job job;

    (void)state;
    put_frame(&frame, TEXT_LITERAL("garbage"));
    submit(&job, &frame, PATIENT_US);
    run_until_done();
    assert_null(job.parts[WORKER_TEXT].reply);
    assert_string_equal(job.parts[WORKER_TEXT].failure_code, "verifier_crashed");
    assert_int_equal(job.parts[WORKER_TEXT].attempts, 2);
    expect_one_more_is_answered();
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.crashes, 2);
}

static void test_a_job_that_kills_its_worker_takes_none_of_its_company_along(void **state)
{
    _cleanup_buffer_ struct buffer frame, deadly;
    struct verify_job before, killer, behind;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    put_frame(&deadly, TEXT_LITERAL("garbage"));
    submit(&before, &frame, PATIENT_US);
    submit(&killer, &deadly, PATIENT_US);
    submit(&behind, &frame, PATIENT_US);
    run_until_done();
    assert_string_equal(killer.parts[WORKER_TEXT].failure_code, "verifier_crashed");
    assert_int_equal(before.parts[WORKER_TEXT].attempts, 1);
    assert_int_equal(behind.parts[WORKER_TEXT].attempts, 1);
    expect_answer(&before);
    expect_answer(&behind);
}

/* --- what one verifier does to its worker costs its verdict alone --- */

static void submit_three(struct verify_job *job, const struct buffer *frame, int64_t timeout_us)
{
    submit_list(job, frame, 3, timeout_us);
}

static void expect_all_but_the_second(struct verify_job *job)
{
    json_t *reply = json_loadb(job->parts[WORKER_TEXT].reply ? job->parts[WORKER_TEXT].reply : "",
                               job->parts[WORKER_TEXT].reply_bytes, 0, NULL);
    const json_t *verdicts = json_object_get(reply, "verdicts");

    assert_null(job->parts[WORKER_TEXT].failure_code);
    assert_int_equal(json_array_size(verdicts), 3);
    for (size_t i = 0; i < 3; i++) {
        const char *verdict = json_string_value(json_object_get(json_array_get(verdicts, i), "verdict"));
        assert_true(i == 1 ? verdict == NULL : verdict && strcmp(verdict, "incorrect") == 0);
    }
    json_decref(reply);
    free(job->parts[WORKER_TEXT].reply);
}

static void test_a_verifier_that_does_not_end_costs_its_own_verdict(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job job;

    (void)state;
    put_endless_frame(&frame);
    submit_three(&job, &frame, 2 * US_PER_S);
    run_until_done();
    expect_all_but_the_second(&job);
    assert_int_equal(job.parts[WORKER_TEXT].timed_out, 2);
    assert_int_equal(job.parts[WORKER_TEXT].crashed, 0);
    expect_one_more_is_answered();
}

static struct loop_timer watching;
static size_t killed;

/* Kills the worker each time that it is seen at the second verifier. */
static void kill_at_the_second(void *arg)
{
    const struct verify_worker *worker = &pool->workers[0]; /* the only run's */

    if (worker->job_count && worker->page && verify_worker_grading(worker) == 1) {
        killed += spawner_kill_worker(&pool->spawner, worker->id) == 0;
    }
    loop_timer_set(loop, &watching, clock_monotonic_us() + US_PER_MS, kill_at_the_second, arg);
}

static void test_a_verifier_at_which_the_worker_dies_twice_costs_its_own_verdict(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;
    struct verify_job job;

    (void)state;
    killed = 0;
    put_endless_frame(&frame);
    submit_three(&job, &frame, 60 * US_PER_S);
    kill_at_the_second(NULL);
    run_until_done();
    loop_timer_clear(loop, &watching);
    expect_all_but_the_second(&job);
    assert_int_equal(job.parts[WORKER_TEXT].crashed, 2);
    assert_int_equal(job.parts[WORKER_TEXT].timed_out, 0);
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.crashes, 2);
    assert_true(killed >= 2);
}

struct seen {
    int index;
    bool timed_out;
    size_t lost;
    size_t judged;
};

static void see_lost(void *arg, const struct verify_job *job, int index, bool timed_out)
{
    struct seen *seen = arg;

    assert_non_null(job->frame);
    seen->index = index;
    seen->timed_out = timed_out;
    seen->lost++;
}

static void see_judged(void *arg, const struct verify_job *job)
{
    struct seen *seen = arg;

    (void)job;
    seen->judged++;
}

static void test_the_observer_is_told_of_each_lost_verdict_and_each_end(void **state)
{
    _cleanup_buffer_ struct buffer endless, garbage;
    struct verify_job slow, deadly;
    struct seen seen = {0};

    (void)state;
    verify_pool_observe(pool, &(struct verify_observer){&seen, see_lost, see_judged});
    put_endless_frame(&endless);
    put_frame(&garbage, TEXT_LITERAL("garbage"));
    submit_three(&slow, &endless, 2 * US_PER_S);
    run_until_done();
    expect_all_but_the_second(&slow);
    assert_int_equal(seen.lost, 1);
    assert_int_equal(seen.index, 1);
    assert_true(seen.timed_out);
    assert_int_equal(seen.judged, 1);
    submit(&deadly, &garbage, PATIENT_US);
    run_until_done();
    assert_int_equal(seen.lost, 2);
    assert_int_equal(seen.index, -1);
    assert_false(seen.timed_out);
    assert_int_equal(seen.judged, 2);
}

/* --- jobs that are cancelled, and a spawner that is lost --- */

static struct verify_job *to_be_cancelled;

static void cancel_another(struct verify_job *job)
{
    verify_cancel_job(pool, to_be_cancelled);
    outstanding--;
    job_done(job);
}

static void test_a_job_s_end_may_cancel_the_next_of_its_company(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job first, second, third;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    submit(&first, &frame, PATIENT_US);
    submit(&second, &frame, PATIENT_US);
    submit(&third, &frame, PATIENT_US);
    first.done = cancel_another;
    to_be_cancelled = &second;
    run_until_done();
    expect_answer(&first);
    assert_null(second.parts[WORKER_TEXT].reply);
    expect_answer(&third);
    assert_int_equal(third.parts[WORKER_TEXT].attempts, 1);
    expect_one_more_is_answered();
}

static void test_a_cancelled_job_is_forgotten_wherever_it_is(void **state)
{
    _cleanup_buffer_ struct buffer frame, slow;
    struct verify_job running, waiting, again;

    (void)state;
    expect_one_more_is_answered(); /* now there are workers */
    put_slow_frame(&slow);
    put_frame(&frame, TEXT_LITERAL(EXACT));
    submit(&running, &slow, PATIENT_US);
    submit(&again, &slow, PATIENT_US);
    submit(&waiting, &frame, PATIENT_US);
    verify_cancel_job(pool, &running);
    verify_cancel_job(pool, &waiting);
    verify_cancel_job(pool, &again);
    verify_cancel_job(pool, &again);
    outstanding = 0;
    expect_one_more_is_answered();
}

static void test_a_lost_spawner_is_replaced_and_its_jobs_are_judged(void **state)
{
    static struct verify_job jobs[10];
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;

    (void)state;
    expect_one_more_is_answered();
    put_frame(&frame, TEXT_LITERAL(EXACT));
    assert_int_equal(kill(spawner.pid, SIGKILL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
        submit(&jobs[i], &frame, PATIENT_US);
    run_until_done();
    for (size_t i = 0; i < ARRAY_LENGTH(jobs); i++)
        expect_answer(&jobs[i]);
    expect_one_more_is_answered();
    verify_pool_count(pool, &counts);
    assert_true(counts.spawners_started >= 1);
}

int main(int argc, char **argv)
{
    spawner_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_thousand_jobs_are_answered_each_with_its_own_reply, pool_begin,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_a_worker_that_served_enough_is_replaced_and_no_job_notices,
                                        pool_begin_with_one, pool_end),
        cmocka_unit_test_setup_teardown(test_the_queue_is_bounded, pool_begin, pool_end),
        cmocka_unit_test_setup_teardown(test_a_job_past_its_deadline_costs_its_worker_and_nobody_else, pool_begin,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_a_large_job_passes_in_parts, pool_begin, pool_end),
        cmocka_unit_test_setup_teardown(test_a_job_that_kills_its_worker_twice_has_crashed, pool_begin, pool_end),
        cmocka_unit_test_setup_teardown(test_a_job_that_kills_its_worker_takes_none_of_its_company_along,
                                        pool_begin_with_one, pool_end),
        cmocka_unit_test_setup_teardown(test_a_job_s_end_may_cancel_the_next_of_its_company, pool_begin_with_one,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_a_verifier_that_does_not_end_costs_its_own_verdict, pool_begin, pool_end),
        cmocka_unit_test_setup_teardown(test_a_verifier_at_which_the_worker_dies_twice_costs_its_own_verdict,
                                        pool_begin_with_one, pool_end),
        cmocka_unit_test_setup_teardown(test_the_observer_is_told_of_each_lost_verdict_and_each_end, pool_begin,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_a_cancelled_job_is_forgotten_wherever_it_is, pool_begin, pool_end),
        cmocka_unit_test_setup_teardown(test_a_lost_spawner_is_replaced_and_its_jobs_are_judged, pool_begin, pool_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
