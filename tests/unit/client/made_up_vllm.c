#include "made_up_vllm.h"

#include "server/base/clock.h"
#include "support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct vllm honest_vllm = {
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

int vllm_answer(struct vllm *vllm, const struct engine_call *call, char *out, size_t size)
{
    json_t *ask = json_loadb(call->body.data ? call->body.data : "", call->body.length_bytes, 0, NULL);
    int status = 200;

    if (strcmp(call->path, "/version") == 0)
        snprintf(out, size, "{\"version\":\"%s\"}", vllm->version);
    else if (strcmp(call->path, "/v1/models") == 0)
        snprintf(out, size, "{\"data\":[{\"id\":\"%s\",\"max_model_len\":2048},{\"id\":\"%s\"}]}", vllm->model,
                 vllm->adapter ? vllm->adapter : "lora-a");
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

/* --- pools of them --------------------------------------------------------------------------------- */

void probe_all(struct pool *pool, struct vllm *vllms, int64_t now_us)
{
    struct engine *engine;
    struct engine_call call;
    int64_t at_us;
    int64_t timeout_us;
    char body[2048] = "";

    while ((engine = pool_probe_due(pool, now_us, &at_us))) {
        struct vllm *vllm = &vllms[engine->url[7] - 'a'];

        while (engine_probe_build(engine, now_us, &call, &timeout_us)) {
            int status = vllm_answer(vllm, &call, body, sizeof(body));
            struct engine_reply reply = {.status = status, .body = text_of(body)};

            engine_call_finish(&call);
            if (!engine_probe_reply(engine, &reply, NULL, now_us))
                break;
        }
    }
}

struct pool *pool_with(const struct pool_engine *engines, size_t count)
{
    struct pool_rules rules = POOL_RULES_DEFAULT;
    char message[POOL_MESSAGE_BYTES];
    struct pool *pool = pool_create(engines, count, message);

    assert_non_null(pool);
    rules.ask_samples = true;
    rules.check_us = 30 * US_PER_S;
    pool_set_rules(pool, &rules);
    return pool;
}

void break_it(struct pool *pool, struct engine *engine, int64_t now_us)
{
    static const struct sample_error fault = {.code = SAMPLE_ENGINE_ERROR, .retryable = true, .message = "500"};

    for (int i = 0; i < POOL_FAULTS_MAX; i++) {
        pool_begin(pool, engine, now_us);
        pool_end(pool, engine, &(struct pool_result){.error = &fault, .began_us = now_us - US_PER_S}, now_us);
    }
    assert_int_equal(engine->state, ENGINE_DOWN);
}
