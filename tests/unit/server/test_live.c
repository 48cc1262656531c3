/* Live batches and what is known of their runs, with a real store, workers and loop, and without engines. */
#include "tests/unit/store/fixture.h"

#include "server/base/clock.h"
#include "server/live.h"
#include "server/resume.h"
#include "server/settings.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;
static struct settings settings;
static struct server server;
static size_t runs_when_resumed;
static int64_t revision_when_resumed;
static int64_t incarnation_when_resumed;

/* --- a service without HTTP -------------------------------------------------------------------------- */

struct finished_ops {
    struct loop_message message;
    struct store_op *list;
};

static void deliver_finished(struct loop_message *message)
{
    struct finished_ops *finished = (struct finished_ops *)message;
    store_ops_finished(&server, finished->list);
    free(finished);
}

static void ops_finished(void *arg, struct store_op *list)
{
    (void)arg;
    struct finished_ops *finished = xcalloc(1, sizeof(*finished));
    finished->message.deliver = deliver_finished;
    finished->list = list;
    loop_post(server.loop, &finished->message);
}

static int with_record(void **state)
{
    static struct settings_run run;
    char program[] = "rolloutd";
    char *argv[] = {program, NULL};
    char message[SETTINGS_MESSAGE_BYTES];
    if (settings_load(1, argv, &settings, &run, message) < 0 || fixture_open(state) < 0)
        return -1;
    fixture = *state;
    return 0;
}

static int without_record(void **state)
{
    settings_finish(&settings);
    return fixture_close(state);
}

/* What a service left unfinished: two samples of one prompt, at revision 1. */
static void leave_unfinished(const char *run)
{
    struct store_op op = batch_op(1, 2);
    char body[256];
    snprintf(
        body, sizeof(body),
        "{\"run\":\"%s\",\"policy_revision\":1,\"seed\":7,\"sampling\":{\"n\":2,\"max_tokens\":8},"
        "\"verifiers\":[{\"name\":\"math\"}],\"groups\":[{\"task\":\"t\",\"prompt\":\"1+1=\",\"reference\":\"2\"}]}",
        run);
    op.create_batch.run = text_of(run);
    op.create_batch.policy_revision = 1;
    op.create_batch.request = text_of(body);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

static void begin(void)
{
    char message[200];
    stop_store(fixture);
    fixture->options.finished = ops_finished;
    server = (struct server){.settings = &settings, .loop = loop_create()};
    assert_non_null(server.loop);
    start_store(fixture);
    server.store = fixture->store;
    server.workers = workers_create(server.loop, server.store, 1, 16);
    server.pool = pool_create(NULL, 0, message);
    server.batches = batches_create(&server);
    assert_true(server.workers && server.pool && server.batches);
}

static void declare(const char *run, int64_t revision, int64_t incarnation)
{
    batches_declared(
        server.batches,
        &(struct store_declare_policy){.run = text_of(run), .current_revision = revision, .incarnation = incarnation});
}

static void note_runs(void)
{
    const struct live_batch *live = server.batches->first;
    runs_when_resumed = HASH_COUNT(server.batches->runs);
    revision_when_resumed = live ? live->run->revision : -1;
    incarnation_when_resumed = live ? live->run->incarnation : -1;
}

static void cancel_all(struct server *of)
{
    declare("declared-when-ready", 5, 0);
    note_runs();
    for (struct live_batch *live = of->batches->first, *next; live; live = next) {
        next = live->next;
        live_event(live, &(struct batch_event){.kind = EVENT_CANCEL});
    }
}

static int64_t flush(void *arg)
{
    (void)arg;
    workers_flush(server.workers);
    if (!server.ready || server.batches->count > 0)
        return NEVER_US;
    loop_stop(server.loop);
    return 0;
}

/* Reads the unfinished batches back, cancels them, and waits until they have gone. */
static void resume_and_cancel(void)
{
    loop_run(server.loop, flush, NULL);
    workers_destroy(server.workers);
    store_reader_destroy(fixture->reader);
    store_close(fixture->store);
    fixture->reader = NULL;
    fixture->store = NULL;
}

static void end(void)
{
    pool_destroy(server.pool);
    batches_destroy(server.batches);
    loop_destroy(server.loop);
}

/* --- tests ------------------------------------------------------------------------------------------------ */

static void test_what_was_declared_while_batches_are_read_back_is_newer_than_what_was_read(void **state)
{
    (void)state;
    leave_unfinished("arith");
    begin();
    resume_unfinished(&server, cancel_all);
    declare("arith", 9, 3); /* the worker may have read the run before, or reads it now: the record of it says 1 */
    resume_and_cancel();
    assert_int_equal(revision_when_resumed, 9);
    assert_int_equal(incarnation_when_resumed, 3);
    end();
}

static void test_a_run_that_nobody_declared_meanwhile_is_as_the_record_says(void **state)
{
    (void)state;
    leave_unfinished("arith");
    begin();
    resume_unfinished(&server, cancel_all);
    resume_and_cancel();
    assert_int_equal(revision_when_resumed, 1);
    assert_int_equal(incarnation_when_resumed, 0);
    end();
}

static void test_only_runs_with_live_batches_are_kept_in_memory(void **state)
{
    (void)state;
    leave_unfinished("one");
    leave_unfinished("one");
    leave_unfinished("another");
    begin();
    resume_unfinished(&server, cancel_all);
    declare("declared-meanwhile", 4, 0);
    assert_int_equal(HASH_COUNT(server.batches->runs), 1);
    resume_and_cancel();
    assert_int_equal(runs_when_resumed, 2);
    assert_int_equal(HASH_COUNT(server.batches->runs), 0);
    end();
}

int main(void)
{
#define LIVE_TEST(name) cmocka_unit_test_setup_teardown(name, with_record, without_record)
    const struct CMUnitTest tests[] = {
        LIVE_TEST(test_what_was_declared_while_batches_are_read_back_is_newer_than_what_was_read),
        LIVE_TEST(test_a_run_that_nobody_declared_meanwhile_is_as_the_record_says),
        LIVE_TEST(test_only_runs_with_live_batches_are_kept_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
