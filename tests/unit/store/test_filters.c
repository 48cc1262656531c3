/* Filters and orders of lists: the index that each one walks, the rows that it finds. */
#include "tests/unit/store/fixture.h"

#include "server/store/sqlite/rollout_scan.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;
static char batch_id[ID_BYTES];

/* A batch of one group of n. */
static void use(void **state, int64_t n)
{
    fixture = *state;
    record_batch(fixture, 1, n, batch_id);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static bool is_of_a_group(enum statement which)
{
    return which == SQL_SCAN_GROUP_UP || which == SQL_SCAN_GROUP_DOWN;
}

/* The members of one group are found by an index in another order, and are few: they alone are sorted. */
static void assert_plan(enum statement which, const char *index)
{
    char sql[4096];
    sqlite3_stmt *plan = NULL;
    snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statement_rows[which].sql);
    assert_int_equal(sqlite3_prepare_v2(fixture->reader->database.handle, sql, -1, &plan, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(plan), SQLITE_ROW);
    const char *detail = (const char *)sqlite3_column_text(plan, 3);
    if (strncmp(detail, "SEARCH rollouts USING ", 22) != 0 || !strstr(detail, index))
        fail_msg("%s: %s, not by %s", statement_rows[which].name, detail, index);
    /* No second step: neither a sorter nor another table. */
    assert_int_equal(sqlite3_step(plan), is_of_a_group(which) ? SQLITE_ROW : SQLITE_DONE);
    sqlite3_finalize(plan);
}

static void assert_planned(struct store_rollout_filter *filter, const char *index)
{
    for (int down = 0; down < 2; down++) {
        struct rollout_scan scan;
        struct rollout_leg legs[ROLLOUT_LEGS_MAX];
        struct list_place place;
        filter->descending = down;
        assert_int_equal(rollout_scan_resolve(fixture->reader, filter, &scan), SQLITE_ROW);
        rollout_scan_start(filter, &place);
        size_t count = rollout_scan_plan(&scan, &place, legs);
        assert_int_equal(count, filter->order_by == STORE_BY_CREATED ? 1 : 3);
        for (size_t i = 0; i < count; i++)
            assert_plan(legs[i].which, index);
    }
}

#define PLANNED(index, ...)                                                                                            \
    do {                                                                                                               \
        struct store_rollout_filter filter_;                                                                           \
        store_rollout_filter_init(&filter_);                                                                           \
        struct store_rollout_filter *f = &filter_;                                                                     \
        __VA_ARGS__;                                                                                                   \
        assert_planned(f, index);                                                                                      \
    } while (0)

static void test_planned_filters_and_orders_walk_an_index_without_a_sorter(void **state)
{
    use(state, 1);
    char group_id[ID_BYTES];
    struct text run = TEXT_LITERAL("arith");
    id_of_group(batch_id, 0, group_id);
    PLANNED("(group_seq=?)", f->group = text_of(group_id), f->run = run);
    PLANNED("rollouts_by_batch (batch_seq=? AND rowid", f->batch = text_of(batch_id), f->task = TEXT_LITERAL("task-0"));
    PLANNED("rollouts_by_task (task_seq=? AND rowid", f->task = TEXT_LITERAL("task-0"), f->run = run);
    PLANNED("rollouts_by_failure (failure_code=? AND rowid", f->failure = TEXT_LITERAL("deadline"), f->run = run);
    PLANNED("rollouts_by_state (state=? AND rowid", f->state = STORE_ROLLOUT_FAILED, f->run = run);
    PLANNED("rollouts_duplicate (run_seq=? AND rowid", f->duplicate = 1, f->run = run);
    PLANNED("rollouts_by_revision (run_seq=? AND policy_revision=? AND rowid", f->run = run,
            f->revision_min = f->revision_max = 12);
    PLANNED("rollouts_by_run (run_seq=? AND rowid", f->run = run, f->revision_min = 12, f->duplicate = 0);
    PLANNED("PRIMARY KEY (rowid", f->duplicate = 1);
    PLANNED("rollouts_by_reward (run_seq=? AND policy_revision=? AND reward", f->run = run,
            f->revision_min = f->revision_max = 12, f->order_by = STORE_BY_REWARD);
    PLANNED("rollouts_by_advantage (run_seq=? AND policy_revision=? AND advantage", f->run = run,
            f->revision_min = f->revision_max = 12, f->order_by = STORE_BY_ADVANTAGE);
    PLANNED("rollouts_by_tokens (run_seq=? AND policy_revision=? AND completion_tokens", f->run = run,
            f->revision_min = f->revision_max = 12, f->order_by = STORE_BY_TOKENS);
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

static void add(struct store_rollout rollout)
{
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
}

/* Fills found[] with the sample indexes of a list from the cursor on, which is moved on. Returns how many. */
static size_t list_some(const struct store_rollout_filter *filter, size_t limit, size_t scanned, char cursor[64],
                        int64_t *found)
{
    struct store_rollouts page;
    assert_int_equal(store_list_rollouts(fixture->reader, filter, *cursor ? text_of(cursor) : TEXT_NONE,
                                         &(struct store_page_limits){limit, scanned, SIZE_MAX}, 0, &page),
                     STORE_OK);
    for (size_t i = 0; i < page.count; i++)
        found[i] = page.rollouts[i].sample_index;
    memcpy(cursor, page.next, sizeof(page.next));
    size_t count = page.count;
    store_rollouts_finish(&page);
    return count;
}

static void assert_found(const struct store_rollout_filter *filter, size_t limit, const int64_t *wanted, size_t count)
{
    int64_t found[64];
    char cursor[64] = "";
    size_t at = 0;
    do {
        at += list_some(filter, limit, 1000, cursor, found + at);
    } while (*cursor);
    assert_int_equal(at, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], wanted[i]);
}

#define FINDS(wanted, ...)                                                                                             \
    do {                                                                                                               \
        struct store_rollout_filter filter_;                                                                           \
        store_rollout_filter_init(&filter_);                                                                           \
        struct store_rollout_filter *f = &filter_;                                                                     \
        __VA_ARGS__;                                                                                                   \
        static const int64_t wanted_[] = {UNPACK wanted};                                                              \
        assert_found(f, 3, wanted_, sizeof(wanted_) / sizeof(wanted_[0]));                                             \
    } while (0)
#define UNPACK(...) __VA_ARGS__

static void test_verifier_verdict_and_reason_hold_of_one_verdict(void **state)
{
    use(state, 4);
    struct store_rollout rollout = scored_rollout(0, 1);
    rollout.verdicts = TEXT_LITERAL(
        "[{\"id\":\"math\",\"verdict\":\"correct\",\"reason\":\"equal\",\"detail\":{\"reason\":\"no_answer\"}},"
        "{\"id\":\"for\\\"mat\",\"verdict\":\"incorrect\",\"reason\":\"no_answer\"}]");
    add(rollout);
    rollout = scored_rollout(1, 0);
    rollout.verdicts = TEXT_LITERAL("[{\"id\":\"math\",\"verdict\":\"incorrect\",\"reason\":\"no_answer\"}]");
    add(rollout);
    rollout = scored_rollout(2, 0);
    add(rollout);
    rollout = failed_rollout(3);
    add(rollout);
    FINDS((0, 1), f->verifier = TEXT_LITERAL("math"));
    FINDS((0), f->verifier = TEXT_LITERAL("for\"mat"));
    FINDS((0, 1), f->reason = TEXT_LITERAL("no_answer"));
    FINDS((1), f->reason = TEXT_LITERAL("no_answer"), f->verifier = TEXT_LITERAL("math"));
    FINDS((0, 1), f->verdict = TEXT_LITERAL("incorrect"));
    FINDS((0), f->verdict = TEXT_LITERAL("correct"), f->verifier = TEXT_LITERAL("math"));
    struct store_rollout_filter filter;
    store_rollout_filter_init(&filter);
    filter.verdict = TEXT_LITERAL("correct");
    filter.reason = TEXT_LITERAL("no_answer");
    assert_found(&filter, 3, NULL, 0);
}

static void test_values_beyond_the_row_are_found_too(void **state)
{
    use(state, 4);
    struct store_rollout rollout = scored_rollout(0, 1);
    rollout.heldout = TEXT_LITERAL("{\"a\":{\"score\":0.25},\"b\":{\"score\":0.75}}");
    rollout.engine_revision = TEXT_LITERAL("step-1");
    add(rollout);
    rollout = scored_rollout(1, 0);
    rollout.heldout = TEXT_LITERAL("{\"a\":{\"score\":0.5},\"b\":{\"score\":null}}");
    rollout.text = TEXT_LITERAL("a needle");
    add(rollout);
    rollout = failed_rollout(2);
    add(rollout);
    rollout = scored_rollout(3, 0.5);
    add(rollout);
    assert_int_equal(close_group(fixture, batch_id, 0, 4, (double[]){1.25, -1.25, NAN, 0}, 0.5, 0.4), STORE_OK);
    FINDS((0), f->heldout_min = 0.6);
    FINDS((0, 1), f->heldout_min = 0.5);
    FINDS((0), f->engine_revision = TEXT_LITERAL("step-1"));
    FINDS((0, 3), f->text = TEXT_LITERAL("y\0t"));
    FINDS((1), f->text = TEXT_LITERAL("needle"));
    FINDS((0, 1, 3), f->text = TEXT_LITERAL(""));
    FINDS((0, 3), f->advantage_min = 0);
    FINDS((1, 3), f->advantage_max = 0);
}

static void test_a_long_text_that_is_searched_counts_as_many_rows(void **state)
{
    use(state, 4);
    static char text[100 * 4096];
    int64_t found[4];
    char cursor[64] = "";
    struct store_rollout_filter filter;
    store_rollout_filter_init(&filter);
    filter.text = TEXT_LITERAL("x");
    memset(text, 'x', sizeof(text));
    for (int64_t i = 0; i < 4; i++) {
        struct store_rollout rollout = scored_rollout(i, 1);
        rollout.text = (struct text){text, sizeof(text)};
        add(rollout);
    }
    assert_int_equal(list_some(&filter, 4, 150, cursor, found), 2);
    assert_int_equal(list_some(&filter, 4, 250, cursor, found), 2);
    assert_string_equal(cursor, "");
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static const double rewards[] = {0.5, NAN, -1, 0.5, 1, 0.5, NAN, 1, 0.5};
enum { VALUES = 9 };

static struct store_rollout ranked(int64_t sample_index)
{
    double reward = rewards[sample_index];
    struct store_rollout rollout = isnan(reward) ? failed_rollout(sample_index) : scored_rollout(sample_index, reward);
    if (isnan(reward))
        rollout.completion_tokens = 7;
    return rollout;
}

static void test_an_order_by_a_value_is_total_and_has_nulls_last_in_both_directions(void **state)
{
    use(state, VALUES);
    for (int64_t i = 0; i < VALUES; i++)
        add(ranked(i));
    for (size_t limit = 1; limit <= VALUES + 1; limit++) {
        struct store_rollout_filter filter;
        store_rollout_filter_init(&filter);
        filter.run = TEXT_LITERAL("arith");
        filter.revision_min = filter.revision_max = 12;
        filter.order_by = STORE_BY_REWARD;
        assert_found(&filter, limit, (int64_t[]){2, 0, 3, 5, 8, 4, 7, 1, 6}, VALUES);
        filter.descending = true;
        assert_found(&filter, limit, (int64_t[]){7, 4, 8, 5, 3, 0, 2, 6, 1}, VALUES);
        filter.order_by = STORE_BY_TOKENS;
        assert_found(&filter, limit, (int64_t[]){6, 1, 8, 7, 5, 4, 3, 2, 0}, VALUES);
        filter.reward_max = 0.5;
        assert_found(&filter, limit, (int64_t[]){8, 5, 3, 2, 0}, 5);
    }
}

static void test_a_cursor_by_value_is_stable_while_rows_are_added(void **state)
{
    use(state, VALUES);
    int64_t found[VALUES];
    char cursor[64] = "";
    struct store_rollout_filter filter;
    store_rollout_filter_init(&filter);
    filter.run = TEXT_LITERAL("arith");
    filter.revision_min = filter.revision_max = 12;
    filter.order_by = STORE_BY_REWARD;
    for (int64_t i = 0; i < VALUES; i++)
        if (i != 2 && i != 5 && i != 7)
            add(ranked(i));
    assert_int_equal(list_some(&filter, 2, 1000, cursor, found), 2); /* 0, 3 */
    add(ranked(2));                                                  /* before the cursor */
    add(ranked(5));                                                  /* behind it: equal to its value, but later */
    add(ranked(7));
    assert_int_equal(list_some(&filter, 100, 1000, cursor, found), 6);
    static const int64_t rest[] = {8, 5, 4, 7, 1, 6}; /* equal ones in the order of their rows */
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(found[i], rest[i]);
}

static void test_an_advantage_orders_rollouts_once_their_group_is_closed(void **state)
{
    use(state, 3);
    for (int64_t i = 0; i < 3; i++)
        add(scored_rollout(i, (double)i));
    struct store_rollout_filter filter;
    store_rollout_filter_init(&filter);
    filter.run = TEXT_LITERAL("arith");
    filter.revision_min = filter.revision_max = 12;
    filter.order_by = STORE_BY_ADVANTAGE;
    filter.descending = true;
    assert_found(&filter, 2, (int64_t[]){2, 1, 0}, 3); /* none has one: by row */
    assert_int_equal(close_group(fixture, batch_id, 0, 3, (double[]){0, 1, -1}, 1, 1), STORE_OK);
    assert_found(&filter, 2, (int64_t[]){1, 0, 2}, 3);
}

/* ---- duplicates -------------------------------------------------------------------------------------------------- */

static struct store_rollout said(int64_t sample_index, const uint32_t *ids, size_t count, struct text text)
{
    struct store_rollout rollout = scored_rollout(sample_index, 1);
    rollout.completion_ids = ids;
    rollout.logprobs = NULL;
    rollout.token_count = ids ? count : 0;
    rollout.text = text;
    return rollout;
}

static void test_members_that_repeat_an_earlier_one_are_duplicates_once_the_group_is_closed(void **state)
{
    use(state, 8);
    static const uint32_t one[] = {1, 2, 3};
    static const uint32_t other[] = {1, 2, 4};
    const struct text text = TEXT_LITERAL("same");
    add(said(7, NULL, 0, text)); /* rows come in any order: its index counts */
    add(said(0, one, 3, text));
    add(said(1, other, 3, text)); /* other ids, same text: no repetition */
    add(said(2, one, 3, TEXT_LITERAL("else")));
    add(said(3, one, 2, text));
    add(said(4, NULL, 0, text));
    add(failed_rollout(5));
    add(failed_rollout(6));
    struct store_rollout_filter filter;
    store_rollout_filter_init(&filter);
    filter.duplicate = 0;
    assert_found(&filter, 3, NULL, 0);
    assert_int_equal(close_group(fixture, batch_id, 0, 8, NULL, 1, 0), STORE_OK);
    assert_found(&filter, 3, (int64_t[]){0, 1, 3, 4, 5, 6}, 6);
    filter.duplicate = 1;
    assert_found(&filter, 3, (int64_t[]){7, 2}, 2); /* in the order of their rows */
    filter.run = TEXT_LITERAL("arith");
    assert_found(&filter, 3, (int64_t[]){7, 2}, 2);
}

static void test_of_many_members_each_repetition_is_found_and_nothing_else(void **state)
{
    enum { MEMBERS = 700, DIFFERENT = 500 };
    use(state, MEMBERS);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const uint32_t ids[] = {i % DIFFERENT, 2};
        add(said(i, ids, 2, TEXT_LITERAL("same")));
    }
    assert_int_equal(close_group(fixture, batch_id, 0, MEMBERS, NULL, 1, 0), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts WHERE duplicate = 1"), MEMBERS - DIFFERENT);
    assert_int_equal(number_by_hand(fixture, "SELECT min(sample_index) FROM rollouts WHERE duplicate = 1"), DIFFERENT);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_planned_filters_and_orders_walk_an_index_without_a_sorter),
        CLAIM(test_verifier_verdict_and_reason_hold_of_one_verdict),
        CLAIM(test_values_beyond_the_row_are_found_too),
        CLAIM(test_a_long_text_that_is_searched_counts_as_many_rows),
        CLAIM(test_an_order_by_a_value_is_total_and_has_nulls_last_in_both_directions),
        CLAIM(test_a_cursor_by_value_is_stable_while_rows_are_added),
        CLAIM(test_an_advantage_orders_rollouts_once_their_group_is_closed),
        CLAIM(test_of_many_members_each_repetition_is_found_and_nothing_else),
        CLAIM(test_members_that_repeat_an_earlier_one_are_duplicates_once_the_group_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
