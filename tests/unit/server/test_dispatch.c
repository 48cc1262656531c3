/* Choices of the dispatcher and their outcomes: no HTTP, no SQLite, no time passes. */
#include "tests/unit/server/dispatch_fixture.h"

#include "server/base/clock.h"
#include "server/batches/attempt_private.h"
#include "server/batches/flight_private.h"
#include "server/batches/weight_update.h"

#include <stdio.h>
#include <stdlib.h>

#define ONE "http://one"
#define TWO "http://two"
#define PLENTY 64

static const struct pool_engine one = {.name = "e1", .url = ONE, .kind = "openai_compat", .in_flight_limit = 8};
static const struct pool_engine both[] = {
    {.name = "e1", .url = ONE, .kind = "openai_compat", .in_flight_limit = 8},
    {.name = "e2", .url = TWO, .kind = "openai_compat", .in_flight_limit = 8},
};

static void cancel(struct live_batch *live)
{
    live_post(live, &(struct batch_event){.kind = EVENT_CANCEL});
    world_settle();
}

/* --- which engine ------------------------------------------------------------------------------------------ */

static void test_a_batch_is_sampled_by_engines_of_its_pool_alone(void **state)
{
    (void)state;
    struct pool_engine engines[] = {both[0], both[1]};
    engines[1].pool = "large";
    world_begin(engines, 2, PLENTY);
    world_batch(&(struct plan){.pool = "large", .rollouts = 3});
    world_settle();
    assert_int_equal(sent_to(TWO), 3);
    assert_int_equal(sent_to(ONE), 0);
    for (size_t i = 0; i < 3; i++)
        sent_answer(i);
    assert_string_equal(row_of(0)->engine, "e2");
    world_end();
}

static void test_a_pool_that_is_full_does_not_hold_up_another(void **state)
{
    (void)state;
    struct pool_engine engines[] = {both[0], both[1]};
    engines[0].in_flight_limit = 1;
    engines[1].pool = "large";
    world_begin(engines, 2, PLENTY);
    struct live_batch *waits = world_batch(&(struct plan){.rollouts = 2});
    struct live_batch *goes = world_batch(&(struct plan){.pool = "large", .rollouts = 2});
    world_settle();
    assert_int_equal(sent_to(ONE), 1);
    assert_int_equal(sent_to(TWO), 2);
    cancel(waits);
    cancel(goes);
    world_end();
}

static void test_a_sample_that_failed_is_repeated_at_the_other_engine(void **state)
{
    (void)state;
    world_begin(both, 2, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1});
    world_settle();
    assert_int_equal(world.sent_count, 1);
    const char *other = strcmp(world.sent[0].engine, ONE) == 0 ? TWO : ONE;
    sent_refuse(0, 500);
    assert_int_equal(live->batch.in_phase[PHASE_BACKOFF], 1);
    assert_null(live->flights[0].attempt);
    assert_int_equal(world.sent_count, 1);
    world_advance(2 * US_PER_S);
    assert_int_equal(world.sent_count, 2);
    assert_string_equal(world.sent[1].engine, other);
    sent_answer(1);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_SCORED);
    assert_int_equal(row_of(0)->attempts, 2);
    assert_string_equal(row_of(0)->engine, strcmp(other, ONE) == 0 ? "e1" : "e2");
    world_end();
}

static void test_after_its_attempts_a_rollout_has_failed_with_the_last_code(void **state)
{
    (void)state;
    world_begin(both, 2, PLENTY);
    world_batch(&(struct plan){.rollouts = 1});
    for (size_t attempt = 0; attempt < 3; attempt++) {
        world_advance(2 * US_PER_S);
        assert_int_equal(world.sent_count, attempt + 1);
        sent_refuse(attempt, 500);
    }
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_FAILED);
    assert_string_equal(row_of(0)->failure, "engine_error");
    assert_int_equal(row_of(0)->attempts, 3);
    world_end();
}

/* --- limits ------------------------------------------------------------------------------------------------ */

static void test_an_engine_at_its_limit_gets_the_next_sample_when_one_ends(void **state)
{
    (void)state;
    struct pool_engine engine = one;
    engine.in_flight_limit = 2;
    world_begin(&engine, 1, PLENTY);
    world_batch(&(struct plan){.rollouts = 4});
    world_settle();
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sent_open(), i < 3 ? 2 : 1);
        assert_int_equal(pool_at(world.pool, 0)->in_flight, sent_open());
        sent_answer(i);
    }
    assert_int_equal(world.row_count, 4);
    world_end();
}

static void test_a_sample_waits_for_a_place_in_the_later_queues(void **state)
{
    (void)state;
    world_begin(&one, 1, 2);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 3});
    world.store_stands = true;
    world_settle();
    assert_int_equal(world.sent_count, 2);
    assert_non_null(live->short_of);
    sent_answer(0); /* its place is the row's until that is on disk */
    assert_int_equal(world.sent_count, 2);
    world.store_stands = false;
    world_settle();
    assert_int_equal(world.sent_count, 3);
    sent_answer(1);
    sent_answer(2);
    world_end();
}

static void test_a_place_that_one_batch_gives_back_is_another_s(void **state)
{
    (void)state;
    world_begin(&one, 1, 2);
    struct live_batch *first = world_batch(&(struct plan){.rollouts = 2});
    world_settle();
    struct live_batch *second = world_batch(&(struct plan){.rollouts = 1});
    world_settle();
    assert_int_equal(second->batch.in_phase[PHASE_QUEUED], 1);
    sent_answer(0);
    assert_int_equal(first->batch.in_phase[PHASE_SAMPLING], 1);
    assert_int_equal(second->batch.in_phase[PHASE_SAMPLING], 1);
    sent_answer(1);
    sent_answer(2);
    world_end();
}

static void test_without_a_free_connection_nothing_is_sent_and_nothing_is_reserved(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1});
    world.no_room = true;
    world_settle();
    assert_int_equal(world.sent_count, 0);
    assert_int_equal(world.batches->places, 0);
    assert_int_equal(world.batches->flight_bytes, 0);
    assert_int_equal(live->batch.in_phase[PHASE_QUEUED], 1);
    world.no_room = false;
    world_advance(US_PER_S);
    assert_int_equal(world.sent_count, 1);
    sent_answer(0);
    world_end();
}

static void test_batches_of_one_pool_take_turns(void **state)
{
    (void)state;
    struct pool_engine engine = one;
    engine.in_flight_limit = 4;
    world_begin(&engine, 1, PLENTY);
    struct live_batch *large = world_batch(&(struct plan){.rollouts = 20});
    struct live_batch *small = world_batch(&(struct plan){.rollouts = 2});
    world_settle();
    assert_int_equal(large->batch.in_phase[PHASE_SAMPLING], 2);
    assert_int_equal(small->batch.in_phase[PHASE_SAMPLING], 2);
    cancel(large);
    cancel(small);
    world_end();
}

static unsigned sent_of(const struct live_batch *live)
{
    return (unsigned)(live->batch.rollout_count - live->batch.in_phase[PHASE_QUEUED]);
}

/* A batch that names its model leaves the pool to others while its engines are full, and must not lose its turn. */
static void test_batches_that_name_a_model_take_turns_at_a_full_engine(void **state)
{
    (void)state;
    struct pool_engine engine = one;
    engine.in_flight_limit = 1;
    world_begin(&engine, 1, PLENTY);
    struct live_batch *batches[4];
    for (size_t i = 0; i < 4; i++)
        batches[i] = world_batch(&(struct plan){.model = "m", .rollouts = 8});
    world_settle();
    for (size_t sent = 0; sent < 15; sent++)
        sent_answer(sent);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(sent_of(batches[i]), 4);
    for (size_t i = 0; i < 4; i++)
        cancel(batches[i]);
    world_end();
}

/* Engines of two models: the one that is full all the time keeps no batch of the other from its turn. */
static void test_batches_of_two_models_take_turns_each_at_its_engine(void **state)
{
    (void)state;
    static const char *const models[] = {"m", "m", "n", "n"};
    struct pool_engine engines[] = {both[0], both[1]};
    engines[0].in_flight_limit = engines[1].in_flight_limit = 1;
    world_begin(engines, 2, PLENTY);
    for (size_t i = 0; i < 2; i++) {
        struct engine *engine = pool_at(world.pool, i);
        free(engine->model);
        engine->model = xstrdup(models[2 * i]);
        snprintf(engine->facts.models, sizeof(engine->facts.models), "%s\n", models[2 * i]);
    }
    struct live_batch *batches[4];
    for (size_t i = 0; i < 4; i++)
        batches[i] = world_batch(&(struct plan){.model = models[i], .rollouts = 8});
    world_settle();
    assert_int_equal(world.sent_count, 2);
    for (size_t sent = 0; sent < world.sent_count && world.sent_count < 9; sent++)
        if (strcmp(world.sent[sent].engine, TWO) == 0)
            sent_answer(sent);
    assert_int_equal(sent_to(ONE), 1);
    assert_int_equal(sent_of(batches[2]), 4);
    assert_int_equal(sent_of(batches[3]), 4);
    for (size_t i = 0; i < 4; i++)
        cancel(batches[i]);
    world_end();
}

/* --- completions that came with the request ---------------------------------------------------------------- */

static void test_a_completion_that_came_with_the_request_needs_no_engine_and_no_attempt(void **state)
{
    (void)state;
    world_begin(&one, 1, 1);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 2, .verified = true, .given = true});
    world_settle();
    assert_int_equal(world.sent_count, 0);
    assert_int_equal(world.asked, 1); /* the other one waits for its place */
    assert_null(live->flights[0].attempt);
    text_workers_answer();
    world_settle();
    assert_int_equal(world.asked, 1);
    text_workers_answer();
    world_settle();
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_SCORED);
    assert_true(row_of(1)->has_text);
    world_end();
}

static void test_a_given_completion_whose_batch_ends_while_it_is_prepared_is_stored_at_once(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1, .verified = true, .given = true});
    world.workers_stand = true;
    world_settle();
    cancel(live);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_CANCELLED);
    assert_true(row_of(0)->has_text);
    world.workers_stand = false;
    world_settle();
    assert_int_equal(world.asked, 0);
    world_end();
}

/* --- the end of a batch ------------------------------------------------------------------------------------ */

static void test_a_batch_that_ends_takes_its_samples_back(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 2});
    world_settle();
    cancel(live);
    assert_int_equal(world.sent_count, 2);
    assert_true(world.sent[0].cancelled && world.sent[1].cancelled);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_CANCELLED);
    assert_int_equal(row_of(1)->state, STORE_ROLLOUT_CANCELLED);
    assert_int_equal(world.ended, 1);
    world_end();
}

static void test_a_batch_that_ends_while_a_worker_reads_a_reply_does_not_wait_for_it(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1});
    world_settle();
    world.workers_stand = true;
    sent_answer(0);
    cancel(live);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_CANCELLED);
    assert_false(row_of(0)->has_text);
    assert_int_equal(world.ended, 1);
    assert_int_equal(world.batches->count, 1);  /* the worker has something of it */
    assert_int_equal(world.batches->places, 1); /* and holds what was reserved */
    world.workers_stand = false;
    world_settle();
    world_end();
}

static void test_a_batch_that_ends_while_text_workers_judge_keeps_what_was_sampled(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1, .verified = true});
    world_settle();
    sent_answer(0);
    assert_int_equal(world.asked, 1);
    cancel(live);
    assert_int_equal(world.asked, 0);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_CANCELLED);
    assert_true(row_of(0)->has_text);
    world_end();
}

static void test_a_verdict_that_a_worker_reads_when_the_batch_ends_is_no_verdict(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1, .verified = true});
    world_settle();
    sent_answer(0);
    world.workers_stand = true;
    text_workers_answer();
    cancel(live);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_CANCELLED);
    assert_true(row_of(0)->has_text);
    world.workers_stand = false;
    world_settle();
    assert_int_equal(world.row_count, 1);
    world_end();
}

static void test_a_verified_sample_is_stored_with_its_reward_and_its_places_are_given_back(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 1, .verified = true});
    world_settle();
    assert_int_equal(world.batches->places, 1);
    sent_answer(0);
    world.store_stands = true;
    text_workers_answer();
    world_settle();
    assert_true(live->rewards[0] == 1);
    assert_int_equal(world.batches->places, 1);
    world.store_stands = false;
    world_settle();
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_SCORED);
    world_end();
}

static void test_a_deadline_that_has_passed_sends_nothing(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 2, .deadline_us = -US_PER_S});
    world.store_stands = true;
    world_settle();
    assert_null(live->flights[0].attempt); /* a row needs none */
    assert_non_null(live->flights[0].row);
    world.store_stands = false;
    world_settle();
    assert_int_equal(world.sent_count, 0);
    assert_string_equal(row_of(0)->failure, "deadline");
    assert_string_equal(row_of(1)->failure, "deadline");
    assert_int_equal(row_of(0)->attempts, 0);
    assert_string_equal(row_of(0)->engine, "");
    world_end();
}

static void test_a_deadline_that_passes_in_the_queue_ends_what_was_not_sent_too(void **state)
{
    (void)state;
    struct pool_engine engine = one;
    engine.in_flight_limit = 1;
    world_begin(&engine, 1, PLENTY);
    world_batch(&(struct plan){.rollouts = 2, .deadline_us = 5 * US_PER_S});
    world_advance(5 * US_PER_S);
    assert_int_equal(world.sent_count, 1);
    assert_true(world.sent[0].cancelled);
    assert_string_equal(row_of(0)->failure, "deadline");
    assert_string_equal(row_of(1)->failure, "deadline");
    assert_int_equal(row_of(0)->attempts, 1);
    assert_int_equal(row_of(1)->attempts, 0);
    world_end();
}

/* --- engines that go --------------------------------------------------------------------------------------- */

static void test_an_engine_that_is_removed_ends_what_it_has_and_gets_nothing_of_the_queue(void **state)
{
    (void)state;
    struct pool_engine engines[] = {both[0], both[1]};
    engines[0].in_flight_limit = engines[1].in_flight_limit = 1;
    world_begin(engines, 2, PLENTY);
    world_batch(&(struct plan){.rollouts = 4});
    world_settle();
    assert_int_equal(sent_to(ONE), 1);
    pool_remove(world.pool, pool_find(world.pool, TEXT_LITERAL("e1")));
    batches_wake(world.batches);
    world_settle();
    assert_int_equal(pool_removed_count(world.pool), 1);
    for (size_t i = 0; i < 4; i++)
        sent_answer(i);
    assert_int_equal(sent_to(ONE), 1);
    assert_int_equal(sent_to(TWO), 3);
    assert_int_equal(world.row_count, 4);
    assert_string_equal(row_of(0)->failure, "");
    assert_int_equal(pool_removed_count(world.pool), 0); /* the last batch that knew it has gone */
    world_end();
}

/* --- weight updates ---------------------------------------------------------------------------------------- */

static void test_an_update_that_aborts_takes_samples_back_and_the_queue_waits_for_its_end(void **state)
{
    (void)state;
    world_begin(&one, 1, PLENTY);
    struct live_batch *live = world_batch(&(struct plan){.rollouts = 2});
    struct store_op begin = {.kind = STORE_UPDATE_POLICY, .status = STORE_OK};
    begin.update_policy = (struct store_update_policy){
        .run = TEXT_LITERAL("r"),
        .update = {.mode = STORE_UPDATE_ABORT, .revision = 1, .deadline_us = world.now_us + 20 * US_PER_S}};
    world_settle();
    update_begun(world.batches, &begin, NULL);
    world_settle();
    assert_true(world.sent[0].cancelled && world.sent[1].cancelled);
    assert_int_equal(live->batch.in_phase[PHASE_QUEUED], 2);
    assert_int_equal(world.sent_count, 2);
    assert_int_equal(world.batches->places, 0);
    begin.update_policy.update.state = STORE_UPDATE_COMMITTED;
    begin.update_policy.current_revision = 1;
    update_ended(world.batches, &begin);
    world_settle();
    assert_int_equal(world.sent_count, 4);
    sent_answer(2);
    sent_answer(3);
    assert_int_equal(row_of(0)->state, STORE_ROLLOUT_SCORED);
    world_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_is_sampled_by_engines_of_its_pool_alone),
        cmocka_unit_test(test_a_pool_that_is_full_does_not_hold_up_another),
        cmocka_unit_test(test_a_sample_that_failed_is_repeated_at_the_other_engine),
        cmocka_unit_test(test_after_its_attempts_a_rollout_has_failed_with_the_last_code),
        cmocka_unit_test(test_an_engine_at_its_limit_gets_the_next_sample_when_one_ends),
        cmocka_unit_test(test_a_sample_waits_for_a_place_in_the_later_queues),
        cmocka_unit_test(test_a_place_that_one_batch_gives_back_is_another_s),
        cmocka_unit_test(test_without_a_free_connection_nothing_is_sent_and_nothing_is_reserved),
        cmocka_unit_test(test_batches_of_one_pool_take_turns),
        cmocka_unit_test(test_batches_that_name_a_model_take_turns_at_a_full_engine),
        cmocka_unit_test(test_batches_of_two_models_take_turns_each_at_its_engine),
        cmocka_unit_test(test_a_completion_that_came_with_the_request_needs_no_engine_and_no_attempt),
        cmocka_unit_test(test_a_given_completion_whose_batch_ends_while_it_is_prepared_is_stored_at_once),
        cmocka_unit_test(test_a_batch_that_ends_takes_its_samples_back),
        cmocka_unit_test(test_a_batch_that_ends_while_a_worker_reads_a_reply_does_not_wait_for_it),
        cmocka_unit_test(test_a_batch_that_ends_while_text_workers_judge_keeps_what_was_sampled),
        cmocka_unit_test(test_a_verdict_that_a_worker_reads_when_the_batch_ends_is_no_verdict),
        cmocka_unit_test(test_a_verified_sample_is_stored_with_its_reward_and_its_places_are_given_back),
        cmocka_unit_test(test_a_deadline_that_has_passed_sends_nothing),
        cmocka_unit_test(test_a_deadline_that_passes_in_the_queue_ends_what_was_not_sent_too),
        cmocka_unit_test(test_an_engine_that_is_removed_ends_what_it_has_and_gets_nothing_of_the_queue),
        cmocka_unit_test(test_an_update_that_aborts_takes_samples_back_and_the_queue_waits_for_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
