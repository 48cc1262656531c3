/* Groups on their way to a trainer: ready, leased, under a key; the plans of their statements. */
#include "tests/unit/store/deliveries_fixture.h"

#include "server/store/sqlite/reader.h"

/* ---- waiting, ready, failed -------------------------------------------------------------------------------------- */

static void test_a_group_is_ready_when_it_is_closed_with_a_reward(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_batch(2, 2, 3, -1, batch);
    assert_counts(2, 0, 0, 0, 0, 0, 0);
    add_member(batch, 0, 0, 3, -1);
    struct store_rollout failed = failed_rollout(1);
    assert_int_equal(insert(fixture, batch, 0, &failed), STORE_OK);
    assert_counts(2, 0, 0, 0, 0, 0, 0);
    assert_true(close_ready(batch, 0, 2));
    assert_counts(1, 1, 0, 0, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        failed = failed_rollout(i);
        assert_int_equal(insert(fixture, batch, 1, &failed), STORE_OK);
    }
    assert_int_equal(close_group(fixture, batch, 1, 2, NULL, (double)NAN, (double)NAN), STORE_OK);
    assert_counts(0, 1, 0, 0, 0, 1, 0);
    assert_int_equal(delivery_of(batch, 1).state, STORE_DELIVERY_FAILED);
    assert_sound();
}

static void test_a_cancelled_batch_keeps_its_finished_groups_ready(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_batch(3, 1, 3, -1, batch);
    add_member(batch, 1, 0, 3, -1);
    assert_true(close_ready(batch, 1, 1));
    assert_int_equal(close_batch(fixture, batch, STORE_BATCH_CANCELLED), STORE_OK);
    assert_counts(0, 1, 0, 0, 0, 2, 0);
    assert_int_equal(delivery_of(batch, 1).state, STORE_DELIVERY_READY);
    assert_sound();
}

static void test_a_group_that_is_dropped_is_never_delivered(void **state)
{
    char batch[ID_BYTES];
    char group_id[ID_BYTES];
    double advantage = 0;
    fixture = *state;
    make_batch(1, 1, 3, -1, batch);
    add_member(batch, 0, 0, 3, -1);
    id_of_group(batch, 0, group_id);
    struct store_op op = {
        .kind = STORE_CLOSE_GROUP,
        .close_group = {.group_id = group_id, .n = 1, .advantage = &advantage, .reward_mean = 1.0, .drop = true}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_false(op.close_group.is_ready);
    assert_counts(0, 0, 0, 0, 0, 0, 1);
    assert_nothing_to_take();
}

static void test_groups_of_a_reply_and_of_an_evaluation_are_never_leased(void **state)
{
    char batch[ID_BYTES];
    char group_id[ID_BYTES];
    struct store_delivery delivery;
    fixture = *state;
    record_batch(fixture, 1, 1, batch);
    id_of_group(batch, 0, group_id);
    assert_int_equal(store_read_delivery(fixture->reader, text_of(group_id), &delivery), STORE_NOT_FOUND);
    struct store_op op = batch_op(1, 1);
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.purpose = STORE_EVAL;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    id_of_group(op.create_batch.id, 0, group_id);
    assert_int_equal(store_read_delivery(fixture->reader, text_of(group_id), &delivery), STORE_NOT_FOUND);
    assert_counts(0, 0, 0, 0, 0, 0, 0);
}

static void test_groups_on_their_way_count_towards_the_ready_limit(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    take_some(1, 1, lease);
    struct store_op op = batch_op(2, 1);
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.ready_limit = 3;
    assert_int_equal(carry_out(fixture, &op), STORE_OVER_READY_LIMIT);
    assert_int_equal(op.create_batch.undelivered, 2);
    assert_int_equal(ack(lease, 1, NULL, 0), STORE_OK);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_counts(2, 1, 0, 1, 0, 0, 0);
}

/* ---- leases ------------------------------------------------------------------------------------------------------ */

static void test_a_lease_takes_the_oldest_revision_first_then_the_oldest_group(void **state)
{
    char late[ID_BYTES];
    char early[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    declare(5, -1);
    make_ready(2, 5, -1, late);
    make_ready(2, 4, -1, early);
    take_some(3, 3, lease);
    struct store_lease row;
    struct store_lease_groups groups;
    read_lease(lease, &row, &groups);
    assert_int_equal(groups.count, 3);
    assert_group(&groups, 0, early, 0);
    assert_group(&groups, 1, early, 1);
    assert_group(&groups, 2, late, 0);
    assert_int_equal(groups.groups[0].staleness, 1);
    assert_int_equal(groups.groups[2].staleness, 0);
    assert_int_equal(groups.groups[2].delivery, 1);
    assert_true(groups.groups[2].is_held);
    assert_int_equal(row.policy_revision, 5);
    assert_int_equal(row.held, 3);
    store_lease_groups_finish(&groups);
    assert_counts(0, 1, 3, 0, 0, 0, 0);
    assert_string_equal(delivery_of(early, 0).lease, lease);
    assert_sound();
}

static void test_a_lease_of_all_or_nothing_says_how_many_there_are(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    assert_int_equal(take((struct store_take_lease){.wanted = 3, .max_staleness = -1}), STORE_OK);
    assert_false(taken.taken);
    assert_int_equal(taken.eligible, 2);
    assert_int_equal(taken.next_expiry_us, -1);
    assert_counts(0, 2, 0, 0, 0, 0, 0);
    assert_int_equal(take((struct store_take_lease){.wanted = 2, .max_staleness = -1}), STORE_OK);
    assert_true(taken.taken);
    assert_int_equal(taken.next_expiry_us, taken.lease.expires_at_us);
    assert_nothing_to_take();
    struct store_op op = {.kind = STORE_TAKE_LEASE, .take_lease = {.run = TEXT_LITERAL("none"), .wanted = 1}};
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
}

static void test_a_group_too_old_for_the_lease_or_for_its_batch_is_stale_for_good(void **state)
{
    char strict[ID_BYTES];
    char loose[ID_BYTES];
    fixture = *state;
    make_ready(1, 4, 1, strict);
    make_ready(2, 5, -1, loose);
    declare(7, -1);
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 2}), STORE_OK);
    assert_true(taken.taken);
    assert_int_equal(taken.marked_stale, 1);
    struct store_delivery delivery = delivery_of(strict, 0);
    assert_int_equal(delivery.state, STORE_DELIVERY_STALE);
    assert_int_equal(delivery.staleness, 3);
    assert_int_equal(delivery.deliveries, 0);
    assert_int_equal(delivery_of(loose, 0).staleness, 2);
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 1, .partly = true}), STORE_OK);
    assert_false(taken.taken);
    assert_counts(0, 0, 1, 0, 2, 0, 0);
    assert_nothing_to_take();
    assert_sound();
}

static void test_staleness_counts_from_the_oldest_token_of_the_group(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_batch(1, 3, 3, -1, batch);
    declare(5, -1);
    struct store_rollout failed = failed_rollout(0); /* without tokens: at revision 1 it makes nothing older */
    failed.policy_revision = 1;
    assert_int_equal(insert(fixture, batch, 0, &failed), STORE_OK);
    add_member(batch, 0, 1, 5, -1);
    add_member(batch, 0, 2, 4, -1);
    assert_true(close_ready(batch, 0, 3));
    declare(6, -1);
    take_some(1, 1, lease);
    assert_int_equal(delivery_of(batch, 0).staleness, 2);
}

static void test_a_group_that_is_held_does_not_go_stale(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(1, 1, 0, batch);
    take_some(1, 1, lease);
    declare(9, -1);
    assert_int_equal(ack(lease, 1, NULL, 0), STORE_OK);
    assert_counts(0, 0, 0, 1, 0, 0, 0);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void test_a_key_gives_the_same_lease_again_also_after_a_restart(void **state)
{
    char batch[ID_BYTES];
    char lease[ID_BYTES];
    fixture = *state;
    make_ready(2, 1, -1, batch);
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    memcpy(lease, taken.id, ID_BYTES);
    assert_int_equal(take_by_key("a", 2), STORE_IDEMPOTENCY_CONFLICT);
    let_expire(lease);
    stop_store(fixture);
    start_store(fixture);
    assert_int_equal(take_by_key("a", 1), STORE_EXISTS);
    assert_string_equal(taken.id, lease);
    assert_int_equal(taken.lease.state, STORE_LEASE_EXPIRED);
    declare(1, 0); /* the next incarnation: the key is new */
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    assert_string_not_equal(taken.id, lease);
    assert_sound();
}

static void test_a_key_that_got_nothing_is_not_remembered(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_batch(1, 1, 1, -1, batch);
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    assert_false(taken.taken);
    add_member(batch, 0, 0, 1, -1);
    assert_true(close_ready(batch, 0, 1));
    assert_int_equal(take_by_key("a", 1), STORE_OK);
    assert_true(taken.taken);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void assert_plan(enum statement which, const char *expected)
{
    char sql[4096];
    char plan[4096] = "";
    sqlite3_stmt *rows = NULL;
    snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statement_rows[which].sql);
    assert_int_equal(sqlite3_prepare_v2(fixture->reader->database.handle, sql, -1, &rows, NULL), SQLITE_OK);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        size_t length = strlen(plan);
        snprintf(plan + length, sizeof(plan) - length, "%s; ", sqlite3_column_text(rows, 3));
    }
    sqlite3_finalize(rows);
    if (!strstr(plan, expected) || strstr(plan, "SCAN") || strstr(plan, "TEMP B-TREE FOR ORDER"))
        fail_msg("%s: %s, not by %s", statement_rows[which].name, plan, expected);
}

static void test_statements_of_leases_walk_an_index(void **state)
{
    fixture = *state;
    assert_plan(SQL_LIST_READY, "deliveries_by_state (run_seq=? AND state=?)");
    assert_plan(SQL_FIND_DUE_RUN_LEASE, "leases_by_end (run_seq=? AND ended_at_us=? AND expires_at_us<?)");
    assert_plan(SQL_RETURN_GROUPS, "deliveries_by_lease (lease_seq=?)");
    assert_plan(SQL_RETURN_ACKED, "deliveries_by_step (run_seq=? AND optimizer_step>?)");
    assert_plan(SQL_FIND_ACKED_AFTER, "deliveries_by_step (run_seq=? AND optimizer_step>?)");
    assert_plan(SQL_COUNT_UNDELIVERED, "PRIMARY KEY (run_seq=? AND state=?)");
    assert_plan(SQL_READ_LEASE_GROUPS, "PRIMARY KEY (lease_seq=?)");
    assert_plan(SQL_FIND_LEASE_GROUP, "lease_groups_by_group (group_seq=? AND lease_seq=?)");
    assert_plan(SQL_READ_DELIVERY, "SEARCH d USING INTEGER PRIMARY KEY");
    assert_plan(SQL_FIND_REWOUND_TO, "PRIMARY KEY (run_seq=? AND incarnation>?)");
    assert_plan(SQL_LIST_MEMBER_REVISIONS, "(group_seq=?)");
}

static void test_a_full_queue_of_stale_groups_is_worked_off_in_parts(void **state)
{
    char batch[ID_BYTES];
    fixture = *state;
    make_ready(1, 1, -1, batch);
    declare(9, -1);
    assert_int_equal(by_hand(fixture,
                             "INSERT INTO groups (batch_seq, group_index, task_seq, draw, first_sample_index, n, state,"
                             " closed_at_us, rewarded, reward_mean, zero_variance) WITH RECURSIVE i (n) AS (SELECT 1 "
                             "UNION ALL SELECT n + 1 FROM i WHERE n < 5000)"
                             " SELECT batch_seq, i.n, task_seq, i.n, 0, 1, 'complete', 1, 1, 1.0, 0 FROM groups JOIN i;"
                             "INSERT INTO deliveries (group_seq, run_seq, state, incarnation, revision)"
                             " SELECT seq, 1, 'ready', 0, 1 FROM groups WHERE group_index > 0;"
                             "UPDATE delivery_counts SET group_count = 5001 WHERE state = 'ready'"),
                     0);
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 2, .partly = true}), STORE_OK);
    assert_true(taken.again);
    assert_false(taken.taken);
    int64_t first = taken.marked_stale;
    assert_int_equal(take((struct store_take_lease){.wanted = 1, .max_staleness = 2, .partly = true}), STORE_OK);
    assert_false(taken.again);
    assert_int_equal(first + taken.marked_stale, 5001);
    assert_counts(0, 0, 0, 0, 5001, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_deliveries, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_group_is_ready_when_it_is_closed_with_a_reward),
        TEST(test_a_cancelled_batch_keeps_its_finished_groups_ready),
        TEST(test_a_group_that_is_dropped_is_never_delivered),
        TEST(test_groups_of_a_reply_and_of_an_evaluation_are_never_leased),
        TEST(test_groups_on_their_way_count_towards_the_ready_limit),
        TEST(test_a_lease_takes_the_oldest_revision_first_then_the_oldest_group),
        TEST(test_a_lease_of_all_or_nothing_says_how_many_there_are),
        TEST(test_a_group_too_old_for_the_lease_or_for_its_batch_is_stale_for_good),
        TEST(test_staleness_counts_from_the_oldest_token_of_the_group),
        TEST(test_a_group_that_is_held_does_not_go_stale),
        TEST(test_a_key_gives_the_same_lease_again_also_after_a_restart),
        TEST(test_a_key_that_got_nothing_is_not_remembered),
        TEST(test_statements_of_leases_walk_an_index),
        TEST(test_a_full_queue_of_stale_groups_is_worked_off_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
