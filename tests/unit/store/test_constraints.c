/* A failure is never a number, whoever writes: every statement here is tried on the file by hand, past the service. */
#include "tests/unit/store/fixture.h"

#include <sqlite3.h>
#include <stdio.h>

static struct fixture *fixture;

/* Rows 1 (scored, reward 1), 2 (failed), 3 (scored without a reward), 4 (cancelled), in group 1 of 5 members. */
static int with_rows(void **state)
{
    char batch_id[ID_BYTES];
    struct store_rollout rollouts[] = {scored_rollout(0, 1.0), failed_rollout(1), scored_rollout(2, NAN),
                                       failed_rollout(3)};
    rollouts[3].state = STORE_ROLLOUT_CANCELLED;
    if (fixture_open(state) < 0)
        return -1;
    fixture = *state;
    record_batch(fixture, 1, 5, batch_id);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(insert(fixture, batch_id, 0, &rollouts[i]), STORE_OK);
    return 0;
}

static void assert_refused(const char *sql)
{
    int result = by_hand(fixture, sql);
    if (result != SQLITE_CONSTRAINT)
        fail_msg("%s: %d, not refused by a constraint", sql, result);
}

static void assert_accepted(const char *sql)
{
    int result = by_hand(fixture, sql);
    if (result != SQLITE_OK)
        fail_msg("%s: %d", sql, result);
}

static void test_a_failed_rollout_cannot_be_given_a_reward(void **state)
{
    (void)state;
    assert_refused("UPDATE rollouts SET reward = 0.0 WHERE seq = 2");
    assert_refused("UPDATE rollouts SET reward = 1 WHERE seq = 4");
    assert_refused("UPDATE rollouts SET shaped_reward = 0.0 WHERE seq = 2");
}

static void test_nothing_without_a_reward_can_be_given_an_advantage(void **state)
{
    (void)state;
    assert_refused("UPDATE rollouts SET advantage = 0.0 WHERE seq = 2");
    assert_refused("UPDATE rollouts SET advantage = 0.0 WHERE seq = 3");
    assert_refused("UPDATE rollouts SET advantage = 0.0 WHERE seq = 4");
    assert_accepted("UPDATE rollouts SET advantage = 0.0 WHERE seq = 1");
}

static void test_a_failure_cannot_be_taken_away_or_put_beside_a_score(void **state)
{
    (void)state;
    assert_refused("UPDATE rollouts SET state = 'scored' WHERE seq = 2");
    assert_refused("UPDATE rollouts SET failure_code = NULL WHERE seq = 2");
    assert_refused("UPDATE rollouts SET failure_code = NULL, failure_stage = NULL, failure_message = NULL, "
                   "failure_retryable = NULL,"
                   " failure_attempts = NULL, state = 'scored', reward = 0.0 WHERE seq = 2");
    assert_refused("UPDATE rollouts SET failure_stage = 'sample' WHERE seq = 1");
    assert_refused("UPDATE rollouts SET failure_message = NULL WHERE seq = 2");
    assert_refused("UPDATE rollouts SET reward = 0.5 WHERE seq = 1");
}

#define COLUMNS                                                                                                        \
    "INSERT INTO rollouts (group_seq, sample_index, batch_seq, run_seq, task_seq, incarnation, purpose, "              \
    "created_at_us, policy_revision,"                                                                                  \
    " straddles, resample, attempts, seed, trainable, logprobs_mode, completion_tokens, trainable_tokens, queued_us, " \
    "engine_us, verify_us,"
#define VALUES " VALUES (1, 4, 1, 1, 1, 0, 'train', 0, 12, 0, 0, 1, 5, 1, 'raw', 0, 0, 0, 0, 0, "

static void test_a_new_row_obeys_too(void **state)
{
    (void)state;
    assert_refused(
        COLUMNS
        "state, reward, failure_stage, failure_code, failure_message, failure_retryable, failure_attempts)" VALUES
        "'failed', 0.0, 'sample', 'engine_timeout', '', 0, 1)");
    assert_refused(
        COLUMNS
        "state, reward, failure_stage, failure_code, failure_message, failure_retryable, failure_attempts)" VALUES
        "'scored', 0.0, 'sample', 'engine_timeout', '', 0, 1)");
    assert_refused(COLUMNS "state)" VALUES "'failed')");
    assert_refused(COLUMNS "state)" VALUES "'cancelled')");
    assert_refused(COLUMNS "state)" VALUES "'pending')");
    assert_refused(COLUMNS "state, advantage)" VALUES "'scored', 1.0)");
    assert_refused(COLUMNS "state, reward, advantage)" VALUES "'scored', 1.0, 1.0)");
    assert_refused(COLUMNS "state, reward)" VALUES "'scored', 9e999)");
    assert_refused(COLUMNS "state, reward)" VALUES "'scored', -9e999)");
    assert_refused(COLUMNS "state, reward)" VALUES "'scored', 'high')");
    assert_accepted(COLUMNS "state, reward)" VALUES "'scored', 1.0)");
    assert_refused(COLUMNS "state, reward)" VALUES "'scored', 1.0)"); /* the member has a row now */
}

static void test_a_group_s_mean_exists_exactly_with_rewards(void **state)
{
    (void)state;
    assert_refused("UPDATE groups SET reward_mean = 0.0");
    assert_refused("UPDATE groups SET state = 'complete'");
    assert_refused(
        "UPDATE groups SET state = 'complete', closed_at_us = 1, zero_variance = 0, rewarded = 0, reward_mean = 0.0");
    assert_refused(
        "UPDATE groups SET state = 'complete', closed_at_us = 1, zero_variance = 0, rewarded = 1, reward_mean = NULL");
    assert_refused(
        "UPDATE groups SET state = 'complete', closed_at_us = 1, zero_variance = 0, rewarded = 6, reward_mean = 1.0");
    assert_refused("UPDATE groups SET state = 'complete', closed_at_us = 1, zero_variance = 0, rewarded = 0, "
                   "reward_mean = NULL, reward_std = 0.0");
    assert_accepted(
        "UPDATE groups SET state = 'complete', closed_at_us = 1, zero_variance = 1, rewarded = 1, reward_mean = 1.0,"
        " reward_std = 0.0");
}

static void test_a_batch_has_no_loss_while_it_runs_and_is_not_complete_with_rows_missing(void **state)
{
    (void)state;
    assert_refused("UPDATE batches SET loss = 0.0");
    assert_refused("UPDATE batches SET state = 'expired'");
    assert_refused("UPDATE batches SET state = 'complete', completed_at_us = 1, total_tokens = 0, total_sequences = 0, "
                   "total_groups = 0");
    assert_refused("UPDATE batches SET state = 'lost', completed_at_us = 1, total_tokens = 0, total_sequences = 0, "
                   "total_groups = 0");
    assert_refused("UPDATE batches SET scored = 6");
    assert_accepted("UPDATE batches SET state = 'expired', completed_at_us = 1, total_tokens = 3, total_sequences = 1, "
                    "total_groups = 1,"
                    " loss = -0.0");
}

static void test_arrays_of_different_lengths_are_refused(void **state)
{
    (void)state;
    assert_refused("UPDATE rollout_arrays SET logprobs = x'00000000' WHERE rollout_seq = 1");
    assert_refused("UPDATE rollout_arrays SET completion_mask = x'01' WHERE rollout_seq = 1");
    assert_refused("UPDATE rollout_arrays SET completion_ids = x'0102030405' WHERE rollout_seq = 1");
}

static void test_the_view_for_people_shows_public_names(void **state)
{
    (void)state;
    assert_int_equal(
        number_by_hand(fixture, "SELECT count(*) FROM readable_rollouts WHERE run = 'arith' AND task = 'task-0'"), 4);
    assert_int_equal(number_by_hand(fixture,
                                    "SELECT count(*) FROM readable_rollouts WHERE id = 'r_' || substr(batch, 3) || "
                                    "'-00000-00001' AND failure_code = 'engine_timeout' AND reward IS NULL"),
                     1);
}

static void test_a_bad_operation_spoils_none_of_its_neighbours(void **state)
{
    (void)state;
    char batch_id[ID_BYTES];
    char group_id[ID_BYTES];
    record_batch(fixture, 1, 8, batch_id);
    id_of_group(batch_id, 0, group_id);
    struct store_rollout rollouts[8];
    struct store_op ops[8];
    size_t before = fixture->finished;
    for (size_t i = 0; i < 8; i++) {
        rollouts[i] = i % 2 ? failed_rollout((int64_t)i) : scored_rollout((int64_t)i, 1.0);
        rollouts[i].reward = 1.0; /* beside a failure in every second one */
        ops[i] = (struct store_op){.kind = STORE_INSERT_ROLLOUT,
                                   .insert_rollout = {.group_id = group_id, .rollout = &rollouts[i]}};
        assert_true(store_submit(fixture->store, &ops[i]));
    }
    wait_finished(fixture, before + 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(ops[i].status, i % 2 ? STORE_REFUSED : STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts WHERE batch_seq = 2"), 4);
    assert_int_equal(number_by_hand(fixture, "SELECT scored FROM batches WHERE seq = 2"), 4);
    assert_int_equal(number_by_hand(fixture, "SELECT failed FROM batches WHERE seq = 2"), 0);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, with_rows, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_failed_rollout_cannot_be_given_a_reward),
        CLAIM(test_nothing_without_a_reward_can_be_given_an_advantage),
        CLAIM(test_a_failure_cannot_be_taken_away_or_put_beside_a_score),
        CLAIM(test_a_new_row_obeys_too),
        CLAIM(test_a_group_s_mean_exists_exactly_with_rewards),
        CLAIM(test_a_batch_has_no_loss_while_it_runs_and_is_not_complete_with_rows_missing),
        CLAIM(test_arrays_of_different_lengths_are_refused),
        CLAIM(test_the_view_for_people_shows_public_names),
        CLAIM(test_a_bad_operation_spoils_none_of_its_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
