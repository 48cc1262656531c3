#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;
static char batch_ids[3][ID_BYTES];

enum { GROUPS = 4, MEMBERS = 5, PER_BATCH = GROUPS * MEMBERS };

/* Two batches of run "arith" (revisions 12 and 13), 20 rollouts each: member 0 failed, member i has reward i / 4. */
static void fill(size_t which, int64_t revision)
{
    struct store_op op = batch_op(GROUPS, MEMBERS);
    op.create_batch.policy_revision = revision;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(batch_ids[which], op.create_batch.id, ID_BYTES);
    for (int64_t g = 0; g < GROUPS; g++)
        for (int64_t i = 0; i < MEMBERS; i++) {
            struct store_rollout rollout = i ? scored_rollout(i, (double)i / 4) : failed_rollout(0);
            rollout.policy_revision = revision;
            assert_int_equal(insert(fixture, batch_ids[which], g, &rollout), STORE_OK);
        }
}

static int with_rows(void **state)
{
    if (fixture_open(state) < 0)
        return -1;
    fixture = *state;
    fill(0, 12);
    fill(1, 13);
    return 0;
}

static size_t count_fitting(const struct store_rollout_filter *filter)
{
    struct store_rollouts page;
    assert_int_equal(store_list_rollouts(fixture->reader, filter, TEXT_NONE,
                                         &(struct store_page_limits){1000, 100000, SIZE_MAX}, 0, &page),
                     STORE_OK);
    assert_string_equal(page.next, "");
    size_t count = page.count;
    store_rollouts_finish(&page);
    return count;
}

#define COUNT(...)                                                                                                     \
    ({                                                                                                                 \
        struct store_rollout_filter filter_;                                                                           \
        store_rollout_filter_init(&filter_);                                                                           \
        struct store_rollout_filter *f = &filter_;                                                                     \
        __VA_ARGS__;                                                                                                   \
        count_fitting(&filter_);                                                                                       \
    })

static void test_filters_find_exactly_what_fits(void **state)
{
    (void)state;
    char group_id[ID_BYTES];
    id_of_group(batch_ids[1], 2, group_id);
    assert_int_equal(COUNT(f->run = TEXT_NONE), 40);
    assert_int_equal(COUNT(f->run = TEXT_LITERAL("arith")), 40);
    assert_int_equal(COUNT(f->run = TEXT_LITERAL("nobody")), 0);
    assert_int_equal(COUNT(f->batch = text_of(batch_ids[1])), 20);
    assert_int_equal(COUNT(f->batch = TEXT_LITERAL("b_none")), 0);
    assert_int_equal(COUNT(f->group = text_of(group_id)), 5);
    assert_int_equal(COUNT(f->group = TEXT_LITERAL("x")), 0);
    assert_int_equal(COUNT(f->task = TEXT_LITERAL("task-3")), 10);
    assert_int_equal(COUNT(f->failure = TEXT_LITERAL("engine_timeout")), 8);
    assert_int_equal(COUNT(f->failure = TEXT_LITERAL("deadline")), 0);
    assert_int_equal(COUNT(f->state = STORE_ROLLOUT_FAILED), 8);
    assert_int_equal(COUNT(f->state = STORE_ROLLOUT_SCORED), 32);
    assert_int_equal(COUNT(f->state = STORE_ROLLOUT_CANCELLED), 0);
    assert_int_equal(COUNT(f->run = TEXT_LITERAL("arith"), f->revision_min = 13, f->revision_max = 13), 20);
    assert_int_equal(COUNT(f->revision_min = 13), 20);
    assert_int_equal(COUNT(f->revision_max = 12), 20);
    assert_int_equal(COUNT(f->reward_min = 0.5), 24);
    assert_int_equal(COUNT(f->reward_max = 0.25), 8);
    assert_int_equal(COUNT(f->reward_min = 0.5, f->reward_max = 0.5, f->task = TEXT_LITERAL("task-0")), 2);
    assert_int_equal(COUNT(f->purpose = STORE_EVAL), 0);
    assert_int_equal(COUNT(f->finish_reason = TEXT_LITERAL("stop")), 32);
    assert_int_equal(COUNT(f->engine = TEXT_LITERAL("e1"), f->batch = text_of(batch_ids[0])), 16);
    assert_int_equal(COUNT(f->seed_honoured = 1), 32);
    assert_int_equal(COUNT(f->seed_honoured = 0), 0); /* unknown is neither */
    assert_int_equal(COUNT(f->until_us = 1), 0);
    assert_int_equal(COUNT(f->since_us = 1), 40);
    assert_int_equal(COUNT(f->straddles = 1), 0);
    assert_int_equal(COUNT(f->incarnation = 0), 40);
}

/* Walks all pages, adding rows between them, and counts how often each seq was seen. */
static void walk(bool descending, size_t limit, size_t scan_budget, unsigned char *seen)
{
    struct store_rollout_filter filter;
    store_rollout_filter_init(&filter);
    filter.descending = descending;
    filter.state = STORE_ROLLOUT_SCORED;
    char next[64] = "";
    size_t pages = 0;
    do {
        struct store_rollouts page;
        struct text cursor = *next ? text_of(next) : TEXT_NONE;
        assert_int_equal(store_list_rollouts(fixture->reader, &filter, cursor,
                                             &(struct store_page_limits){limit, scan_budget, SIZE_MAX}, 0, &page),
                         STORE_OK);
        assert_true(page.count <= limit);
        for (size_t i = 0; i < page.count; i++) {
            seen[page.rollouts[i].seq]++;
            assert_true(i == 0 || (page.rollouts[i].seq > page.rollouts[i - 1].seq) != descending);
        }
        memcpy(next, page.next, sizeof(next));
        store_rollouts_finish(&page);
        if (++pages == 2)
            fill(2, 14);
        assert_true(pages < 200);
    } while (*next);
}

static void assert_seen_once(const unsigned char *seen, size_t first, size_t last)
{
    for (size_t seq = first; seq <= last; seq++)
        assert_int_equal(seen[seq], seq % MEMBERS == 1 ? 0 : 1); /* member 0 of each group failed */
}

static void test_ascending_pages_show_each_row_once_and_the_new_ones_at_the_end(void **state)
{
    (void)state;
    unsigned char seen[128] = {0};
    walk(false, 3, 100000, seen);
    assert_seen_once(seen, 1, 60);
}

static void test_descending_pages_show_each_row_once_and_none_that_came_later(void **state)
{
    (void)state;
    unsigned char seen[128] = {0};
    walk(true, 3, 100000, seen);
    assert_seen_once(seen, 1, 40);
    for (size_t seq = 41; seq <= 60; seq++)
        assert_int_equal(seen[seq], 0);
}

static void test_a_short_scan_budget_gives_short_pages_and_loses_nothing(void **state)
{
    (void)state;
    unsigned char seen[128] = {0};
    walk(false, 100, 2, seen);
    assert_seen_once(seen, 1, 60);
}

static enum store_status list_with(struct text cursor, bool descending, struct text run)
{
    struct store_rollout_filter filter;
    struct store_rollouts page;
    store_rollout_filter_init(&filter);
    filter.descending = descending;
    filter.run = run;
    enum store_status status =
        store_list_rollouts(fixture->reader, &filter, cursor, &(struct store_page_limits){2, 1000, SIZE_MAX}, 0, &page);
    store_rollouts_finish(&page);
    return status;
}

static void test_a_cursor_of_another_list_order_or_filter_is_refused(void **state)
{
    (void)state;
    struct store_rollout_filter filter;
    struct store_rollouts page;
    store_rollout_filter_init(&filter);
    assert_int_equal(store_list_rollouts(fixture->reader, &filter, TEXT_NONE,
                                         &(struct store_page_limits){2, 1000, SIZE_MAX}, 0, &page),
                     STORE_OK);
    char next[64];
    memcpy(next, page.next, sizeof(next));
    store_rollouts_finish(&page);
    assert_int_equal(list_with(text_of(next), false, TEXT_NONE), STORE_OK);
    assert_int_equal(list_with(text_of(next), true, TEXT_NONE), STORE_INVALID_CURSOR);
    assert_int_equal(list_with(text_of(next), false, TEXT_LITERAL("arith")), STORE_INVALID_CURSOR);
    assert_int_equal(list_with(TEXT_LITERAL(""), false, TEXT_NONE), STORE_INVALID_CURSOR);
    assert_int_equal(list_with(TEXT_LITERAL("garbage"), false, TEXT_NONE), STORE_INVALID_CURSOR);
    assert_int_equal(list_with(TEXT_LITERAL("zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"), false, TEXT_NONE),
                     STORE_INVALID_CURSOR);
    next[15] = next[15] == '1' ? '2' : '1';
    assert_int_equal(list_with(text_of(next), false, TEXT_NONE), STORE_INVALID_CURSOR);
    struct store_batches batches;
    assert_int_equal(store_list_batches(fixture->reader, TEXT_NONE, -1, false, text_of(next),
                                        &(struct store_page_limits){1, 100, SIZE_MAX}, &batches),
                     STORE_INVALID_CURSOR);
    store_batches_finish(&batches);
}

static void test_the_last_page_has_no_next(void **state)
{
    (void)state;
    struct store_rollout_filter filter;
    struct store_rollouts page;
    store_rollout_filter_init(&filter);
    filter.batch = text_of(batch_ids[0]);
    assert_int_equal(store_list_rollouts(fixture->reader, &filter, TEXT_NONE,
                                         &(struct store_page_limits){PER_BATCH, 1000, SIZE_MAX}, STORE_WITH_ALL, &page),
                     STORE_OK);
    assert_int_equal(page.count, PER_BATCH);
    assert_string_equal(page.next, "");
    assert_int_equal(page.rollouts[1].token_count, 3);
    assert_int_equal(page.rollouts[1].text.length_bytes, 9);
    store_rollouts_finish(&page);
}

static void test_batches_are_listed_by_run_and_state_in_both_orders(void **state)
{
    (void)state;
    assert_int_equal(close_batch(fixture, batch_ids[0], STORE_BATCH_CANCELLED), STORE_OK);
    struct store_batches batches;
    assert_int_equal(store_list_batches(fixture->reader, TEXT_LITERAL("arith"), -1, true, TEXT_NONE,
                                        &(struct store_page_limits){1, 100, SIZE_MAX}, &batches),
                     STORE_OK);
    assert_int_equal(batches.count, 1);
    assert_string_equal(batches.batches[0].id, batch_ids[1]);
    assert_int_equal(batches.batches[0].scored, 16);
    char next[64];
    memcpy(next, batches.next, sizeof(next));
    store_batches_finish(&batches);
    assert_int_equal(store_list_batches(fixture->reader, TEXT_LITERAL("arith"), -1, true, text_of(next),
                                        &(struct store_page_limits){1, 100, SIZE_MAX}, &batches),
                     STORE_OK);
    assert_string_equal(batches.batches[0].id, batch_ids[0]);
    assert_string_equal(batches.next, "");
    store_batches_finish(&batches);
    assert_int_equal(store_list_batches(fixture->reader, TEXT_NONE, STORE_BATCH_CANCELLED, false, TEXT_NONE,
                                        &(struct store_page_limits){10, 100, SIZE_MAX}, &batches),
                     STORE_OK);
    assert_int_equal(batches.count, 1);
    assert_string_equal(batches.batches[0].id, batch_ids[0]);
    store_batches_finish(&batches);
    assert_int_equal(store_list_batches(fixture->reader, TEXT_LITERAL("nobody"), -1, false, TEXT_NONE,
                                        &(struct store_page_limits){10, 100, SIZE_MAX}, &batches),
                     STORE_OK);
    assert_int_equal(batches.count, 0);
    store_batches_finish(&batches);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, with_rows, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_filters_find_exactly_what_fits),
        CLAIM(test_ascending_pages_show_each_row_once_and_the_new_ones_at_the_end),
        CLAIM(test_descending_pages_show_each_row_once_and_none_that_came_later),
        CLAIM(test_a_short_scan_budget_gives_short_pages_and_loses_nothing),
        CLAIM(test_a_cursor_of_another_list_order_or_filter_is_refused),
        CLAIM(test_the_last_page_has_no_next),
        CLAIM(test_batches_are_listed_by_run_and_state_in_both_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
