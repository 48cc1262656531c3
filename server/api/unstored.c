#include "server/api/unstored.h"

#include "server/http/http.h"
#include "server/render/render.h"

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
    render_batch_members(&json, batch, &terms);
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
