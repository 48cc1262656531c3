/* The runs of a pool, and one pool after the other, on a real loop with a real spawner and real workers. */
#include "tests/unit/server/verify_pool_fixture.h"

#include "server/base/clock.h"
#include "server/verify/spec.h"

#include <stdio.h>
#include <stdlib.h>

#define SPARES 8 /* of text workers */

/* --- F16: no process judges for two runs --- */

static uint32_t judged_by; /* the id of the process, as the last job ended */

static void note_process(struct verify_job *job)
{
    for (size_t i = 0; i < pool->worker_count; i++)
        if (pool->workers[i].last_given == pool->given && pool->workers[i].flow)
            judged_by = pool->workers[i].id;
    job_done(job);
}

static uint32_t process_of_a_job(const char *run)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job job = {
        .verifier_count = 1, .parts[WORKER_TEXT].timeout_us = PATIENT_US, .run = run, .done = note_process};

    put_frame(&frame, TEXT_LITERAL(EXACT));
    job.frame = frame.data;
    job.frame_bytes = frame.length_bytes;
    judged_by = 0;
    assert_true(verify_submit(pool, &job));
    outstanding++;
    run_until_done();
    expect_answer(&job);
    assert_true(judged_by > 0);
    return judged_by;
}

static void test_a_run_keeps_its_process_and_no_other_run_gets_it(void **state)
{
    struct verify_pool_counts counts;
    uint32_t first, second, none;

    (void)state;
    first = process_of_a_job("first");
    second = process_of_a_job("second");
    none = process_of_a_job(NULL);
    assert_true(first != second && first != none && second != none);
    for (int i = 0; i < 10; i++) {
        char name[] = "first"; /* runs are told apart by their names, not by where these stand */
        assert_int_equal(process_of_a_job(name), first);
        assert_int_equal(process_of_a_job("second"), second);
        assert_int_equal(process_of_a_job(NULL), none);
    }
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.workers_retired, 0);
}

static void test_more_runs_than_places_get_a_fresh_process_each(void **state)
{
    static uint32_t seen[3 * (SPARES + 1)];
    struct verify_pool_counts counts;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(seen); i++) {
        char run[16];
        snprintf(run, sizeof run, "run-%zu", i);
        seen[i] = process_of_a_job(run);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(seen[k], seen[i]);
    }
    verify_pool_count(pool, &counts);
    assert_true(counts.workers_alive <= SPARES + 1 && counts.workers_retired >= ARRAY_LENGTH(seen) - SPARES - 1);
}

static void test_jobs_of_many_runs_at_once_are_all_answered_and_never_mixed(void **state)
{
    static struct verify_job jobs[JOBS];
    static char runs[64][16];
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    for (size_t i = 0; i < ARRAY_LENGTH(runs); i++)
        snprintf(runs[i], sizeof runs[i], "run-%zu", i);
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct verify_job){.frame = frame.data,
                                      .frame_bytes = frame.length_bytes,
                                      .verifier_count = 1,
                                      .parts[WORKER_TEXT].timeout_us = PATIENT_US,
                                      .run = runs[i % ARRAY_LENGTH(runs)],
                                      .done = job_done};
        assert_true(verify_submit(pool, &jobs[i]));
        outstanding++;
    }
    run_until_done();
    for (size_t i = 0; i < JOBS; i++)
        expect_answer(&jobs[i]);
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.jobs_done, JOBS);
    assert_true(counts.workers_started >= ARRAY_LENGTH(runs)); /* each run had one of its own */
    assert_int_equal(counts.crashes + counts.timeouts, 0);
}

/* --- workers are shared by runs --- */

static size_t ended_of_hog;
static size_t hog_before_other; /* how many of the one run had ended as the other one's last did */

static void hog_done(struct verify_job *job)
{
    ended_of_hog++;
    job_done(job);
}

static void other_done(struct verify_job *job)
{
    hog_before_other = ended_of_hog;
    job_done(job);
}

static void submit_in(struct verify_job *job, const struct buffer *frame, const char *run, enum verify_lane lane,
                      void (*done)(struct verify_job *job))
{
    *job = (struct verify_job){.frame = frame->data,
                               .frame_bytes = frame->length_bytes,
                               .verifier_count = 1,
                               .parts[WORKER_TEXT].timeout_us = PATIENT_US,
                               .run = run,
                               .lane = lane,
                               .done = done};
    assert_true(verify_submit(pool, job));
    outstanding++;
}

static void submit_for(struct verify_job *job, const struct buffer *frame, const char *run,
                       void (*done)(struct verify_job *job))
{
    submit_in(job, frame, run, VERIFY_BULK, done);
}

#define HOGS 40
#define OTHERS 3

static void submit_hogs_then_others(void)
{
    static struct verify_job hogs[HOGS], others[OTHERS];
    _cleanup_buffer_ struct buffer slow;

    put_slow_frame(&slow);
    ended_of_hog = hog_before_other = 0;
    for (size_t i = 0; i < HOGS; i++)
        submit_for(&hogs[i], &slow, "hog", hog_done);
    for (size_t i = 0; i < OTHERS; i++)
        submit_for(&others[i], &slow, "other", other_done);
    run_until_done();
    for (size_t i = 0; i < HOGS; i++)
        free(hogs[i].parts[WORKER_TEXT].reply);
    for (size_t i = 0; i < OTHERS; i++)
        free(others[i].parts[WORKER_TEXT].reply);
}

static void test_a_long_queue_of_one_run_holds_another_run_up_for_its_share(void **state)
{
    (void)state;
    submit_hogs_then_others();
    /* They take turns by the time that they used; a job may take a few times as long as another one. */
    assert_true(hog_before_other <= HOGS / 2);
}

/* Those that nobody waits for were first, and have most of the queue. */
static void test_the_spare_lane_comes_behind_all_others(void **state)
{
    static struct verify_job spares[HOGS], others[OTHERS];
    _cleanup_buffer_ struct buffer slow;

    (void)state;
    put_slow_frame(&slow);
    ended_of_hog = hog_before_other = 0;
    for (size_t i = 0; i < HOGS; i++)
        submit_in(&spares[i], &slow, "other", VERIFY_SPARE, hog_done);
    for (size_t i = 0; i < OTHERS; i++)
        submit_in(&others[i], &slow, "other", VERIFY_BULK, other_done);
    run_until_done();
    assert_true(hog_before_other <= 1); /* the one that the worker had */
    for (size_t i = 0; i < HOGS; i++)
        free(spares[i].parts[WORKER_TEXT].reply);
    for (size_t i = 0; i < OTHERS; i++)
        free(others[i].parts[WORKER_TEXT].reply);
}

static void watch_spares(struct verify_job *job)
{
    struct verify_share share;

    for (size_t place = 0; verify_pool_share(pool, place, &share); place++)
        assert_true(share.busy <= 1);
    job_done(job);
}

static void test_one_of_two_workers_is_never_of_the_spare_lane(void **state)
{
    static struct verify_job spares[HOGS];
    _cleanup_buffer_ struct buffer slow;

    (void)state;
    put_slow_frame(&slow);
    for (size_t i = 0; i < HOGS; i++)
        submit_in(&spares[i], &slow, "alone", VERIFY_SPARE, watch_spares);
    run_until_done();
    for (size_t i = 0; i < HOGS; i++)
        free(spares[i].parts[WORKER_TEXT].reply);
}

/* --- one pool after the other --- */

static struct verify_pool *code;

static int begin_two(void **state)
{
    struct spawner another;

    if (pool_begin(state) < 0 || spawner_start(&another) < 0)
        return -1;
    code = verify_pool_create(loop, &another, &(struct verify_pool_limits){WORKER_CODE, 1, JOBS, {.uid = 65534}});
    verify_pool_join(pool, code);
    return 0;
}

static int end_two(void **state)
{
    verify_pool_destroy(code);
    return pool_end(state);
}

static const char *verdict_of(const struct verify_part *part, size_t index)
{
    json_t *reply = json_loadb(part->reply ? part->reply : "", part->reply_bytes, 0, NULL);
    const json_t *verdict = json_object_get(json_array_get(json_object_get(reply, "verdicts"), index), "verdict");
    const char *found = NULL;

    for (int kind = 0; kind < VERDICT_KINDS; kind++)
        if (text_equals(json_text_of(verdict), verdict_kind_names[kind]))
            found = verdict_kind_names[kind];
    json_decref(reply);
    return found;
}

static void test_each_verifier_of_a_job_is_asked_in_its_own_pool(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;
    struct verify_job job;

    (void)state;
    put_endless_frame(&frame);
    job = (struct verify_job){.frame = frame.data,
                              .frame_bytes = frame.length_bytes,
                              .verifier_count = 3,
                              .programs = 2,
                              .parts = {{.timeout_us = PATIENT_US}, {.timeout_us = US_PER_S}},
                              .done = job_done};
    assert_true(verify_submit(pool, &job));
    outstanding++;
    run_until_done();
    assert_string_equal(verdict_of(&job.parts[WORKER_TEXT], 0), "incorrect");
    assert_null(verdict_of(&job.parts[WORKER_TEXT], 1));
    assert_string_equal(verdict_of(&job.parts[WORKER_TEXT], 2), "incorrect");
    assert_null(job.parts[WORKER_TEXT].failure_code);
    assert_int_equal(job.parts[WORKER_TEXT].timed_out, 0);
    assert_string_equal(job.parts[WORKER_CODE].failure_code, "verifier_timeout");
    assert_int_equal(job.parts[WORKER_CODE].timed_out, 2);
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.jobs_done, 1);
    assert_int_equal(counts.timeouts, 0);
    verify_pool_count(code, &counts);
    assert_int_equal(counts.jobs_done, 1);
    assert_int_equal(counts.timeouts, 1);
    verify_job_finish(&job);
}

static void test_a_job_without_texts_goes_to_the_code_workers_alone(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_pool_counts counts;
    struct verify_job job;

    (void)state;
    put_frame(&frame, TEXT_LITERAL(EXACT));
    job = (struct verify_job){.frame = frame.data,
                              .frame_bytes = frame.length_bytes,
                              .verifier_count = 1,
                              .programs = 1,
                              .parts[WORKER_CODE].timeout_us = PATIENT_US,
                              .done = job_done};
    verify_pool_count(code, &counts);
    assert_int_equal(counts.workers_alive, 0);
    assert_true(verify_submit(pool, &job));
    outstanding++;
    run_until_done();
    assert_string_equal(verdict_of(&job.parts[WORKER_CODE], 0), "correct");
    assert_null(job.parts[WORKER_TEXT].reply);
    verify_pool_count(pool, &counts);
    assert_int_equal(counts.jobs_done, 0);
    verify_job_finish(&job);
}

static void test_a_job_is_cancelled_in_whichever_pool_it_is(void **state)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job judged, waiting;

    (void)state;
    put_endless_frame(&frame);
    judged = (struct verify_job){.frame = frame.data,
                                 .frame_bytes = frame.length_bytes,
                                 .verifier_count = 3,
                                 .programs = 7,
                                 .parts[WORKER_CODE].timeout_us = PATIENT_US,
                                 .done = job_done};
    waiting = judged;
    assert_true(verify_submit(pool, &judged) && verify_submit(pool, &waiting));
    verify_cancel_job(pool, &waiting);
    verify_cancel_job(pool, &judged);
    expect_one_more_is_answered();
}

int main(int argc, char **argv)
{
    spawner_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_run_keeps_its_process_and_no_other_run_gets_it, pool_begin_with_one,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_more_runs_than_places_get_a_fresh_process_each, pool_begin_with_one,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_jobs_of_many_runs_at_once_are_all_answered_and_never_mixed, pool_begin,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_a_long_queue_of_one_run_holds_another_run_up_for_its_share,
                                        pool_begin_with_one, pool_end),
        cmocka_unit_test_setup_teardown(test_a_long_queue_of_one_run_holds_another_run_up_for_its_share, pool_begin,
                                        pool_end),
        cmocka_unit_test_setup_teardown(test_the_spare_lane_comes_behind_all_others, pool_begin_with_one, pool_end),
        cmocka_unit_test_setup_teardown(test_one_of_two_workers_is_never_of_the_spare_lane, pool_begin, pool_end),
        cmocka_unit_test_setup_teardown(test_each_verifier_of_a_job_is_asked_in_its_own_pool, begin_two, end_two),
        cmocka_unit_test_setup_teardown(test_a_job_without_texts_goes_to_the_code_workers_alone, begin_two, end_two),
        cmocka_unit_test_setup_teardown(test_a_job_is_cancelled_in_whichever_pool_it_is, begin_two, end_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
