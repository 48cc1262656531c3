#include "client/adapters/detokenize.h"

#include "server/base/json_scan.h"
#include "server/base/json_write.h"

bool detokenize_build(const struct engine_adapter *adapter, struct text model, const uint32_t *ids, size_t count,
                      struct engine_call *ret_call)
{
    struct json_write json;

    if (!adapter->detokenize.text_key)
        return false;
    *ret_call = (struct engine_call){.method = "POST", .path = "/detokenize"};
    buffer_init(&ret_call->body, ENGINE_CALL_BODY_BYTES);
    json_write_init(&json, &ret_call->body);
    json_object_begin(&json);
    if (model.data && adapter->detokenize.names_model)
        json_put_text(&json, "model", model);
    json_put_u32s(&json, "tokens", ids, count, JSON_ARRAYS_PLAIN);
    json_object_end(&json);
    if (!ret_call->body.failed)
        return true;
    engine_call_finish(ret_call);
    return false;
}

bool detokenize_read(const struct engine_adapter *adapter, struct text body, struct buffer *out)
{
    struct json_scan scan;
    struct text key;
    bool found = false;

    json_scan_init(&scan, body);
    for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
        if (!found && text_equals(key, adapter->detokenize.text_key))
            found = json_scan_string(&scan, out);
        else
            json_scan_skip(&scan);
    }
    return found && json_scan_end(&scan) && !out->failed;
}
