#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static struct store_op declared_op(int64_t revision)
{
    return (struct store_op){
        .kind = STORE_DECLARE_POLICY,
        .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = revision, .rewind_to_step = -1}};
}

static void declare(int64_t revision)
{
    struct store_op op = declared_op(revision);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

static void use(void **state)
{
    fixture = *state;
    declare(12);
}

static enum store_status take(enum store_update_step step, struct store_policy_update update, struct store_op *ret_op)
{
    *ret_op = (struct store_op){
        .kind = STORE_UPDATE_POLICY,
        .update_policy = {.step = step, .run = TEXT_LITERAL("arith"), .update = update},
    };
    return carry_out(fixture, ret_op);
}

static enum store_status begin(int64_t revision, enum store_update_mode mode, struct store_op *ret_op)
{
    return take(STORE_STEP_BEGIN,
                (struct store_policy_update){
                    .revision = revision, .rewind_to_step = -1, .mode = mode, .begun_at_us = 1000, .deadline_us = 9000},
                ret_op);
}

static enum store_status end(enum store_update_step step, int64_t revision, struct store_op *ret_op)
{
    return take(step, (struct store_policy_update){.revision = revision, .begun_at_us = 1000}, ret_op);
}

/* --- tests ------------------------------------------------------------------------------------------------ */

static void test_a_commit_declares_the_revision_and_nothing_before_it_does(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
    assert_int_equal(op.update_policy.current_revision, 12);
    assert_int_equal(op.update_policy.update.state, STORE_UPDATE_OPEN);
    assert_int_equal(end(STORE_STEP_COMMIT, 13, &op), STORE_OK);
    assert_int_equal(op.update_policy.current_revision, 13);
    assert_int_equal(op.update_policy.update.previous_revision, 12);
    assert_int_equal(number_by_hand(fixture, "SELECT policy_revision FROM runs"), 13);
}

static void test_a_cancelled_or_expired_update_declares_nothing(void **state)
{
    use(state);
    struct store_op op;
    static const enum store_update_step steps[] = {STORE_STEP_CANCEL, STORE_STEP_EXPIRE};
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
        assert_int_equal(end(steps[i], 13, &op), STORE_OK);
        assert_int_equal(op.update_policy.current_revision, 12);
    }
}

static void test_each_step_may_be_repeated_and_says_what_it_said(void **state)
{
    use(state);
    struct store_op first;
    struct store_op again;
    static const enum store_update_step steps[] = {STORE_STEP_CANCEL, STORE_STEP_EXPIRE, STORE_STEP_COMMIT};
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        assert_int_equal(begin(13, STORE_UPDATE_ABORT, &first), STORE_OK);
        assert_int_equal(begin(13, STORE_UPDATE_ABORT, &again), STORE_EXISTS);
        assert_memory_equal(&again.update_policy.update, &first.update_policy.update,
                            sizeof(first.update_policy.update));
        assert_int_equal(end(steps[i], 13, &first), STORE_OK);
        assert_int_equal(end(steps[i], 13, &again), STORE_EXISTS);
        assert_memory_equal(&again.update_policy.update, &first.update_policy.update,
                            sizeof(first.update_policy.update));
    }
}

static void test_another_begin_while_one_is_open_is_a_conflict(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
    assert_int_equal(begin(14, STORE_UPDATE_WAIT, &op), STORE_STATE_CONFLICT);
    assert_int_equal(op.update_policy.update.revision, 13);
    assert_int_equal(begin(13, STORE_UPDATE_ABORT, &op), STORE_STATE_CONFLICT);
}

static void test_a_smaller_revision_begins_nothing(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(begin(11, STORE_UPDATE_WAIT, &op), STORE_REVISION_CONFLICT);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM policy_updates"), 0);
}

static void test_an_end_of_nothing_of_another_or_after_another_end_is_a_conflict(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(end(STORE_STEP_COMMIT, -1, &op), STORE_STATE_CONFLICT);
    assert_int_equal(op.update_policy.update.revision, -1);
    assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
    assert_int_equal(end(STORE_STEP_COMMIT, 14, &op), STORE_STATE_CONFLICT);
    assert_int_equal(end(STORE_STEP_CANCEL, 14, &op), STORE_STATE_CONFLICT);
    assert_int_equal(end(STORE_STEP_CANCEL, -1, &op), STORE_OK);
    assert_int_equal(end(STORE_STEP_COMMIT, 13, &op), STORE_STATE_CONFLICT);
    assert_int_equal(op.update_policy.update.state, STORE_UPDATE_CANCELLED);
}

static void test_a_deadline_ends_only_the_update_that_it_was_of(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
    assert_int_equal(take(STORE_STEP_EXPIRE, (struct store_policy_update){.revision = 13, .begun_at_us = 999}, &op),
                     STORE_STATE_CONFLICT);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM policy_updates WHERE state = 'open'"), 1);
}

static void test_while_an_update_is_open_only_its_commit_declares(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
    struct store_op put = declared_op(14);
    assert_int_equal(carry_out(fixture, &put), STORE_STATE_CONFLICT);
    struct store_op batch = batch_op(1, 1);
    batch.create_batch.policy_revision = 14;
    assert_int_equal(carry_out(fixture, &batch), STORE_STATE_CONFLICT);
    batch = batch_op(1, 1);
    assert_int_equal(carry_out(fixture, &batch), STORE_OK); /* at 12 */
    assert_int_equal(number_by_hand(fixture, "SELECT policy_revision FROM runs"), 12);
}

static void test_a_commit_of_a_rewind_opens_the_next_incarnation(void **state)
{
    use(state);
    struct store_op op;
    struct store_policy_update back = {.revision = 5, .rewind_to_step = 5, .begun_at_us = 1000, .deadline_us = 9000};
    assert_int_equal(take(STORE_STEP_BEGIN, back, &op), STORE_OK);
    assert_int_equal(op.update_policy.update.incarnation, 0);
    assert_int_equal(end(STORE_STEP_COMMIT, 5, &op), STORE_OK);
    assert_int_equal(op.update_policy.update.incarnation, 1);
    assert_int_equal(number_by_hand(fixture, "SELECT incarnation * 100 + policy_revision FROM runs"), 105);
}

/* Training: always; an evaluation: if it was of the revision that was current. */
static void test_an_abort_moves_unfinished_batches_and_other_modes_do_not(void **state)
{
    use(state);
    struct store_op op;
    static const struct {
        enum store_purpose purpose;
        int64_t revision;
    } batches[] = {{STORE_TRAIN, 12}, {STORE_TRAIN, 10}, {STORE_EVAL, 12}, {STORE_EVAL, 3}};
    for (size_t i = 0; i < ARRAY_LENGTH(batches); i++) {
        struct store_op batch = batch_op(1, 1);
        batch.create_batch.purpose = batches[i].purpose;
        batch.create_batch.policy_revision = batches[i].revision;
        assert_int_equal(carry_out(fixture, &batch), STORE_OK);
    }
    char ended[ID_BYTES];
    record_batch(fixture, 1, 1, ended);
    assert_int_equal(close_batch(fixture, ended, STORE_BATCH_CANCELLED), STORE_OK);
    assert_int_equal(begin(13, STORE_UPDATE_WAIT, &op), STORE_OK);
    assert_int_equal(end(STORE_STEP_COMMIT, 13, &op), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(moved_to_revision) FROM batches"), 0);
    assert_int_equal(begin(14, STORE_UPDATE_ABORT, &op), STORE_OK);
    assert_int_equal(end(STORE_STEP_COMMIT, 14, &op), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batches WHERE moved_to_revision = 14"), 2);
    assert_int_equal(begin(15, STORE_UPDATE_ABORT, &op), STORE_OK);
    assert_int_equal(end(STORE_STEP_COMMIT, 15, &op), STORE_OK);
    assert_int_equal(
        number_by_hand(fixture, "SELECT count(*) FROM batches WHERE moved_to_revision = 15 AND purpose = 'train'"), 2);
}

static void test_an_evaluation_of_the_current_revision_is_moved_with_it(void **state)
{
    use(state);
    struct store_op op;
    struct store_op batch = batch_op(1, 1);
    batch.create_batch.purpose = STORE_EVAL;
    assert_int_equal(carry_out(fixture, &batch), STORE_OK);
    assert_int_equal(begin(13, STORE_UPDATE_ABORT, &op), STORE_OK);
    assert_int_equal(end(STORE_STEP_COMMIT, 13, &op), STORE_OK);
    struct store_batch read;
    assert_int_equal(store_read_batch(fixture->reader, text_of(batch.create_batch.id), &read), STORE_OK);
    assert_int_equal(read.policy_revision, 12);
    assert_int_equal(read.moved_to_revision, 13);
    store_batch_finish(&read);
}

static void test_open_updates_are_read_back_and_runs_show_the_newest(void **state)
{
    use(state);
    struct store_op op;
    struct store_runs runs;
    assert_int_equal(begin(13, STORE_UPDATE_STRADDLE, &op), STORE_OK);
    assert_int_equal(store_read_open_updates(fixture->reader, &runs), STORE_OK);
    assert_int_equal(runs.count, 1);
    assert_true(text_equals(runs.runs[0].name, "arith"));
    assert_int_equal(runs.runs[0].update.mode, STORE_UPDATE_STRADDLE);
    assert_int_equal(runs.runs[0].update.deadline_us, 9000);
    store_runs_finish(&runs);
    assert_int_equal(end(STORE_STEP_EXPIRE, 13, &op), STORE_OK);
    assert_int_equal(store_read_open_updates(fixture->reader, &runs), STORE_OK);
    assert_int_equal(runs.count, 0);
    store_runs_finish(&runs);
    assert_int_equal(store_list_runs(fixture->reader, TEXT_NONE, 9, &runs), STORE_OK);
    assert_true(runs.runs[0].has_update);
    assert_int_equal(runs.runs[0].update.state, STORE_UPDATE_EXPIRED);
    store_runs_finish(&runs);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_commit_declares_the_revision_and_nothing_before_it_does),
        CLAIM(test_a_cancelled_or_expired_update_declares_nothing),
        CLAIM(test_each_step_may_be_repeated_and_says_what_it_said),
        CLAIM(test_another_begin_while_one_is_open_is_a_conflict),
        CLAIM(test_a_smaller_revision_begins_nothing),
        CLAIM(test_an_end_of_nothing_of_another_or_after_another_end_is_a_conflict),
        CLAIM(test_a_deadline_ends_only_the_update_that_it_was_of),
        CLAIM(test_while_an_update_is_open_only_its_commit_declares),
        CLAIM(test_a_commit_of_a_rewind_opens_the_next_incarnation),
        CLAIM(test_an_abort_moves_unfinished_batches_and_other_modes_do_not),
        CLAIM(test_an_evaluation_of_the_current_revision_is_moved_with_it),
        CLAIM(test_open_updates_are_read_back_and_runs_show_the_newest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
