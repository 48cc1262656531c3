#include "server/api/unstored.h"

#include "server/http/http.h"
#include "server/render/render.h"

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a;
    const struct text *right = b;
    size_t shorter = left->length_bytes < right->length_bytes ? left->length_bytes : right->length_bytes;
    int order = memcmp(left->data, right->data, shorter);
    if (order)
        return order;
    return (left->length_bytes > right->length_bytes) - (left->length_bytes < right->length_bytes);
}

/* The engines that the request names, each once. The caller frees the names. */
static struct store_names collect_engines(const struct store_batch *batch, const struct store_group *groups)
{
    struct store_names engines = {.names = xcalloc((size_t)batch->rollout_count, sizeof(struct text))};
    size_t count = 0;
    for (int64_t g = 0; g < batch->group_count; g++)
        for (size_t i = 0; i < groups[g].rollout_count; i++)
            if (groups[g].rollouts[i].engine.length_bytes > 0)
                engines.names[count++] = groups[g].rollouts[i].engine;
    qsort(engines.names, count, sizeof(struct text), compare_texts);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_texts(&engines.names[i], &engines.names[engines.count - 1]) != 0)
            engines.names[engines.count++] = engines.names[i];
    return engines;
}

static void write_members(struct json_write *json, const struct store_batch *batch, const struct store_group *groups,
                          const struct render_terms *terms)
{
    struct text version = TEXT_LITERAL(ROLLOUTD_VERSION);
    struct store_provenance provenance = {.engines = collect_engines(batch, groups),
                                          .rolloutd_versions = {.names = &version, .count = 1}};
    render_batch_members(json, batch, terms, &provenance);
    free(provenance.engines.names);
}

void unstored_write_reply(const struct store_batch *batch, const struct store_group *groups, int arrays,
                          struct buffer *reply)
{
    struct render_terms terms;
    struct json_write json;

    render_terms_init(&terms, batch);
    struct render_scope scope = {.fields = render_stored_returns(batch->returns),
                                 .arrays = (enum json_arrays)arrays,
                                 .batch_state = batch->state,
                                 .terms = &terms};
    json_write_init(&json, reply);
    json_object_begin(&json);
    write_members(&json, batch, groups, &terms);
    json_key(&json, "groups");
    json_array_begin(&json);
    for (int64_t g = 0; g < batch->group_count; g++)
        render_group(&json, &groups[g], &scope);
    json_array_end(&json);
    json_object_end(&json);
}

void unstored_answer(struct live_batch *live, struct request *request)
{
    struct call *call = request_call(request);
    buffer_finish(&call->reply.body);
    call->reply.body = unstored_take_reply(live);
    call_answer_json(call, 200);
    request_answer(request);
}
