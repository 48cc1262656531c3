/* The pool's rules, one by one: what an engine asks for, half open, limits that are learned, budgets, latencies, named
 * pools, coming and going. */
#include "pool_support.h"
#include "server/base/clock.h"
#include "support.h"

#include <string.h>

#define MS INT64_C(1000)
#define S INT64_C(1000000)

static const struct sample_error overloaded = {.code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .message = "429"};
static const struct sample_error in_an_hour = {
    .code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .retry_after_us = 3600 * S, .message = "429"};
static const struct sample_error refused_connection = {
    .code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true, .not_connected = true, .message = "refused"};
static const struct sample_error fault = {.code = SAMPLE_ENGINE_ERROR, .retryable = true, .message = "500"};
static const struct sample_error no_json = {
    .code = SAMPLE_INVALID_REPLY, .retryable = true, .resample = true, .message = "no JSON"};

static const struct pool_engine two[] = {{.url = "http://a", .kind = "vllm", .in_flight_limit = 8},
                                         {.url = "http://b", .kind = "vllm", .in_flight_limit = 8}};

static struct engine *pick(struct pool *pool, int64_t now_us)
{
    struct engine *engine;
    int64_t at_us;

    pool_pick(pool, &(struct pool_want){.since_us = now_us}, now_us, &engine, &at_us);
    return engine; /* NULL: none */
}

static void ask(struct pool *pool, struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    pool_begin(pool, engine, now_us);
    pool_end(pool, engine, &(struct pool_result){.error = error}, now_us);
}

/* --- pauses -------------------------------------------------------------------------------------- */

static void test_the_only_engine_that_asks_for_an_hour_is_asked_again_after_pause_max(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    ask(pool, engine, &in_an_hour, 0);
    assert_int_equal(pool_retry_after_us(pool, engine, &in_an_hour), 60 * S);
    assert_null(pick(pool, 60 * S - 1));
    for (int64_t now_us = 60 * S; now_us < 600 * S; now_us += 60 * S) { /* one request, and again a pause */
        assert_ptr_equal(pick(pool, now_us), engine);
        assert_int_equal(engine->state, ENGINE_HALF_OPEN);
        pool_begin(pool, engine, now_us);
        assert_null(pick(pool, now_us));
        pool_end(pool, engine, &(struct pool_result){.error = &in_an_hour}, now_us);
        assert_int_equal(engine->paused_until_us, now_us + 60 * S);
    }
    ask(pool, pick(pool, 600 * S), NULL, 600 * S);
    assert_int_equal(engine->state, ENGINE_UP);
    assert_ptr_equal((pool_begin(pool, engine, 600 * S), pick(pool, 600 * S)), engine);
    pool_destroy(pool);
}

static void test_another_engine_goes_first_and_the_sample_does_not_wait(void **state)
{
    struct pool *pool = pool_of(two, 2);

    (void)state;
    ask(pool, pool_at(pool, 0), &in_an_hour, 0);
    assert_int_equal(pool_retry_after_us(pool, pool_at(pool, 0), &in_an_hour), 0);
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(pick(pool, 59 * S), pool_at(pool, 1));
    pool_destroy(pool);
}

/* --- half open ----------------------------------------------------------------------------------- */

static void break_down(struct pool *pool, struct engine *engine, int64_t now_us)
{
    for (int i = 0; i < POOL_FAULTS_MAX; i++)
        ask(pool, engine, &fault, now_us);
    assert_int_equal(engine->state, ENGINE_DOWN);
    answer_probes(pool, now_us + S);
    assert_int_equal(engine->state, ENGINE_HALF_OPEN);
}

static void test_a_broken_engine_that_answers_probes_gets_one_request_even_alone(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    break_down(pool, engine, 0);
    assert_ptr_equal(pick(pool, S), engine);
    pool_begin(pool, engine, S);
    assert_null(pick(pool, S));
    pool_end(pool, engine, &(struct pool_result){.error = &fault}, S);
    assert_int_equal(engine->state, ENGINE_HALF_OPEN);
    assert_null(pick(pool, S + 499 * MS)); /* the second trial, so twice the shortest pause */
    assert_ptr_equal(pick(pool, S + 500 * MS), engine);
    ask(pool, engine, NULL, S + 500 * MS);
    assert_int_equal(engine->state, ENGINE_UP);
    pool_destroy(pool);
}

/* A sample may take ten minutes: the pool must not stand still for so long. */
static void test_a_trial_that_does_not_fail_lets_more_follow_where_there_is_no_other(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);
    static const size_t room_at_s[] = {1, 2, 4, 8, 8};

    (void)state;
    break_down(pool, engine, 0);
    for (int64_t i = 0; i < 5; i++) {
        int64_t now_us = S + 5 * S * i;
        while (pick(pool, now_us))
            pool_begin(pool, engine, now_us);
        assert_int_equal(engine->in_flight, room_at_s[i]);
    }
    pool_destroy(pool);
}

static void test_beside_a_sound_engine_a_trial_stays_single(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    break_down(pool, engine, 0);
    assert_ptr_equal(pick(pool, S), engine);
    pool_begin(pool, engine, S);
    for (int i = 0; i < 8; i++) {
        assert_ptr_equal(pick(pool, 600 * S), pool_at(pool, 1));
        pool_begin(pool, pool_at(pool, 1), 600 * S);
    }
    assert_null(pick(pool, 600 * S));
    pool_destroy(pool);
}

/* --- down ---------------------------------------------------------------------------------------- */

static enum pool_answer answer(struct pool *pool, int64_t since_us, int64_t now_us, int64_t *ret_at_us)
{
    struct engine *engine;

    return pool_pick(pool, &(struct pool_want){.since_us = since_us}, now_us, &engine, ret_at_us);
}

static void test_a_pool_without_a_usable_engine_is_waited_for_so_long_and_no_longer(void **state)
{
    static const struct sample_error no_answer = {.code = SAMPLE_ENGINE_TIMEOUT, .message = "no answer"};
    struct pool *pool = pool_of(two, 2);
    struct sample_error error;
    int64_t at_us;

    (void)state;
    ask(pool, pool_at(pool, 0), &refused_connection, 100 * S);
    ask(pool, pool_at(pool, 1), &refused_connection, 110 * S); /* the last that was usable */
    assert_int_equal(answer(pool, 0, 170 * S - 1, &at_us), POOL_WAIT);
    assert_int_equal(answer(pool, 0, 170 * S, &at_us), POOL_DOWN);
    assert_int_equal(answer(pool, 120 * S, 170 * S, &at_us), POOL_WAIT); /* a batch that came later waits as long */
    for (struct engine *engine; (engine = pool_probe_due(pool, 170 * S, &at_us));)
        engine_probe_reply(engine, NULL, &no_answer, 170 * S);
    pool_down_error(pool, &(struct pool_want){.pool = pool_named(pool, text_of(POOL_DEFAULT))}, &error);
    assert_string_equal(error.message, "no answer");
    assert_int_equal(error.code, SAMPLE_ENGINE_TIMEOUT);
    assert_false(error.retryable);
    answer_probes(pool, 180 * S);
    assert_int_equal(answer(pool, 0, 180 * S, &at_us), POOL_PICKED);
    pool_destroy(pool);
}

static void test_engines_that_drain_or_are_refused_get_nothing_and_say_why(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct sample_error error;
    int64_t at_us;

    (void)state;
    pool_drain(pool, pool_at(pool, 0), true);
    assert_int_equal(engine_shown_state(pool_at(pool, 0)), ENGINE_DRAINING);
    assert_ptr_equal(pick(pool, 0), pool_at(pool, 1));
    engine_refuse(pool_at(pool, 1), "its tokenizer is another", 0);
    assert_string_equal(pool_at(pool, 1)->why, "its tokenizer is another");
    assert_int_equal(answer(pool, 0, 0, &at_us), POOL_WAIT);
    pool_down_error(pool, &(struct pool_want){.pool = pool_named(pool, text_of(POOL_DEFAULT))}, &error);
    assert_non_null(strstr(error.message, "refused"));
    answer_probes(pool, 5 * S);
    assert_ptr_equal(pick(pool, 5 * S), pool_at(pool, 1));
    pool_drain(pool, pool_at(pool, 0), false);
    assert_int_equal(engine_shown_state(pool_at(pool, 0)), ENGINE_UP);
    pool_destroy(pool);
}

/* --- limits -------------------------------------------------------------------------------------- */

static void test_a_learned_limit_rises_while_it_is_used_and_falls_when_it_is_too_much(void **state)
{
    struct pool *pool =
        pool_of((const struct pool_engine[]){{.url = "http://a", .kind = "vllm", .in_flight_learned = true}}, 1);
    struct engine *engine = pool_at(pool, 0);
    size_t first = engine->in_flight_limit;
    int64_t now_us = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) /* one at a time says nothing about more */
        ask(pool, engine, NULL, now_us);
    assert_int_equal(engine->in_flight_limit, first);
    for (int round = 0; round < 20; round++) {
        while (pick(pool, now_us))
            pool_begin(pool, engine, now_us);
        for (size_t i = engine->in_flight; i > 0; i--) {
            pool_end(pool, engine, &(struct pool_result){0}, now_us);
            if (engine->in_flight_limit > engine->in_flight)
                pool_begin(pool, engine, now_us);
        }
    }
    assert_in_range(engine->in_flight_limit, first + 10, first + 30); /* one a round, roughly */
    size_t before = engine->in_flight_limit;
    for (int i = 0; i < 5; i++) /* a burst counts once */
        pool_end(pool, engine, &(struct pool_result){.error = &overloaded}, now_us);
    assert_in_range(engine->in_flight_limit, before * 6 / 10, before * 8 / 10);
    for (int i = 0; i < 100; i++) {
        now_us = engine->paused_until_us;
        pick(pool, now_us);
        ask(pool, engine, &overloaded, now_us);
    }
    assert_int_equal(engine->in_flight_limit, 1);
    pool_destroy(pool);
}

static void test_a_learned_limit_does_not_rise_while_tokens_take_four_times_as_long(void **state)
{
    struct pool *pool =
        pool_of((const struct pool_engine[]){{.url = "http://a", .kind = "vllm", .in_flight_learned = true}}, 1);
    struct engine *engine = pool_at(pool, 0);
    const struct pool_result quick = {.began_us = 10 * S - 10 * MS, .token_count = 10};
    const struct pool_result slow = {.began_us = 10 * S - 100 * MS, .token_count = 10};

    (void)state;
    while (engine->in_flight < engine->in_flight_limit)
        pool_begin(pool, engine, 0);
    pool_end(pool, engine, &quick, 10 * S);
    pool_begin(pool, engine, 0);
    for (int i = 0; i < 40; i++) {
        pool_end(pool, engine, &slow, 10 * S);
        pool_begin(pool, engine, 0);
    }
    size_t crowded = engine->in_flight_limit;
    for (int i = 0; i < 200; i++) {
        pool_end(pool, engine, &slow, 10 * S);
        pool_begin(pool, engine, 0);
    }
    assert_int_equal(engine->in_flight_limit, crowded);
    pool_destroy(pool);
}

static void test_a_limit_that_was_set_stays(void **state)
{
    struct pool *pool = pool_of(two, 1);

    (void)state;
    ask(pool, pool_at(pool, 0), &overloaded, 0);
    assert_int_equal(pool_at(pool, 0)->in_flight_limit, 8);
    pool_destroy(pool);
}

/* --- budgets ------------------------------------------------------------------------------------- */

static bool again(struct pool *pool, struct retry_budget *batch, const struct sample_error *error, bool failed_before,
                  int64_t now_us)
{
    return pool_take_retry(pool, pool_at(pool, 0), batch, error, failed_before, now_us);
}

static void test_ten_repeats_and_a_fifth_of_the_first_tries(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct retry_budget batch = RETRY_BUDGET_NEW;
    int repeats = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        pool_count_first(pool, pool_at(pool, 0), &batch);
    while (again(pool, &batch, &no_json, true, 0))
        repeats++;
    assert_in_range(repeats, 29, 30); /* 10 + 0.2 · 100, in floating point */
    pool_destroy(pool);
}

static void test_an_engines_budget_holds_for_all_batches_and_comes_back_slowly(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct retry_budget batches[] = {RETRY_BUDGET_NEW, RETRY_BUDGET_NEW};
    int repeats = 0;

    (void)state;
    while (again(pool, &batches[0], &no_json, true, 0))
        repeats++;
    assert_int_equal(repeats, 10);
    assert_false(again(pool, &batches[1], &no_json, true, 0));
    assert_true(again(pool, &batches[1], &no_json, true, S)); /* one a second */
    assert_false(again(pool, &batches[1], &no_json, true, S));
    pool_destroy(pool);
}

static void test_a_failure_without_work_and_one_that_another_engine_can_take_are_free(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct retry_budget batch = RETRY_BUDGET_NEW;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(again(pool, &batch, &refused_connection, true, 0));
        assert_true(again(pool, &batch, &overloaded, true, 0));
        assert_true(again(pool, &batch, &no_json, false, 0));
    }
    pool_drain(pool, pool_at(pool, 1), true); /* there is no other any more */
    for (int i = 0; i < 10; i++)
        assert_true(again(pool, &batch, &no_json, false, 0));
    assert_false(again(pool, &batch, &no_json, false, 0));
    pool_destroy(pool);
}

/* --- statistics ---------------------------------------------------------------------------------- */

static void test_latencies_are_those_of_the_last_minute_within_an_eighth(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);
    struct engine_latency latency;

    (void)state;
    engine_latency(engine, 0, &latency);
    assert_int_equal(latency.samples, 0);
    for (int64_t i = 1; i <= 1000; i++) {
        pool_begin(pool, engine, 100 * S);
        pool_end(pool, engine, &(struct pool_result){.began_us = 100 * S - i * 10 * MS}, 100 * S);
    }
    engine_latency(engine, 100 * S, &latency);
    assert_int_equal(latency.samples, 1000);
    assert_in_range(latency.p50_us, 5000 * MS, 5000 * MS * 9 / 8);
    assert_in_range(latency.p90_us, 9000 * MS, 9000 * MS * 9 / 8);
    assert_in_range(latency.p99_us, 9900 * MS, 9900 * MS * 9 / 8);
    engine_latency(engine, 150 * S, &latency);
    assert_int_equal(latency.samples, 1000);
    engine_latency(engine, 160 * S, &latency);
    assert_int_equal(latency.samples, 0);
    pool_destroy(pool);
}

static void test_requests_samples_and_failures_are_counted(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    ask(pool, engine, NULL, 0);
    ask(pool, engine, &no_json, 7 * S);
    pool_count_retry(pool, engine);
    ask(pool, engine, NULL, 8 * S);
    assert_int_equal(engine_stats(engine)->requests, 3);
    assert_int_equal(engine_stats(engine)->samples, 2);
    assert_int_equal(engine_stats(engine)->retries, 1);
    assert_int_equal(engine_stats(engine)->failures[SAMPLE_INVALID_REPLY], 1);
    assert_string_equal(engine_stats(engine)->last_error.message, "no JSON");
    assert_int_equal(engine_stats(engine)->last_error_us, 7 * S);
    pool_destroy(pool);
}

/* --- coming and going ---------------------------------------------------------------------------- */

static void test_pools_have_names_and_their_own_engines(void **state)
{
    struct pool *pool =
        pool_of((const struct pool_engine[]){{.url = "http://a", .kind = "vllm", .shared = true},
                                             {.url = "http://b", .kind = "vllm", .pool = "judges", .shared = true},
                                             {.url = "http://c", .kind = "vllm", .pool = "judges"}},
                3);
    struct named_pool *judges = pool_named_find(pool, text_of("judges"));
    struct engine *engine;
    int64_t at_us;

    (void)state;
    assert_null(pool_named_find(pool, text_of("others")));
    assert_int_equal(named_pool_count(judges), 2);
    assert_true(pool_named_is_shared(pool, pool_named_find(pool, text_of("default"))));
    assert_false(pool_named_is_shared(pool, judges));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pool_pick(pool, &(struct pool_want){.pool = judges}, 0, &engine, &at_us), POOL_PICKED);
        assert_string_equal(engine->pool == judges ? "judges" : "", named_pool_name(judges));
    }
    pool_remove(pool, pool_find(pool, text_of("e3")));
    assert_true(pool_named_is_shared(pool, judges));
    pool_destroy(pool);
}

static void test_an_engine_comes_and_goes_while_it_works(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct pool_engine settings = {.name = "late", .url = "http://late", .kind = "vllm"};
    char message[POOL_MESSAGE_BYTES];
    struct engine *late = pool_add(pool, &settings, message);

    (void)state;
    assert_int_equal(late->state, ENGINE_UNKNOWN);
    assert_null(pool_add(pool, &settings, message));
    assert_non_null(strstr(message, "the name of another"));
    answer_probes(pool, 0);
    assert_int_equal(late->state, ENGINE_UP);
    pool_begin(pool, late, 0);
    engine_hold(late);
    pool_remove(pool, late);
    pool_remove(pool, late); /* twice is once */
    assert_int_equal(pool_count(pool), 1);
    assert_non_null(pool_add(pool, &settings, message)); /* the name is free at once */
    pool_reap(pool);
    pool_end(pool, late, &(struct pool_result){0}, 0); /* it is still there */
    pool_reap(pool);
    assert_string_equal(late->name, "late"); /* and held */
    engine_release(late);
    pool_reap(pool);
    pool_destroy(pool);
}

static void test_there_are_no_more_engines_than_a_pool_takes(void **state)
{
    struct pool *pool = pool_of(NULL, 0);
    struct pool_engine settings = {.url = "http://a"};
    char message[POOL_MESSAGE_BYTES];

    (void)state;
    for (size_t i = 0; i < POOL_ENGINES_MAX; i++)
        assert_non_null(pool_add(pool, &settings, message));
    assert_null(pool_add(pool, &settings, message));
    assert_non_null(strstr(message, "one more than a pool takes"));
    pool_destroy(pool);
}

/* No probe can tell when it is back: a single request does. */
static void test_a_server_that_is_no_engine_is_never_probed_and_comes_back_by_a_request(void **state)
{
    struct pool *pool = pool_of(&(struct pool_engine){.url = "http://a", .unasked = true}, 1);
    struct engine *engine = pick(pool, 0);
    int64_t at_us;

    (void)state;
    assert_ptr_equal(engine, pool_at(pool, 0));
    assert_null(pool_probe_due(pool, 0, &at_us));
    ask(pool, engine, &refused_connection, S);
    assert_int_equal(engine->state, ENGINE_DOWN);
    assert_null(pick(pool, S));
    assert_null(pool_probe_due(pool, 60 * S, &at_us));
    int64_t back_us = engine->paused_until_us;
    assert_ptr_equal(pick(pool, back_us), engine);
    pool_begin(pool, engine, back_us);
    assert_null(pick(pool, back_us)); /* one, until it is known how that went */
    pool_end(pool, engine, &(struct pool_result){0}, back_us);
    assert_int_equal(engine->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_a_scorer_gets_no_probe_and_no_sample_and_is_picked_for_a_call(void **state)
{
    static const struct sampling sampling = {.max_tokens = 1};
    struct pool *pool = pool_of(&(struct pool_engine){.name = "r", .url = "http://a", .kind = "scorer"}, 1);
    struct pool_want sample = {.sampling = &sampling};
    struct sample_error error;
    struct engine *engine;
    int64_t at_us;

    (void)state;
    assert_null(pool_probe_due(pool, 0, &at_us));
    assert_int_equal(pool_pick(pool, &sample, 0, &engine, &at_us), POOL_UNSUITED);
    sample.pool = pool_named_find(pool, text_of("default"));
    pool_unsuited_error(pool, &sample, &error);
    assert_string_equal(error.message, "the engine r of pool \"default\" samples nothing: verifiers alone ask it");
    assert_ptr_equal(pick(pool, 0), pool_at(pool, 0));
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_scorer_gets_no_probe_and_no_sample_and_is_picked_for_a_call),
        cmocka_unit_test(test_a_server_that_is_no_engine_is_never_probed_and_comes_back_by_a_request),
        cmocka_unit_test(test_the_only_engine_that_asks_for_an_hour_is_asked_again_after_pause_max),
        cmocka_unit_test(test_another_engine_goes_first_and_the_sample_does_not_wait),
        cmocka_unit_test(test_a_broken_engine_that_answers_probes_gets_one_request_even_alone),
        cmocka_unit_test(test_a_trial_that_does_not_fail_lets_more_follow_where_there_is_no_other),
        cmocka_unit_test(test_beside_a_sound_engine_a_trial_stays_single),
        cmocka_unit_test(test_a_pool_without_a_usable_engine_is_waited_for_so_long_and_no_longer),
        cmocka_unit_test(test_engines_that_drain_or_are_refused_get_nothing_and_say_why),
        cmocka_unit_test(test_a_learned_limit_rises_while_it_is_used_and_falls_when_it_is_too_much),
        cmocka_unit_test(test_a_learned_limit_does_not_rise_while_tokens_take_four_times_as_long),
        cmocka_unit_test(test_a_limit_that_was_set_stays),
        cmocka_unit_test(test_ten_repeats_and_a_fifth_of_the_first_tries),
        cmocka_unit_test(test_an_engines_budget_holds_for_all_batches_and_comes_back_slowly),
        cmocka_unit_test(test_a_failure_without_work_and_one_that_another_engine_can_take_are_free),
        cmocka_unit_test(test_latencies_are_those_of_the_last_minute_within_an_eighth),
        cmocka_unit_test(test_requests_samples_and_failures_are_counted),
        cmocka_unit_test(test_pools_have_names_and_their_own_engines),
        cmocka_unit_test(test_an_engine_comes_and_goes_while_it_works),
        cmocka_unit_test(test_there_are_no_more_engines_than_a_pool_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
