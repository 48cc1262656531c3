/* The GETs of a probe: facts that an engine gives without sampling. */
#include "client/adapters/reply.h"
#include "client/probe/dialogue_private.h"
#include "server/base/hash.h"

#include <stdio.h>
#include <string.h>

/* --- the order ------------------------------------------------------------------------------------ */

/* While the kind is unknown: the first GET of each kind in turn, which shows that kind. */
static const struct engine_get *next_suspect(struct probe *probe)
{
    while ((probe->suspect = engine_adapters[probe->suspects])) {
        probe->suspects++;
        if (!probe->suspect->only_by_settings)
            return probe->suspect->gets;
    }
    return NULL;
}

static const struct engine_get *next_of_kind(const struct probe *probe)
{
    const struct engine_get *get = probe->get ? probe->get + 1 : probe->facts.adapter->gets;

    while (get->path && get->is_last_resort && probe->recognised)
        get++;
    return get->path ? get : NULL;
}

bool gets_next(struct probe *probe)
{
    probe->get = probe->facts.adapter ? next_of_kind(probe) : next_suspect(probe);
    return probe->get;
}

/* --- facts ---------------------------------------------------------------------------------- */

/* Copied whole or not at all: half a name is another name. */
static void take_word(const struct buffer *from, char *to, size_t size)
{
    if (from->length_bytes && from->length_bytes < size && !from->failed)
        snprintf(to, size, "%.*s", (int)from->length_bytes, from->data);
}

static void adopt(struct probe *probe, const struct engine_findings *findings)
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

static bool reads_as(const struct engine_reply *reply,
                     void (*read)(struct engine_findings *findings, struct json_scan *scan),
                     struct engine_findings *findings)
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
    struct engine_findings stub = {.found = false};
    size_t length = strlen(probe->heard);

    snprintf(probe->heard + length, sizeof(probe->heard) - length, "%s%d%s for GET %s", length ? ", " : "",
             reply->status, form_of(reply), probe->get->path);
    probe->facts.wants_key |= reply->status == 401 || reply->status == 403;
    probe->is_busy |= reply->status == 429;
    /* A server that breaks, or answers everything with {"status":"ok"}, does not deny the route. */
    if (reply->status < 500 && !(status_is_success(reply->status) && reads_as(reply, read_health, &stub)))
        probe->denials++;
}

/* Some keys may sample and not list models. */
static bool is_narrow_key(const struct probe *probe, const struct engine_reply *reply)
{
    struct json_scan scan;
    struct text key;
    bool has_error = false;

    if (reply->status != 403 || !probe->rules.has_key || !probe->get->may_be_forbidden)
        return false;
    json_scan_init(&scan, reply->body);
    if (json_scan_peek(&scan) == JSON_KIND_OBJECT)
        for (json_scan_object(&scan); json_scan_member(&scan, &key); json_scan_skip(&scan))
            has_error |= text_equals(key, "error");
    return json_scan_end(&scan) && has_error;
}

/* A health check alone shows an engine only where nothing says otherwise. */
static bool recognises(const struct probe *probe, const struct engine_findings *findings)
{
    return probe->get->is_weak ? probe->denials == 0 : !findings->is_ambiguous;
}

void gets_read(struct probe *probe, const struct engine_reply *reply)
{
    struct engine_findings findings;
    bool found;

    engine_findings_init(&findings, probe->rules.model, 3 * PROBE_REPLY_BYTES);
    found = status_is_success(reply->status) && reads_as(reply, probe->get->read, &findings);
    if (found) {
        if (!probe->facts.adapter)
            probe->facts.adapter = probe->suspect;
        adopt(probe, &findings);
    }
    if ((found && recognises(probe, &findings)) || is_narrow_key(probe, reply))
        probe->recognised = true;
    else
        note_stranger(probe, reply);
    engine_findings_finish(&findings);
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
