#include "tests/unit/server/verify_pool_fixture.h"

#include "server/base/clock.h"

#include <stdlib.h>

struct loop *loop;
struct verify_pool *pool;
struct spawner spawner;
size_t outstanding;

static struct loop_timer too_long;

/* --- set-up --- */

static int begin_with(size_t text_workers)
{
    loop = loop_create();
    if (!loop || spawner_start(&spawner) < 0)
        return -1;
    pool = verify_pool_create(loop, &spawner, &(struct verify_pool_limits){WORKER_TEXT, text_workers, JOBS});
    outstanding = 0;
    return 0;
}

int pool_begin(void **state)
{
    (void)state;
    return begin_with(2);
}

int pool_begin_with_one(void **state)
{
    (void)state;
    return begin_with(1);
}

int pool_end(void **state)
{
    (void)state;
    verify_pool_destroy(pool);
    loop_destroy(loop);
    return 0;
}

/* --- frames --- */

void put_frame(struct buffer *frame, struct text body)
{
    size_t length_bytes = body.length_bytes;

    buffer_init(frame, 64 << 20);
    for (int i = 0; i < 12; i++)
        buffer_append_byte(frame, (char)(i < 4 ? length_bytes >> (8 * i) : 0));
    buffer_append(frame, body.data, body.length_bytes);
}

void put_slow_frame(struct buffer *frame)
{
    _cleanup_buffer_ struct buffer body;

    buffer_init(&body, 32 << 20);
    buffer_append_string(&body, "{\"completion\":\"");
    for (int i = 0; i < 1 << 19; i++)
        buffer_append_string(&body, "7 \\u0041 ");
    buffer_append_string(&body, "\",\"reference\":\"yes\",\"verifiers\":[{\"name\":\"exact\",\"options\":{}}]}");
    put_frame(frame, buffer_text(&body));
}

/* Of the table that the tests link. */
#define ENDLESS "{\"name\":\"endless\",\"options\":{}}"
#define QUICK "{\"name\":\"exact\",\"options\":{}}"

void put_endless_frame(struct buffer *frame)
{
    _cleanup_buffer_ struct buffer body;

    buffer_init(&body, 32 << 20);
    buffer_append_string(&body, "{\"completion\":\"");
    for (int i = 0; i < 1 << 18; i++)
        buffer_append_byte(&body, 'a');
    buffer_append_string(&body, "\",\"reference\":\"yes\",\"verifiers\":[" QUICK "," ENDLESS "," QUICK "]}");
    put_frame(frame, buffer_text(&body));
}

/* --- jobs --- */

static void give_up(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

void run_until_done(void)
{
    loop_timer_set(loop, &too_long, clock_monotonic_us() + PATIENT_US, give_up, NULL);
    if (outstanding)
        loop_run(loop, NULL, NULL);
    loop_timer_clear(loop, &too_long);
    assert_int_equal(outstanding, 0);
}

void job_done(struct verify_job *job)
{
    (void)job;
    if (--outstanding == 0)
        loop_stop(loop);
}

void submit_list(struct verify_job *job, const struct buffer *frame, size_t verifiers_asked, int64_t timeout_us)
{
    *job = (struct verify_job){.frame = frame->data,
                               .frame_bytes = frame->length_bytes,
                               .verifier_count = verifiers_asked,
                               .parts[WORKER_TEXT].timeout_us = timeout_us,
                               .done = job_done};
    assert_true(verify_submit(pool, job));
    outstanding++;
}

void submit(struct verify_job *job, const struct buffer *frame, int64_t timeout_us)
{
    submit_list(job, frame, 1, timeout_us);
}

void expect_answer(struct verify_job *job)
{
    assert_null(job->parts[WORKER_TEXT].failure_code);
    assert_non_null(strstr(job->parts[WORKER_TEXT].reply, "\"verdict\":\"correct\""));
    free(job->parts[WORKER_TEXT].reply);
}

void expect_one_more_is_answered(void)
{
    _cleanup_buffer_ struct buffer frame;
    struct verify_job job;

    put_frame(&frame, TEXT_LITERAL(EXACT));
    submit(&job, &frame, PATIENT_US);
    run_until_done();
    expect_answer(&job);
}
