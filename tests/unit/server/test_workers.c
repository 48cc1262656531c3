/* Lanes of the workers: F17. The workers have no record here. */
#include "server/runtime/workers.h"

#include "server/base/clock.h"
#include "server/store/store.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* In place of the store's. */
struct store_reader *store_reader_create(struct store *store, char message[STORE_MESSAGE_BYTES])
{
    (void)store;
    message[0] = '\0';
    return (struct store_reader *)message;
}

void store_reader_destroy(struct store_reader *reader)
{
    (void)reader;
}

#define JOBS 8

struct held_job {
    struct job job;
    sem_t *go;      /* NULL: it ends at once */
    sem_t *started; /* NULL: nobody waits */
};

static struct loop *loop;
static struct workers *workers;
static size_t done;
static size_t wanted;

static void run_held(struct job *job, struct store_reader *reader)
{
    const struct held_job *held = (const struct held_job *)job;
    (void)reader;
    if (held->started)
        sem_post(held->started);
    if (held->go)
        sem_wait(held->go);
}

static void count_done(struct job *job)
{
    (void)job;
    if (++done == wanted)
        loop_stop(loop);
}

static void submit(struct held_job *held, enum workers_lane lane)
{
    held->job = (struct job){.lane = lane, .run = run_held, .done = count_done};
    workers_submit_reserved(workers, &held->job);
    workers_flush(workers);
}

static void begin(size_t threads, size_t readers)
{
    loop = loop_create();
    workers = workers_create(loop, NULL, &(struct workers_limits){threads, readers, JOBS});
    assert_non_null(workers);
    done = 0;
}

static void run_until(size_t count)
{
    wanted = count;
    loop_run(loop, NULL, NULL);
    assert_int_equal(done, count);
}

static void end(void)
{
    workers_destroy(workers);
    loop_destroy(loop);
}

static void test_a_small_request_is_run_while_everything_else_is_held(void **state)
{
    (void)state;
    static const enum workers_lane bulk[] = {LANE_RECORD, LANE_HEAVY, LANE_BATCH};
    struct held_job held[3 * JOBS];
    struct held_job small = {0};
    sem_t go;
    sem_init(&go, 0, 0);
    begin(2, 1);
    for (size_t i = 0; i < 3 * JOBS; i++) {
        held[i] = (struct held_job){.go = &go};
        submit(&held[i], bulk[i % 3]);
    }
    submit(&small, LANE_REQUEST);
    run_until(1); /* and none of the others can have ended */
    for (size_t i = 0; i < 3 * JOBS; i++)
        sem_post(&go);
    run_until(3 * JOBS + 1);
    end();
}

static void test_reads_of_the_record_take_no_more_than_their_threads(void **state)
{
    (void)state;
    struct held_job held[JOBS];
    struct held_job heavy = {0};
    sem_t go;
    sem_t started;
    int count;
    sem_init(&go, 0, 0);
    sem_init(&started, 0, 0);
    begin(2, 1);
    for (size_t i = 0; i < JOBS; i++) {
        held[i] = (struct held_job){.go = &go, .started = &started};
        submit(&held[i], LANE_RECORD);
    }
    submit(&heavy, LANE_HEAVY);
    run_until(1); /* the heavy one */
    sem_getvalue(&started, &count);
    assert_true(count <= 1);
    for (size_t i = 0; i < JOBS; i++)
        sem_post(&go);
    run_until(JOBS + 1);
    end();
}

static void test_one_report_runs_at_a_time_and_reads_of_the_record_beside_it(void **state)
{
    (void)state;
    struct held_job held[JOBS];
    struct held_job read = {0};
    sem_t go;
    sem_t started;
    int count;
    sem_init(&go, 0, 0);
    sem_init(&started, 0, 0);
    begin(2, 1);
    for (size_t i = 0; i < JOBS; i++) {
        held[i] = (struct held_job){.go = &go, .started = &started};
        submit(&held[i], LANE_REPORT);
    }
    submit(&read, LANE_RECORD);
    run_until(1); /* the read */
    sem_getvalue(&started, &count);
    assert_true(count <= 1);
    for (size_t i = 0; i < JOBS; i++)
        sem_post(&go);
    run_until(JOBS + 1);
    end();
}

static void test_a_full_lane_refuses_and_leaves_the_others_open(void **state)
{
    (void)state;
    struct held_job held[JOBS + 2];
    struct held_job small = {0};
    sem_t go;
    size_t taken = 0;
    sem_init(&go, 0, 0);
    begin(2, 1);
    for (size_t i = 0; i < JOBS + 2; i++) {
        held[i] = (struct held_job){.job = {.lane = LANE_RECORD, .run = run_held, .done = count_done}, .go = &go};
        taken += workers_submit(workers, &held[i].job);
    }
    assert_true(taken < JOBS + 2);
    small.job = (struct job){.lane = LANE_REQUEST, .run = run_held, .done = count_done};
    assert_true(workers_submit(workers, &small.job));
    workers_flush(workers);
    for (size_t i = 0; i < taken; i++)
        sem_post(&go);
    run_until(taken + 1);
    end();
}

static void test_one_thread_runs_every_lane(void **state)
{
    (void)state;
    struct held_job jobs[LANE_COUNT] = {0};
    begin(1, 0);
    for (size_t i = 0; i < LANE_COUNT; i++)
        submit(&jobs[i], (enum workers_lane)i);
    run_until(LANE_COUNT);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_request_is_run_while_everything_else_is_held),
        cmocka_unit_test(test_reads_of_the_record_take_no_more_than_their_threads),
        cmocka_unit_test(test_one_report_runs_at_a_time_and_reads_of_the_record_beside_it),
        cmocka_unit_test(test_a_full_lane_refuses_and_leaves_the_others_open),
        cmocka_unit_test(test_one_thread_runs_every_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
