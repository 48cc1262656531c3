#include "client/adapters/get.h"

#include "client/adapters/reply.h"

#define WORD_BYTES (1024 * 1024) /* of one name at most */

void engine_findings_init(struct engine_findings *findings, struct text wanted, size_t maximum_bytes)
{
    *findings = (struct engine_findings){.wanted = wanted};
    buffer_init(&findings->model, maximum_bytes);
    buffer_init(&findings->models, maximum_bytes);
    buffer_init(&findings->version, maximum_bytes);
    buffer_init(&findings->weight_version, maximum_bytes);
    buffer_init(&findings->chat_template, maximum_bytes);
}

void engine_findings_finish(struct engine_findings *findings)
{
    buffer_finish(&findings->model);
    buffer_finish(&findings->models);
    buffer_finish(&findings->version);
    buffer_finish(&findings->weight_version);
    buffer_finish(&findings->chat_template);
}

static void read_model(struct engine_findings *findings, struct json_scan *scan, bool first)
{
    struct text key;
    struct buffer id;
    bool is_other = false; /* a file, a user, … */

    buffer_init(&id, WORD_BYTES);
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "id"))
            scan_string_or_null(scan, &id);
        else if (text_equals(key, "object") && json_scan_peek(scan) == JSON_KIND_STRING)
            is_other = !text_equals(json_scan_raw(scan), "\"model\"");
        else if (first && text_equals(key, "max_model_len"))
            findings->context_tokens = scan_integer_or(scan, 0);
        else
            json_scan_skip(scan);
    }
    if (id.length_bytes && !is_other) {
        findings->found = findings->lists_models = true;
        buffer_append(&findings->models, id.data, id.length_bytes);
        buffer_append_byte(&findings->models, '\n');
        if (first)
            buffer_append(&findings->model, id.data, id.length_bytes);
        if (text_same(buffer_text(&id), findings->wanted))
            findings->serves_wanted = true;
    }
    buffer_finish(&id);
}

/* The first model is the base; the others are its adapters. A server may have none at the moment. */
void read_models(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;
    bool listed = false;
    bool is_list = false;
    size_t count = 0;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "data") && json_scan_peek(scan) == JSON_KIND_ARRAY) {
            for (json_scan_array(scan); json_scan_element(scan); count++)
                read_model(findings, scan, count == 0);
            listed = true;
        } else if (text_equals(key, "object")) {
            is_list = text_equals(json_scan_raw(scan), "\"list\"");
        } else {
            json_scan_skip(scan);
        }
    }
    findings->found |= listed && is_list && count == 0;
}

/* {"status":"ok"} and nothing else. */
void read_health(struct engine_findings *findings, struct json_scan *scan)
{
    struct text key;
    struct buffer status;

    buffer_init(&status, WORD_BYTES);
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "status") && json_scan_peek(scan) == JSON_KIND_STRING) {
            json_scan_string(scan, &status);
        } else {
            findings->is_ambiguous = true;
            json_scan_skip(scan);
        }
    }
    findings->found = !findings->is_ambiguous && text_equals(buffer_text(&status), "ok");
    buffer_finish(&status);
}
