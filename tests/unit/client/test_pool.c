/* The engines and their health, with a made-up clock. */
#include "support.h"

#include "client/pool/pool.h"
#include "server/base/clock.h"

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000)
#define S INT64_C(1000000)

static const struct sample_error unreachable = {
    .code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true, .not_connected = true, .message = "refused"};
static const struct sample_error dropped = {.code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true};
static const struct sample_error overloaded = {.code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .message = "429"};
static const struct sample_error overloaded_2s = {
    .code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .retry_after_us = 2 * S};
static const struct sample_error fault = {.code = SAMPLE_ENGINE_ERROR, .retryable = true, .message = "500"};
static const struct sample_error refused = {.code = SAMPLE_ENGINE_ERROR, .retryable = false, .message = "400"};

static struct pool *pool_of(const struct pool_engine *settings, size_t count)
{
    char message[200];
    struct pool *pool = pool_create(settings, count, message);

    if (!pool)
        fail_msg("%s", message);
    return pool;
}

static bool reply(struct engine *engine, int status, const char *body, int64_t now_us)
{
    struct engine_reply answer = {.status = status, .body = text_of(body)};

    return engine_probe_reply(engine, &answer, NULL, now_us);
}

static const char *probe_path(struct engine *engine)
{
    struct engine_call call;
    int64_t timeout_us;

    assert_true(engine_probe_build(engine, 0, &call, &timeout_us));
    engine_call_finish(&call);
    return call.path;
}

/* As vLLM answers; the engine is UP afterwards. */
static void bring_up(struct pool *pool, int64_t now_us)
{
    struct engine *engine;
    int64_t at_us;

    while ((engine = pool_probe_due(pool, now_us, &at_us))) {
        assert_string_equal(probe_path(engine), "/version");
        assert_true(reply(engine, 200, "{\"version\":\"0.32.0\"}", now_us));
        assert_string_equal(probe_path(engine), "/v1/models");
        assert_true(reply(engine, 200,
                          "{\"object\":\"list\",\"data\":[{\"id\":\"smol\",\"max_model_len\":2048},{\"id\":\"lora\"}]}",
                          now_us));
        assert_string_equal(probe_path(engine), "/weight_info");
        assert_false(reply(engine, 404, "", now_us));
        assert_int_equal(engine->state, ENGINE_UP);
    }
}

static enum pool_answer pick(struct pool *pool, int64_t now_us, struct engine **ret_engine, int64_t *ret_at_us)
{
    return pool_pick(pool, &(struct pool_want){.since_us = now_us}, now_us, ret_engine, ret_at_us);
}

static enum pool_answer pick_avoiding(struct pool *pool, const struct engine *avoid, int64_t now_us,
                                      struct engine **ret_engine, int64_t *ret_at_us)
{
    return pool_pick(pool, &(struct pool_want){.avoid = avoid, .since_us = now_us}, now_us, ret_engine, ret_at_us);
}

static void end_with(struct pool *pool, struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    pool_end(pool, engine, &(struct pool_result){.error = error}, now_us);
}

static const struct pool_engine two[] = {{.url = "http://127.0.0.1:1", .in_flight_limit = 2},
                                         {.url = "http://127.0.0.1:2/", .in_flight_limit = 4}};

/* --- settings ------------------------------------------------------------------------------------ */

static void test_settings_that_cannot_work_are_refused_by_name(void **state)
{
    static const struct pool_engine bad[] = {
        {.url = "127.0.0.1:80"},
        {.url = "ftp://host"},
        {.url = "http://"},
        {.url = "http://user:secret@host"},
        {.url = "http://host/?x"},
        {.url = "http://ho st"},
        {.url = NULL},
        {.url = "http://host", .kind = "tgi9"},
        {.url = "http://host", .token = "a\r\nb"},
        {.url = "http://host", .name = ""},
    };
    char message[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_null(pool_create(&bad[i], 1, message));
        assert_non_null(strstr(message, "engine 1"));
    }
    assert_null(
        pool_create((const struct pool_engine[]){{.url = "http://a", .name = "e2"}, {.url = "http://b"}}, 2, message));
}

static void test_engines_are_named_by_their_place(void **state)
{
    struct pool *pool = pool_of(two, 2);

    (void)state;
    assert_string_equal(pool_at(pool, 0)->name, "e1");
    assert_ptr_equal(pool_find(pool, (struct text)TEXT_LITERAL("e2")), pool_at(pool, 1));
    assert_string_equal(pool_at(pool, 1)->url, "http://127.0.0.1:2");
    assert_int_equal(pool_in_flight_limit(pool), 6);
    pool_destroy(pool);
}

/* --- probing ------------------------------------------------------------------------------------- */

static void test_a_probe_finds_vllm_its_model_and_context(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    bring_up(pool, 0);
    assert_string_equal(engine->adapter->kind, "vllm");
    assert_string_equal(engine->model, "smol");
    assert_int_equal(engine->context_tokens, 2048);
    assert_string_equal(engine->facts.version, "0.32.0");
    pool_destroy(pool);
}

static void test_a_probe_finds_llamacpp_and_its_slots(void **state)
{
    struct pool *pool = pool_of((const struct pool_engine[]){{.url = "http://a"}}, 1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    engine = pool_probe_due(pool, 0, &at_us);
    assert_true(reply(engine, 404, "{\"error\":{\"message\":\"File Not Found\"}}", 0));
    assert_string_equal(probe_path(engine), "/model_info");
    assert_true(reply(engine, 404, "", 0));
    assert_string_equal(probe_path(engine), "/props");
    assert_false(reply(
        engine, 200,
        "{\"default_generation_settings\":{\"n_ctx\":1024,\"params\":{}},\"total_slots\":4,\"model_alias\":\"m.gguf\","
        "\"build_info\":\"b9999\"}",
        0));
    assert_string_equal(engine->adapter->kind, "llamacpp");
    assert_int_equal(engine->slots, 4);
    assert_int_equal(engine->in_flight_limit, 8);
    assert_int_equal(engine->context_tokens, 1024);
    assert_string_equal(engine->model, "m.gguf");
    pool_destroy(pool);
}

static void test_a_probe_finds_sglang_and_falls_back_to_openai(void **state)
{
    struct pool *pool = pool_of((const struct pool_engine[]){{.url = "http://a"}, {.url = "http://b"}}, 2);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    engine = pool_probe_due(pool, 0, &at_us);
    assert_true(reply(engine, 404, "", 0));
    assert_true(reply(engine, 200, "{\"model_path\":\"/models/demo\",\"weight_version\":\"step-1\"}", 0));
    assert_string_equal(probe_path(engine), "/v1/models");
    assert_false(reply(engine, 200, "{\"data\":[{\"id\":\"demo\",\"max_model_len\":4096}]}", 0));
    assert_string_equal(engine->adapter->kind, "sglang");
    engine = pool_probe_due(pool, 0, &at_us);
    assert_true(reply(engine, 404, "", 0));
    assert_true(reply(engine, 404, "", 0));
    assert_true(reply(engine, 404, "", 0));
    assert_false(reply(engine, 200, "{\"data\":[{\"id\":\"gpt-x\"}]}", 0));
    assert_string_equal(engine->adapter->kind, "openai_compat");
    pool_destroy(pool);
}

static void test_settings_win_over_what_a_probe_finds(void **state)
{
    struct pool *pool = pool_of(
        (const struct pool_engine[]){
            {.url = "http://a", .kind = "openai_compat", .model = "mine", .in_flight_limit = 3}},
        1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    engine = pool_probe_due(pool, 0, &at_us);
    assert_string_equal(probe_path(engine), "/v1/models"); /* nothing else is asked */
    assert_true(reply(engine, 500, "oops", 0));            /* transformers serve without a net */
    assert_string_equal(probe_path(engine), "/health");
    assert_false(reply(engine, 200, "{\"status\":\"ok\"}", 0));
    assert_int_equal(engine->state, ENGINE_UP);
    assert_string_equal(engine->adapter->kind, "openai_compat");
    assert_string_equal(engine->model, "mine");
    pool_destroy(pool);
}

static void test_an_engine_that_is_down_at_the_start_is_probed_with_doubling_pauses(void **state)
{
    struct pool *pool = pool_of((const struct pool_engine[]){{.url = "http://a"}}, 1);
    struct engine *engine;
    int64_t now_us = 0, at_us;
    const int64_t pauses[] = {250 * MS, 500 * MS, 1000 * MS, 2000 * MS, 4000 * MS, 5000 * MS, 5000 * MS, 5000 * MS};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(pauses); i++) {
        engine = pool_probe_due(pool, now_us, &at_us);
        assert_non_null(engine);
        assert_null(pool_probe_due(pool, now_us, &at_us)); /* while it runs */
        assert_int_equal(at_us, NEVER_US);
        assert_false(engine_probe_reply(engine, NULL, &unreachable, now_us));
        assert_int_equal(engine->state, ENGINE_DOWN);
        assert_null(pool_probe_due(pool, now_us, &at_us));
        assert_int_equal(at_us, now_us + pauses[i]);
        now_us = at_us;
    }
    bring_up(pool, now_us);
    assert_int_equal(pool_at(pool, 0)->failures, 0);
    pool_destroy(pool);
}

static void test_an_engine_that_still_loads_is_down_not_unknown(void **state)
{
    struct pool *pool = pool_of((const struct pool_engine[]){{.url = "http://a", .kind = "llamacpp"}}, 1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    engine = pool_probe_due(pool, 0, &at_us);
    assert_false(reply(engine, 503, "{\"error\":{\"code\":503,\"message\":\"Loading model\"}}", 0));
    assert_int_equal(engine->state, ENGINE_DOWN);
    assert_int_equal(engine->last_error.code, SAMPLE_ENGINE_OVERLOADED);
    assert_non_null(strstr(engine->last_error.message, "Loading model"));
    pool_destroy(pool);
}

static void test_a_server_that_is_no_engine_is_refused_with_a_reason(void **state)
{
    struct pool *pool = pool_of((const struct pool_engine[]){{.url = "http://a"}}, 1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    engine = pool_probe_due(pool, 0, &at_us);
    assert_int_equal(engine_shown_state(engine), ENGINE_PROBING);
    while (reply(engine, 200, "<html>", 0))
        continue;
    assert_int_equal(engine->state, ENGINE_REFUSED);
    assert_string_equal(engine->why,
                        "it answers like no engine: 200 (HTML) for GET /version, 200 (HTML) for GET /model_info, 200 "
                        "(HTML) for GET /props, 200 (HTML) for GET /v1/models");
    pool_destroy(pool);
}

/* --- picking ------------------------------------------------------------------------------------- */

static void test_the_engine_with_the_smaller_share_in_flight_is_picked(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *engine;
    int64_t at_us;
    size_t picked[2] = {0, 0};

    (void)state;
    bring_up(pool, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_PICKED);
        pool_begin(pool, engine, 0);
        picked[engine == pool_at(pool, 1)]++;
    }
    assert_int_equal(picked[0], 2);
    assert_int_equal(picked[1], 4);
    assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_BUSY);
    end_with(pool, pool_at(pool, 1), NULL, 0);
    assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_PICKED);
    assert_ptr_equal(engine, pool_at(pool, 1));
    pool_destroy(pool);
}

static void test_idle_engines_take_turns_and_one_can_be_avoided(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *first, *second, *third;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    pick(pool, 0, &first, &at_us);
    pick(pool, 0, &second, &at_us);
    assert_ptr_not_equal(first, second);
    assert_int_equal(pick_avoiding(pool, first, 0, &third, &at_us), POOL_PICKED);
    assert_ptr_equal(third, second);
    pool_end_cancelled(pool, (pool_begin(pool, second, 0), second));
    pool_destroy(pool);
}

static void fail_on(struct pool *pool, struct engine *engine, const struct sample_error *error, int64_t now_us)
{
    pool_begin(pool, engine, 0);
    end_with(pool, engine, error, now_us);
}

/* It answers fast and is idle: without this it would get most of the work. */
static void test_an_engine_that_only_refuses_gets_single_trials_while_another_is_sound(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *bad = pool_at(pool, 0), *good = pool_at(pool, 1), *engine;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    assert_true(pool_has_another(pool, good));
    for (int i = 0; i < POOL_DOUBTS_MAX; i++)
        fail_on(pool, bad, &refused, 0);
    assert_false(pool_has_another(pool, good));
    assert_true(pool_has_another(pool, bad));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_PICKED);
        assert_ptr_equal(engine, good);
        pool_begin(pool, good, 0);
    }
    assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_BUSY);
    /* a trial after a pause, not for what failed there, and one at a time */
    assert_int_equal(pick_avoiding(pool, bad, 250 * MS, &engine, &at_us), POOL_BUSY);
    assert_int_equal(pick(pool, 250 * MS, &engine, &at_us), POOL_PICKED);
    assert_ptr_equal(engine, bad);
    pool_begin(pool, bad, 0);
    assert_int_equal(pick(pool, 250 * MS, &engine, &at_us), POOL_BUSY);
    end_with(pool, bad, &refused, 250 * MS);
    assert_int_equal(pick(pool, 749 * MS, &engine, &at_us), POOL_BUSY);
    assert_int_equal(pick(pool, 750 * MS, &engine, &at_us), POOL_PICKED);
    /* a sample, and it is as good as the other */
    pool_begin(pool, bad, 0);
    end_with(pool, bad, NULL, 760 * MS);
    assert_int_equal(pick(pool, 760 * MS, &engine, &at_us), POOL_PICKED);
    assert_ptr_equal(engine, bad);
    pool_destroy(pool);
}

static void test_one_waits_for_a_sound_engine_that_pauses(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *bad = pool_at(pool, 0), *good = pool_at(pool, 1), *engine;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    for (int i = 0; i < POOL_DOUBTS_MAX; i++)
        fail_on(pool, bad, &refused, 0);
    fail_on(pool, good, &overloaded_2s, 0);
    assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_WAIT);
    assert_int_equal(at_us, 250 * MS);
    assert_int_equal(pick_avoiding(pool, bad, 0, &engine, &at_us), POOL_WAIT);
    assert_int_equal(at_us, 2 * S);
    pool_destroy(pool);
}

static void test_when_all_only_refuse_all_are_asked(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    for (int i = 0; i < 2 * POOL_DOUBTS_MAX; i++)
        fail_on(pool, pool_at(pool, (size_t)i % 2), &refused, 0);
    assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_PICKED);
    pool_destroy(pool);
}

static void test_without_engines_there_is_none(void **state)
{
    struct pool *pool = pool_of(NULL, 0);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    assert_int_equal(pool_pick(pool, &(struct pool_want){0}, 60 * S - 1, &engine, &at_us), POOL_WAIT);
    assert_int_equal(at_us, 60 * S);
    assert_int_equal(pool_pick(pool, &(struct pool_want){0}, 60 * S, &engine, &at_us), POOL_DOWN);
    assert_null(pool_probe_due(pool, 0, &at_us));
    pool_destroy(pool);
}

static void test_before_the_first_probe_one_waits(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_WAIT);
    assert_null(engine);
    pool_destroy(pool);
}

/* --- health -------------------------------------------------------------------------------------- */

static struct engine *failing(struct pool *pool, const struct sample_error *error, int64_t now_us)
{
    struct engine *engine;
    int64_t at_us;

    assert_int_equal(pick(pool, now_us, &engine, &at_us), POOL_PICKED);
    pool_begin(pool, engine, 0);
    end_with(pool, engine, error, now_us);
    return engine;
}

static void test_an_overloaded_engine_gets_the_pause_it_asked_for(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    failing(pool, &overloaded_2s, 0);
    assert_int_equal(pick(pool, 2 * S - 1, &engine, &at_us), POOL_WAIT);
    assert_int_equal(at_us, 2 * S);
    assert_int_equal(pick(pool, 2 * S, &engine, &at_us), POOL_PICKED);
    pool_destroy(pool);
}

static void test_pauses_double_while_an_engine_stays_overloaded_and_a_success_ends_that(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);
    int64_t now_us = 0;

    (void)state;
    bring_up(pool, 0);
    for (int64_t pause_us = 250 * MS; pause_us <= 2000 * MS; pause_us *= 2) {
        failing(pool, &overloaded, now_us);
        assert_int_equal(engine->paused_until_us, now_us + pause_us);
        now_us = engine->paused_until_us;
    }
    failing(pool, NULL, now_us);
    failing(pool, &overloaded, now_us);
    assert_int_equal(engine->paused_until_us, now_us + 250 * MS);
    pool_destroy(pool);
}

static void test_a_burst_of_refusals_counts_once(void **state)
{
    struct pool *pool = pool_of((const struct pool_engine[]){{.url = "http://a"}}, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    bring_up(pool, 0);
    for (int i = 0; i < 100; i++)
        pool_begin(pool, engine, 0);
    for (int i = 0; i < 50; i++)
        end_with(pool, engine, &overloaded, i);
    assert_int_equal(engine->paused_until_us, 250 * MS);
    for (int i = 0; i < 50; i++)
        end_with(pool, engine, &unreachable, 60 + i);
    assert_int_equal(engine->failures, 2);
    assert_int_equal(engine->state, ENGINE_DOWN);
    assert_int_equal(engine->in_flight, 0);
    pool_destroy(pool);
}

static void test_an_unreachable_engine_is_down_until_a_probe_reaches_it(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    failing(pool, &unreachable, 0);
    assert_int_equal(pick(pool, 10 * S, &engine, &at_us), POOL_WAIT);
    assert_string_equal(pool_at(pool, 0)->last_error.message, "refused");
    bring_up(pool, 10 * S);
    assert_int_equal(pick(pool, 10 * S, &engine, &at_us), POOL_PICKED);
    pool_destroy(pool);
}

static void test_one_dropped_connection_does_not_take_an_engine_out(void **state)
{
    struct pool *pool = pool_of(two, 1);

    (void)state;
    bring_up(pool, 0);
    failing(pool, &dropped, 0);
    failing(pool, &dropped, 0);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    failing(pool, &dropped, 0);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_DOWN);
    pool_destroy(pool);
}

static void test_another_engine_carries_on(void **state)
{
    struct pool *pool = pool_of(two, 2);
    struct engine *broken, *engine;
    int64_t at_us;

    (void)state;
    bring_up(pool, 0);
    broken = failing(pool, &unreachable, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pick(pool, 0, &engine, &at_us), POOL_PICKED);
        assert_ptr_not_equal(engine, broken);
    }
    pool_destroy(pool);
}

static void test_three_faults_in_a_row_take_an_engine_out(void **state)
{
    struct pool *pool = pool_of(two, 1);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    bring_up(pool, 0);
    failing(pool, &fault, 0);
    failing(pool, &fault, 0);
    failing(pool, NULL, 0);
    failing(pool, &fault, 0);
    failing(pool, &fault, 0);
    assert_int_equal(engine->state, ENGINE_UP);
    failing(pool, &fault, 0);
    assert_int_equal(engine->state, ENGINE_DOWN);
    pool_destroy(pool);
}

static void test_a_refused_request_says_nothing_about_the_engine(void **state)
{
    struct pool *pool = pool_of(two, 1);

    (void)state;
    bring_up(pool, 0);
    for (int i = 0; i < 10; i++)
        failing(pool, &refused, 0); /* it is picked again, whatever it is shown as */
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_HALF_OPEN);
    failing(pool, NULL, 0);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_that_cannot_work_are_refused_by_name),
        cmocka_unit_test(test_engines_are_named_by_their_place),
        cmocka_unit_test(test_a_probe_finds_vllm_its_model_and_context),
        cmocka_unit_test(test_a_probe_finds_llamacpp_and_its_slots),
        cmocka_unit_test(test_a_probe_finds_sglang_and_falls_back_to_openai),
        cmocka_unit_test(test_settings_win_over_what_a_probe_finds),
        cmocka_unit_test(test_an_engine_that_is_down_at_the_start_is_probed_with_doubling_pauses),
        cmocka_unit_test(test_an_engine_that_still_loads_is_down_not_unknown),
        cmocka_unit_test(test_a_server_that_is_no_engine_is_refused_with_a_reason),
        cmocka_unit_test(test_the_engine_with_the_smaller_share_in_flight_is_picked),
        cmocka_unit_test(test_idle_engines_take_turns_and_one_can_be_avoided),
        cmocka_unit_test(test_an_engine_that_only_refuses_gets_single_trials_while_another_is_sound),
        cmocka_unit_test(test_one_waits_for_a_sound_engine_that_pauses),
        cmocka_unit_test(test_when_all_only_refuse_all_are_asked),
        cmocka_unit_test(test_without_engines_there_is_none),
        cmocka_unit_test(test_before_the_first_probe_one_waits),
        cmocka_unit_test(test_an_overloaded_engine_gets_the_pause_it_asked_for),
        cmocka_unit_test(test_pauses_double_while_an_engine_stays_overloaded_and_a_success_ends_that),
        cmocka_unit_test(test_a_burst_of_refusals_counts_once),
        cmocka_unit_test(test_an_unreachable_engine_is_down_until_a_probe_reaches_it),
        cmocka_unit_test(test_one_dropped_connection_does_not_take_an_engine_out),
        cmocka_unit_test(test_another_engine_carries_on),
        cmocka_unit_test(test_three_faults_in_a_row_take_an_engine_out),
        cmocka_unit_test(test_a_refused_request_says_nothing_about_the_engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
