/* Whether an engine belongs into its pool, and when it is asked. */
#include "made_up_vllm.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000)

static const struct sample_error late = {.code = SAMPLE_ENGINE_TIMEOUT, .message = "no answer in time"};

static const struct pool_engine pair[] = {{.url = "http://a", .kind = "vllm"}, {.url = "http://b", .kind = "vllm"}};

static void test_an_engine_of_another_model_is_refused_and_says_why(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};
    struct engine *engine = pool_at(pool, 1);

    (void)state;
    vllms[1].model = "other";
    probe_all(pool, vllms, 1 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    assert_int_equal(engine->state, ENGINE_REFUSED);
    assert_string_equal(engine->why, "it serves other, but pool \"default\" is of smol, as e1 said first");
    vllms[1].model = "/models/smol.gguf"; /* the same by another name */
    probe_all(pool, vllms, 7 * S);
    assert_int_equal(engine->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_an_engine_with_another_tokenizer_is_refused(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};

    (void)state;
    vllms[1].tokens = "{\"tokens\":[5,6,8]}";
    probe_all(pool, vllms, 1 * S);
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_REFUSED);
    assert_non_null(strstr(pool_at(pool, 1)->why, "other tokens"));
    vllms[1].tokens = NULL; /* what is not known disagrees with nothing, but what was known stays known */
    probe_all(pool, vllms, 7 * S);
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_REFUSED);
    pool_destroy(pool);
}

static void test_engines_of_different_pools_may_differ(void **state)
{
    const struct pool_engine engines[] = {{.url = "http://a", .kind = "vllm"},
                                          {.url = "http://b", .kind = "vllm", .pool = "judges"}};
    struct pool *pool = pool_with(engines, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};

    (void)state;
    vllms[1].model = "other";
    probe_all(pool, vllms, 1 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_an_engine_that_does_not_serve_what_its_settings_say_is_refused(void **state)
{
    const struct pool_engine engines[] = {{.url = "http://a", .kind = "vllm", .model = "mine"},
                                          {.url = "http://b", .kind = "vllm", .model = "lora-a", .pool = "p"}};
    struct pool *pool = pool_with(engines, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};

    (void)state;
    probe_all(pool, vllms, 1 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_REFUSED);
    assert_string_equal(pool_at(pool, 0)->why,
                        "its settings say the model mine, which it does not serve (it has smol)");
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_logits_are_refused(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct vllm vllm = honest_vllm;

    (void)state;
    vllm.kind = LOGPROBS_KIND_LOGITS;
    probe_all(pool, &vllm, 1 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_REFUSED);
    assert_non_null(strstr(pool_at(pool, 0)->why, "logits"));
    pool_destroy(pool);
}

/* Half of a group of one model and half of another: never. */
static void test_a_pool_with_unfinished_work_keeps_its_model_and_an_idle_one_may_change_it(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct engine *engine = pool_at(pool, 0);
    struct vllm vllm = honest_vllm;

    (void)state;
    probe_all(pool, &vllm, 1 * S);
    pool_named_pin(engine->pool);
    vllm.model = "other";
    probe_all(pool, &vllm, 32 * S); /* the look, and what it leads to */
    assert_int_equal(engine->state, ENGINE_REFUSED);
    assert_non_null(strstr(engine->why, "unfinished"));
    assert_int_equal(engine->restarts, 1);
    pool_named_unpin(engine->pool);
    probe_all(pool, &vllm, 40 * S);
    assert_int_equal(engine->state, ENGINE_UP);
    assert_string_equal(engine->model, "other");
    pool_destroy(pool);
}

/* llama.cpp takes any name, so the settings may give it one; it must not hide that the file is another now. */
static void test_a_name_of_the_settings_does_not_hide_another_model(void **state)
{
    const struct pool_engine engines[] = {{.url = "http://a", .kind = "llamacpp", .model = "policy"}};
    struct pool *pool = pool_with(engines, 1);
    struct engine *engine = pool_at(pool, 0);
    int64_t at_us;
    static const char *const props[] = {"{\"total_slots\":2,\"model_alias\":\"a.gguf\"}",
                                        "{\"total_slots\":2,\"model_alias\":\"b.gguf\"}"};
    struct engine_reply none = {.status = 404};
    struct engine_call call;
    int64_t timeout_us;
    const int64_t times_us[] = {1 * S, 32 * S, 32 * S, 40 * S};
    const size_t said[] = {0, 1, 1, 1};
    const enum engine_state states[] = {ENGINE_UP, ENGINE_UNKNOWN, ENGINE_REFUSED, ENGINE_UP};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(times_us); i++) {
        struct engine_reply reply = {.status = 200, .body = text_of(props[said[i]])};

        assert_ptr_equal(pool_probe_due(pool, times_us[i], &at_us), engine);
        while (engine_probe_build(engine, times_us[i], &call, &timeout_us)) {
            bool is_props = strcmp(call.path, "/props") == 0;
            engine_call_finish(&call);
            if (!engine_probe_reply(engine, is_props ? &reply : &none, NULL, times_us[i]))
                break;
        }
        assert_int_equal(engine->state, states[i]);
        if (i == 0)
            pool_named_pin(engine->pool);
        if (i == 2) {
            assert_non_null(strstr(engine->why, "it serves b.gguf now, and served a.gguf"));
            pool_named_unpin(engine->pool);
        }
    }
    pool_destroy(pool);
}

static void test_a_pool_is_moved_to_another_model_one_engine_after_the_other(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};

    (void)state;
    probe_all(pool, vllms, 1 * S);
    vllms[0].model = "next";
    probe_all(pool, vllms, 32 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_REFUSED);
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_UP);
    vllms[1].model = "next";
    probe_all(pool, vllms, 70 * S); /* now nobody has the old one */
    probe_all(pool, vllms, 80 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    assert_int_equal(pool_at(pool, 1)->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_an_engine_is_asked_again_only_after_it_was_gone_or_changed(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct engine *engine = pool_at(pool, 0);
    struct vllm vllm = honest_vllm;
    struct sample_error unreachable = {
        .code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true, .not_connected = true, .message = "refused"};

    (void)state;
    probe_all(pool, &vllm, 1 * S);
    unsigned once = vllm.asked;
    assert_true(once > 0);
    probe_all(pool, &vllm, 32 * S); /* a look */
    assert_int_equal(vllm.asked, once);
    vllm.weights = "step-1"; /* new weights: not a new engine */
    probe_all(pool, &vllm, 63 * S);
    assert_int_equal(vllm.asked, once);
    assert_string_equal(engine->facts.weight_version, "step-1");
    vllm.version = "0.33.0";
    vllm.seeds = SEEDS_IGNORED;
    probe_all(pool, &vllm, 94 * S);
    assert_true(vllm.asked > once);
    assert_int_equal(engine->facts.capabilities.seeds, CAPABILITY_NO);
    assert_int_equal(engine->restarts, 1);
    once = vllm.asked;
    for (int i = 0; i < 8; i++)
        pool_begin(pool, engine, 95 * S);
    for (int i = 0; i < 8; i++)
        pool_end(pool, engine, &(struct pool_result){.error = &unreachable}, 95 * S);
    probe_all(pool, &vllm, 96 * S);
    assert_true(vllm.asked > once);
    assert_int_equal(engine->state, ENGINE_UP); /* it gave samples since it failed */
    once = vllm.asked;
    unreachable.not_connected = false; /* it died with connections open and was back at once */
    for (int i = 0; i < 3; i++) {
        pool_begin(pool, engine, 97 * S);
        pool_end(pool, engine, &(struct pool_result){.error = &unreachable}, 97 * S);
    }
    assert_int_equal(engine->state, ENGINE_DOWN);
    probe_all(pool, &vllm, 98 * S);
    assert_true(vllm.asked > once);
    assert_int_equal(engine->restarts, 3);
    pool_destroy(pool);
}

/* It was PUT with a wrong URL, say, and a batch waits for the right one. */
static void test_an_engine_that_was_removed_does_not_say_what_its_pool_is_of(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct engine *wrong = pool_at(pool, 0);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};
    struct engine_call call;
    int64_t at_us;
    int64_t timeout_us;
    char body[2048];
    char message[POOL_MESSAGE_BYTES];
    bool more = true;

    (void)state;
    vllms[0].model = "another";
    pool_named_pin(wrong->pool);
    assert_ptr_equal(pool_probe_due(pool, 1 * S, &at_us), wrong);
    while (more && engine_probe_build(wrong, 1 * S, &call, &timeout_us)) {
        int status = vllm_answer(&vllms[0], &call, body, sizeof(body));
        struct engine_reply reply = {.status = status, .body = text_of(body)};

        engine_call_finish(&call);
        pool_remove(pool, wrong);
        more = engine_probe_reply(wrong, &reply, NULL, 1 * S);
    }
    pool_reap(pool);
    assert_int_equal(pool_removed_count(pool), 0);
    assert_non_null(pool_add(pool, &pair[1], message));
    probe_all(pool, vllms, 2 * S);
    assert_string_equal(pool_at(pool, 0)->why, "");
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_questions_in_vain_are_put_again_later_and_not_for_ever(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct vllm vllm = honest_vllm;
    int64_t now_us = 1 * S;

    (void)state;
    vllm.status = 503;
    probe_all(pool, &vllm, now_us);
    assert_int_equal(vllm.asked, 1);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    probe_all(pool, &vllm, now_us += 31 * S);
    assert_int_equal(vllm.asked, 1);
    probe_all(pool, &vllm, now_us += 31 * S);
    assert_int_equal(vllm.asked, 2);
    for (int i = 0; i < 1000; i++)
        probe_all(pool, &vllm, now_us += 31 * S);
    assert_int_equal(vllm.asked, 5);
    pool_destroy(pool);
}

/* Samples on their way say more than a GET that was late. */
static void test_a_look_that_fails_takes_down_what_is_gone_and_not_what_is_busy(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct engine *engine = pool_at(pool, 0);
    struct vllm vllm = honest_vllm;
    struct sample_error gone = {.code = SAMPLE_ENGINE_UNREACHABLE, .not_connected = true, .message = "refused"};
    int64_t at_us;
    int64_t now_us = 1 * S;

    (void)state;
    probe_all(pool, &vllm, now_us);
    pool_begin(pool, engine, now_us);
    for (int i = 0; i < 5; i++) {
        assert_ptr_equal(pool_probe_due(pool, now_us += 31 * S, &at_us), engine);
        engine_probe_reply(engine, NULL, &late, now_us);
        assert_int_equal(engine->state, ENGINE_UP);
    }
    pool_end_cancelled(pool, engine);
    assert_ptr_equal(pool_probe_due(pool, now_us += 31 * S, &at_us), engine);
    engine_probe_reply(engine, NULL, &late, now_us);
    assert_int_equal(engine->state, ENGINE_DOWN);
    probe_all(pool, &vllm, now_us += 31 * S);
    assert_int_equal(engine->state, ENGINE_UP);
    pool_begin(pool, engine, now_us);
    assert_ptr_equal(pool_probe_due(pool, now_us += 31 * S, &at_us), engine);
    engine_probe_reply(engine, NULL, &gone, now_us);
    assert_int_equal(engine->state, ENGINE_DOWN);
    pool_end_cancelled(pool, engine);
    pool_destroy(pool);
}

static void test_hostile_probe_replies_cut_anywhere_do_no_harm(void **state)
{
    static const char props[] =
        "{\"default_generation_settings\":{\"n_ctx\":1024},\"total_slots\":4,\"model_alias\":\"m\"}";

    (void)state;
    for (size_t length = 0; length < sizeof(props) - 1; length++) {
        struct pool *pool = pool_with((const struct pool_engine[]){{.url = "http://a", .kind = "llamacpp"}}, 1);
        int64_t at_us;
        struct engine *engine = pool_probe_due(pool, 0, &at_us);
        struct body body = body_of(props, length);
        struct engine_reply answer = {.status = 200, .body = {body.data, length}};

        engine_probe_reply(engine, &answer, NULL, 0);
        assert_int_equal(engine->slots, 0);
        assert_null(engine->model);
        free(body.data);
        pool_destroy(pool);
    }
}

/* F10: rollouts with milliseconds left must not decide whether an engine is back. */
static enum pool_answer want(struct pool *pool, int64_t left_us, int64_t now_us)
{
    struct engine *engine;
    int64_t at_us;

    return pool_pick(pool, &(struct pool_want){.left_us = left_us, .tokens = 16, .since_us = now_us}, now_us, &engine,
                     &at_us);
}

static void test_a_probe_is_the_trial_where_no_sample_has_the_time_for_it(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct engine *engine = pool_at(pool, 0);
    struct vllm vllm = honest_vllm;
    unsigned asked;

    (void)state;
    probe_all(pool, &vllm, 1 * S);
    break_it(pool, engine, 2 * S);
    probe_all(pool, &vllm, 3 * S);
    assert_int_equal(engine->state, ENGINE_HALF_OPEN);
    vllm.status = 500; /* it is not back yet */
    asked = vllm.asked;
    assert_int_equal(want(pool, S / 20, 8 * S), POOL_WAIT);
    assert_true(pool_wants_probe(pool));
    probe_all(pool, &vllm, 8 * S);
    assert_false(pool_wants_probe(pool));
    assert_true(vllm.asked > asked);
    assert_int_equal(engine->state, ENGINE_HALF_OPEN);
    asked = vllm.asked;
    assert_int_equal(want(pool, S / 20, 8 * S), POOL_WAIT); /* at growing distances */
    probe_all(pool, &vllm, 8 * S);
    assert_int_equal(vllm.asked, asked);
    vllm.status = 0;
    assert_int_equal(want(pool, S / 20, 20 * S), POOL_WAIT);
    probe_all(pool, &vllm, 20 * S);
    assert_int_equal(engine->state, ENGINE_UP);
    assert_int_equal(want(pool, S / 20, 20 * S), POOL_PICKED);
    pool_destroy(pool);
}

static void test_samples_without_the_time_do_not_wait_for_a_probe_for_ever(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct engine *engine = pool_at(pool, 0);
    struct vllm vllm = honest_vllm;

    (void)state;
    probe_all(pool, &vllm, 1 * S);
    break_it(pool, engine, 2 * S);
    vllm.status = 500;
    probe_all(pool, &vllm, 3 * S);
    for (int64_t at_us = 8 * S; at_us < 63 * S; at_us += 5 * S) {
        assert_int_equal(want(pool, S / 20, at_us), POOL_WAIT);
        probe_all(pool, &vllm, at_us);
        assert_int_equal(engine->state, ENGINE_HALF_OPEN);
    }
    assert_int_equal(want(pool, S / 20, 80 * S), POOL_PICKED);
    pool_destroy(pool);
}

static void test_a_sample_that_has_the_time_is_the_trial(void **state)
{
    struct pool *pool = pool_with(pair, 1);
    struct vllm vllm = honest_vllm;

    (void)state;
    probe_all(pool, &vllm, 1 * S);
    break_it(pool, pool_at(pool, 0), 2 * S);
    probe_all(pool, &vllm, 3 * S);
    assert_int_equal(want(pool, 600 * S, 8 * S), POOL_PICKED);
    assert_false(pool_wants_probe(pool));
    pool_destroy(pool);
}

/* Where another engine takes the work, the trial is due all the same. */
static void test_a_trial_beside_a_sound_engine_is_made_by_a_probe_too(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest_vllm, honest_vllm};

    (void)state;
    probe_all(pool, vllms, 1 * S);
    break_it(pool, pool_at(pool, 0), 2 * S);
    probe_all(pool, vllms, 3 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_HALF_OPEN);
    assert_int_equal(want(pool, S / 20, 8 * S), POOL_PICKED);
    assert_true(pool_wants_probe(pool));
    probe_all(pool, vllms, 8 * S);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_UP);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_engine_of_another_model_is_refused_and_says_why),
        cmocka_unit_test(test_an_engine_with_another_tokenizer_is_refused),
        cmocka_unit_test(test_engines_of_different_pools_may_differ),
        cmocka_unit_test(test_an_engine_that_does_not_serve_what_its_settings_say_is_refused),
        cmocka_unit_test(test_logits_are_refused),
        cmocka_unit_test(test_a_pool_with_unfinished_work_keeps_its_model_and_an_idle_one_may_change_it),
        cmocka_unit_test(test_a_name_of_the_settings_does_not_hide_another_model),
        cmocka_unit_test(test_a_pool_is_moved_to_another_model_one_engine_after_the_other),
        cmocka_unit_test(test_an_engine_is_asked_again_only_after_it_was_gone_or_changed),
        cmocka_unit_test(test_an_engine_that_was_removed_does_not_say_what_its_pool_is_of),
        cmocka_unit_test(test_questions_in_vain_are_put_again_later_and_not_for_ever),
        cmocka_unit_test(test_a_look_that_fails_takes_down_what_is_gone_and_not_what_is_busy),
        cmocka_unit_test(test_hostile_probe_replies_cut_anywhere_do_no_harm),
        cmocka_unit_test(test_a_probe_is_the_trial_where_no_sample_has_the_time_for_it),
        cmocka_unit_test(test_samples_without_the_time_do_not_wait_for_a_probe_for_ever),
        cmocka_unit_test(test_a_sample_that_has_the_time_is_the_trial),
        cmocka_unit_test(test_a_trial_beside_a_sound_engine_is_made_by_a_probe_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
