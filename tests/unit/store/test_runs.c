#include "tests/unit/store/fixture.h"

#include "server/store/sqlite/store_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* ---- revisions
 * -------------------------------------------------------------------------------------------------------------- */

static enum store_status create_at(int64_t revision, enum store_purpose purpose, int64_t max_staleness,
                                   struct store_op *ret_op)
{
    *ret_op = batch_op(1, 1);
    ret_op->create_batch.policy_revision = revision;
    ret_op->create_batch.purpose = purpose;
    ret_op->create_batch.max_staleness = max_staleness;
    return carry_out(fixture, ret_op);
}

static enum store_status declare(int64_t revision, int64_t rewind_to_step, struct store_op *ret_op)
{
    *ret_op = (struct store_op){
        .kind = STORE_DECLARE_POLICY,
        .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = revision, .rewind_to_step = rewind_to_step}};
    return carry_out(fixture, ret_op);
}

static void test_a_batch_without_a_revision_gets_the_run_s(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(create_at(-1, STORE_TRAIN, -1, &op), STORE_OK);
    assert_int_equal(op.create_batch.policy_revision, 0);
    assert_int_equal(op.create_batch.current_revision, -1);
    assert_int_equal(declare(5, -1, &op), STORE_OK);
    assert_int_equal(create_at(-1, STORE_TRAIN, -1, &op), STORE_OK);
    assert_int_equal(op.create_batch.policy_revision, 5);
}

static void test_a_higher_revision_declares_itself_a_lower_is_stamped_or_refused(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(create_at(10, STORE_TRAIN, -1, &op), STORE_OK);
    assert_int_equal(op.create_batch.current_revision, 10);
    assert_int_equal(create_at(8, STORE_TRAIN, -1, &op), STORE_OK);
    assert_int_equal(op.create_batch.policy_revision, 8);
    assert_int_equal(op.create_batch.current_revision, 10);
    assert_int_equal(create_at(8, STORE_TRAIN, 2, &op), STORE_OK);
    assert_int_equal(create_at(7, STORE_TRAIN, 2, &op), STORE_REVISION_CONFLICT);
    assert_int_equal(op.create_batch.current_revision, 10);
}

static void test_an_evaluation_may_be_of_any_age_and_never_declares(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(create_at(10, STORE_TRAIN, -1, &op), STORE_OK);
    assert_int_equal(create_at(2, STORE_EVAL, 0, &op), STORE_OK);
    assert_int_equal(op.create_batch.policy_revision, 2);
    assert_int_equal(create_at(99, STORE_EVAL, 0, &op), STORE_OK);
    assert_int_equal(op.create_batch.current_revision, 10);
    assert_int_equal(create_at(-1, STORE_TRAIN, -1, &op), STORE_OK);
    assert_int_equal(op.create_batch.policy_revision, 10);
}

static void test_a_smaller_revision_needs_a_rewind_which_opens_an_incarnation(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(declare(100, -1, &op), STORE_OK);
    assert_int_equal(op.declare_policy.incarnation, 0);
    assert_int_equal(declare(95, -1, &op), STORE_REVISION_CONFLICT);
    assert_int_equal(op.declare_policy.current_revision, 100);
    assert_int_equal(declare(95, 95, &op), STORE_OK);
    assert_int_equal(op.declare_policy.incarnation, 1);
    assert_int_equal(op.declare_policy.current_revision, 95);
    struct store_run_detail run;
    assert_int_equal(store_read_run(fixture->reader, TEXT_LITERAL("arith"), &run), STORE_OK);
    assert_int_equal(run.incarnation_count, 2);
    assert_int_equal(run.incarnations[1].rewind_to_step, 95);
    assert_int_equal(run.revision_count, 2);
    assert_int_equal(run.revisions[0].incarnation, 1);
    assert_int_equal(run.revisions[0].revision, 95);
    assert_int_equal(run.revisions[1].revision, 100);
    store_run_detail_finish(&run);
}

static void test_a_rewind_that_is_sent_again_opens_no_second_incarnation(void **state)
{
    use(state);
    struct store_op op;
    assert_int_equal(declare(100, -1, &op), STORE_OK);
    assert_int_equal(declare(95, 95, &op), STORE_OK);
    assert_int_equal(declare(95, 95, &op), STORE_OK);
    assert_int_equal(op.declare_policy.incarnation, 1);
    assert_int_equal(declare(96, -1, &op), STORE_OK);
    assert_int_equal(declare(95, 95, &op), STORE_OK);
    assert_int_equal(op.declare_policy.incarnation, 2);
}

/* ---- unfinished batches, lists
 * ------------------------------------------------------------------------------------------------------ */

static void test_a_start_finds_its_own_unfinished_batches_and_their_members(void **state)
{
    use(state);
    char first[ID_BYTES];
    char second[ID_BYTES];
    char done[ID_BYTES];
    record_batch(fixture, 2, 2, first);
    record_batch(fixture, 1, 1, done);
    record_batch(fixture, 1, 1, second);
    assert_int_equal(close_batch(fixture, done, STORE_BATCH_EXPIRED), STORE_OK);
    struct store_rollout rollouts[] = {scored_rollout(1, 0.5), failed_rollout(0)};
    rollouts[0].heldout = TEXT_LITERAL("{\"h\":{}}");
    assert_int_equal(insert(fixture, first, 1, &rollouts[0]), STORE_OK);
    assert_int_equal(insert(fixture, first, 0, &rollouts[1]), STORE_OK);
    stop_store(fixture);
    start_store(fixture);
    assert_int_equal(fixture->store->owner_epoch, 2);
    struct store_batches batches;
    assert_int_equal(store_unfinished_batches(fixture->reader, &batches), STORE_OK);
    assert_int_equal(batches.count, 2);
    assert_string_equal(batches.batches[0].id, first);
    assert_string_equal(batches.batches[1].id, second);
    assert_int_equal(batches.batches[0].owner_epoch, 2);
    store_batches_finish(&batches);
    struct store_members members;
    assert_int_equal(store_read_batch_members(fixture->reader, text_of(first), &members), STORE_OK);
    assert_int_equal(members.count, 2);
    assert_int_equal(members.members[0].group_index, 0);
    assert_true(text_equals(members.members[0].failure_code, "engine_timeout"));
    assert_int_equal(members.members[0].trainable_tokens, 0);
    assert_int_equal(members.members[1].group_index, 1);
    assert_int_equal(members.members[1].trainable_tokens, 3);
    assert_true(text_equals(members.members[1].heldout, "{\"h\":{}}"));
    store_members_finish(&members);
    stop_store(fixture);
    fixture->options.owner = "somebody-else";
    start_store(fixture);
    assert_int_equal(store_unfinished_batches(fixture->reader, &batches), STORE_OK);
    assert_int_equal(batches.count, 0);
    store_batches_finish(&batches);
}

static void test_a_run_shows_its_distinct_objectives_with_the_first_batch_of_each(void **state)
{
    use(state);
    char ids[3][ID_BYTES];
    for (size_t i = 0; i < 3; i++) {
        struct store_op op = batch_op(1, 1);
        if (i == 1)
            op.create_batch.objective = TEXT_LITERAL("{\"preset\":\"dapo\"}");
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
        memcpy(ids[i], op.create_batch.id, ID_BYTES);
    }
    struct store_run_detail run;
    assert_int_equal(store_read_run(fixture->reader, TEXT_LITERAL("arith"), &run), STORE_OK);
    assert_int_equal(run.run.batches, 3);
    assert_int_equal(run.objective_count, 2);
    assert_string_equal(run.objectives[0].first_batch_id, ids[0]);
    assert_string_equal(run.objectives[1].first_batch_id, ids[1]);
    assert_true(text_equals(run.objectives[1].objective, "{\"preset\":\"dapo\"}"));
    store_run_detail_finish(&run);
}

static void test_the_same_part_of_an_objective_call_replaces_itself(void **state)
{
    use(state);
    struct store_op op = {.kind = STORE_RECORD_OBJECTIVE,
                          .record_objective = {.run = TEXT_LITERAL("arith"),
                                               .optimizer_step = 40,
                                               .part = 3,
                                               .objective = TEXT_LITERAL("{}"),
                                               .sums = TEXT_LITERAL("1")}};
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 1, batch_id);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op.record_objective.sums = TEXT_LITERAL("2");
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op.record_objective.part = 4;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM objective_calls"), 2);
    assert_int_equal(number_by_hand(fixture, "SELECT sums FROM objective_calls WHERE part = 3"), 2);
}

static void test_the_sums_of_a_part_are_one_row_for_each_slice_and_replaced_together(void **state)
{
    use(state);
    const struct store_objective_slice slices[] = {
        {.revision = 1, .engine = TEXT_LITERAL("e1"), .tokens = 5, .loss = 0.5, .means = {{2.5, 5}, {NAN, 0}}},
        {.revision = 1, .engine = TEXT_LITERAL("e2"), .tokens = 6, .loss = NAN, .means = {{3.5, 6}, {NAN, 0}}},
        {.incarnation = -1, .revision = -1, .engine = TEXT_NONE, .tokens = 7},
    };
    struct store_op op = {.kind = STORE_RECORD_OBJECTIVE,
                          .record_objective = {.run = TEXT_LITERAL("arith"),
                                               .optimizer_step = 40,
                                               .objective = TEXT_LITERAL("{}"),
                                               .sums = TEXT_LITERAL("{}"),
                                               .kl_estimator = TEXT_LITERAL("k3"),
                                               .slices = slices,
                                               .slice_count = 3}};
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 1, batch_id);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op.record_objective.part = 1;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op.record_objective.slices = &slices[1];
    op.record_objective.slice_count = 1;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(number_by_hand(fixture, "SELECT sum(tokens) FROM objective_sums WHERE part = 0"), 18);
    assert_int_equal(number_by_hand(fixture, "SELECT sum(tokens) FROM objective_sums WHERE part = 1"), 6);
    struct store_objective_sums page;
    assert_int_equal(store_list_objective_sums(fixture->reader, TEXT_LITERAL("arith"), 40, 0, TEXT_NONE, 100, &page),
                     STORE_OK);
    assert_int_equal(page.count, 4);
    assert_true(text_equals(page.sums[0].slice.engine, "e1") && page.sums[0].slice.means[0].sum == 2.5);
    assert_true(isnan(page.sums[0].slice.means[1].sum) && isnan(page.sums[1].slice.loss));
    assert_true(page.sums[2].slice.revision == -1 && !page.sums[2].slice.engine.data);
    assert_int_equal(page.sums[3].part, 1);
    store_objective_sums_finish(&page);
    assert_int_equal(store_list_objective_sums(fixture->reader, TEXT_LITERAL("nobody"), -1, -1, TEXT_NONE, 1, &page),
                     STORE_NOT_FOUND);
    store_objective_sums_finish(&page);
}

static void test_runs_are_listed_in_pages_with_their_counts(void **state)
{
    use(state);
    static const char *const names[] = {"c", "a", "b"};
    for (size_t i = 0; i < 3; i++) {
        struct store_op op = batch_op(1, 2);
        op.create_batch.run = text_of(names[i]);
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
        struct store_rollout rollout = failed_rollout(0);
        assert_int_equal(insert(fixture, op.create_batch.id, 0, &rollout), STORE_OK);
    }
    struct store_runs runs;
    assert_int_equal(store_list_runs(fixture->reader, TEXT_NONE, 2, &runs), STORE_OK);
    assert_int_equal(runs.count, 2);
    assert_true(text_equals(runs.runs[0].name, "c"));
    assert_int_equal(runs.runs[0].failed, 1);
    assert_int_equal(runs.runs[0].policy_revision, 12);
    char next[64];
    memcpy(next, runs.next, sizeof(next));
    store_runs_finish(&runs);
    assert_int_equal(store_list_runs(fixture->reader, text_of(next), 2, &runs), STORE_OK);
    assert_int_equal(runs.count, 1);
    assert_true(text_equals(runs.runs[0].name, "b"));
    assert_string_equal(runs.next, "");
    store_runs_finish(&runs);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_batch_without_a_revision_gets_the_run_s),
        CLAIM(test_a_higher_revision_declares_itself_a_lower_is_stamped_or_refused),
        CLAIM(test_an_evaluation_may_be_of_any_age_and_never_declares),
        CLAIM(test_a_smaller_revision_needs_a_rewind_which_opens_an_incarnation),
        CLAIM(test_a_rewind_that_is_sent_again_opens_no_second_incarnation),
        CLAIM(test_a_start_finds_its_own_unfinished_batches_and_their_members),
        CLAIM(test_a_run_shows_its_distinct_objectives_with_the_first_batch_of_each),
        CLAIM(test_the_same_part_of_an_objective_call_replaces_itself),
        CLAIM(test_the_sums_of_a_part_are_one_row_for_each_slice_and_replaced_together),
        CLAIM(test_runs_are_listed_in_pages_with_their_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
