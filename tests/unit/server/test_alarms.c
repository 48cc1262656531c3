/* Alarms from a record that the test makes: each kind's condition at its threshold, and which runs are recent. */
#include "server/reports/alarms.h"

#include "server/base/clock.h"
#include "tests/unit/store/fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const struct alarm_limits limits = {.revisions = 8,
                                           .rollouts = 4,
                                           .divergence = 2,
                                           .zero_variance = 0.5,
                                           .truncated = 0.5,
                                           .failed = 0.25,
                                           .logprob_gap = 0.1};

/* Two members with these rewards; NAN: the member failed. */
static void post_group(struct fixture *fixture, const char *batch_id, int64_t revision, int64_t group,
                       const double rewards[2])
{
    double advantages[2];
    double sum = 0;
    size_t judged = 0;
    char id[ID_BYTES];
    for (int64_t k = 0; k < 2; k++) {
        struct store_rollout rollout = isnan(rewards[k]) ? failed_rollout(k) : scored_rollout(k, rewards[k]);
        rollout.policy_revision = revision;
        assert_int_equal(insert(fixture, batch_id, group, &rollout), STORE_OK);
        advantages[k] = isnan(rewards[k]) ? NAN : 0;
        sum += isnan(rewards[k]) ? 0 : rewards[k];
        judged += !isnan(rewards[k]);
    }
    id_of_group(batch_id, group, id);
    struct store_op op = {.kind = STORE_CLOSE_GROUP,
                          .close_group = {.group_id = id,
                                          .n = 2,
                                          .advantage = advantages,
                                          .reward_mean = judged ? sum / (double)judged : NAN,
                                          .reward_std = judged ? 0.5 : NAN,
                                          .zero_variance = judged == 1 || (judged == 2 && rewards[0] == rewards[1])}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

/* A complete batch at a revision, of groups of two. */
static void post(struct fixture *fixture, const char *run, int64_t revision, enum store_purpose purpose,
                 const double (*rewards)[2], size_t groups)
{
    struct store_op op = batch_op(groups, 2);
    char id[ID_BYTES];
    op.create_batch.run = text_of(run);
    op.create_batch.policy_revision = revision;
    op.create_batch.purpose = purpose;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    memcpy(id, op.create_batch.id, ID_BYTES);
    for (size_t g = 0; g < groups; g++)
        post_group(fixture, id, revision, (int64_t)g, rewards[g]);
    assert_int_equal(close_batch(fixture, id, STORE_BATCH_COMPLETE), STORE_OK);
}

static void find(struct fixture *fixture, const char *run, struct alarm_finding findings[ALARM_KINDS])
{
    assert_int_equal(alarms_find(fixture->reader, text_of(run), &limits, findings), STORE_OK);
}

static void test_the_share_of_failed_rollouts_is_raised_from_its_threshold_on(void **state)
{
    struct fixture *fixture = *state;
    struct alarm_finding findings[ALARM_KINDS];
    post(fixture, "quarter", 1, STORE_TRAIN, (const double[][2]){{0, 1}, {1, NAN}}, 2);
    find(fixture, "quarter", findings);
    assert_int_equal(findings[ALARM_FAILED].state, ALARM_RAISED);
    assert_true(findings[ALARM_FAILED].value == 0.25 && findings[ALARM_FAILED].revision == 1);
    post(fixture, "quarter", 2, STORE_TRAIN, (const double[][2]){{0, 1}, {1, NAN}, {0, 1}}, 3);
    find(fixture, "quarter", findings);
    assert_int_equal(findings[ALARM_FAILED].state, ALARM_CLEAR);
    assert_int_equal(findings[ALARM_FAILED].revision, 2);
}

static void test_a_revision_with_few_rollouts_and_an_evaluation_decide_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct alarm_finding findings[ALARM_KINDS];
    post(fixture, "few", 1, STORE_TRAIN, (const double[][2]){{0, 1}, {1, 0}}, 2);
    post(fixture, "few", 2, STORE_TRAIN, (const double[][2]){{NAN, NAN}}, 1);
    post(fixture, "few", 3, STORE_EVAL, (const double[][2]){{NAN, NAN}, {NAN, NAN}}, 2);
    find(fixture, "few", findings);
    assert_int_equal(findings[ALARM_FAILED].state, ALARM_CLEAR);
    assert_int_equal(findings[ALARM_FAILED].revision, 1);
    assert_int_equal(findings[ALARM_LOGPROB_GAP].state, ALARM_UNKNOWN);
}

static void test_groups_of_equal_rewards_are_counted_among_the_judged(void **state)
{
    struct fixture *fixture = *state;
    struct alarm_finding findings[ALARM_KINDS];
    post(fixture, "flat", 1, STORE_TRAIN, (const double[][2]){{1, 1}, {0, 1}, {0, 0}, {1, 0}}, 4);
    find(fixture, "flat", findings);
    assert_int_equal(findings[ALARM_ZERO_VARIANCE].state, ALARM_RAISED);
    assert_true(findings[ALARM_ZERO_VARIANCE].value == 0.5);
    post(fixture, "flat", 2, STORE_TRAIN, (const double[][2]){{1, 1}, {0, 1}, {1, 0}}, 3);
    find(fixture, "flat", findings);
    assert_int_equal(findings[ALARM_ZERO_VARIANCE].state, ALARM_CLEAR);
}

static void test_a_run_that_is_not_there_or_is_being_deleted_has_no_finding(void **state)
{
    struct fixture *fixture = *state;
    struct alarm_finding findings[ALARM_KINDS];
    assert_int_equal(alarms_find(fixture->reader, TEXT_LITERAL("nobody"), &limits, findings), STORE_NOT_FOUND);
    post(fixture, "going", 1, STORE_TRAIN, (const double[][2]){{NAN, NAN}, {NAN, NAN}}, 2);
    find(fixture, "going", findings);
    assert_int_equal(findings[ALARM_FAILED].state, ALARM_RAISED);
    assert_int_equal(by_hand(fixture,
                             "INSERT INTO run_deletions (run, reason, requested_at_us, batches, group_count, rollouts)"
                             " VALUES ('going', 'request', 1, 1, 2, 4);"
                             " UPDATE runs SET deletion_seq = last_insert_rowid() WHERE name = 'going'"),
                     SQLITE_OK);
    assert_int_equal(alarms_find(fixture->reader, TEXT_LITERAL("going"), &limits, findings), STORE_NOT_FOUND);
    assert_int_equal(findings[ALARM_FAILED].state, ALARM_UNKNOWN);
}

static void test_recent_runs_are_those_of_training_newest_first_and_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct alarm_recent recent = {0};
    char run[16];
    int64_t before_us = clock_utc_us();
    post(fixture, "evaluated", 1, STORE_EVAL, (const double[][2]){{0, 1}}, 1);
    for (int i = 0; i < ALARM_RECENT_RUNS + 2; i++) {
        snprintf(run, sizeof(run), "run-%d", i);
        post(fixture, run, 1, STORE_TRAIN, (const double[][2]){{0, 1}}, 1);
    }
    post(fixture, "run-5", 2, STORE_TRAIN, (const double[][2]){{0, 1}}, 1);
    assert_int_equal(alarms_find_recent(fixture->reader, before_us - US_PER_S, &recent), STORE_OK);
    assert_int_equal(recent.count, ALARM_RECENT_RUNS);
    assert_string_equal(recent.names[0], "run-5");
    assert_string_equal(recent.names[1], "run-33");
    for (size_t i = 0; i < recent.count; i++)
        assert_string_not_equal(recent.names[i], "run-0");
    alarm_recent_finish(&recent);
    assert_int_equal(recent.count, 0);
    assert_int_equal(alarms_find_recent(fixture->reader, INT64_MAX, &recent), STORE_OK);
    assert_int_equal(recent.count, 0);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_the_share_of_failed_rollouts_is_raised_from_its_threshold_on),
        CLAIM(test_a_revision_with_few_rollouts_and_an_evaluation_decide_nothing),
        CLAIM(test_groups_of_equal_rewards_are_counted_among_the_judged),
        CLAIM(test_a_run_that_is_not_there_or_is_being_deleted_has_no_finding),
        CLAIM(test_recent_runs_are_those_of_training_newest_first_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
