/* What an engine is, whether it keeps its word, and whether it belongs into its pool. The engines here are made up: a
 * function from a request to a reply. */
#include "support.h"

#include "client/pool.h"
#include "server/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000)

enum seeds { SEEDS_HONOURED, SEEDS_IGNORED, SEEDS_CONSTANT };

/* What a made-up vLLM is like. */
struct vllm {
    const char *model;
    const char *version;
    const char *weights; /* NULL: it does not say */
    const char *tokens;  /* of the test text; NULL: no such route */
    enum seeds seeds;
    enum logprobs_kind kind;
    bool no_ids;
    bool one_only;  /* gives one sample where two are asked for */
    double certain; /* log-probability of each token of a constant engine */
    int status;     /* of every sample; 0: 200 */
    bool silent;    /* no sample is ever answered */
    unsigned asked; /* samples so far */
};

static const struct vllm honest = {
    .model = "smol", .version = "0.32.0", .tokens = "{\"tokens\":[5,6,7]}", .kind = LOGPROBS_KIND_RAW};

/* The most likely token has -2 in the model. */
static double likeliest(const struct vllm *vllm, double temperature)
{
    switch (vllm->kind) {
    case LOGPROBS_KIND_RAW:
    case LOGPROBS_KIND_UNKNOWN:
        return -2;
    case LOGPROBS_KIND_TEMPERATURE:
        return -2 - 3 * (temperature - 1);
    case LOGPROBS_KIND_PROCESSED:
        return 0;
    case LOGPROBS_KIND_LOGITS:
        return 11.5;
    }
    return NAN;
}

static int token_of(struct vllm *vllm, int64_t seed, size_t place)
{
    int64_t source = vllm->seeds == SEEDS_HONOURED  ? seed
                     : vllm->seeds == SEEDS_IGNORED ? (int64_t)vllm->asked * 7919
                                                    : 0;

    return (int)((source * 31 + (int64_t)place * 17) % 1000 + 1);
}

static void write_choice(struct vllm *vllm, json_t *ask, char *out, size_t size)
{
    int64_t seed = json_integer_value(json_object_get(ask, "seed"));
    size_t count = (size_t)json_integer_value(json_object_get(ask, "max_tokens"));
    bool top = json_integer_value(json_object_get(ask, "top_k")) == 1;
    double logprob = vllm->certain != 0 ? vllm->certain : vllm->kind == LOGPROBS_KIND_LOGITS ? 3 : -5;
    size_t at = (size_t)snprintf(out, size, "{\"index\":0,\"text\":\"t%d\",\"finish_reason\":\"length\"",
                                 token_of(vllm, seed, 0));

    if (top)
        logprob = likeliest(vllm, json_number_value(json_object_get(ask, "temperature")));
    for (int part = 0; part < 2 && !vllm->no_ids; part++) {
        at += (size_t)snprintf(out + at, size - at, part ? ",\"logprobs\":{\"token_logprobs\":[" : ",\"token_ids\":[");
        for (size_t i = 0; i < count; i++)
            at += (size_t)(part ? snprintf(out + at, size - at, "%s%g", i ? "," : "", logprob)
                                : snprintf(out + at, size - at, "%s%d", i ? "," : "",
                                           top ? 42 : token_of(vllm, seed, i)));
        at += (size_t)snprintf(out + at, size - at, part ? "]}" : "]");
    }
    snprintf(out + at, size - at, "}");
}

static int sample_of(struct vllm *vllm, json_t *ask, char *out, size_t size)
{
    char choice[512];
    bool two = json_integer_value(json_object_get(ask, "n")) == 2 && !vllm->one_only;

    vllm->asked++;
    if (vllm->status) {
        snprintf(out, size, "{\"error\":{\"message\":\"no\"}}");
        return vllm->status;
    }
    write_choice(vllm, ask, choice, sizeof(choice));
    snprintf(out, size, "{\"choices\":[%s%s%s]}", choice, two ? "," : "", two ? choice : "");
    return 200;
}

/* The status; 0: no reply. */
static int answer(struct vllm *vllm, const struct engine_call *call, char *out, size_t size)
{
    json_t *ask = json_loadb(call->body.data ? call->body.data : "", call->body.length_bytes, 0, NULL);
    int status = 200;

    if (strcmp(call->path, "/version") == 0)
        snprintf(out, size, "{\"version\":\"%s\"}", vllm->version);
    else if (strcmp(call->path, "/v1/models") == 0)
        snprintf(out, size, "{\"data\":[{\"id\":\"%s\",\"max_model_len\":2048},{\"id\":\"lora-a\"}]}", vllm->model);
    else if (strcmp(call->path, "/weight_info") == 0 && vllm->weights)
        snprintf(out, size, "{\"weight_version\":\"%s\"}", vllm->weights);
    else if (strcmp(call->path, "/tokenize") == 0 && vllm->tokens)
        snprintf(out, size, "%s", vllm->tokens);
    else if (strcmp(call->path, "/v1/completions") == 0)
        status = vllm->silent ? 0 : sample_of(vllm, ask, out, size);
    else
        status = 404;
    json_decref(ask);
    return status;
}

/* --- a probe alone ------------------------------------------------------------------------------------ */

static const struct sample_error late = {.code = SAMPLE_ENGINE_TIMEOUT, .message = "no answer in time"};

static void take(struct probe *probe, struct vllm *vllm)
{
    struct engine_call call;
    char body[2048] = "";

    while (probe_build(probe, &call)) {
        int status = answer(vllm, &call, body, sizeof(body));
        struct engine_reply reply = {.status = status, .body = text_of(body)};

        engine_call_finish(&call);
        if (!probe_take(probe, status ? &reply : NULL, &late))
            return;
    }
    engine_call_finish(&call);
}

static struct engine_facts facts_of(struct vllm vllm)
{
    struct probe_rules rules = {
        .adapter = engine_adapter_find(text_of("vllm")), .url = "http://a", .ask_tokens = true, .ask_samples = true};
    struct engine_facts facts;
    struct probe probe;

    probe_init(&probe, &rules);
    take(&probe, &vllm);
    assert_null(probe_failed(&probe));
    facts = probe.facts;
    probe_finish(&probe);
    return facts;
}

static void test_an_honest_engine_is_found_to_be_honest(void **state)
{
    struct vllm vllm = honest;

    (void)state;
    vllm.weights = "step-7";
    struct engine_facts facts = facts_of(vllm);
    assert_string_equal(facts.model, "smol");
    assert_string_equal(facts.version, "0.32.0");
    assert_string_equal(facts.weight_version, "step-7");
    assert_int_equal(facts.context_tokens, 2048);
    /* printf 5,6,7 | sha256sum */
    assert_string_equal(facts.tokenizer_sha256, "9988e8a737dd629d5014a04ec3c0b97444416bb63e48f3ab7aa4da48a3aeb569");
    assert_int_equal(facts.capabilities.ids, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.logprobs, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.seeds, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.n, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.logprobs_kind, LOGPROBS_KIND_RAW);
    assert_true(facts.capabilities.asked);
    assert_string_equal(facts.capabilities.note, "");
}

static void test_an_engine_that_ignores_seeds_is_found_out(void **state)
{
    struct vllm vllm = honest;

    (void)state;
    vllm.seeds = SEEDS_IGNORED;
    struct engine_capabilities found = facts_of(vllm).capabilities;
    assert_int_equal(found.seeds, CAPABILITY_NO);
    assert_string_equal(found.note, "the same seed gave other tokens");
    vllm.seeds = SEEDS_CONSTANT;
    found = facts_of(vllm).capabilities;
    assert_int_equal(found.seeds, CAPABILITY_NO);
    assert_string_equal(found.note, "another seed gave the same tokens");
}

/* A trained policy may have one answer left: that is not the engine's fault. */
static void test_a_model_that_always_says_the_same_proves_nothing_about_seeds(void **state)
{
    struct vllm vllm = honest;

    (void)state;
    vllm.seeds = SEEDS_CONSTANT;
    vllm.certain = -0.01;
    struct engine_capabilities found = facts_of(vllm).capabilities;
    assert_int_equal(found.seeds, CAPABILITY_UNKNOWN);
    assert_true(found.asked);
}

static void test_an_engine_without_ids_is_found_out(void **state)
{
    struct vllm vllm = honest;

    (void)state;
    vllm.no_ids = true;
    struct engine_capabilities found = facts_of(vllm).capabilities;
    assert_int_equal(found.ids, CAPABILITY_NO);
    assert_int_equal(found.logprobs, CAPABILITY_NO);
    assert_int_equal(found.seeds, CAPABILITY_YES); /* by its texts */
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_UNKNOWN);
}

static void test_one_sample_for_two_is_noticed(void **state)
{
    struct vllm vllm = honest;

    (void)state;
    vllm.one_only = true;
    assert_int_equal(facts_of(vllm).capabilities.n, CAPABILITY_NO);
}

static void test_the_distribution_of_the_log_probabilities_is_told_by_two_temperatures(void **state)
{
    static const enum logprobs_kind kinds[] = {LOGPROBS_KIND_RAW, LOGPROBS_KIND_TEMPERATURE, LOGPROBS_KIND_PROCESSED,
                                               LOGPROBS_KIND_LOGITS};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct vllm vllm = honest;
        vllm.kind = kinds[i];
        assert_int_equal(facts_of(vllm).capabilities.logprobs_kind, kinds[i]);
    }
}

/* vLLM in its default mode, recorded: -2.15 for the likeliest token; with processed_logprobs 0. */
static void test_the_judgement_of_what_real_servers_said(void **state)
{
    struct probe_answer answers[PROBE_QUESTIONS] = {{.given = false}};
    struct engine_capabilities found = {.asked = false};

    (void)state;
    for (size_t i = 0; i < 6; i++)
        answers[i] = (struct probe_answer){
            .given = true, .has_ids = true, .count = 1, .ids = {i == 1 ? 2020 : 37631}, .first_logprob = -10.4};
    answers[4].ids[0] = answers[5].ids[0] = 19556;
    answers[4].first_logprob = answers[5].first_logprob = -2.1504807472229004;
    probe_judge(answers, &found);
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_RAW);
    assert_int_equal(found.seeds, CAPABILITY_YES);
    answers[4].first_logprob = answers[5].first_logprob = 0;
    probe_judge(answers, &found);
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_PROCESSED);
    for (size_t i = 0; i < 4; i++)
        answers[i].first_logprob = 0; /* it is certain: both would look like this */
    probe_judge(answers, &found);
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_UNKNOWN);
}

static void test_questions_that_are_refused_or_not_answered_leave_the_engine_up_and_unknown(void **state)
{
    static const int statuses[] = {0, 400, 401, 429, 500, 503};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct vllm vllm = honest;
        vllm.silent = statuses[i] == 0;
        vllm.status = statuses[i];
        struct engine_facts facts = facts_of(vllm);
        assert_string_equal(facts.model, "smol");
        assert_int_equal(facts.capabilities.seeds, CAPABILITY_UNKNOWN);
        assert_int_equal(facts.capabilities.ids, CAPABILITY_UNKNOWN);
        assert_int_equal(facts.capabilities.asked, statuses[i] == 400 || statuses[i] == 401);
        assert_true(facts.capabilities.note[0]);
    }
}

static void test_a_refusal_ends_the_questions(void **state)
{
    struct probe_rules rules = {
        .adapter = engine_adapter_find(text_of("vllm")), .url = "http://a", .ask_samples = true};
    struct vllm vllm = honest;
    struct probe probe;

    (void)state;
    vllm.status = 429;
    probe_init(&probe, &rules);
    take(&probe, &vllm);
    probe_finish(&probe);
    assert_int_equal(vllm.asked, 1);
}

/* --- in a pool ------------------------------------------------------------------------------------------ */

static void probe_all(struct pool *pool, struct vllm *vllms, int64_t now_us)
{
    struct engine *engine;
    struct engine_call call;
    int64_t at_us;
    int64_t timeout_us;
    char body[2048] = "";

    while ((engine = pool_probe_due(pool, now_us, &at_us))) {
        struct vllm *vllm = &vllms[engine->url[7] - 'a'];

        while (engine_probe_build(engine, now_us, &call, &timeout_us)) {
            int status = answer(vllm, &call, body, sizeof(body));
            struct engine_reply reply = {.status = status, .body = text_of(body)};

            engine_call_finish(&call);
            if (!engine_probe_reply(engine, &reply, NULL, now_us))
                break;
        }
    }
}

static struct pool *pool_with(const struct pool_engine *engines, size_t count)
{
    struct pool_rules rules = POOL_RULES_DEFAULT;
    char message[POOL_MESSAGE_BYTES];
    struct pool *pool = pool_create(engines, count, message);

    assert_non_null(pool);
    rules.ask_samples = true;
    rules.check_us = 30 * S;
    pool_set_rules(pool, &rules);
    return pool;
}

static const struct pool_engine pair[] = {{.url = "http://a", .kind = "vllm"}, {.url = "http://b", .kind = "vllm"}};

static void test_an_engine_of_another_model_is_refused_and_says_why(void **state)
{
    struct pool *pool = pool_with(pair, 2);
    struct vllm vllms[2] = {honest, honest};
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
    struct vllm vllms[2] = {honest, honest};

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
    struct vllm vllms[2] = {honest, honest};

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
    struct vllm vllms[2] = {honest, honest};

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
    struct vllm vllm = honest;

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
    struct vllm vllm = honest;

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
    struct vllm vllms[2] = {honest, honest};

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
    struct vllm vllm = honest;
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
    struct vllm vllms[2] = {honest, honest};
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
        int status = answer(&vllms[0], &call, body, sizeof(body));
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
    struct vllm vllm = honest;
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
    struct vllm vllm = honest;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_engine_is_found_to_be_honest),
        cmocka_unit_test(test_an_engine_that_ignores_seeds_is_found_out),
        cmocka_unit_test(test_a_model_that_always_says_the_same_proves_nothing_about_seeds),
        cmocka_unit_test(test_an_engine_without_ids_is_found_out),
        cmocka_unit_test(test_one_sample_for_two_is_noticed),
        cmocka_unit_test(test_the_distribution_of_the_log_probabilities_is_told_by_two_temperatures),
        cmocka_unit_test(test_the_judgement_of_what_real_servers_said),
        cmocka_unit_test(test_questions_that_are_refused_or_not_answered_leave_the_engine_up_and_unknown),
        cmocka_unit_test(test_a_refusal_ends_the_questions),
        cmocka_unit_test(test_an_engine_of_another_model_is_refused_and_says_why),
        cmocka_unit_test(test_an_engine_with_another_tokenizer_is_refused),
        cmocka_unit_test(test_engines_of_different_pools_may_differ),
        cmocka_unit_test(test_an_engine_that_does_not_serve_what_its_settings_say_is_refused),
        cmocka_unit_test(test_logits_are_refused),
        cmocka_unit_test(test_a_pool_with_unfinished_work_keeps_its_model_and_an_idle_one_may_change_it),
        cmocka_unit_test(test_a_name_of_the_settings_does_not_hide_another_model),
        cmocka_unit_test(test_a_pool_is_moved_to_another_model_one_engine_after_the_other),
        cmocka_unit_test(test_an_engine_that_was_removed_does_not_say_what_its_pool_is_of),
        cmocka_unit_test(test_an_engine_is_asked_again_only_after_it_was_gone_or_changed),
        cmocka_unit_test(test_questions_in_vain_are_put_again_later_and_not_for_ever),
        cmocka_unit_test(test_a_look_that_fails_takes_down_what_is_gone_and_not_what_is_busy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
