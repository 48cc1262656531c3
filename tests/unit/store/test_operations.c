#include "server/store/request.h"
#include "tests/unit/store/fixture.h"

#include <stdio.h>
#include <string.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* ---- batches
 * ---------------------------------------------------------------------------------------------------------------- */

static void test_a_created_batch_is_read_back_with_every_column(void **state)
{
    use(state);
    struct store_op op = batch_op(2, 3);
    op.create_batch.idempotency_key = TEXT_LITERAL("k1");
    op.create_batch.metadata = TEXT_LITERAL("{\"a\":1}");
    op.create_batch.max_staleness = 4;
    op.create_batch.seed = INT64_MAX;
    op.create_batch.deliver = STORE_LEASE;
    op.create_batch.respond_async = true;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    struct store_batch batch;
    assert_int_equal(store_read_batch(fixture->reader, text_of(op.create_batch.id), &batch), STORE_OK);
    assert_string_equal(batch.id, op.create_batch.id);
    assert_true(text_equals(batch.run, "arith"));
    assert_int_equal(batch.state, STORE_BATCH_RUNNING);
    assert_int_equal(batch.policy_revision, 12);
    assert_int_equal(batch.max_staleness, 4);
    assert_true(batch.seed == INT64_MAX);
    assert_int_equal(batch.deliver, STORE_LEASE);
    assert_true(batch.respond_async);
    assert_true(text_equals(batch.idempotency_key, "k1"));
    assert_true(text_equals(batch.owner, "rolloutd"));
    assert_int_equal(batch.owner_epoch, 1);
    assert_true(text_equals(batch.metadata, "{\"a\":1}"));
    assert_true(text_equals(batch.objective, "{\"preset\":\"grpo\"}"));
    assert_int_equal(batch.group_count, 2);
    assert_int_equal(batch.rollout_count, 6);
    assert_int_equal(batch.completed_at_us, -1);
    assert_null(batch.notes.data);
    assert_true(isnan(batch.loss));
    store_batch_finish(&batch);
}

static void test_the_request_is_kept_byte_by_byte(void **state)
{
    use(state);
    struct store_op op = batch_op(1, 1);
    op.create_batch.request = TEXT_LITERAL("{\"x\": \"\0\xff\"}\n");
    op.create_batch.request_sha256[31] = 9;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    struct store_request request;
    assert_int_equal(store_read_request(fixture->reader, text_of(op.create_batch.id), &request), STORE_OK);
    assert_true(text_same(request.body, op.create_batch.request));
    assert_true(text_equals(request.content_type, "application/json"));
    assert_int_equal(request.sha256[31], 9);
    store_request_finish(&request);
}

static void test_an_id_that_is_not_on_record_is_not_found(void **state)
{
    use(state);
    struct store_batch batch;
    struct store_group group;
    struct store_rollouts rollout;
    struct store_run_detail run;
    char id[ID_BYTES];
    id_new_batch(id);
    assert_int_equal(store_read_batch(fixture->reader, text_of(id), &batch), STORE_NOT_FOUND);
    assert_int_equal(store_read_batch(fixture->reader, TEXT_LITERAL("no id\0"), &batch), STORE_NOT_FOUND);
    assert_int_equal(store_read_group(fixture->reader, TEXT_LITERAL("g_x"), STORE_WITH_ALL, &group), STORE_NOT_FOUND);
    assert_int_equal(store_read_rollout(fixture->reader, TEXT_LITERAL(""), STORE_WITH_ALL, &rollout), STORE_NOT_FOUND);
    assert_int_equal(store_read_run(fixture->reader, TEXT_LITERAL("nobody"), &run), STORE_NOT_FOUND);
}

/* ---- idempotency
 * ------------------------------------------------------------------------------------------------------------ */

static enum store_status find_key(const char *run, const char *key, char ret_id[ID_BYTES],
                                  uint8_t ret_sha256[SHA256_BYTES])
{
    return store_find_idempotency(fixture->reader, text_of(run), STORE_ROUTE_BATCHES, text_of(key), ret_id, ret_sha256);
}

static void test_the_same_key_and_body_name_the_first_batch(void **state)
{
    use(state);
    struct store_op first = batch_op(1, 1);
    struct store_op second = batch_op(1, 1);
    first.create_batch.idempotency_key = second.create_batch.idempotency_key = TEXT_LITERAL("k");
    assert_int_equal(carry_out(fixture, &first), STORE_OK);
    assert_int_equal(carry_out(fixture, &second), STORE_EXISTS);
    assert_string_equal(second.create_batch.id, first.create_batch.id);
    assert_int_equal(second.create_batch.created_at_us, first.create_batch.created_at_us);
    char found[ID_BYTES];
    uint8_t sha256[SHA256_BYTES];
    assert_int_equal(find_key("arith", "k", found, sha256), STORE_OK);
    assert_string_equal(found, first.create_batch.id);
    assert_int_equal(find_key("arith", "other", found, sha256), STORE_NOT_FOUND);
}

static void test_the_same_key_with_another_body_is_a_conflict_and_leaves_nothing(void **state)
{
    use(state);
    struct store_op first = batch_op(1, 1);
    struct store_op second = batch_op(1, 1);
    first.create_batch.idempotency_key = second.create_batch.idempotency_key = TEXT_LITERAL("k");
    second.create_batch.request_sha256[0] = 1;
    assert_int_equal(carry_out(fixture, &first), STORE_OK);
    assert_int_equal(carry_out(fixture, &second), STORE_IDEMPOTENCY_CONFLICT);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batches"), 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM runs"), 1);
}

/* F18 */
static void test_a_key_counts_within_its_run_incarnation_and_route(void **state)
{
    use(state);
    struct store_op ops[4];
    for (size_t i = 0; i < ARRAY_LENGTH(ops); i++) {
        ops[i] = batch_op(1, 1);
        ops[i].create_batch.idempotency_key = TEXT_LITERAL("k");
    }
    ops[1].create_batch.run = TEXT_LITERAL("another");
    ops[2].create_batch.route = STORE_ROUTE_SCORE;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(carry_out(fixture, &ops[i]), STORE_OK);
    struct store_op rewind = {.kind = STORE_DECLARE_POLICY,
                              .declare_policy = {.run = TEXT_LITERAL("arith"), .revision = 12, .rewind_to_step = 3}};
    assert_int_equal(carry_out(fixture, &rewind), STORE_OK);
    char found[ID_BYTES];
    uint8_t sha256[SHA256_BYTES];
    assert_int_equal(find_key("arith", "k", found, sha256), STORE_NOT_FOUND);
    assert_int_equal(find_key("another", "k", found, sha256), STORE_OK);
    assert_int_equal(carry_out(fixture, &ops[3]), STORE_OK);
    assert_int_equal(ops[3].create_batch.incarnation, 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(DISTINCT id) FROM batches"), 4);
}

static void test_a_batch_that_must_exist_is_not_made(void **state)
{
    use(state);
    struct store_op op = batch_op(1, 1);
    op.create_batch.idempotency_key = TEXT_LITERAL("k");
    op.create_batch.must_exist = true;
    assert_int_equal(carry_out(fixture, &op), STORE_NOT_FOUND);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batches"), 0);
    op.create_batch.must_exist = false;
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    op.create_batch.must_exist = true;
    assert_int_equal(carry_out(fixture, &op), STORE_EXISTS);
}

static void *submit_one(void *arg)
{
    struct store_op *op = arg;
    assert_true(store_submit(fixture->store, op));
    return NULL;
}

static void test_twenty_at_once_with_one_key_make_one_batch(void **state)
{
    use(state);
    enum { THREADS = 20 };
    struct store_op ops[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        ops[i] = batch_op(1, 1);
        ops[i].create_batch.idempotency_key = TEXT_LITERAL("k");
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, submit_one, &ops[i]);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    wait_finished(fixture, THREADS);
    size_t created = 0;
    for (size_t i = 0; i < THREADS; i++) {
        created += ops[i].status == STORE_OK;
        assert_true(ops[i].status == STORE_OK || ops[i].status == STORE_EXISTS);
        assert_string_equal(ops[i].create_batch.id, ops[0].create_batch.id);
    }
    assert_int_equal(created, 1);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM batches"), 1);
}

/* ---- rollouts
 * --------------------------------------------------------------------------------------------------------------- */

static void test_a_rollout_is_read_back_with_every_column(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout written = scored_rollout(1, 0.75);
    static const uint8_t mask[] = {1, 0, 1};
    written.completion_mask = mask;
    written.queued_us = 1;
    written.engine_us = 2;
    written.verify_us = 3;
    written.text_replaced = 4;
    written.eos_in_ids = STORE_KNOWN_YES;
    written.engine_revision = TEXT_LITERAL("sha-9");
    written.straddles = true;
    written.resample = 1;
    assert_int_equal(insert(fixture, batch_id, 0, &written), STORE_OK);
    char id[ID_BYTES];
    id_of_group(batch_id, 0, id);
    id_of_rollout(id, 1, id);
    struct store_rollouts read;
    assert_int_equal(store_read_rollout(fixture->reader, text_of(id), STORE_WITH_ALL, &read), STORE_OK);
    const struct store_rollout *rollout = read.rollouts;
    assert_string_equal(rollout->id, id);
    assert_string_equal(rollout->batch_id, batch_id);
    assert_true(text_equals(rollout->run, "arith") && text_equals(rollout->task, "task-0"));
    assert_true(rollout->reward == 0.75);
    assert_true(isnan(rollout->advantage) && isnan(rollout->shaped_reward));
    assert_null(rollout->failure.code.data);
    assert_true(text_same(rollout->text, written.text));
    assert_int_equal(rollout->text.length_bytes, 9);
    assert_int_equal(rollout->text_replaced, 4);
    assert_true(text_equals(rollout->engine_revision, "sha-9"));
    assert_true(rollout->straddles);
    assert_true(rollout->seed == UINT64_C(3068566343491767147) && rollout->seed_sent == INT64_C(3068566343491767147));
    assert_int_equal(rollout->seed_honoured, STORE_KNOWN_YES);
    assert_int_equal(rollout->eos_in_ids, STORE_KNOWN_YES);
    assert_int_equal(rollout->logprobs_mode, STORE_LOGPROBS_RAW);
    assert_int_equal(rollout->token_count, 3);
    assert_memory_equal(rollout->completion_ids, written.completion_ids, 12);
    assert_memory_equal(rollout->completion_mask, mask, 3);
    assert_true(rollout->logprobs[0] == -0.5F && rollout->logprobs[1] == 0.0F && rollout->logprobs[2] == -0.125F);
    assert_int_equal(rollout->completion_tokens, 3);
    assert_int_equal(rollout->trainable_tokens, 2);
    assert_int_equal(rollout->incarnation, 0);
    assert_int_equal(rollout->verify_us, 3);
    assert_true(text_same(rollout->rewards, written.rewards));
    assert_null(rollout->heldout.data);
    store_rollouts_finish(&read);
}

static void test_a_failure_is_read_back_whole_and_its_message_is_cut_between_characters(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 1, batch_id);
    struct store_rollout written = failed_rollout(0);
    char message[600];
    memset(message, 'x', sizeof(message));
    memcpy(message + 511, "\xc3\xa9", 2); /* é would straddle byte 512 */
    written.failure.message = (struct text){message, sizeof(message)};
    assert_int_equal(insert(fixture, batch_id, 0, &written), STORE_OK);
    char id[ID_BYTES];
    id_of_group(batch_id, 0, id);
    struct store_group group;
    assert_int_equal(store_read_group(fixture->reader, text_of(id), STORE_WITH_ALL, &group), STORE_OK);
    assert_int_equal(group.rollout_count, 1);
    const struct store_rollout *rollout = group.rollouts;
    assert_int_equal(rollout->state, STORE_ROLLOUT_FAILED);
    assert_true(isnan(rollout->reward));
    assert_true(text_equals(rollout->failure.code, "engine_timeout") && text_equals(rollout->failure.stage, "sample"));
    assert_true(rollout->failure.retryable);
    assert_int_equal(rollout->failure.attempts, 3);
    assert_int_equal(rollout->failure.message.length_bytes, 511);
    assert_int_equal(rollout->seed_sent, -1);
    assert_int_equal(rollout->seed_honoured, STORE_KNOWN_UNKNOWN);
    assert_int_equal(rollout->revision_at_end, -1);
    store_group_finish(&group);
}

static void test_the_first_writer_of_a_member_wins(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout first = scored_rollout(0, 1.0);
    struct store_rollout second = scored_rollout(0, 0.0);
    assert_int_equal(insert(fixture, batch_id, 0, &first), STORE_OK);
    assert_int_equal(insert(fixture, batch_id, 0, &second), STORE_EXISTS);
    struct store_members members;
    assert_int_equal(store_read_batch_members(fixture->reader, text_of(batch_id), &members), STORE_OK);
    assert_int_equal(members.count, 1);
    assert_true(members.members[0].reward == 1.0);
    store_members_finish(&members);
}

static void test_a_member_that_the_group_does_not_have_is_refused(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout rollout = scored_rollout(2, 1.0);
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_REFUSED);
    rollout.sample_index = 0;
    assert_int_equal(insert(fixture, batch_id, 1, &rollout), STORE_NOT_FOUND);
}

static void test_a_scored_rollout_with_a_log_probability_that_is_not_finite_is_refused(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    static const float logprobs[] = {-0.5F, -INFINITY, -1.0F};
    rollout.logprobs = logprobs;
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_REFUSED);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts"), 0);
}

static void test_the_prompt_of_a_group_is_set_once(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char group_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    id_of_group(batch_id, 0, group_id);
    static const uint32_t prompts[2][2] = {{1, 4294967295U}, {3, 4}};
    for (int64_t i = 0; i < 2; i++) {
        struct store_rollout rollout = scored_rollout(i, 1.0);
        struct store_op op = {
            .kind = STORE_INSERT_ROLLOUT,
            .insert_rollout = {
                .group_id = group_id, .rollout = &rollout, .prompt_ids = prompts[i], .prompt_id_count = 2}};
        assert_int_equal(carry_out(fixture, &op), STORE_OK);
        assert_int_equal(op.insert_rollout.seq, i + 1);
    }
    struct store_group group;
    assert_int_equal(store_read_group(fixture->reader, text_of(group_id), STORE_WITH_ARRAYS, &group), STORE_OK);
    assert_int_equal(group.prompt_id_count, 2);
    assert_memory_equal(group.prompt_ids, prompts[0], 8);
    assert_null(group.rollouts[0].text.data);
    store_group_finish(&group);
}

/* ---- closing
 * ---------------------------------------------------------------------------------------------------------------- */

static void test_a_group_that_lost_a_member_closes_with_advantages_for_the_others(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    char group_id[ID_BYTES];
    record_batch(fixture, 1, 3, batch_id);
    id_of_group(batch_id, 0, group_id);
    struct store_rollout rollouts[] = {scored_rollout(0, 1.0), failed_rollout(1), scored_rollout(2, 0.0)};
    const double advantage[] = {1.0, NAN, -1.0};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(insert(fixture, batch_id, 0, &rollouts[i]), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 3, advantage, 0.5, 0.5), STORE_STATE_CONFLICT);
    assert_int_equal(insert(fixture, batch_id, 0, &rollouts[2]), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 3, advantage, 0.5, 0.5), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 3, advantage, 0.5, 0.5), STORE_EXISTS);
    struct store_group group;
    assert_int_equal(store_read_group(fixture->reader, text_of(group_id), 0, &group), STORE_OK);
    assert_int_equal(group.state, STORE_GROUP_COMPLETE);
    assert_true(group.reward_mean == 0.5 && group.reward_std == 0.5);
    assert_true(group.rollouts[0].advantage == 1.0 && group.rollouts[2].advantage == -1.0);
    assert_true(isnan(group.rollouts[1].advantage));
    assert_true(group.closed_at_us > 0);
    store_group_finish(&group);
}

static void test_an_advantage_without_a_reward_is_refused_and_the_group_stays_open(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout rollouts[] = {scored_rollout(0, 1.0), failed_rollout(1)};
    const double advantage[] = {0.0, 0.0};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(insert(fixture, batch_id, 0, &rollouts[i]), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 2, advantage, 1.0, 0.0), STORE_REFUSED);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM rollouts WHERE advantage IS NOT NULL"), 0);
    assert_int_equal(number_by_hand(fixture, "SELECT count(*) FROM groups WHERE state = 'running'"), 1);
}

static void test_a_group_without_rewards_closes_with_a_null_mean_only(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 1, batch_id);
    struct store_rollout rollout = scored_rollout(0, NAN);
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 1, NULL, 0.0, NAN), STORE_REFUSED);
    assert_int_equal(close_group(fixture, batch_id, 0, 1, NULL, NAN, NAN), STORE_OK);
}

static void test_a_batch_completes_when_its_groups_are_closed_and_then_takes_nothing_more(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 1, batch_id);
    struct store_rollout rollout = scored_rollout(0, 1.0);
    assert_int_equal(close_batch(fixture, batch_id, STORE_BATCH_COMPLETE), STORE_STATE_CONFLICT);
    assert_int_equal(insert(fixture, batch_id, 0, &rollout), STORE_OK);
    assert_int_equal(close_group(fixture, batch_id, 0, 1, (double[]){0.0}, 1.0, 0.0), STORE_OK);
    struct store_op op = {.kind = STORE_CLOSE_BATCH,
                          .close_batch = {.batch_id = batch_id,
                                          .state = STORE_BATCH_COMPLETE,
                                          .loss = -0.25,
                                          .total_tokens = 3,
                                          .total_sequences = 1,
                                          .total_groups = 1,
                                          .notes = TEXT_LITERAL("[\"n\"]"),
                                          .summary = TEXT_LITERAL("{\"s\":1}"),
                                          .completed_at_us = 1234}};
    assert_int_equal(carry_out(fixture, &op), STORE_OK);
    struct store_batch batch;
    assert_int_equal(store_read_batch(fixture->reader, text_of(batch_id), &batch), STORE_OK);
    assert_int_equal(batch.state, STORE_BATCH_COMPLETE);
    assert_true(batch.loss == -0.25);
    assert_int_equal(batch.total_tokens, 3);
    assert_int_equal(batch.completed_at_us, 1234);
    assert_true(text_equals(batch.notes, "[\"n\"]") && text_equals(batch.summary, "{\"s\":1}"));
    assert_int_equal(batch.scored, 1);
    store_batch_finish(&batch);
    struct store_op again = {.kind = STORE_CLOSE_BATCH,
                             .close_batch = {.batch_id = batch_id, .state = STORE_BATCH_CANCELLED, .loss = NAN}};
    assert_int_equal(carry_out(fixture, &again), STORE_EXISTS);
    assert_int_equal(again.close_batch.state, STORE_BATCH_COMPLETE);
}

static void test_a_cancelled_batch_keeps_what_finished_and_takes_no_more(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 1, 2, batch_id);
    struct store_rollout rollouts[] = {scored_rollout(0, 1.0), scored_rollout(1, 1.0)};
    assert_int_equal(insert(fixture, batch_id, 0, &rollouts[0]), STORE_OK);
    assert_int_equal(close_batch(fixture, batch_id, STORE_BATCH_CANCELLED), STORE_OK);
    assert_int_equal(insert(fixture, batch_id, 0, &rollouts[0]), STORE_EXISTS);
    assert_int_equal(insert(fixture, batch_id, 0, &rollouts[1]), STORE_STATE_CONFLICT);
    assert_int_equal(close_group(fixture, batch_id, 0, 2, NULL, 1.0, 0.0), STORE_STATE_CONFLICT);
}

static void test_groups_are_read_in_pages(void **state)
{
    use(state);
    char batch_id[ID_BYTES];
    record_batch(fixture, 5, 1, batch_id);
    struct store_groups groups;
    assert_int_equal(store_read_groups(fixture->reader, text_of(batch_id), 3, 10, 0, &groups), STORE_OK);
    assert_int_equal(groups.count, 2);
    assert_int_equal(groups.groups[0].index, 3);
    assert_true(text_equals(groups.groups[1].task, "task-4"));
    store_groups_finish(&groups);
    assert_int_equal(store_read_groups(fixture->reader, text_of(batch_id), 5, 10, 0, &groups), STORE_OK);
    assert_int_equal(groups.count, 0);
    store_groups_finish(&groups);
    assert_int_equal(store_read_groups(fixture->reader, TEXT_LITERAL("b_nothing"), 0, 10, 0, &groups), STORE_NOT_FOUND);
    store_groups_finish(&groups);
}

static void test_segments_are_kept_beside_the_text(void **state)
{
    struct fixture *own = *state;
    char batch_id[ID_BYTES];
    char group_id[ID_BYTES];
    char rollout_id[ID_BYTES];
    static const char *const segments[] = {"[{\"start\":0,\"end\":1,\"engine_revision\":\"a\"}]", NULL};
    struct store_rollouts read;
    record_batch(own, 1, 2, batch_id);
    id_of_group(batch_id, 0, group_id);
    for (int64_t i = 0; i < 2; i++) {
        struct store_rollout rollout = scored_rollout(i, 1);
        rollout.text = TEXT_LITERAL("4");
        rollout.segments = text_of(segments[i]);
        assert_int_equal(insert(own, batch_id, 0, &rollout), STORE_OK);
        id_of_rollout(group_id, i, rollout_id);
        assert_int_equal(
            store_read_rollout(own->reader, text_of(rollout_id), STORE_WITH_TEXT | STORE_WITH_SEGMENTS, &read),
            STORE_OK);
        assert_true(segments[i] ? text_equals(read.rollouts->segments, segments[i]) : !read.rollouts->segments.data);
        assert_true(text_equals(read.rollouts->text, "4"));
        store_rollouts_finish(&read);
    }
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_segments_are_kept_beside_the_text),
        CLAIM(test_a_created_batch_is_read_back_with_every_column),
        CLAIM(test_the_request_is_kept_byte_by_byte),
        CLAIM(test_an_id_that_is_not_on_record_is_not_found),
        CLAIM(test_the_same_key_and_body_name_the_first_batch),
        CLAIM(test_a_key_counts_within_its_run_incarnation_and_route),
        CLAIM(test_a_batch_that_must_exist_is_not_made),
        CLAIM(test_the_same_key_with_another_body_is_a_conflict_and_leaves_nothing),
        CLAIM(test_twenty_at_once_with_one_key_make_one_batch),
        CLAIM(test_a_rollout_is_read_back_with_every_column),
        CLAIM(test_a_failure_is_read_back_whole_and_its_message_is_cut_between_characters),
        CLAIM(test_the_first_writer_of_a_member_wins),
        CLAIM(test_a_member_that_the_group_does_not_have_is_refused),
        CLAIM(test_a_scored_rollout_with_a_log_probability_that_is_not_finite_is_refused),
        CLAIM(test_the_prompt_of_a_group_is_set_once),
        CLAIM(test_a_group_that_lost_a_member_closes_with_advantages_for_the_others),
        CLAIM(test_an_advantage_without_a_reward_is_refused_and_the_group_stays_open),
        CLAIM(test_a_group_without_rewards_closes_with_a_null_mean_only),
        CLAIM(test_a_batch_completes_when_its_groups_are_closed_and_then_takes_nothing_more),
        CLAIM(test_a_cancelled_batch_keeps_what_finished_and_takes_no_more),
        CLAIM(test_groups_are_read_in_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
