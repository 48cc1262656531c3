/* Engines of one pool that serve different models: the choice, the wait, and the prefixes. */
#include "made_up_vllm.h"
#include "support.h"

#define S INT64_C(1000000)

static const struct pool_engine pair[] = {{.url = "http://a", .kind = "vllm"}, {.url = "http://b", .kind = "vllm"}};

static enum pool_answer want_model(struct pool *pool, const char *model, int64_t since_us, int64_t now_us,
                                   struct engine **ret_engine)
{
    struct pool_want wish = {.since_us = since_us, .model = text_of(model)};
    int64_t at_us;

    return pool_pick(pool, &wish, now_us, ret_engine, &at_us);
}

static void test_a_model_that_no_list_has_is_asked_for_once_more_and_then_refused(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};
    struct engine *engine;
    struct sample_error error;

    (void)state;
    assert_int_equal(want_model(pool, "lora-b", 0, 0, &engine), POOL_WAIT); /* nothing is known */
    probe_all(pool, vllms, 1 * S);
    assert_int_equal(want_model(pool, "lora-a", 2 * S, 2 * S, &engine), POOL_PICKED);
    assert_int_equal(want_model(pool, "lora-b", 2 * S, 2 * S, &engine), POOL_WAIT); /* the lists are older */
    assert_true(pool_wants_probe(pool));
    probe_all(pool, vllms, 2 * S);
    assert_int_equal(want_model(pool, "lora-b", 2 * S, 2 * S, &engine), POOL_UNSUITED);
    pool_unsuited_error(pool, &(struct pool_want){.pool = pool_at(pool, 0)->pool, .model = text_of("lora-b")}, &error);
    assert_int_equal(error.code, SAMPLE_ENGINE_ERROR);
    assert_false(error.retryable);
    assert_string_equal(error.message, "no engine of pool \"default\" serves the model \"lora-b\"; did you mean "
                                       "\"lora-a\"? known are: smol, lora-a");
    pool_destroy(pool);
}

static void test_a_model_that_was_loaded_since_its_list_was_read_is_found(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct vllm vllm = honest_vllm;
    struct engine *engine;

    (void)state;
    vllm.adapter = "lora-0";
    probe_all(pool, &vllm, 1 * S);
    vllm.adapter = "lora-1";
    assert_int_equal(want_model(pool, "lora-1", 1 * S + 1, 1 * S + 1, &engine), POOL_WAIT);
    probe_all(pool, &vllm, 1 * S + 2);
    assert_int_equal(want_model(pool, "lora-1", 1 * S + 1, 1 * S + 3, &engine), POOL_PICKED);
    assert_int_equal(want_model(pool, "lora-0", 1 * S + 1, 1 * S + 3, &engine), POOL_UNSUITED);
    pool_destroy(pool);
}

/* A pause, or failures, of the engine do not make its old list the last word. */
static void test_a_list_is_read_again_after_a_pause_and_while_half_open(void **state)
{
    static const struct sample_error busy = {.code = SAMPLE_ENGINE_OVERLOADED, .retry_after_us = 2 * S};
    static const struct sample_error refusal = {.code = SAMPLE_ENGINE_ERROR, .message = "404"};
    struct pool *pool = pool_with(pair, 1);
    struct engine *one = pool_at(pool, 0);
    struct vllm vllm = honest_vllm;
    struct engine *engine;

    (void)state;
    probe_all(pool, &vllm, 1 * S);
    pool_begin(pool, one, 1 * S);
    pool_end(pool, one, &(struct pool_result){.error = &busy}, 1 * S);
    vllm.adapter = "lora-1";
    assert_int_equal(want_model(pool, "lora-1", 2 * S, 2 * S, &engine), POOL_WAIT);
    probe_all(pool, &vllm, 2 * S);
    assert_int_equal(one->state, ENGINE_COOLING);
    assert_int_equal(want_model(pool, "lora-1", 2 * S, 3 * S, &engine), POOL_WAIT);
    probe_all(pool, &vllm, 3 * S);
    assert_int_equal(want_model(pool, "lora-1", 2 * S, 3 * S, &engine), POOL_PICKED);
    for (int i = 0; i < POOL_DOUBTS_MAX; i++) {
        pool_begin(pool, one, 4 * S);
        pool_end(pool, one, &(struct pool_result){.error = &refusal}, 4 * S);
    }
    assert_int_equal(one->state, ENGINE_HALF_OPEN);
    vllm.adapter = "lora-2";
    assert_int_equal(want_model(pool, "lora-2", 5 * S, 5 * S, &engine), POOL_WAIT);
    probe_all(pool, &vllm, 5 * S);
    assert_int_equal(want_model(pool, "lora-2", 5 * S, 5 * S, &engine), POOL_PICKED);
    assert_int_equal(want_model(pool, "lora-1", 5 * S, 5 * S, &engine), POOL_UNSUITED);
    pool_destroy(pool);
}

static void test_engines_that_are_away_or_drain_are_waited_for_when_no_other_serves_the_model(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};
    struct engine *engine;

    (void)state;
    vllms[1].adapter = "lora-1";
    probe_all(pool, vllms, 1 * S);
    assert_int_equal(want_model(pool, "lora-1", 0, 1 * S, &engine), POOL_PICKED);
    assert_ptr_equal(engine, pool_at(pool, 1));
    pool_drain(pool, engine, true);
    assert_int_equal(want_model(pool, "lora-1", 0, 1 * S, &engine), POOL_WAIT);
    pool_drain(pool, pool_at(pool, 1), false);
    break_it(pool, pool_at(pool, 1), 2 * S);
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_DOWN);
    assert_int_equal(want_model(pool, "lora-1", 0, 2 * S, &engine), POOL_WAIT);
    assert_int_equal(want_model(pool, "lora-2", 0, 2 * S, &engine), POOL_WAIT); /* it may come back with it */
    pool_destroy(pool);
}

/* The engine without the model is usable all the time: it must not prolong the wait for the other one. */
static void test_the_only_engine_of_a_model_is_waited_for_so_long_and_no_longer(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};
    struct pool_want wish = {.pool = pool_at(pool, 0)->pool, .model = text_of("lora-1")};
    struct engine *engine;
    struct sample_error error;

    (void)state;
    vllms[1].adapter = "lora-1";
    probe_all(pool, vllms, 1 * S);
    break_it(pool, pool_at(pool, 1), 2 * S);
    for (int64_t at_us = 2 * S; at_us < 62 * S; at_us += 5 * S) {
        assert_int_equal(want_model(pool, "lora-1", 0, at_us, &engine), POOL_WAIT);
        assert_int_equal(want_model(pool, "lora-a", 0, at_us, &engine), POOL_PICKED);
    }
    assert_int_equal(want_model(pool, "lora-1", 0, 62 * S, &engine), POOL_DOWN);
    pool_down_error(pool, &wish, &error);
    assert_string_equal(error.message, "500");
    assert_int_equal(want_model(pool, "lora-1", 30 * S, 62 * S, &engine), POOL_WAIT); /* a batch that came later */
    pool_drain(pool, pool_at(pool, 1), true);
    assert_int_equal(want_model(pool, "lora-1", 0, 62 * S, &engine), POOL_DOWN);
    pool_destroy(pool);
}

/* Another engine that is sound, but cannot take the sample, must not keep it from the one that can. */
static void test_the_only_engine_of_a_model_gets_its_trials_though_others_are_sound(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};
    struct pool_want wish = {.model = text_of("lora-1")};
    static const struct sample_error refusal = {.code = SAMPLE_ENGINE_ERROR, .message = "404"};
    struct engine *engine;
    int64_t at_us;

    (void)state;
    vllms[1].adapter = "lora-1";
    probe_all(pool, vllms, 1 * S);
    for (int i = 0; i < POOL_DOUBTS_MAX; i++) {
        pool_begin(pool, pool_at(pool, 1), 1 * S);
        pool_end(pool, pool_at(pool, 1), &(struct pool_result){.error = &refusal}, 1 * S);
    }
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_HALF_OPEN);
    wish.avoid = pool_at(pool, 1);
    assert_int_equal(pool_pick(pool, &wish, 1 * S, &engine, &at_us), POOL_PICKED);
    assert_ptr_equal(engine, pool_at(pool, 1));
    pool_destroy(pool);
}

static const struct pool_engine four[] = {{.url = "http://a", .kind = "vllm"},
                                          {.url = "http://b", .kind = "vllm"},
                                          {.url = "http://c", .kind = "vllm"},
                                          {.url = "http://d", .kind = "vllm"}};

/* Engines 0 and 1 serve lora-a, 2 and 3 lora-1. */
static struct pool *pool_of_two_models(struct vllm vllms[4])
{
    struct pool *pool = pool_with(four, 4);

    for (size_t i = 0; i < 4; i++)
        vllms[i] = honest_vllm;
    vllms[2].adapter = vllms[3].adapter = "lora-1";
    probe_all(pool, vllms, 1 * S);
    return pool;
}

static struct engine *home_for(struct pool *pool, const char *model)
{
    struct pool_want wish = {.prefix = 7, .model = text_of(model)};
    struct engine *engine;
    int64_t at_us;

    assert_int_equal(pool_pick(pool, &wish, 2 * S, &engine, &at_us), POOL_PICKED);
    return engine;
}

static void load(struct pool *pool, struct engine *engine, int requests)
{
    for (int i = 0; i < requests; i++)
        pool_begin(pool, engine, 2 * S);
}

/* The share of an engine is one of the engines that serve the model, not of the idle ones beside them. */
static void test_a_prefix_stays_at_its_engine_though_engines_of_another_model_are_idle(void **state)
{
    struct vllm vllms[4];
    struct pool *pool = pool_of_two_models(vllms);
    struct engine *home = home_for(pool, "lora-1");

    (void)state;
    load(pool, home, 50);
    load(pool, pool_at(pool, home == pool_at(pool, 2) ? 3 : 2), 40);
    assert_ptr_equal(home_for(pool, "lora-1"), home);
    pool_destroy(pool);
}

static void test_a_prefix_that_moved_for_one_model_keeps_its_engine_for_another(void **state)
{
    struct vllm vllms[4];
    struct pool *pool = pool_of_two_models(vllms);
    struct engine *first = home_for(pool, "lora-1");
    struct engine *other;

    (void)state;
    load(pool, first, 1);
    pool_end(pool, first, &(struct pool_result){.began_us = 1 * S, .token_count = 16}, 2 * S);
    break_it(pool, first, 2 * S);
    assert_ptr_not_equal(home_for(pool, "lora-1"), first);
    other = home_for(pool, "lora-a");
    load(pool, other, 1);
    assert_ptr_equal(home_for(pool, "lora-a"), other);
    assert_ptr_not_equal(home_for(pool, "lora-1"), first);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model_that_no_list_has_is_asked_for_once_more_and_then_refused),
        cmocka_unit_test(test_a_model_that_was_loaded_since_its_list_was_read_is_found),
        cmocka_unit_test(test_a_list_is_read_again_after_a_pause_and_while_half_open),
        cmocka_unit_test(test_engines_that_are_away_or_drain_are_waited_for_when_no_other_serves_the_model),
        cmocka_unit_test(test_the_only_engine_of_a_model_is_waited_for_so_long_and_no_longer),
        cmocka_unit_test(test_the_only_engine_of_a_model_gets_its_trials_though_others_are_sound),
        cmocka_unit_test(test_a_prefix_stays_at_its_engine_though_engines_of_another_model_are_idle),
        cmocka_unit_test(test_a_prefix_that_moved_for_one_model_keeps_its_engine_for_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
