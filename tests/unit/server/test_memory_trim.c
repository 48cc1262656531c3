/* Memory that is given back after many small bodies were freed: F11. The workers are in place here. */
#include "server/runtime/memory.h"

#include "server/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

static struct job *submitted;
static size_t trims;

/* In place of the workers'. */
void workers_submit_reserved(struct workers *workers, struct job *job)
{
    (void)workers;
    assert_null(submitted);
    submitted = job;
}

/* In place of the C library's. */
int malloc_trim(size_t pad_bytes);
int malloc_trim(size_t pad_bytes)
{
    assert_int_equal(pad_bytes, 0);
    trims++;
    return 1;
}

static void run_submitted(void)
{
    struct job *job = submitted;
    assert_non_null(job);
    submitted = NULL;
    job->run(job, NULL);
    job->done(job);
}

static struct memory_trim begin(void)
{
    struct memory_trim trim;
    submitted = NULL;
    trims = 0;
    memory_trim_init(&trim, NULL, NULL);
    return trim;
}

static void test_many_small_bodies_are_as_good_as_a_large_one(void **state)
{
    (void)state;
    struct memory_trim trim = begin();
    trim.resident_bytes = -(INT64_C(1) << 40); /* it has grown since */
    for (int i = 0; i < 15; i++)
        memory_freed(&trim, MIB);
    assert_null(submitted);
    memory_freed(&trim, MIB);
    run_submitted();
    assert_int_equal(trims, 1);
    assert_true(trim.resident_bytes > 0);
}

static void test_nothing_is_trimmed_where_the_process_has_not_grown(void **state)
{
    (void)state;
    struct memory_trim trim = begin();
    trim.resident_bytes = INT64_C(1) << 40;
    for (int i = 0; i < 16; i++)
        memory_freed(&trim, MIB);
    run_submitted();
    assert_int_equal(trims, 0);
}

static void test_it_is_asked_for_once_at_a_time_and_again_after_as_much(void **state)
{
    (void)state;
    struct memory_trim trim = begin();
    for (int i = 0; i < 40; i++) /* one job: the second would fail in its submission */
        memory_freed(&trim, MIB);
    run_submitted();
    for (int i = 0; i < 8; i++) /* 8 are left of the 40 */
        memory_freed(&trim, MIB);
    run_submitted();
}

static void test_a_large_body_is_trimmed_whatever_the_process_has(void **state)
{
    (void)state;
    struct memory_trim trim = begin();
    trim.resident_bytes = INT64_C(1) << 40;
    trim.loop = loop_create();
    memory_freed(&trim, 4 * MIB);
    assert_null(submitted); /* what is freed together is trimmed together */
    assert_non_null(trim.timer.place);
    trim.timer.expired(trim.timer.arg);
    run_submitted();
    assert_int_equal(trims, 1);
    loop_timer_clear(trim.loop, &trim.timer);
    loop_destroy(trim.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_small_bodies_are_as_good_as_a_large_one),
        cmocka_unit_test(test_nothing_is_trimmed_where_the_process_has_not_grown),
        cmocka_unit_test(test_it_is_asked_for_once_at_a_time_and_again_after_as_much),
        cmocka_unit_test(test_a_large_body_is_trimmed_whatever_the_process_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
