/* Deletion of a run: what it refuses, and slice by slice, across a restart. */
#include "server/store/sqlite/deletion.h"

#include "server/store/sqlite/retention.h"
#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

#define SLICES_MAX 1000 /* many times what these runs need */

static struct store_op deletion_of(const char *run)
{
    return (struct store_op){
        .kind = STORE_DELETE_RUN,
        .delete_run = {.run = text_of(run), .said_by = TEXT_LITERAL("test"), .size = {2, 3, 4, -1}}};
}

/* A complete batch of a run; ret_id[ID_BYTES]. */
static void complete_batch(struct fixture *fixture, const char *run, size_t groups, char ret_id[ID_BYTES])
{
    const double advantages[] = {1, -1};
    struct store_op op = batch_op(groups, 2);
    op.create_batch.run = text_of(run);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(ret_id, op.create_batch.id, ID_BYTES);
    for (size_t g = 0; g < groups; g++) {
        for (int64_t k = 0; k < 2; k++) {
            struct store_rollout rollout = scored_rollout(k, (double)k);
            assert_int_equal(insert(fixture, ret_id, (int64_t)g, &rollout), STORE_OK);
        }
        assert_int_equal(close_group(fixture, ret_id, (int64_t)g, 2, advantages, 0.5, 0.5), STORE_OK);
    }
    assert_int_equal(close_batch(fixture, ret_id, STORE_BATCH_COMPLETE), STORE_OK);
}

static void test_an_unknown_run_and_one_with_a_running_batch_are_not_deleted(void **state)
{
    struct fixture *fixture = *state;
    char id[ID_BYTES];
    struct store_op op = deletion_of("nobody");
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
    record_batch(fixture, 1, 2, id);
    op = deletion_of("arith");
    assert_int_equal(carry_out(fixture, &op), STORE_STATE_CONFLICT);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM run_deletions"), 0);
    assert_int_equal(close_batch(fixture, id, STORE_BATCH_CANCELLED), STORE_OK);
    op = deletion_of("arith");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(op.delete_run.deletion, 1);
}

static void test_a_run_with_an_open_weight_update_is_not_deleted(void **state)
{
    struct fixture *fixture = *state;
    char id[ID_BYTES];
    complete_batch(fixture, "held", 1, id);
    assert_int_equal(by_hand(fixture, "INSERT INTO policy_updates (run_seq, mode, state, revision, begun_at_us,"
                                      " deadline_us, incarnation) VALUES (1, 'abort', 'open', 13, 1, 2, 0)"),
                     SQLITE_OK);
    struct store_op op = deletion_of("held");
    assert_int_equal(carry_out(fixture, &op), STORE_STATE_CONFLICT);
}

/* ---- slices, on a connection of the test's own -------------------------------------------------------------- */

/* Two runs on record, of which the first is marked as an operation marks it. */
static void fill(struct fixture *fixture)
{
    char id[ID_BYTES];
    start_store(fixture);
    complete_batch(fixture, "going", 60, id);
    complete_batch(fixture, "staying", 3, id);
    stop_store(fixture);
    assert_int_equal(by_hand(fixture,
                             "INSERT INTO run_deletions (run, reason, requested_at_us, batches, group_count, rollouts)"
                             " VALUES ('going', 'request', 1, 1, 60, 120);"
                             " UPDATE runs SET deletion_seq = last_insert_rowid() WHERE name = 'going'"),
                     SQLITE_OK);
}

static struct deletion *begin(struct fixture *fixture, struct database *database)
{
    static const struct store_retention none = {0};
    assert_int_equal(database_open(database, fixture->path, DATABASE_WRITER, false, 0), SQLITE_OK);
    assert_int_equal(database_prepare(database, true, false), SQLITE_OK);
    struct deletion *deletion = deletion_create(database, &none);
    assert_non_null(deletion);
    return deletion;
}

static void end(struct deletion *deletion, struct database *database)
{
    deletion_destroy(deletion);
    database_close(database);
}

/* How many slices it took. */
static int work_to_the_end(struct deletion *deletion)
{
    int slices = 0;
    while (deletion_is_awake(deletion) && slices < SLICES_MAX) {
        deletion_work(deletion);
        slices++;
    }
    assert_int_equal(deletion_due_us(deletion, true), INT64_MAX);
    return slices;
}

static void assert_only_staying_is_left(struct fixture *fixture)
{
    static const char *const counts[] = {"runs", "batches", "groups", "rollouts", "rollout_texts"};
    static const int64_t left[] = {1, 1, 3, 6, 6};
    char sql[64];
    for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", counts[i]);
        assert_int_equal(number_by_hand(fixture, sql), left[i]);
    }
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM runs WHERE name = 'staying'"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM run_deletions WHERE ended_at_us IS NOT NULL"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM pragma_foreign_key_check()"), 0);
}

static void test_every_row_of_the_run_goes_and_no_other(void **state)
{
    struct fixture *fixture = *state;
    struct database database = {0};
    fill(fixture);
    struct deletion *deletion = begin(fixture, &database);
    assert_true(work_to_the_end(deletion) > 0);
    end(deletion, &database);
    assert_only_staying_is_left(fixture);
}

/* Each slice is a transaction of its own: a new process continues where the last one stopped. */
static void test_a_deletion_that_was_cut_off_goes_on_at_the_next_start(void **state)
{
    struct fixture *fixture = *state;
    int starts = 0;
    fill(fixture);
    for (bool more = true; more && starts < SLICES_MAX; starts++) {
        struct database database = {0};
        struct deletion *deletion = begin(fixture, &database);
        assert_true(deletion_is_awake(deletion));
        deletion_work(deletion);
        more = deletion_is_awake(deletion);
        end(deletion, &database);
        assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM pragma_foreign_key_check()"), 0);
        assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts r JOIN runs ON runs.seq = r.run_seq"
                                                 " WHERE runs.name = 'staying'"),
                         6);
    }
    assert_true(starts < SLICES_MAX);
    assert_only_staying_is_left(fixture);
}

static void test_a_deletion_that_is_put_off_waits(void **state)
{
    struct fixture *fixture = *state;
    struct database database = {0};
    fill(fixture);
    struct deletion *deletion = begin(fixture, &database);
    int64_t before_us = deletion_due_us(deletion, true);
    deletion_put_off(deletion);
    assert_true(deletion_due_us(deletion, true) > before_us);
    assert_true(deletion_is_awake(deletion));
    end(deletion, &database);
}

#define OPEN(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)
#define CLOSED(function) cmocka_unit_test_setup_teardown(function, fixture_directory, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPEN(test_an_unknown_run_and_one_with_a_running_batch_are_not_deleted),
        OPEN(test_a_run_with_an_open_weight_update_is_not_deleted),
        CLOSED(test_every_row_of_the_run_goes_and_no_other),
        CLOSED(test_a_deletion_that_was_cut_off_goes_on_at_the_next_start),
        CLOSED(test_a_deletion_that_is_put_off_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
