#include "server/runtime/loop.h"

#include "server/base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

struct notes {
    struct loop *loop;
    char order[64];
    size_t count;
};

static struct notes notes;

static void note(char what)
{
    notes.order[notes.count++] = what;
    notes.order[notes.count] = '\0';
}

static void begin(void)
{
    notes = (struct notes){.loop = loop_create()};
    assert_non_null(notes.loop);
}

static void run(void)
{
    loop_run(notes.loop, NULL, NULL);
    loop_destroy(notes.loop);
}

static void note_a(void *arg)
{
    (void)arg;
    note('a');
}

static void note_b(void *arg)
{
    (void)arg;
    note('b');
}

static void stop(void *arg)
{
    (void)arg;
    loop_stop(notes.loop);
}

static void test_timers_expire_in_the_order_of_their_times_and_a_cleared_one_never(void **state)
{
    (void)state;
    struct loop_timer a = {0};
    struct loop_timer b = {0};
    struct loop_timer never = {0};
    struct loop_timer last = {0};
    begin();
    int64_t now_us = clock_monotonic_us();
    loop_timer_set(notes.loop, &last, now_us + 3000, stop, NULL);
    loop_timer_set(notes.loop, &b, now_us + 2000, note_b, NULL);
    loop_timer_set(notes.loop, &never, now_us + 500, note_a, NULL);
    loop_timer_set(notes.loop, &a, now_us + 9000, note_a, NULL);
    loop_timer_set(notes.loop, &a, now_us + 1000, note_a, NULL); /* moved */
    loop_timer_clear(notes.loop, &never);
    run();
    assert_string_equal(notes.order, "ab");
}

struct letter {
    struct loop_message message;
    char what;
};

static void deliver(struct loop_message *message)
{
    note(((struct letter *)message)->what);
    if (notes.count == 2)
        loop_stop(notes.loop);
}

static void *post_two(void *arg)
{
    struct letter *letters = arg;
    loop_post(notes.loop, &letters[0].message);
    loop_post(notes.loop, &letters[1].message);
    return NULL;
}

static void test_messages_of_another_thread_are_delivered_once_and_in_order(void **state)
{
    (void)state;
    struct letter letters[2] = {{.message.deliver = deliver, .what = 'x'}, {.message.deliver = deliver, .what = 'y'}};
    pthread_t thread;
    begin();
    assert_int_equal(pthread_create(&thread, NULL, post_two, letters), 0);
    run();
    pthread_join(thread, NULL);
    assert_string_equal(notes.order, "xy");
}

struct pair {
    struct loop_source *sources[2];
};

static void remove_the_other(void *arg, uint32_t events)
{
    (void)events;
    struct pair *pair = arg;
    note('r');
    loop_unwatch(pair->sources[0]);
    loop_unwatch(pair->sources[1]);
    loop_stop(notes.loop);
}

static void test_a_source_that_is_removed_in_the_same_batch_of_events_is_not_called(void **state)
{
    (void)state;
    int first[2];
    int second[2];
    struct pair pair;
    begin();
    assert_int_equal(pipe(first), 0);
    assert_int_equal(pipe(second), 0);
    assert_int_equal(write(first[1], "1", 1), 1);
    assert_int_equal(write(second[1], "2", 1), 1);
    pair.sources[0] = loop_watch(notes.loop, first[0], EPOLLIN, remove_the_other, &pair);
    pair.sources[1] = loop_watch(notes.loop, second[0], EPOLLIN, remove_the_other, &pair);
    run();
    assert_string_equal(notes.order, "r");
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_expire_in_the_order_of_their_times_and_a_cleared_one_never),
        cmocka_unit_test(test_messages_of_another_thread_are_delivered_once_and_in_order),
        cmocka_unit_test(test_a_source_that_is_removed_in_the_same_batch_of_events_is_not_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
