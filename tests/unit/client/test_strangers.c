/* F08: what answers none of the GETs of its kind as that kind does is no engine, and gets no POST. */
#include "support.h"

#include "client/pool/pool.h"

#include <stdio.h>
#include <string.h>

#define MODELS "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\"}]}"
#define STUB "{\"status\":\"ok\"}"

/* The answer of one path; NULL ends them. All other paths have `rest`. */
struct place {
    const char *path;
    int status;
    const char *body;
};

struct server {
    const char *name;
    const char *kind; /* NULL: found out */
    const char *key;
    struct place places[4];
    struct place rest;
    const char *says; /* a part of why it is refused; NULL: it is an engine */
};

static const struct place *answer_of(const struct server *server, const char *path)
{
    for (size_t i = 0; i < ARRAY_LENGTH(server->places) && server->places[i].path; i++)
        if (strcmp(server->places[i].path, path) == 0)
            return &server->places[i];
    return &server->rest;
}

/* Probes it; the number of POSTs. */
static size_t probe_it(const struct server *server, struct pool *pool, int64_t now_us)
{
    struct engine *engine;
    struct engine_call call;
    int64_t at_us;
    int64_t timeout_us;
    size_t posts = 0;

    while ((engine = pool_probe_due(pool, now_us, &at_us)))
        while (engine_probe_build(engine, now_us, &call, &timeout_us)) {
            const struct place *answer = answer_of(server, call.path);
            struct engine_reply reply = {.status = answer->status, .body = text_of(answer->body)};

            posts += strcmp(call.method, "POST") == 0;
            engine_call_finish(&call);
            if (!engine_probe_reply(engine, &reply, NULL, now_us))
                break;
        }
    return posts;
}

static struct pool *pool_of(const struct server *server)
{
    struct pool_rules rules = POOL_RULES_DEFAULT;
    char message[POOL_MESSAGE_BYTES];
    struct pool *pool = pool_create(
        &(struct pool_engine){.url = "http://127.0.0.1:9", .kind = server->kind, .token = server->key}, 1, message);

    rules.ask_samples = true;
    rules.check_us = 1000000;
    pool_set_rules(pool, &rules);
    return pool;
}

static void check(const struct server *server)
{
    struct pool *pool = pool_of(server);
    struct engine *engine = pool_at(pool, 0);
    size_t posts = probe_it(server, pool, 0);

    if (server->says) {
        if (engine->state != ENGINE_REFUSED || !strstr(engine->why, server->says) || posts != 0)
            fail_msg("%s (%s) is %s after %zu POSTs: %s", server->name, server->kind ? server->kind : "any kind",
                     engine_state_names[engine->state], posts, engine->why);
        assert_true(engine->paused_until_us > 0); /* it is asked again */
    } else if (engine->state != ENGINE_UP || posts == 0) {
        fail_msg("%s (%s) is %s after %zu POSTs: %s", server->name, server->kind ? server->kind : "any kind",
                 engine_state_names[engine->state], posts, engine->why);
    }
    pool_destroy(pool);
}

static const char *const kinds[] = {"vllm", "vllm_generate", "sglang", "llamacpp", "openai_compat", NULL};

static void test_a_stranger_is_refused_whatever_kind_it_is_said_to_be(void **state)
{
    static const struct server strangers[] = {
        {.name = "404", .rest = {NULL, 404, "{\"error\":\"no\"}"}, .says = "404 for GET /"},
        {.name = "404 in HTML", .rest = {NULL, 404, "<!DOCTYPE HTML>"}, .says = "404 for GET /"},
        {.name = "HTML", .rest = {NULL, 200, "<html>"}, .says = "200 (HTML) for GET /"},
        {.name = "another service",
         .rest = {NULL, 200, "{\"name\":\"shop\",\"version\":\"1\"}"},
         .says = "(other JSON)"},
        {.name = "a list", .rest = {NULL, 200, "[]"}, .says = "(other JSON)"},
        {.name = "data that is no list of models",
         .rest = {NULL, 200, "{\"data\":[{\"name\":\"x\"}]}"},
         .says = "other"},
        {.name = "a number", .rest = {NULL, 200, "7"}, .says = "(other JSON)"},
        {.name = "a text", .rest = {NULL, 200, "hello"}, .says = "(no JSON)"},
        {.name = "nothing", .rest = {NULL, 200, ""}, .says = "(empty)"},
        {.name = "no content", .rest = {NULL, 204, ""}, .says = "204 (empty)"},
        {.name = "a redirect", .rest = {NULL, 302, ""}, .says = "302 (a redirect)"},
        {.name = "a permanent redirect", .rest = {NULL, 308, ""}, .says = "308 (a redirect)"},
        {.name = "bad request", .rest = {NULL, 400, ""}, .says = "400 for GET /"},
        {.name = "wrong method", .rest = {NULL, 405, "{\"detail\":\"Method Not Allowed\"}"}, .says = "405 for GET /"},
        {.name = "broken", .rest = {NULL, 500, "oops"}, .says = "500 for GET /"},
        {.name = "a login", .rest = {NULL, 401, ""}, .says = "it wants a key, and its settings name none"},
        {.name = "a login", .key = "k", .rest = {NULL, 401, ""}, .says = "does not take the key"},
        {.name = "a wall", .key = "k", .rest = {NULL, 403, "<html>"}, .says = "does not take the key"},
        {.name = "a service with a health check",
         .places = {{"/health", 200, STUB}},
         .rest = {NULL, 404, "{\"detail\":\"Not Found\"}"},
         .says = "404 for GET /"},
        {.name = "a service whose health says more",
         .places = {{"/health", 200, "{\"status\":\"ok\",\"uptime\":5}"}},
         .rest = {NULL, 500, ""},
         .says = "500 for GET /"},
        {.name = "an empty health check",
         .places = {{"/health", 200, ""}},
         .rest = {NULL, 404, ""},
         .says = "404 for GET /"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(strangers); i++)
        for (size_t k = 0; k < ARRAY_LENGTH(kinds); k++) {
            struct server server = strangers[i];

            server.kind = kinds[k];
            check(&server);
        }
}

static void test_engines_are_recognised_by_any_of_their_answers(void **state)
{
    static const struct server engines[] = {
        {"vLLM",
         NULL,
         NULL,
         {{"/version", 200, "{\"version\":\"0.32.0\"}"}, {"/v1/models", 200, MODELS}},
         {NULL, 404, ""},
         NULL},
        {"vLLM, its version alone",
         "vllm",
         NULL,
         {{"/version", 200, "{\"version\":\"0.32.0\"}"}},
         {NULL, 404, ""},
         NULL},
        {"a fork of vLLM",
         "vllm",
         NULL,
         {{"/version", 200, "{\"version\":\"0.32.0\",\"fork\":1}"}, {"/v1/models", 200, MODELS}},
         {NULL, 404, ""},
         NULL},
        {"a proxy before vLLM", "vllm_generate", NULL, {{"/v1/models", 200, MODELS}}, {NULL, 404, "<html>"}, NULL},
        {"vLLM without a model",
         "vllm",
         NULL,
         {{"/v1/models", 200, "{\"object\":\"list\",\"data\":[]}"}},
         {NULL, 404, ""},
         NULL},
        {"SGLang", "sglang", NULL, {{"/model_info", 200, "{\"model_path\":\"m\"}"}}, {NULL, 404, ""}, NULL},
        {"an old SGLang", "sglang", NULL, {{"/get_model_info", 200, "{\"model_path\":\"m\"}"}}, {NULL, 404, ""}, NULL},
        {"llama.cpp", "llamacpp", NULL, {{"/props", 200, "{\"total_slots\":4}"}}, {NULL, 404, ""}, NULL},
        {"llama.cpp behind a proxy", "llamacpp", NULL, {{"/v1/models", 200, MODELS}}, {NULL, 404, ""}, NULL},
        {"an API", "openai_compat", "k", {{"/v1/models", 200, MODELS}}, {NULL, 404, ""}, NULL},
        {"an API whose key may not list models",
         "openai_compat",
         "k",
         {{"/v1/models", 403, "{\"error\":{\"message\":\"Missing scopes: api.model.read\"}}"}},
         {NULL, 404, ""},
         NULL},
        {"transformers serve without a net",
         "openai_compat",
         NULL,
         {{"/v1/models", 500, "Internal Server Error"}, {"/health", 200, STUB}},
         {NULL, 404, ""},
         NULL},
        {"a stub of a bench", "vllm", NULL, {{NULL, 0, NULL}}, {NULL, 200, STUB}, NULL},
        {"a stub of a bench", "llamacpp", NULL, {{NULL, 0, NULL}}, {NULL, 200, STUB}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(engines); i++)
        check(&engines[i]);
}

/* Something else was started at its port. */
static void test_an_engine_in_whose_place_something_else_answers_is_refused_until_it_is_back(void **state)
{
    struct server server = {.name = "vLLM",
                            .kind = "vllm",
                            .places = {{"/version", 200, "{\"version\":\"0.32.0\"}"}, {"/v1/models", 200, MODELS}},
                            .rest = {NULL, 404, ""}};
    struct pool *pool = pool_of(&server);
    struct engine *engine = pool_at(pool, 0);

    (void)state;
    probe_it(&server, pool, 0);
    assert_int_equal(engine->state, ENGINE_UP);
    server.places[0] = server.places[1] = (struct place){"/version", 404, ""};
    assert_int_equal(probe_it(&server, pool, 2000000), 0);
    assert_int_equal(engine->state, ENGINE_REFUSED);
    assert_int_equal(engine_shown_state(engine), ENGINE_REFUSED);
    server.places[0] = (struct place){"/version", 200, "{\"version\":\"0.32.0\"}"};
    assert_true(probe_it(&server, pool, 9000000) > 0); /* it is asked anew what it is */
    assert_int_equal(engine->state, ENGINE_UP);
    pool_destroy(pool);
}

static void test_one_that_is_too_busy_to_say_what_it_is_is_asked_another_time(void **state)
{
    struct server server = {.name = "busy", .kind = "openai_compat", .rest = {NULL, 429, ""}};
    struct pool *pool = pool_of(&server);

    (void)state;
    assert_int_equal(engine_shown_state(pool_at(pool, 0)), ENGINE_UNKNOWN);
    assert_int_equal(probe_it(&server, pool, 0), 0);
    assert_int_equal(pool_at(pool, 0)->state, ENGINE_DOWN);
    assert_int_equal(pool_at(pool, 0)->last_error.code, SAMPLE_ENGINE_OVERLOADED);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stranger_is_refused_whatever_kind_it_is_said_to_be),
        cmocka_unit_test(test_engines_are_recognised_by_any_of_their_answers),
        cmocka_unit_test(test_an_engine_in_whose_place_something_else_answers_is_refused_until_it_is_back),
        cmocka_unit_test(test_one_that_is_too_busy_to_say_what_it_is_is_asked_another_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
