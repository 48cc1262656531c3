/* Retention, look by look: changes between two looks count. */
#include "server/store/sqlite/retention.h"

#include "server/base/clock.h"
#include "tests/unit/store/fixture.h"

#include <stdio.h>

#define RUNS "80" /* more than one look reads */

static const struct store_retention rules = {.keep_us = US_PER_S};

/* 80 runs, each younger than those before it and all older than the rules allow. */
static struct fixture *fill(void **state)
{
    struct fixture *fixture = *state;
    start_store(fixture);
    stop_store(fixture);
    assert_int_equal(by_hand(fixture, "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < " RUNS ")"
                                      " INSERT INTO runs (name, created_at_us) SELECT 'run-' || i, i FROM n"),
                     SQLITE_OK);
    return fixture;
}

static void open_writer(struct fixture *fixture, struct database *database)
{
    assert_int_equal(database_open(database, fixture->path, DATABASE_WRITER, false, 0), SQLITE_OK);
    assert_int_equal(database_prepare(database, true, false), SQLITE_OK);
}

/* To the end of a walk over all runs: how many looks it took. */
static int look_at_all(struct retention *retention, bool *ret_marked)
{
    int looks = 0;
    *ret_marked = false;
    do {
        int result = retention_look(retention, ret_marked);
        assert_true(result == SQLITE_OK || result == SQLITE_DONE);
        looks++;
    } while (retention_due_us(retention) == 0);
    return looks;
}

static void test_the_run_that_was_idle_for_longest_is_marked(void **state)
{
    struct fixture *fixture = fill(state);
    struct database database = {0};
    bool marked;
    open_writer(fixture, &database);
    struct retention *retention = retention_create(&database, &rules);
    assert_int_equal(look_at_all(retention, &marked), 2);
    assert_true(marked);
    assert_int_equal(number_by_hand(fixture, "SELECT seq FROM runs WHERE deletion_seq IS NOT NULL"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM run_deletions WHERE run = 'run-1'"), 1);
    retention_destroy(retention);
    database_close(&database);
}

/* The run that is marked under these rules; -1: none. */
static int64_t marked_under(void **state, const struct store_retention *own)
{
    struct fixture *fixture = fill(state);
    struct database database = {0};
    bool marked;
    open_writer(fixture, &database);
    struct retention *retention = retention_create(&database, own);
    look_at_all(retention, &marked);
    int64_t seq = marked ? number_by_hand(fixture, "SELECT seq FROM runs WHERE deletion_seq IS NOT NULL") : -1;
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM run_deletions"), marked);
    retention_destroy(retention);
    database_close(&database);
    return seq;
}

static void test_runs_that_are_excepted_by_name_or_by_its_beginning_stay(void **state)
{
    const struct store_retention own = {.keep_us = US_PER_S, .except = "run-1  run-2* other"};
    assert_int_equal(marked_under(state, &own), 3);
}

static void test_a_run_that_was_active_within_the_time_stays(void **state)
{
    const struct store_retention own = {.keep_us = INT64_MAX / 2};
    assert_int_equal(marked_under(state, &own), -1);
}

static void test_in_a_file_that_is_too_large_the_oldest_goes(void **state)
{
    const struct store_retention large = {.most_bytes = 1, .spare_us = US_PER_S};
    assert_int_equal(marked_under(state, &large), 1);
}

static void test_a_run_that_is_spared_stays_however_large_the_file_is(void **state)
{
    const struct store_retention spared = {.most_bytes = 1, .spare_us = INT64_MAX / 2};
    assert_int_equal(marked_under(state, &spared), -1);
}

/* `between` happens to run-1, which the first look has seen. */
static void assert_stays(struct fixture *fixture, const char *between)
{
    struct database database = {0};
    bool marked = false;
    open_writer(fixture, &database);
    struct retention *retention = retention_create(&database, &rules);
    assert_int_equal(retention_look(retention, &marked), SQLITE_OK);
    assert_int_equal(retention_due_us(retention), 0);
    assert_int_equal(by_hand(fixture, between), SQLITE_OK);
    assert_int_equal(look_at_all(retention, &marked), 1);
    assert_false(marked);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM runs WHERE deletion_seq IS NOT NULL"), 0);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM run_deletions"), 0);
    retention_look_again(retention);
    assert_int_equal(look_at_all(retention, &marked), 2); /* the next walk finds another */
    assert_true(marked);
    assert_int_equal(number_by_hand(fixture, "SELECT seq FROM runs WHERE deletion_seq IS NOT NULL"), 2);
    retention_destroy(retention);
    database_close(&database);
}

static void test_a_run_that_is_used_between_two_looks_stays(void **state)
{
    assert_stays(fill(state),
                 "INSERT INTO trainer_metrics (run_seq, incarnation, optimizer_step, revision, recorded_at_us, numbers)"
                 " VALUES (1, 0, 1, 1, 4102444800000000, '{}')");
}

static void test_a_run_whose_update_is_opened_between_two_looks_stays(void **state)
{
    assert_stays(fill(state),
                 "INSERT INTO policy_updates (run_seq, mode, state, revision, begun_at_us, deadline_us, incarnation)"
                 " VALUES (1, 'abort', 'open', 1, 1, 2, 0)");
}

static void test_a_run_that_takes_the_place_of_a_deleted_one_stays(void **state)
{
    assert_stays(fill(state), "DELETE FROM runs WHERE seq = 1;"
                              " INSERT INTO runs (seq, name, created_at_us) VALUES (1, 'new', 4102444800000000)");
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_directory, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_the_run_that_was_idle_for_longest_is_marked),
        CLAIM(test_runs_that_are_excepted_by_name_or_by_its_beginning_stay),
        CLAIM(test_a_run_that_was_active_within_the_time_stays),
        CLAIM(test_in_a_file_that_is_too_large_the_oldest_goes),
        CLAIM(test_a_run_that_is_spared_stays_however_large_the_file_is),
        CLAIM(test_a_run_that_is_used_between_two_looks_stays),
        CLAIM(test_a_run_whose_update_is_opened_between_two_looks_stays),
        CLAIM(test_a_run_that_takes_the_place_of_a_deleted_one_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
