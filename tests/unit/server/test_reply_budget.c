/* Memory of replies that wait for their sockets: F11. */
#include "server/http/budget_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct reply_budget budget;
static char order[8];
static size_t served;

static void note(void *arg)
{
    order[served++] = *(const char *)arg;
    order[served] = '\0';
}

static struct reply_wait waiting(const char *name, size_t bytes)
{
    return (struct reply_wait){.bytes = bytes, .room = note, .arg = (void *)(uintptr_t)name};
}

static int setup(void **state)
{
    (void)state;
    reply_budget_init(&budget, 100);
    order[0] = '\0';
    served = 0;
    return 0;
}

static void test_nothing_is_taken_beyond_the_limit_unless_it_is_alone(void **state)
{
    (void)state;
    assert_true(reply_budget_take(&budget, 150));
    assert_true(reply_budget_is_over(&budget));
    assert_false(reply_budget_take(&budget, 1));
    reply_budget_give(&budget, 150);
    assert_true(reply_budget_take(&budget, 60));
    assert_false(reply_budget_take(&budget, 41));
    assert_true(reply_budget_take(&budget, 40));
}

static void test_those_who_hold_a_part_are_served_before_those_who_begin(void **state)
{
    (void)state;
    struct reply_wait begins = waiting("b", 50);
    struct reply_wait goes_on = waiting("g", 0);
    reply_budget_add(&budget, 120);
    reply_budget_wait(&budget, &begins);
    reply_budget_wait(&budget, &goes_on);
    reply_budget_serve(&budget);
    assert_string_equal(order, "");
    reply_budget_give(&budget, 30);
    reply_budget_serve(&budget);
    assert_string_equal(order, "g");
    reply_budget_give(&budget, 40);
    reply_budget_serve(&budget);
    assert_string_equal(order, "gb");
    assert_int_equal(budget.held_bytes, 100);
}

static void test_a_later_reply_does_not_overtake(void **state)
{
    (void)state;
    struct reply_wait first = waiting("1", 50);
    struct reply_wait second = waiting("2", 10);
    reply_budget_add(&budget, 80);
    reply_budget_wait(&budget, &first);
    reply_budget_wait(&budget, &second);
    assert_false(reply_budget_take(&budget, 10));
    reply_budget_serve(&budget);
    assert_string_equal(order, "");
    reply_budget_leave(&budget, &first);
    reply_budget_leave(&budget, &first);
    reply_budget_serve(&budget);
    assert_string_equal(order, "2");
}

static void test_one_reply_may_be_larger_than_the_limit(void **state)
{
    (void)state;
    bool oversize;
    reply_budget_add(&budget, 90);
    assert_true(reply_budget_take_whole(&budget, 200, &oversize) && oversize);
    assert_false(reply_budget_take_whole(&budget, 200, &oversize));
    assert_true(reply_budget_take_whole(&budget, 10, &oversize) && !oversize);
    reply_budget_give_oversize(&budget);
    assert_true(reply_budget_take_whole(&budget, 200, &oversize) && oversize);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_taken_beyond_the_limit_unless_it_is_alone, setup),
        cmocka_unit_test_setup(test_those_who_hold_a_part_are_served_before_those_who_begin, setup),
        cmocka_unit_test_setup(test_a_later_reply_does_not_overtake, setup),
        cmocka_unit_test_setup(test_one_reply_may_be_larger_than_the_limit, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
