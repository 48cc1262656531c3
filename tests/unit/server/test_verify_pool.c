/* The pool on a real loop with a real spawner and real workers. */
#include "server/verify/pool_private.h"

#include "server/base/clock.h"
#include "server/verify/spec.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define JOBS 1000
#define SPARES 8                    /* of text workers */
#define PATIENT_US (300 * US_PER_S) /* a busy machine is no failure */

static struct loop *loop;
static struct verify_pool *pool;
static struct spawner spawner;
static struct loop_timer too_long;
static size_t outstanding;

static void give_up(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void run_until_done(void)
{
    loop_timer_set(loop, &too_long, clock_monotonic_us() + PATIENT_US, give_up, NULL);
    if (outstanding)
        loop_run(loop, NULL, NULL);
    loop_timer_clear(loop, &too_long);
    assert_int_equal(outstanding, 0);
}

static void job_done(struct verify_job *job)
{
    (void)job;
    if (--outstanding == 0)
        loop_stop(loop);
}

static int begin_with(size_t text_workers)
{
    loop = loop_create();
    if (!loop || spawner_start(&spawner) < 0)
        return -1;
    pool = verify_pool_create(loop, &spawner, &(struct verify_pool_limits){WORKER_TEXT, text_workers, JOBS});
    outstanding = 0;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with(2);
}

/* Jobs that are submitted before it is there are given to it together. */
static int begin_with_one(void **state)
{
    (void)state;
    return begin_with(1);
}

static int end(void **state)
{
    (void)state;
    verify_pool_destroy(pool);
    loop_destroy(loop);
    return 0;
}

static void put_frame(struct buffer *frame, struct text body)
{
    size_t length_bytes = body.length_bytes;

    buffer_init(frame, 64 << 20);
    for (int i = 0; i < 12; i++)
        buffer_append_byte(frame, (char)(i < 4 ? length_bytes >> (8 * i) : 0));
    buffer_append(frame, body.data, body.length_bytes);
}

#define EXACT "{\"completion\":\"yes\",\"reference\":\"yes\",\"verifiers\":[{\"name\":\"exact\",\"options\":{}}]}"

static void submit_list(struct verify_job *job, const struct buffer *frame, size_t verifiers_asked, int64_t timeout_us)
{
    *job = (struct verify_job){.frame = frame->data,
                               .frame_bytes = frame->length_bytes,
                               .verifier_count = verifiers_asked,
                               .parts[WORKER_TEXT].timeout_us = timeout_us,
                               .done = job_done};
    assert_true(verify_submit(pool, job));
    outstanding++;
}

static void submit(struct verify_job *job, const struct buffer *frame, int64_t timeout_us)
{
    submit_list(job, frame, 1, timeout_us);
}

static void expect_answer(struct verify_job *job)
{
    assert_null(job->parts[WORKER_TEXT].failure_code);
    assert_non_null(strstr(job->parts[WORKER_TEXT].reply, "\"verdict\":\"correct\""));
    free(job->parts[WORKER_TEXT].reply);
}

static void expect_one_more_is_answered(void)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job job;

    put_frame(&frame, TEXT_LITERAL(EXACT));
    submit(&job, &frame, PATIENT_US);
    run_until_done();
    expect_answer(&job);
}

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

/* Long enough to be read for milliseconds. */
static void put_slow_frame(struct buffer *frame)
{
    _cleanup_buffer_ struct buffer body;

    buffer_init(&body, 32 << 20);
    buffer_append_string(&body, "{\"completion\":\"");
    for (int i = 0; i < 1 << 19; i++)
        buffer_append_string(&body, "7 \\u0041 ");
    buffer_append_string(&body, "\",\"reference\":\"yes\",\"verifiers\":[{\"name\":\"exact\",\"options\":{}}]}");
    put_frame(frame, buffer_text(&body));
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

/* Of the table that this test links. */
#define ENDLESS "{\"name\":\"endless\",\"options\":{}}"
#define QUICK "{\"name\":\"exact\",\"options\":{}}"

static void put_endless_frame(struct buffer *frame)
{
    _cleanup_buffer_ struct buffer body;

    buffer_init(&body, 32 << 20);
    buffer_append_string(&body, "{\"completion\":\"");
    for (int i = 0; i < 1 << 18; i++)
        buffer_append_byte(&body, 'a');
    buffer_append_string(&body, "\",\"reference\":\"yes\",\"verifiers\":[" QUICK "," ENDLESS "," QUICK "]}");
    put_frame(frame, buffer_text(&body));
}

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

    if (worker->job_count && worker->page && verify_worker_judging(worker) == 1) {
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

static void submit_for(struct verify_job *job, const struct buffer *frame, const char *run,
                       void (*done)(struct verify_job *job))
{
    *job = (struct verify_job){.frame = frame->data,
                               .frame_bytes = frame->length_bytes,
                               .verifier_count = 1,
                               .parts[WORKER_TEXT].timeout_us = PATIENT_US,
                               .run = run,
                               .lane = VERIFY_BULK,
                               .done = done};
    assert_true(verify_submit(pool, job));
    outstanding++;
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

/* --- one pool after the other --- */

static struct verify_pool *code;

static int begin_two(void **state)
{
    struct spawner another;

    if (begin(state) < 0 || spawner_start(&another) < 0)
        return -1;
    code = verify_pool_create(loop, &another, &(struct verify_pool_limits){WORKER_CODE, 1, JOBS, {.uid = 65534}});
    verify_pool_join(pool, code);
    return 0;
}

static int end_two(void **state)
{
    verify_pool_destroy(code);
    return end(state);
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
        cmocka_unit_test_setup_teardown(test_a_thousand_jobs_are_answered_each_with_its_own_reply, begin, end),
        cmocka_unit_test_setup_teardown(test_a_worker_that_served_enough_is_replaced_and_no_job_notices, begin_with_one,
                                        end),
        cmocka_unit_test_setup_teardown(test_the_queue_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(test_a_job_past_its_deadline_costs_its_worker_and_nobody_else, begin, end),
        cmocka_unit_test_setup_teardown(test_a_large_job_passes_in_parts, begin, end),
        cmocka_unit_test_setup_teardown(test_a_job_that_kills_its_worker_twice_has_crashed, begin, end),
        cmocka_unit_test_setup_teardown(test_a_job_that_kills_its_worker_takes_none_of_its_company_along,
                                        begin_with_one, end),
        cmocka_unit_test_setup_teardown(test_a_job_s_end_may_cancel_the_next_of_its_company, begin_with_one, end),
        cmocka_unit_test_setup_teardown(test_a_verifier_that_does_not_end_costs_its_own_verdict, begin, end),
        cmocka_unit_test_setup_teardown(test_a_verifier_at_which_the_worker_dies_twice_costs_its_own_verdict,
                                        begin_with_one, end),
        cmocka_unit_test_setup_teardown(test_a_run_keeps_its_process_and_no_other_run_gets_it, begin_with_one, end),
        cmocka_unit_test_setup_teardown(test_more_runs_than_places_get_a_fresh_process_each, begin_with_one, end),
        cmocka_unit_test_setup_teardown(test_jobs_of_many_runs_at_once_are_all_answered_and_never_mixed, begin, end),
        cmocka_unit_test_setup_teardown(test_a_long_queue_of_one_run_holds_another_run_up_for_its_share, begin_with_one,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_long_queue_of_one_run_holds_another_run_up_for_its_share, begin, end),
        cmocka_unit_test_setup_teardown(test_each_verifier_of_a_job_is_asked_in_its_own_pool, begin_two, end_two),
        cmocka_unit_test_setup_teardown(test_a_job_without_texts_goes_to_the_code_workers_alone, begin_two, end_two),
        cmocka_unit_test_setup_teardown(test_a_job_is_cancelled_in_whichever_pool_it_is, begin_two, end_two),
        cmocka_unit_test_setup_teardown(test_the_observer_is_told_of_each_lost_verdict_and_each_end, begin, end),
        cmocka_unit_test_setup_teardown(test_a_cancelled_job_is_forgotten_wherever_it_is, begin, end),
        cmocka_unit_test_setup_teardown(test_a_lost_spawner_is_replaced_and_its_jobs_are_judged, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
