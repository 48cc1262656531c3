/* Batches that are to be read back or closed while the record cannot be read. */
#include "tests/unit/server/live_fixture.h"

#include "server/base/clock.h"
#include "server/batches/resume.h"
#include "server/batches/weight_update.h"

#include <stdatomic.h>

#define FAILURES 3
#define PAUSES_US (700 * US_PER_MS) /* after those: 100, 200 and 400 ms */

enum store_status __real_store_read_batch_members(struct store_reader *reader, struct text batch_id,
                                                  struct store_members *ret_members);
enum store_status __wrap_store_read_batch_members(struct store_reader *reader, struct text batch_id,
                                                  struct store_members *ret_members);
enum store_status __real_store_read_group_members(struct store_reader *reader, struct text group_id,
                                                  struct store_members *ret_members);
enum store_status __wrap_store_read_group_members(struct store_reader *reader, struct text group_id,
                                                  struct store_members *ret_members);
enum store_status __real_store_unfinished_batches(struct store_reader *reader, struct store_batches *ret_batches);
enum store_status __wrap_store_unfinished_batches(struct store_reader *reader, struct store_batches *ret_batches);
enum store_status __real_store_read_open_updates(struct store_reader *reader, struct store_runs *ret_runs);
enum store_status __wrap_store_read_open_updates(struct store_reader *reader, struct store_runs *ret_runs);

struct reading {
    unsigned failures; /* that are still to come */
    unsigned tries;
};

static struct reading batches_read;
static struct reading groups_read;
static struct reading lists_read;
static struct reading updates_read;
static struct reading *failing;
static atomic_uint lists_refused; /* the loop looks at it while the worker reads */
static struct job marker;         /* comes behind the reading of the list, on the only worker */

static bool fails(struct reading *reading)
{
    reading->tries++;
    return reading->failures > 0 && reading->failures--;
}

enum store_status __wrap_store_read_batch_members(struct store_reader *reader, struct text batch_id,
                                                  struct store_members *ret_members)
{
    return fails(&batches_read) ? STORE_UNAVAILABLE : __real_store_read_batch_members(reader, batch_id, ret_members);
}

enum store_status __wrap_store_read_group_members(struct store_reader *reader, struct text group_id,
                                                  struct store_members *ret_members)
{
    return fails(&groups_read) ? STORE_UNAVAILABLE : __real_store_read_group_members(reader, group_id, ret_members);
}

/* The first rows come before the failure. */
enum store_status __wrap_store_unfinished_batches(struct store_reader *reader, struct store_batches *ret_batches)
{
    enum store_status status = __real_store_unfinished_batches(reader, ret_batches);
    if (!fails(&lists_read))
        return status;
    lists_refused++;
    return STORE_UNAVAILABLE;
}

enum store_status __wrap_store_read_open_updates(struct store_reader *reader, struct store_runs *ret_runs)
{
    enum store_status status = __real_store_read_open_updates(reader, ret_runs);
    return fails(&updates_read) ? STORE_UNAVAILABLE : status;
}

static void cancel_all(void *arg)
{
    (void)arg;
    *failing = (struct reading){.failures = FAILURES};
    server_cancel_all();
}

static void no_batch_is_there(void *arg)
{
    (void)arg;
    assert_null(server.batches->first);
}

static int64_t until_no_batch_is_left(void *arg)
{
    (void)arg;
    workers_flush(server.workers);
    if (!server.batches->resumed || server.batches->count > 0)
        return NEVER_US;
    loop_stop(server.loop);
    return 0;
}

/* Reads unfinished batches back, cancels and closes them. Returns the time that it took. */
static int64_t end_what_was_left(void)
{
    int64_t began_us = clock_monotonic_us();
    server_begin(16);
    resume_unfinished(server.batches, cancel_all, NULL);
    loop_run(server.loop, until_no_batch_is_left, NULL);
    int64_t took_us = clock_monotonic_us() - began_us;
    server_end();
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batches WHERE state = 'cancelled'"), 1);
    return took_us;
}

static void test_a_batch_that_cannot_be_read_is_closed_when_it_can_and_read_at_growing_distances(void **state)
{
    (void)state;
    failing = &batches_read;
    leave_unfinished("arith", NULL);
    assert_true(end_what_was_left() >= PAUSES_US);
    assert_int_equal(batches_read.tries, FAILURES + 1);
}

static void test_a_group_that_cannot_be_read_is_closed_when_it_can_and_read_at_growing_distances(void **state)
{
    (void)state;
    failing = &groups_read;
    leave_request(
        "arith",
        TEXT_LITERAL("{\"run\":\"arith\",\"policy_revision\":1,\"seed\":7,\"sampling\":{\"n\":2,\"max_tokens\":8},"
                     "\"verifiers\":[{\"name\":\"math\"}],\"objective\":{\"preset\":\"opo\"},"
                     "\"groups\":[{\"task\":\"t\",\"prompt\":\"1+1=\",\"reference\":\"2\"}]}"),
        NULL);
    assert_true(end_what_was_left() >= PAUSES_US);
    assert_int_equal(groups_read.tries, FAILURES + 1);
}

static void test_a_batch_whose_rollouts_cannot_be_read_at_the_start_is_left_as_it_is(void **state)
{
    (void)state;
    leave_unfinished("arith", NULL);
    batches_read = (struct reading){.failures = 1};
    server_begin(16);
    resume_unfinished(server.batches, no_batch_is_there, NULL);
    loop_run(server.loop, until_no_batch_is_left, NULL);
    server_end();
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batches WHERE state = 'running'"), 1);
}

static void do_nothing(struct job *job, struct store_reader *reader)
{
    (void)job;
    (void)reader;
}

static void stop(struct job *job)
{
    (void)job;
    loop_stop(server.loop);
}

static int64_t until_the_list_is_to_be_read_again(void *arg)
{
    (void)arg;
    if (lists_refused > 0 && !marker.run) {
        marker = (struct job){.lane = LANE_BATCH, .run = do_nothing, .done = stop};
        workers_submit_reserved(server.workers, &marker);
    }
    workers_flush(server.workers);
    return NEVER_US;
}

static void leave_open_update(const char *run)
{
    int64_t now_us = clock_utc_us();
    struct store_op op = {.kind = STORE_UPDATE_POLICY};
    op.update_policy = (struct store_update_policy){.step = STORE_STEP_BEGIN,
                                                    .run = text_of(run),
                                                    .update = {.revision = 2,
                                                               .rewind_to_step = -1,
                                                               .mode = STORE_UPDATE_WAIT,
                                                               .begun_at_us = now_us,
                                                               .deadline_us = now_us + 3600 * US_PER_S}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

static void one_batch_is_there_and_held(void *arg)
{
    (void)arg;
    assert_int_equal(server.batches->count, 1);
    assert_true(update_holds(server.batches->first));
    server_cancel_all();
}

/* Without its update the run would be sampled while its weights are being changed. */
static void test_unfinished_batches_come_back_when_the_open_updates_of_their_runs_can_be_read_too(void **state)
{
    (void)state;
    leave_unfinished("arith", NULL);
    leave_open_update("arith");
    lists_read = (struct reading){0};
    updates_read = (struct reading){.failures = 1};
    server_begin(16);
    resume_unfinished(server.batches, one_batch_is_there_and_held, NULL);
    loop_run(server.loop, until_no_batch_is_left, NULL);
    server_end();
    assert_int_equal(updates_read.tries, 2);
    assert_int_equal(lists_read.tries, 2);
}

static void never_read(void *arg)
{
    (void)arg;
    fail_msg("the list was read");
}

/* Memory of the try must be given back: the leak sanitizer sees it. */
static void test_a_service_may_end_before_its_unfinished_batches_could_be_listed(void **state)
{
    (void)state;
    leave_unfinished("arith", NULL);
    lists_read = (struct reading){.failures = 1};
    lists_refused = 0;
    marker.run = NULL;
    server_begin(16);
    resume_unfinished(server.batches, never_read, NULL);
    loop_run(server.loop, until_the_list_is_to_be_read_again, NULL);
    assert_false(server.batches->resumed);
    assert_non_null(server.batches->resuming);
    server_end();
    assert_int_equal(lists_read.tries, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_batch_that_cannot_be_read_is_closed_when_it_can_and_read_at_growing_distances, with_record,
            without_record),
        cmocka_unit_test_setup_teardown(
            test_a_group_that_cannot_be_read_is_closed_when_it_can_and_read_at_growing_distances, with_record,
            without_record),
        cmocka_unit_test_setup_teardown(test_a_batch_whose_rollouts_cannot_be_read_at_the_start_is_left_as_it_is,
                                        with_record, without_record),
        cmocka_unit_test_setup_teardown(
            test_unfinished_batches_come_back_when_the_open_updates_of_their_runs_can_be_read_too, with_record,
            without_record),
        cmocka_unit_test_setup_teardown(test_a_service_may_end_before_its_unfinished_batches_could_be_listed,
                                        with_record, without_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
