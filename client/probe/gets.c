/* What an engine tells for nothing: a few GETs, cheapest evidence first. */
#include "client/adapters/reply.h"
#include "client/probe/dialogue_private.h"
#include "server/base/hash.h"

#include <stdio.h>
#include <string.h>

struct findings {
    bool found;       /* the reply has what this kind of engine writes */
    bool with_others; /* and members that this kind does not write there */
    struct buffer model;
    struct buffer models; /* all of them, each with a line feed behind it */
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
        if (text_equals(key, "version")) {
            findings->found = scan_string_or_null(scan, &findings->version);
        } else {
            findings->with_others = true; /* many services have a version */
            json_scan_skip(scan);
        }
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
            findings->slots = scan_integer_or(scan, -1);
            findings->found |= findings->slots >= 0;
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
    bool is_other = false; /* a file, a user, … */

    buffer_init(&id, PROBE_REPLY_BYTES);
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

/* {"status":"ok"} and nothing else. */
static void read_health(struct findings *findings, struct json_scan *scan)
{
    struct text key;
    struct buffer status;

    buffer_init(&status, PROBE_REPLY_BYTES);
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "status") && json_scan_peek(scan) == JSON_KIND_STRING) {
            json_scan_string(scan, &status);
        } else {
            findings->with_others = true;
            json_scan_skip(scan);
        }
    }
    findings->found = !findings->with_others && text_equals(buffer_text(&status), "ok");
    buffer_finish(&status);
}

/* The first model is the base; what follows are its adapters. A server may have none at the moment. */
static void read_models(struct findings *findings, struct json_scan *scan)
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

/* --- steps --------------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    void (*read)(struct findings *findings, struct json_scan *scan);
    const struct engine_adapter *proves; /* what an engine is that answers so; NULL: nothing */
    const char *also_for;                /* kinds that learn something here, too */
    bool last;                           /* asked only of what has not answered like its kind so far */
} steps[] = {
    {"/version", read_version, &adapter_vllm, "vllm_generate", false},
    {"/model_info", read_model_info, &adapter_sglang, "", false},
    {"/props", read_props, &adapter_llamacpp, "", false},
    {"/v1/models", read_models, &adapter_openai_compat, "vllm vllm_generate sglang", false},
    {"/weight_info", read_weight_info, NULL, "vllm vllm_generate", false},
    {"/get_model_info", read_model_info, NULL, "sglang", true}, /* before 0.5 */
    {"/v1/models", read_models, NULL, "llamacpp", true},
    {"/health", read_health, NULL, "vllm vllm_generate sglang llamacpp openai_compat", true},
};

static bool names_kind(const char *kinds, const char *kind)
{
    size_t kind_bytes = strlen(kind);

    for (const char *at = kinds; (at = strstr(at, kind)); at += kind_bytes)
        if ((at == kinds || at[-1] == ' ') && (at[kind_bytes] == ' ' || !at[kind_bytes]))
            return true;
    return false;
}

int gets_next(int step, const struct engine_adapter *adapter, bool recognised)
{
    for (int i = step + 1; i < (int)ARRAY_LENGTH(steps); i++) {
        bool fits = adapter ? adapter == steps[i].proves || names_kind(steps[i].also_for, adapter->kind)
                            : steps[i].proves != NULL;

        if (fits && !(steps[i].last && recognised))
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
        facts->models_whole = !findings->models.failed && findings->models.length_bytes < sizeof(facts->models);
        take_word(&findings->models, facts->models, sizeof(facts->models));
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

bool engine_facts_list(const struct engine_facts *facts, struct text model)
{
    for (const char *name = facts->models; *name; name += strcspn(name, "\n") + 1)
        if (text_same(model, (struct text){name, strcspn(name, "\n")}))
            return true;
    return false;
}

/* --- whether it is an engine at all ---------------------------------------------------------------- */

static bool reads_as(const struct engine_reply *reply, void (*read)(struct findings *findings, struct json_scan *scan),
                     struct findings *findings)
{
    struct json_scan scan;

    json_scan_init(&scan, reply->body);
    if (json_scan_peek(&scan) == JSON_KIND_OBJECT)
        read(findings, &scan);
    return json_scan_end(&scan) && findings->found;
}

static bool is_html(const struct engine_reply *reply)
{
    return (reply->content_type.data &&
            memmem(reply->content_type.data, reply->content_type.length_bytes, "html", 4)) ||
           (reply->body.length_bytes && reply->body.data[0] == '<');
}

static const char *form_of(const struct engine_reply *reply)
{
    struct json_scan scan;

    if (reply->status >= 300 && reply->status < 400)
        return " (a redirect)";
    if (!status_is_success(reply->status))
        return "";
    if (!reply->body.length_bytes)
        return " (empty)";
    if (is_html(reply))
        return " (HTML)";
    json_scan_init(&scan, reply->body);
    return json_scan_skip(&scan) && json_scan_end(&scan) ? " (other JSON)" : " (no JSON)";
}

static void note_stranger(struct probe *probe, const struct engine_reply *reply)
{
    struct findings stub = {.found = false};
    size_t length = strlen(probe->heard);

    snprintf(probe->heard + length, sizeof(probe->heard) - length, "%s%d%s for GET %s", length ? ", " : "",
             reply->status, form_of(reply), steps[probe->step].path);
    probe->facts.wants_key |= reply->status == 401 || reply->status == 403;
    probe->is_busy |= reply->status == 429;
    /* What breaks, or says {"status":"ok"} to everything, does not say that it has no such route. */
    if (reply->status < 500 && !(status_is_success(reply->status) && reads_as(reply, read_health, &stub)))
        probe->denials++;
}

/* Some keys may sample and not list models. */
static bool is_narrow_key(const struct probe *probe, const struct engine_reply *reply)
{
    struct json_scan scan;
    struct text key;
    bool has_error = false;

    if (reply->status != 403 || !probe->rules.has_key || steps[probe->step].read != read_models)
        return false;
    json_scan_init(&scan, reply->body);
    if (json_scan_peek(&scan) == JSON_KIND_OBJECT)
        for (json_scan_object(&scan); json_scan_member(&scan, &key); json_scan_skip(&scan))
            has_error |= text_equals(key, "error");
    return json_scan_end(&scan) && has_error;
}

/* A health check alone shows an engine only where nothing says otherwise. */
static bool recognises(const struct probe *probe, const struct findings *findings)
{
    if (steps[probe->step].read == read_health)
        return probe->denials == 0;
    return !(steps[probe->step].read == read_version && findings->with_others);
}

void gets_read(struct probe *probe, const struct engine_reply *reply)
{
    struct findings findings = {.wanted = probe->rules.model};
    struct buffer *const words[] = {&findings.model, &findings.models, &findings.version, &findings.weight_version,
                                    &findings.chat_template};
    bool found;

    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        buffer_init(words[i], 3 * PROBE_REPLY_BYTES);
    found = status_is_success(reply->status) && reads_as(reply, steps[probe->step].read, &findings);
    if (found) {
        if (!probe->facts.adapter)
            probe->facts.adapter = steps[probe->step].proves;
        adopt(probe, &findings);
    }
    if ((found && recognises(probe, &findings)) || is_narrow_key(probe, reply))
        probe->recognised = true;
    else
        note_stranger(probe, reply);
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        buffer_finish(words[i]);
}

void gets_say_stranger(const struct probe *probe, char ret_why[SAMPLE_MESSAGE_BYTES])
{
    const struct engine_adapter *adapter = probe->rules.adapter;

    if (probe->facts.wants_key)
        snprintf(ret_why, SAMPLE_MESSAGE_BYTES, "%s: %.195s",
                 probe->rules.has_key ? "it does not take the key that its settings name"
                                      : "it wants a key, and its settings name none",
                 probe->heard);
    else
        snprintf(ret_why, SAMPLE_MESSAGE_BYTES, "it answers like no engine%s%s: %.195s", adapter ? " of kind " : "",
                 adapter ? adapter->kind : "", probe->heard);
}
