/* Requests that wait for a batch. The test stands for HTTP, the feed of a stream and the batch's machine. */
#include "server/api/waiters.h"

#include "server/api/batches.h"
#include "server/api/unstored.h"
#include "server/base/clock.h"
#include "server/batches/observer.h"
#include "server/render/feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define GROUPS 3

struct feed {
    uint32_t groups[GROUPS];
    size_t group_count;
    bool ended;
    bool cut;
};

struct request {
    struct call call;
    bool (*hung_up)(struct request *request, void *arg);
    void *arg;
    void (*work)(struct call *call); /* that a worker was given */
    int answers;
    int refusals;
    enum error_code refused_as;
    int wakes;
};

static struct loop *loop;
static struct live_batch live;
static struct feed feed;
static struct stream stream;
static int cancels;
static int looks; /* whether the batch may go */
static struct request *unstored_answered;

/* --- what the test stands for ------------------------------------------------------------------------------- */

struct call *request_call(struct request *request)
{
    return &request->call;
}

void request_answer(struct request *request)
{
    request->answers++;
    if (!request->call.reply.stream)
        request->hung_up = NULL;
}

void request_refuse(struct request *request, enum error_code code, const char *path, const char *format, ...)
{
    (void)path;
    (void)format;
    request->refusals++;
    request->refused_as = code;
}

void request_continue_on_worker(struct request *request, void (*work)(struct call *call))
{
    request->work = work;
}

void request_on_hangup(struct request *request, bool (*hung_up)(struct request *request, void *arg), void *arg)
{
    request->hung_up = hung_up;
    request->arg = arg;
}

void request_stream_wake(struct request *request)
{
    request->wakes++;
}

struct feed *feed_create(const char *batch_id, size_t groups, int arrays)
{
    (void)arrays;
    assert_string_equal(batch_id, live.id);
    assert_int_equal(groups, GROUPS);
    return &feed;
}

struct stream *feed_stream(struct feed *of)
{
    assert_ptr_equal(of, &feed);
    return &stream;
}

void feed_group_closed(struct feed *to, uint32_t group)
{
    to->groups[to->group_count++] = group;
}

void feed_ended(struct feed *to)
{
    to->ended = true;
}

void feed_cut(struct feed *to)
{
    to->cut = true;
}

void feed_answer_ended(struct call *call)
{
    (void)call;
}

void answer_batch(struct call *call)
{
    (void)call;
}

void unstored_answer(struct live_batch *of, struct request *request)
{
    assert_ptr_equal(of, &live);
    unstored_answered = request;
}

void live_write_running(struct json_write *json, const struct live_batch *of)
{
    json_put_string(json, "id", of->id);
}

void live_post(struct live_batch *of, const struct batch_event *event)
{
    assert_ptr_equal(of, &live);
    cancels += event->kind == EVENT_CANCEL;
}

void live_look(struct live_batch *of)
{
    assert_ptr_equal(of, &live);
    looks++;
    loop_stop(loop);
}

/* --- a batch of three groups that runs ---------------------------------------------------------------------- */

static int set_up(void **state)
{
    static const uint32_t members[GROUPS] = {2, 2, 2};
    (void)state;
    loop = loop_create();
    memset(&live, 0, sizeof(live));
    memset(&feed, 0, sizeof(feed));
    cancels = 0;
    looks = 0;
    unstored_answered = NULL;
    snprintf(live.id, sizeof(live.id), "b_0");
    batch_init(&live.batch, &(struct batch_rules){.deadline_us = NEVER_US}, members, GROUPS);
    return loop ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    batch_finish(&live.batch);
    loop_destroy(loop);
    return 0;
}

static void finish(struct request *request)
{
    request->call.reply.stream = NULL;
    call_finish(&request->call);
}

#define REQUEST __attribute__((cleanup(finish))) struct request

static const struct waiter_rules post = {.until_us = NEVER_US, .created = true};

/* A GET with a wait that no test lives to see. */
static struct waiter_rules get(void)
{
    return (struct waiter_rules){.until_us = loop_now_us(loop) + 3600 * US_PER_S};
}

static void wait_for(struct request *request, const struct waiter_rules *rules)
{
    bool ndjson = request->call.accept_ndjson;
    call_init(&request->call);
    request->call.accept_ndjson = ndjson;
    waiter_add(loop, &live, request, rules);
}

static void hang_up(struct request *request)
{
    bool (*hung_up)(struct request *, void *) = request->hung_up;
    request->hung_up = NULL;
    assert_non_null(hung_up);
    assert_true(hung_up(request, request->arg));
}

static void assert_waits(const struct request *request)
{
    assert_non_null(request->hung_up);
    assert_int_equal(request->answers + request->refusals, 0);
    assert_null(request->work);
}

static void assert_answered_as_it_stands(const struct request *request, int status)
{
    assert_int_equal(request->answers, 1);
    assert_int_equal(request->call.reply.status, status);
    assert_string_equal(request->call.reply.body.data, "{\"id\":\"b_0\"}\n");
    assert_string_equal(request->call.reply.location, status == 202 ? "/v1/batches/b_0" : "");
}

static void assert_refused(const struct request *request, enum error_code code)
{
    assert_int_equal(request->refusals, 1);
    assert_int_equal(request->refused_as, code);
    assert_int_equal(request->answers, 0);
    assert_null(request->hung_up);
}

/* --- the end of the batch ----------------------------------------------------------------------------------- */

static void test_everybody_who_waits_gets_the_batch_from_the_record_when_it_has_ended(void **state)
{
    (void)state;
    REQUEST first = {0};
    REQUEST second = {0};
    struct waiter_rules rules = get();
    wait_for(&first, &post);
    wait_for(&second, &rules);
    assert_waits(&first);
    assert_waits(&second);
    live_tell_ended(&live);
    assert_ptr_equal(first.work, answer_batch);
    assert_ptr_equal(second.work, answer_batch);
    assert_string_equal(first.call.subject, "b_0");
    assert_string_equal(second.call.subject, "b_0");
    assert_null(live.observers);
}

static void test_a_request_after_the_end_does_not_wait(void **state)
{
    (void)state;
    REQUEST late = {0};
    struct waiter_rules rules = get();
    live.batch.state = BATCH_COMPLETE;
    wait_for(&late, &rules);
    assert_ptr_equal(late.work, answer_batch);
    assert_null(live.observers);
}

static void test_a_stream_that_comes_after_the_end_is_made_of_the_record(void **state)
{
    (void)state;
    REQUEST late = {.call.accept_ndjson = true};
    live.batch.state = BATCH_EXPIRED;
    wait_for(&late, &post);
    assert_ptr_equal(late.work, feed_answer_ended);
}

static void test_a_score_that_is_not_stored_is_answered_from_memory(void **state)
{
    (void)state;
    REQUEST request = {0};
    live.unstored = (struct unstored *)&live; /* only whether there is one is asked */
    wait_for(&request, &post);
    live_tell_ended(&live);
    assert_ptr_equal(unstored_answered, &request);
    assert_null(request.work);
}

/* --- the end of the wait ------------------------------------------------------------------------------------ */

static void test_a_get_without_a_wait_is_told_how_the_batch_stands(void **state)
{
    (void)state;
    REQUEST request = {0};
    struct waiter_rules rules = {.until_us = loop_now_us(loop)};
    wait_for(&request, &rules);
    assert_answered_as_it_stands(&request, 200);
    assert_null(live.observers);
    assert_false(live.answered_async);
}

static void test_a_post_whose_wait_ends_first_is_told_the_id_and_others_go_on_waiting(void **state)
{
    (void)state;
    REQUEST request = {0};
    REQUEST other = {0};
    struct waiter_rules rules = {.until_us = loop_now_us(loop) + 1, .created = true};
    wait_for(&other, &post);
    wait_for(&request, &rules);
    assert_waits(&request);
    loop_run(loop, NULL, NULL);
    assert_answered_as_it_stands(&request, 202);
    assert_int_equal(looks, 1);
    assert_waits(&other);
    hang_up(&other);
    assert_int_equal(cancels, 0); /* somebody has the id */
}

/* --- hang-ups ------------------------------------------------------------------------------------------------ */

static void test_a_batch_is_cancelled_when_the_last_who_waits_hangs_up(void **state)
{
    (void)state;
    REQUEST first = {0};
    REQUEST second = {0};
    struct waiter_rules rules = get();
    wait_for(&first, &post);
    wait_for(&second, &rules);
    hang_up(&first);
    assert_int_equal(cancels, 0);
    assert_waits(&second);
    hang_up(&second);
    assert_int_equal(cancels, 1);
    assert_null(live.observers);
}

static void test_a_batch_with_a_key_goes_on_when_nobody_waits(void **state)
{
    (void)state;
    REQUEST request = {0};
    live.has_key = true;
    wait_for(&request, &post);
    hang_up(&request);
    assert_int_equal(cancels, 0);
    assert_int_equal(looks, 1);
}

static void test_a_waiter_that_hung_up_is_not_told_of_the_end(void **state)
{
    (void)state;
    REQUEST first = {0};
    REQUEST middle = {0};
    REQUEST last = {0};
    wait_for(&first, &post);
    wait_for(&middle, &post);
    wait_for(&last, &post);
    hang_up(&middle);
    live_tell_ended(&live);
    assert_null(middle.work);
    assert_non_null(first.work);
    assert_non_null(last.work);
}

/* --- a store that fails -------------------------------------------------------------------------------------- */

static void test_a_waiter_is_refused_while_the_disk_is_full_and_the_batch_continues(void **state)
{
    (void)state;
    REQUEST created = {0};
    REQUEST cancelling = {0}; /* a DELETE */
    REQUEST shown = {0};
    struct waiter_rules for_ever = {.until_us = NEVER_US};
    struct waiter_rules rules = get();
    wait_for(&created, &post);
    wait_for(&shown, &rules);
    wait_for(&cancelling, &for_ever);
    live_tell_held_up(&live, LIVE_DISK_FULL);
    assert_refused(&created, ERR_DISK_FULL);
    assert_refused(&cancelling, ERR_DISK_FULL);
    assert_waits(&shown);
    hang_up(&shown);
    assert_int_equal(cancels, 0);
}

static void test_a_database_that_fails_is_a_503(void **state)
{
    (void)state;
    REQUEST before = {0};
    REQUEST after = {0};
    wait_for(&before, &post);
    live_tell_held_up(&live, LIVE_NOT_WRITTEN);
    wait_for(&after, &post);
    live_tell_held_up(&live, LIVE_NOT_READ);
    assert_refused(&before, ERR_STORE_UNAVAILABLE);
    assert_refused(&after, ERR_STORE_UNAVAILABLE);
}

/* --- streams --------------------------------------------------------------------------------------------------- */

static void test_a_stream_is_told_of_groups_that_were_closed_before_it_came_and_of_each_afterwards(void **state)
{
    (void)state;
    REQUEST request = {.call.accept_ndjson = true};
    REQUEST waiting = {0};
    live.batch.groups[2].closed = true;
    wait_for(&waiting, &post);
    wait_for(&request, &post);
    assert_int_equal(request.answers, 1);
    assert_int_equal(request.call.reply.status, 200);
    assert_ptr_equal(request.call.reply.stream, &stream);
    live_tell_group_closed(&live, 0);
    assert_int_equal(request.wakes, 1);
    assert_int_equal(feed.group_count, 2);
    assert_int_equal(feed.groups[0], 2);
    assert_int_equal(feed.groups[1], 0);
    assert_waits(&waiting);
    live_tell_ended(&live);
    assert_true(feed.ended && !feed.cut);
    assert_int_equal(request.wakes, 2);
    assert_null(request.hung_up);
}

static void test_a_stream_outlives_a_store_that_fails(void **state)
{
    (void)state;
    REQUEST request = {.call.accept_ndjson = true};
    wait_for(&request, &post);
    live_tell_held_up(&live, LIVE_NOT_WRITTEN);
    assert_int_equal(request.refusals, 0);
    live_tell_group_closed(&live, 1);
    assert_int_equal(feed.group_count, 1);
    hang_up(&request);
    assert_int_equal(cancels, 1);
}

/* --- the end of the service ------------------------------------------------------------------------------------ */

static void test_at_the_end_of_the_service_a_post_gets_the_id_and_a_stream_no_last_line(void **state)
{
    (void)state;
    REQUEST created = {0};
    REQUEST shown = {0};
    REQUEST streamed = {.call.accept_ndjson = true};
    struct waiter_rules rules = get();
    wait_for(&created, &post);
    wait_for(&shown, &rules);
    wait_for(&streamed, &post);
    live_tell_service_ends(&live);
    assert_answered_as_it_stands(&created, 202);
    assert_answered_as_it_stands(&shown, 200);
    assert_true(feed.cut && !feed.ended);
    assert_int_equal(streamed.wakes, 1);
    assert_null(live.observers);
}

static void test_at_the_end_of_the_service_a_score_that_is_not_stored_is_refused(void **state)
{
    (void)state;
    REQUEST request = {0};
    live.unstored = (struct unstored *)&live;
    wait_for(&request, &post);
    live_tell_service_ends(&live);
    assert_refused(&request, ERR_DRAINING);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CLAIM(test_everybody_who_waits_gets_the_batch_from_the_record_when_it_has_ended),
        CLAIM(test_a_request_after_the_end_does_not_wait),
        CLAIM(test_a_stream_that_comes_after_the_end_is_made_of_the_record),
        CLAIM(test_a_score_that_is_not_stored_is_answered_from_memory),
        CLAIM(test_a_get_without_a_wait_is_told_how_the_batch_stands),
        CLAIM(test_a_post_whose_wait_ends_first_is_told_the_id_and_others_go_on_waiting),
        CLAIM(test_a_batch_is_cancelled_when_the_last_who_waits_hangs_up),
        CLAIM(test_a_batch_with_a_key_goes_on_when_nobody_waits),
        CLAIM(test_a_waiter_that_hung_up_is_not_told_of_the_end),
        CLAIM(test_a_waiter_is_refused_while_the_disk_is_full_and_the_batch_continues),
        CLAIM(test_a_database_that_fails_is_a_503),
        CLAIM(test_a_stream_is_told_of_groups_that_were_closed_before_it_came_and_of_each_afterwards),
        CLAIM(test_a_stream_outlives_a_store_that_fails),
        CLAIM(test_at_the_end_of_the_service_a_post_gets_the_id_and_a_stream_no_last_line),
        CLAIM(test_at_the_end_of_the_service_a_score_that_is_not_stored_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
