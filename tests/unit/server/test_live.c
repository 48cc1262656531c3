/* Live batches and what is known of their runs. */
#include "tests/unit/server/live_fixture.h"

#include "server/base/clock.h"
#include "server/batches/resume.h"

static size_t runs_when_resumed;
static int64_t revision_when_resumed;
static int64_t incarnation_when_resumed;

static void declare(const char *run, int64_t revision, int64_t incarnation)
{
    runs_declared(server.batches, &(struct store_declare_policy){
                                      .run = text_of(run), .current_revision = revision, .incarnation = incarnation});
}

static void note_runs(void)
{
    const struct live_batch *live = server.batches->first;
    runs_when_resumed = HASH_COUNT(server.batches->runs);
    revision_when_resumed = live ? live->run->revision : -1;
    incarnation_when_resumed = live ? live->run->incarnation : -1;
}

static void cancel_all(void *arg)
{
    (void)arg;
    declare("declared-when-ready", 5, 0);
    note_runs();
    server_cancel_all();
}

static int64_t flush(void *arg)
{
    (void)arg;
    workers_flush(server.workers);
    if (!server.batches->resumed || server.batches->count > 0)
        return NEVER_US;
    loop_stop(server.loop);
    return 0;
}

/* Until the unfinished batches were read back and cancelled. */
static void run_to_the_end(void)
{
    loop_run(server.loop, flush, NULL);
}

/* --- tests ------------------------------------------------------------------------------------------------ */

static void test_a_declaration_during_the_read_back_is_newer_than_the_record(void **state)
{
    (void)state;
    leave_unfinished("arith", NULL);
    server_begin(16);
    resume_unfinished(server.batches, cancel_all, NULL);
    declare("arith", 9, 3); /* the worker may have read the run before, or reads it now: the record of it says 1 */
    run_to_the_end();
    assert_int_equal(revision_when_resumed, 9);
    assert_int_equal(incarnation_when_resumed, 3);
    server_end();
}

static void test_a_run_that_nobody_declared_meanwhile_is_as_the_record_says(void **state)
{
    (void)state;
    leave_unfinished("arith", NULL);
    server_begin(16);
    resume_unfinished(server.batches, cancel_all, NULL);
    run_to_the_end();
    assert_int_equal(revision_when_resumed, 1);
    assert_int_equal(incarnation_when_resumed, 0);
    server_end();
}

static void test_only_runs_with_live_batches_are_kept_in_memory(void **state)
{
    (void)state;
    leave_unfinished("one", NULL);
    leave_unfinished("one", NULL);
    leave_unfinished("another", NULL);
    server_begin(16);
    resume_unfinished(server.batches, cancel_all, NULL);
    declare("declared-meanwhile", 4, 0);
    assert_int_equal(HASH_COUNT(server.batches->runs), 1);
    run_to_the_end();
    assert_int_equal(runs_when_resumed, 2);
    assert_int_equal(HASH_COUNT(server.batches->runs), 0);
    server_end();
}

int main(void)
{
#define LIVE_TEST(name) cmocka_unit_test_setup_teardown(name, with_record, without_record)
    const struct CMUnitTest tests[] = {
        LIVE_TEST(test_a_declaration_during_the_read_back_is_newer_than_the_record),
        LIVE_TEST(test_a_run_that_nobody_declared_meanwhile_is_as_the_record_says),
        LIVE_TEST(test_only_runs_with_live_batches_are_kept_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
