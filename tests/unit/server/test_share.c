/* Shares of a lease: each item once, balanced, the same for whoever asks. */
#include "server/render/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

enum { ITEMS_MAX = 1000, RANKS_MAX = 64 };

static void test_equal_items_are_dealt_in_turn(void **state)
{
    static const int64_t weights[] = {1, 1, 1, 1, 1, 1, 1};
    static const int64_t expected[] = {0, 1, 2, 0, 1, 2, 0};
    int64_t ranks[7];
    (void)state;
    share_out(7, weights, 3, ranks);
    assert_memory_equal(ranks, expected, sizeof(expected));
}

/* 9 to rank 0, 7 to 1, 6 to 1 (13), 5 to 0 (14), 4 to 1 (17), 3 to 0 (17), 0 to 0. */
static void test_heavy_items_come_first_and_each_goes_to_the_least_loaded_rank(void **state)
{
    static const int64_t weights[] = {3, 9, 0, 5, 7, 4, 6};
    static const int64_t expected[] = {0, 0, 0, 0, 1, 1, 1};
    int64_t ranks[7];
    (void)state;
    share_out(7, weights, 2, ranks);
    assert_memory_equal(ranks, expected, sizeof(expected));
}

static void test_more_ranks_than_items_leave_some_without_one(void **state)
{
    static const int64_t weights[] = {4, 4};
    int64_t ranks[2];
    (void)state;
    share_out(2, weights, 5, ranks);
    assert_int_equal(ranks[0], 0);
    assert_int_equal(ranks[1], 1);
    share_out(0, weights, 5, ranks);
}

/* Numbers like dice, the same each time. */
static uint64_t roll(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static void test_two_ranks_differ_by_no_more_than_the_heaviest_item(void **state)
{
    static int64_t weights[ITEMS_MAX];
    static int64_t ranks[ITEMS_MAX];
    static int64_t again[ITEMS_MAX];
    uint64_t seed = 1;
    (void)state;
    for (int round = 0; round < 200; round++) {
        int64_t loads[RANKS_MAX] = {0};
        int64_t heaviest = 0;
        size_t count = 1 + roll(&seed) % ITEMS_MAX;
        int64_t rank_count = 1 + (int64_t)(roll(&seed) % RANKS_MAX);
        for (size_t i = 0; i < count; i++) {
            weights[i] = (int64_t)(roll(&seed) % 5000);
            heaviest = weights[i] > heaviest ? weights[i] : heaviest;
        }
        share_out(count, weights, rank_count, ranks);
        for (size_t i = 0; i < count; i++) {
            assert_in_range(ranks[i], 0, rank_count - 1);
            loads[ranks[i]] += weights[i];
        }
        for (int64_t a = 0; a < rank_count; a++)
            for (int64_t b = 0; b < rank_count; b++)
                assert_true(loads[a] - loads[b] <= heaviest);
        share_out(count, weights, rank_count, again);
        assert_memory_equal(ranks, again, count * sizeof(*ranks));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_items_are_dealt_in_turn),
        cmocka_unit_test(test_heavy_items_come_first_and_each_goes_to_the_least_loaded_rank),
        cmocka_unit_test(test_more_ranks_than_items_leave_some_without_one),
        cmocka_unit_test(test_two_ranks_differ_by_no_more_than_the_heaviest_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
