/* Manifests: the decisions of the store inside its transaction. */
#include "tests/unit/store/fixture.h"

static struct store_op put_op(int64_t base_version, int64_t checked_batch, struct store_budget budget)
{
    return (struct store_op){.kind = STORE_PUT_MANIFEST,
                             .put_manifest = {.run = TEXT_LITERAL("arith"),
                                              .given = TEXT_LITERAL("{\"a\":1}"),
                                              .frozen = TEXT_LITERAL("{\"a\":1}"),
                                              .budget = budget,
                                              .base_version = base_version,
                                              .checked_batch = checked_batch}};
}

static const struct store_budget unlimited = {-1, -1};

static struct store_manifest read_manifest(struct fixture *fixture)
{
    struct store_manifest manifest;
    assert_int_equal(store_read_manifest(fixture->reader, TEXT_LITERAL("arith"), &manifest), STORE_OK);
    return manifest;
}

static void test_a_manifest_makes_its_run_and_is_read_back(void **state)
{
    struct fixture *fixture = *state;
    struct store_op op = put_op(0, 0, (struct store_budget){7, 3});
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_true(op.put_manifest.created);
    assert_int_equal(op.put_manifest.version, 1);
    struct store_manifest manifest = read_manifest(fixture);
    assert_int_equal(manifest.version, 1);
    assert_true(text_equals(manifest.given, "{\"a\":1}"));
    assert_int_equal(manifest.budget.completion_tokens, 7);
    assert_int_equal(manifest.budget.revisions, 3);
    store_manifest_finish(&manifest);
}

static void test_a_run_without_a_manifest_has_version_0_and_one_that_is_not_there_is_not_found(void **state)
{
    struct fixture *fixture = *state;
    char batch_id[ID_BYTES];
    struct store_manifest none;
    assert_int_equal(store_read_manifest(fixture->reader, TEXT_LITERAL("arith"), &none), STORE_NOT_FOUND);
    store_manifest_finish(&none);
    record_batch(fixture, 1, 1, batch_id);
    struct store_manifest manifest = read_manifest(fixture);
    assert_int_equal(manifest.version, 0);
    assert_null(manifest.given.data);
    store_manifest_finish(&manifest);
}

static void test_a_manifest_that_adds_to_an_older_one_than_the_run_s_is_changed_and_nothing_happens(void **state)
{
    struct fixture *fixture = *state;
    struct store_op op = put_op(0, 0, unlimited);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op = put_op(0, 0, (struct store_budget){1, 1});
    assert_int_equal(carry_out(fixture, &op), STORE_CHANGED);
    op = put_op(1, 0, unlimited);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_false(op.put_manifest.created);
    struct store_manifest manifest = read_manifest(fixture);
    assert_int_equal(manifest.version, 2);
    assert_int_equal(manifest.budget.revisions, -1);
    store_manifest_finish(&manifest);
}

static void test_an_unchecked_batch_keeps_a_manifest_away(void **state)
{
    struct fixture *fixture = *state;
    char batch_id[ID_BYTES];
    struct store_settings_page page;
    record_batch(fixture, 1, 1, batch_id);
    struct store_op op = put_op(0, 0, unlimited);
    assert_int_equal(carry_out(fixture, &op), STORE_CHANGED);
    assert_int_equal(store_list_settings(fixture->reader, TEXT_LITERAL("arith"), 0, 10, &page), STORE_OK);
    assert_int_equal(page.count, 1);
    assert_string_equal(page.batches[0].id, batch_id);
    op = put_op(0, page.batches[0].seq, unlimited);
    store_settings_page_finish(&page);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
}

struct asked {
    int times;
    bool answer;
};

static bool ask(void *arg, struct text frozen)
{
    struct asked *asked = arg;
    assert_true(text_equals(frozen, "{\"a\":1}"));
    asked->times++;
    return asked->answer;
}

static enum store_status create(struct fixture *fixture, int64_t version, struct asked *asked)
{
    struct store_op op = batch_op(1, 1);
    op.create_batch.manifest = (struct store_manifest_guard){version, ask, asked};
    return carry_out(fixture, &op);
}

static void test_a_batch_is_asked_again_only_about_a_manifest_that_it_has_not_seen(void **state)
{
    struct fixture *fixture = *state;
    struct asked no = {.answer = false};
    struct asked yes = {.answer = true};
    struct store_op op = put_op(0, 0, unlimited);
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    assert_int_equal(create(fixture, 0, &no), STORE_MANIFEST_CONFLICT);
    assert_true(no.times > 0);
    assert_int_equal(create(fixture, 0, &yes), STORE_OK);
    assert_int_equal(yes.times, 1);
    no.times = 0;
    assert_int_equal(create(fixture, 1, &no), STORE_OK);
    assert_int_equal(no.times, 0);
    assert_int_equal(number_by_hand(fixture, "SELECT batches FROM runs"), 2);
}

static void test_without_a_manifest_a_batch_is_not_asked(void **state)
{
    struct fixture *fixture = *state;
    struct asked no = {.answer = false};
    assert_int_equal(create(fixture, 0, &no), STORE_OK);
    assert_int_equal(no.times, 0);
}

static void test_a_spent_budget_takes_no_batch_and_declares_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct store_op op = put_op(0, 0, (struct store_budget){-1, 1});
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    struct store_op first = batch_op(1, 1);
    assert_int_equal(carry_out(fixture, &first), STORE_OK);
    struct store_op same = batch_op(1, 1);
    assert_int_equal(carry_out(fixture, &same), STORE_OK);
    struct store_op next = batch_op(1, 1);
    next.create_batch.policy_revision = 13;
    assert_int_equal(carry_out(fixture, &next), STORE_OVER_BUDGET);
    assert_int_equal(number_by_hand(fixture, "SELECT policy_revision FROM runs"), 12);
    struct store_op evaluation = batch_op(1, 1);
    evaluation.create_batch.policy_revision = 13;
    evaluation.create_batch.purpose = STORE_EVAL;
    assert_int_equal(carry_out(fixture, &evaluation), STORE_OK);
}

static void test_tokens_of_training_are_counted_with_their_rows(void **state)
{
    struct fixture *fixture = *state;
    char batch_id[ID_BYTES];
    record_batch(fixture, 2, 1, batch_id);
    for (int64_t g = 0; g < 2; g++) {
        struct store_rollout rollout = scored_rollout(0, 1.0);
        assert_int_equal(insert(fixture, batch_id, g, &rollout), STORE_OK);
    }
    assert_int_equal(number_by_hand(fixture, "SELECT spent_tokens FROM runs"),
                     number_by_hand(fixture, "SELECT sum(completion_tokens) FROM rollouts"));
    assert_true(number_by_hand(fixture, "SELECT spent_tokens FROM runs") > 0);
}

static void test_tokens_from_before_the_count_are_counted_in_slices_without_those_of_later_rows(void **state)
{
    struct fixture *fixture = *state;
    char batch_id[ID_BYTES];
    record_batch(fixture, 2, 1, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    assert_int_equal(by_hand(fixture, "UPDATE runs SET spent_tokens = 0, spent_counted_to = 0"), 0);
    assert_int_equal(insert(fixture, batch_id, 1, &rollout), STORE_OK);
    struct store_op op = {.kind = STORE_COUNT_SPENT, .count_spent = {.run = TEXT_LITERAL("arith")}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
        assert_true(op.count_spent.all);
        assert_int_equal(number_by_hand(fixture, "SELECT spent_tokens FROM runs WHERE spent_counted_to IS NULL"),
                         number_by_hand(fixture, "SELECT sum(completion_tokens) FROM rollouts"));
    }
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_a_manifest_makes_its_run_and_is_read_back),
        CLAIM(test_a_run_without_a_manifest_has_version_0_and_one_that_is_not_there_is_not_found),
        CLAIM(test_a_manifest_that_adds_to_an_older_one_than_the_run_s_is_changed_and_nothing_happens),
        CLAIM(test_an_unchecked_batch_keeps_a_manifest_away),
        CLAIM(test_a_batch_is_asked_again_only_about_a_manifest_that_it_has_not_seen),
        CLAIM(test_without_a_manifest_a_batch_is_not_asked),
        CLAIM(test_a_spent_budget_takes_no_batch_and_declares_nothing),
        CLAIM(test_tokens_of_training_are_counted_with_their_rows),
        CLAIM(test_tokens_from_before_the_count_are_counted_in_slices_without_those_of_later_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
