/* What an engine tells for nothing: a few GETs, cheapest evidence first. */
#include "client/engine_probe_private.h"
#include "client/reply.h"
#include "server/base/hash.h"

#include <stdio.h>
#include <string.h>

struct findings {
    bool found; /* the reply has what only this kind of engine writes */
    struct buffer model;
    struct buffer version;
    struct buffer weight_version;
    struct buffer chat_template;
    struct text wanted;
    bool lists_models;
    bool serves_wanted;
    int64_t context_tokens;
    int64_t slots;
};

/* --- reading ------------------------------------------------------------------------------------- */

static void read_version(struct findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "version"))
            findings->found = scan_string_or_null(scan, &findings->version);
        else
            json_scan_skip(scan);
    }
}

static void read_weight_info(struct findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "weight_version") && json_scan_peek(scan) == JSON_KIND_STRING)
            findings->found = json_scan_string(scan, &findings->weight_version);
        else
            json_scan_skip(scan);
    }
}

static void read_model_info(struct findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "model_path"))
            findings->found = scan_string_or_null(scan, &findings->model);
        else if (text_equals(key, "weight_version") && json_scan_peek(scan) == JSON_KIND_STRING)
            json_scan_string(scan, &findings->weight_version);
        else
            json_scan_skip(scan);
    }
}

static void read_generation_defaults(struct findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "n_ctx"))
            findings->context_tokens = scan_integer_or(scan, 0);
        else
            json_scan_skip(scan);
    }
}

static void read_props(struct findings *findings, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "total_slots")) {
            findings->slots = scan_integer_or(scan, 0);
            findings->found = true;
        } else if (text_equals(key, "default_generation_settings") && json_scan_peek(scan) == JSON_KIND_OBJECT) {
            read_generation_defaults(findings, scan);
        } else if (text_equals(key, "model_alias")) {
            scan_string_or_null(scan, &findings->model);
        } else if (text_equals(key, "build_info")) {
            scan_string_or_null(scan, &findings->version);
        } else if (text_equals(key, "chat_template") && json_scan_peek(scan) == JSON_KIND_STRING) {
            json_scan_string(scan, &findings->chat_template);
        } else {
            json_scan_skip(scan);
        }
    }
}

static void read_model(struct findings *findings, struct json_scan *scan, bool first)
{
    struct text key;
    struct buffer id;

    buffer_init(&id, PROBE_REPLY_BYTES);
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "id"))
            scan_string_or_null(scan, &id);
        else if (first && text_equals(key, "max_model_len"))
            findings->context_tokens = scan_integer_or(scan, 0);
        else
            json_scan_skip(scan);
    }
    if (id.length_bytes) {
        findings->found = findings->lists_models = true;
        if (first)
            buffer_append(&findings->model, id.data, id.length_bytes);
        if (text_same(buffer_text(&id), findings->wanted))
            findings->serves_wanted = true;
    }
    buffer_finish(&id);
}

/* The first model is the base; what follows are its adapters. */
static void read_models(struct findings *findings, struct json_scan *scan)
{
    struct text key;
    size_t count = 0;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (!text_equals(key, "data") || json_scan_peek(scan) != JSON_KIND_ARRAY) {
            json_scan_skip(scan);
            continue;
        }
        for (json_scan_array(scan); json_scan_element(scan); count++)
            read_model(findings, scan, count == 0);
    }
}

/* --- steps --------------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    void (*read)(struct findings *findings, struct json_scan *scan);
    const struct engine_adapter *proves; /* what an engine is that answers so; NULL: nothing */
    const char *also_for;                /* kinds that learn something here, too */
} steps[] = {
    {"/version", read_version, &adapter_vllm, "vllm_generate"},
    {"/model_info", read_model_info, &adapter_sglang, ""},
    {"/props", read_props, &adapter_llamacpp, ""},
    {"/v1/models", read_models, &adapter_openai_compat, "vllm vllm_generate sglang"},
    {"/weight_info", read_weight_info, NULL, "vllm vllm_generate"},
};

static bool names_kind(const char *kinds, const char *kind)
{
    size_t kind_bytes = strlen(kind);

    for (const char *at = kinds; (at = strstr(at, kind)); at += kind_bytes)
        if ((at == kinds || at[-1] == ' ') && (at[kind_bytes] == ' ' || !at[kind_bytes]))
            return true;
    return false;
}

int gets_next(int step, const struct engine_adapter *adapter)
{
    for (int i = step + 1; i < (int)ARRAY_LENGTH(steps); i++) {
        bool fits = adapter ? adapter == steps[i].proves || names_kind(steps[i].also_for, adapter->kind)
                            : steps[i].proves != NULL;

        if (fits)
            return i;
    }
    return -1;
}

const char *gets_path(int step)
{
    return steps[step].path;
}

/* Copied whole or not at all: half a name is another name. */
static void take_word(const struct buffer *from, char *to, size_t size)
{
    if (from->length_bytes && from->length_bytes < size && !from->failed)
        snprintf(to, size, "%.*s", (int)from->length_bytes, from->data);
}

static void adopt(struct probe *probe, const struct findings *findings)
{
    struct engine_facts *facts = &probe->facts;
    uint8_t digest[SHA256_BYTES];

    take_word(&findings->model, facts->model, sizeof(facts->model));
    take_word(&findings->version, facts->version, sizeof(facts->version));
    take_word(&findings->weight_version, facts->weight_version, sizeof(facts->weight_version));
    if (findings->lists_models) {
        facts->lists_models = true;
        facts->serves_wanted = findings->serves_wanted || !findings->wanted.data;
    }
    if (findings->context_tokens > 0)
        facts->context_tokens = findings->context_tokens;
    if (findings->slots > 0)
        facts->slots = (size_t)findings->slots;
    if (findings->chat_template.length_bytes) {
        sha256_of(findings->chat_template.data, findings->chat_template.length_bytes, digest);
        sha256_hex(digest, facts->chat_template_sha256);
    }
}

void gets_read(struct probe *probe, const struct engine_reply *reply)
{
    struct findings findings = {.wanted = probe->rules.model};
    struct buffer *const words[] = {&findings.model, &findings.version, &findings.weight_version,
                                    &findings.chat_template};
    struct json_scan scan;

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        buffer_init(words[i], 3 * PROBE_REPLY_BYTES);
    json_scan_init(&scan, reply->body);
    if (json_scan_peek(&scan) == JSON_KIND_OBJECT)
        steps[probe->step].read(&findings, &scan);
    if (json_scan_end(&scan) && findings.found) {
        if (!probe->facts.adapter)
            probe->facts.adapter = steps[probe->step].proves;
        adopt(probe, &findings);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        buffer_finish(words[i]);
}
