/* The clock behind a time-out, the request's or the engine's (F10), and the time that an engine usually takes. */
#include "pool_support.h"
#include "support.h"

#define S INT64_C(1000000)

static const struct pool_engine two[] = {{.url = "http://a", .kind = "vllm", .in_flight_limit = 8},
                                         {.url = "http://b", .kind = "vllm", .in_flight_limit = 8}};

static void time_out(struct pool *pool, struct engine *engine, int64_t allowed_us, int64_t tokens, int64_t now_us)
{
    static const struct sample_error late = {.code = SAMPLE_ENGINE_TIMEOUT, .retryable = true, .message = "late"};

    pool_begin(pool, engine, now_us - allowed_us);
    pool_end(pool, engine,
             &(struct pool_result){
                 .error = &late, .began_us = now_us - allowed_us, .allowed_us = allowed_us, .tokens = tokens},
             now_us);
}

static void give_sample(struct pool *pool, struct engine *engine, int64_t took_us, size_t tokens, int64_t now_us)
{
    pool_begin(pool, engine, now_us - took_us);
    pool_end(pool, engine, &(struct pool_result){.began_us = now_us - took_us, .token_count = tokens}, now_us);
}

static void test_a_limit_below_what_the_engine_usually_takes_says_nothing_about_it(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    for (int i = 0; i < 10; i++) /* nothing is known of it yet */
        time_out(pool, engine, 29 * S, 16, 100 * S);
    assert_int_equal(engine->state, ENGINE_UP);
    assert_int_equal(engine->stats.failures[SAMPLE_ENGINE_TIMEOUT], 0);
    give_sample(pool, engine, 6 * S, 100, 200 * S);
    for (int i = 0; i < 10; i++) {
        time_out(pool, engine, S / 20, 16, 200 * S);
        time_out(pool, engine, 6 * S * 98 / 100, 100, 200 * S);
        time_out(pool, engine, 50 * S, 1000, 200 * S); /* so many tokens take 60 s */
    }
    assert_int_equal(engine->state, ENGINE_UP);
    assert_int_equal(engine->failures + engine->doubts, 0);
    assert_int_equal(engine->stats.failures[SAMPLE_ENGINE_TIMEOUT], 0);
    assert_string_equal(engine->stats.last_error.message, "");
    for (int i = 0; i < POOL_FAULTS_MAX; i++) /* it began a moment before the request */
        time_out(pool, engine, 6 * S - 20, 100, 200 * S);
    assert_int_equal(engine->state, ENGINE_DOWN);
    assert_int_equal(engine->stats.failures[SAMPLE_ENGINE_TIMEOUT], POOL_FAULTS_MAX);
    pool_destroy(pool);
}

static void test_an_engine_that_never_gave_a_sample_has_half_a_minute(void **state)
{
    struct pool *pool = pool_of(two, 1);

    (void)state;
    for (int i = 0; i < POOL_FAULTS_MAX; i++)
        time_out(pool, pool_at(pool, 0), 30 * S, 16, 100 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_DOWN);
    pool_destroy(pool);
}

static void test_the_clock_of_a_proxy_is_no_clock_of_ours(void **state)
{
    static const struct sample_error gateway = {
        .code = SAMPLE_ENGINE_TIMEOUT, .retryable = true, .status = 504, .message = "504"};
    struct pool *pool = pool_of(two, 1);

    (void)state;
    for (int i = 0; i < POOL_FAULTS_MAX; i++) {
        pool_begin(pool, pool_at(pool, 0), S);
        pool_end(pool, pool_at(pool, 0), &(struct pool_result){.error = &gateway, .allowed_us = S / 20}, S);
    }
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_DOWN);
    pool_destroy(pool);
}

static void test_the_usual_time_of_an_engine_rises_at_once_and_falls_slowly(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    give_sample(pool, engine, S / 100, 0, 100 * S);
    assert_int_equal(engine_usual_us(engine, 16), 3 * S / 4); /* a stall of the machine is no hang */
    give_sample(pool, engine, 40 * S, 0, 100 * S);
    assert_int_equal(engine_usual_us(engine, 16), 40 * S);
    give_sample(pool, engine, 20 * S, 0, 100 * S);
    assert_int_equal(engine_usual_us(engine, 16), 39 * S);
    for (int i = 0; i < 100; i++)
        give_sample(pool, engine, 20 * S, 0, 100 * S);
    assert_true(engine_usual_us(engine, 16) < 21 * S);
    pool_destroy(pool);
}

/* F10: three tokens in 0.2 s say nothing about a thousand. */
static void test_short_samples_tell_no_time_of_a_token(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    give_sample(pool, engine, S / 5, 3, 100 * S);
    assert_int_equal(engine_usual_us(engine, 1024), 3 * S / 4);
    for (int i = 0; i < POOL_FAULTS_MAX; i++)
        time_out(pool, engine, S, 1024, 200 * S);
    assert_int_equal(engine->state, ENGINE_DOWN);
    assert_int_equal(engine->stats.failures[SAMPLE_ENGINE_TIMEOUT], POOL_FAULTS_MAX);
    give_sample(pool, engine, S / 5, 20, 200 * S);
    assert_true(engine_usual_us(engine, 1024) > 10 * S);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_limit_below_what_the_engine_usually_takes_says_nothing_about_it),
        cmocka_unit_test(test_an_engine_that_never_gave_a_sample_has_half_a_minute),
        cmocka_unit_test(test_the_clock_of_a_proxy_is_no_clock_of_ours),
        cmocka_unit_test(test_the_usual_time_of_an_engine_rises_at_once_and_falls_slowly),
        cmocka_unit_test(test_short_samples_tell_no_time_of_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
