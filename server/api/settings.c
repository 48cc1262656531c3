/* The settings that were in force: by their digest, and for a batch. */
#include "server/api/routes.h"

#include "server/base/json_write.h"
#include "server/http/call.h"
#include "server/store/provenance.h"

#include <string.h>

/* 0, or -1 with the call refused. */
static int enter(struct call *call)
{
    return call->reader ? 0 : call_refuse_unreadable(call);
}

static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = digit ? strchr(digits, digit) : NULL;
    return at ? (int)(at - digits) : -1;
}

static bool read_sha256(struct text hex, uint8_t ret_sha256[SHA256_BYTES])
{
    if (hex.length_bytes != (size_t)2 * SHA256_BYTES)
        return false;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int high = hex_value(hex.data[2 * i]);
        int low = hex_value(hex.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_sha256[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static enum store_status write_settings(struct json_write *json, struct store_reader *reader, struct text hex)
{
    _cleanup_(store_settings_row_finish) struct store_settings_row settings = {0};
    uint8_t sha256[SHA256_BYTES];
    if (!read_sha256(hex, sha256))
        return STORE_NOT_FOUND;
    enum store_status status = store_read_settings(reader, sha256, &settings);
    if (status != STORE_OK)
        return status;
    json_object_begin(json);
    json_put_text(json, "sha256", hex);
    json_put_time(json, "first_at", settings.first_at_us);
    json_put_raw(json, "settings", settings.json);
    json_object_end(json);
    return STORE_OK;
}

void get_settings(struct call *call)
{
    struct json_write json;
    if (enter(call) < 0)
        return;
    json_write_init(&json, &call->reply.body);
    enum store_status status = write_settings(&json, call->reader, call->args[0]);
    if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "sha256", "no settings of this digest are on record");
    else if (status != STORE_OK)
        call_refuse_unreadable(call);
    else
        call_answer_json(call, 200);
}

/* More than one if the service was restarted or its engines changed while the batch ran. */
void list_batch_settings(struct call *call)
{
    _cleanup_(store_provenance_finish) struct store_provenance provenance = {0};
    struct json_write json;
    if (enter(call) < 0)
        return;
    enum store_status status = store_read_provenance(call->reader, call->args[0], &provenance);
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; status == STORE_OK && i < provenance.settings_sha256s.count; i++)
        status = write_settings(&json, call->reader, provenance.settings_sha256s.names[i]);
    json_array_end(&json);
    json_object_end(&json);
    if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "id", "no batch has this id");
    else if (status != STORE_OK)
        call_refuse_unreadable(call);
    else
        call_answer_json(call, 200);
}
