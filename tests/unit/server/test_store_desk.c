/* An operation that must come on record, with a store that the test makes up. */
#include "server/record/store_desk.h"

#include "server/base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int refusals;                 /* the queue is full so often */
static enum store_status answers[3]; /* what an attempt comes to */
static int attempts;
static int endings;
static struct loop *loop;

bool store_submit(struct store *store, struct store_op *op)
{
    (void)store;
    if (refusals > 0) {
        refusals--;
        return false;
    }
    op->status = answers[attempts++];
    op->done(op);
    return true;
}

static void done(struct store_op *op)
{
    if (store_desk_send_again(op->context))
        return;
    endings++;
    loop_stop(loop);
}

static void send_until_it_ends(struct store_errand *errand)
{
    attempts = 0;
    endings = 0;
    errand->op = (struct store_op){.kind = STORE_CLOSE_BATCH, .done = done, .context = errand};
    errand->loop = loop;
    store_desk_send(errand);
    if (endings == 0)
        loop_run(loop, NULL, NULL);
}

static void test_an_operation_that_finds_the_queue_full_is_sent_later(void **state)
{
    struct store_errand errand = {0};
    (void)state;
    refusals = 2;
    answers[0] = STORE_OK;
    send_until_it_ends(&errand);
    assert_int_equal(refusals, 0);
    assert_int_equal(attempts, 1);
    assert_int_equal(endings, 1);
}

static void test_an_operation_that_could_not_be_written_is_sent_again(void **state)
{
    struct store_errand errand = {0};
    (void)state;
    answers[0] = STORE_DISK_FULL;
    answers[1] = STORE_UNAVAILABLE;
    answers[2] = STORE_EXISTS;
    send_until_it_ends(&errand);
    assert_int_equal(attempts, 3);
    assert_int_equal(endings, 1);
}

static void test_a_refused_operation_is_not_sent_again(void **state)
{
    struct store_errand errand = {0};
    (void)state;
    answers[0] = STORE_REFUSED;
    send_until_it_ends(&errand);
    assert_int_equal(attempts, 1);
    assert_int_equal(endings, 1);
}

static void test_a_dropped_operation_is_not_sent_again(void **state)
{
    struct store_errand errand = {.loop = loop, .op = {.done = done}};
    (void)state;
    refusals = 1;
    attempts = 0;
    store_desk_send(&errand);
    assert_true(errand.timer.place);
    store_desk_drop(&errand);
    assert_false(errand.timer.place);
    assert_int_equal(attempts, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_operation_that_finds_the_queue_full_is_sent_later),
        cmocka_unit_test(test_an_operation_that_could_not_be_written_is_sent_again),
        cmocka_unit_test(test_a_refused_operation_is_not_sent_again),
        cmocka_unit_test(test_a_dropped_operation_is_not_sent_again),
    };
    loop = loop_create();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    loop_destroy(loop);
    return failed;
}
