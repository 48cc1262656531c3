/* An engine belongs into its pool if it has the same model and tokenizer, and is as its settings say. */
#include "client/pool/pool_private.h"

#include <stdio.h>
#include <string.h>

static const char *engine_model(const struct engine *engine)
{
    if (engine->model_is_set)
        return engine->model;
    return engine->facts.model;
}

/* "/models/demo-1b.gguf" and "demo-1b" are one: servers tell a path, a file or a name. */
static size_t bare_name(const char *model, const char **ret_name)
{
    const char *slash = strrchr(model, '/');
    size_t length;

    *ret_name = slash && slash[1] ? slash + 1 : model;
    length = strlen(*ret_name);
    return length > 5 && strcmp(*ret_name + length - 5, ".gguf") == 0 ? length - 5 : length;
}

static bool same_model(const char *left, const char *right)
{
    const char *left_name;
    const char *right_name;
    size_t left_bytes = bare_name(left, &left_name);
    size_t right_bytes = bare_name(right, &right_name);

    return left_bytes == right_bytes && memcmp(left_name, right_name, left_bytes) == 0;
}

/* An unknown model or tokenizer agrees with any. */
static bool agrees(const struct named_pool *named, const struct engine *engine)
{
    const char *model = engine_model(engine);
    const char *tokenizer = engine->facts.tokenizer_sha256;

    if (*model && named->model[0] && !same_model(model, named->model))
        return false;
    return !*tokenizer || !named->tokenizer_sha256[0] || strcmp(tokenizer, named->tokenizer_sha256) == 0;
}

static bool has_other_members(const struct pool *pool, const struct engine *engine)
{
    for (size_t i = 0; i < pool->count; i++)
        if (pool->engines[i] != engine && pool->engines[i]->pool == engine->pool && pool->engines[i]->agrees_us)
            return true;
    return false;
}

static void complete_definition(struct named_pool *named, const struct engine *engine)
{
    if (!named->model[0] && *engine_model(engine)) {
        snprintf(named->model, sizeof(named->model), "%.255s", engine_model(engine));
        snprintf(named->defined_by, sizeof(named->defined_by), "%s", engine->name);
    }
    if (!named->tokenizer_sha256[0])
        snprintf(named->tokenizer_sha256, sizeof(named->tokenizer_sha256), "%s", engine->facts.tokenizer_sha256);
}

static void say_why(const struct named_pool *named, const struct engine *engine, char ret_why[SAMPLE_MESSAGE_BYTES])
{
    const char *until = named->pins ? " (kept while it has unfinished batches)" : "";
    const char *model = engine_model(engine);

    if (*model && named->model[0] && !same_model(model, named->model))
        snprintf(ret_why, SAMPLE_MESSAGE_BYTES,
                 "it serves %.50s, but pool \"%.30s\" is of %.50s, as %.30s said first%s", model, named->name,
                 named->model, named->defined_by, until);
    else
        snprintf(ret_why, SAMPLE_MESSAGE_BYTES,
                 "it reads a test text as other tokens (%.12s…) than pool \"%.30s\" (%.12s…, as %.30s said first)%s",
                 engine->facts.tokenizer_sha256, named->name, named->tokenizer_sha256, named->defined_by, until);
}

static bool is_what_it_should_be(const struct engine *engine, char ret_why[SAMPLE_MESSAGE_BYTES])
{
    const struct engine_facts *facts = &engine->facts;

    if (engine->model_is_set && !facts->serves_wanted) {
        snprintf(ret_why, SAMPLE_MESSAGE_BYTES,
                 "its settings say the model %.90s, which it does not serve (it has %.90s)", engine->model,
                 facts->model);
        return false;
    }
    if (facts->capabilities.logprobs_kind == LOGPROBS_KIND_LOGITS) {
        snprintf(ret_why, SAMPLE_MESSAGE_BYTES,
                 "its log-probabilities are above 0, so they are logits; for vLLM: --logprobs-mode raw_logprobs");
        return false;
    }
    return true;
}

bool pool_agrees(struct pool *pool, struct engine *engine, char ret_why[SAMPLE_MESSAGE_BYTES])
{
    struct named_pool *named = engine->pool;

    if (!is_what_it_should_be(engine, ret_why))
        return false;
    if (!agrees(named, engine)) {
        if (named->pins || has_other_members(pool, engine)) {
            say_why(named, engine, ret_why);
            return false;
        }
        named->model[0] = named->tokenizer_sha256[0] = '\0'; /* no engine has it any more: begin anew */
    }
    complete_definition(named, engine);
    return true;
}

void pool_named_pin(struct named_pool *named)
{
    named->pins++;
}

void pool_named_unpin(struct named_pool *named)
{
    named->pins--;
}
