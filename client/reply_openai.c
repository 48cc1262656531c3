/* Replies of OpenAI's form, as vLLM, SGLang, llama.cpp and others vary it. */
#include "client/reply.h"

#include <math.h>
#include <string.h>

/* --- log-probabilities --------------------------------------------------------------------------- */

/* tokens: ["token_id:17", …] or their texts. */
static void read_token_names(struct reply_draft *draft, struct json_scan *scan)
{
    _cleanup_buffer_ struct buffer token;

    buffer_init(&token, draft->text.maximum_bytes);
    if (json_scan_null(scan))
        return;
    draft->beside.count = 0;
    for (json_scan_array(scan); json_scan_element(scan);) {
        buffer_clear(&token);
        scan_string_or_null(scan, &token);
        draft_add_id(draft, &draft->beside, id_of_token_string(buffer_text(&token)));
    }
    draft->beside.present = true;
}

struct entry {
    double logprob;
    bool has_logprob;
    uint32_t id;
};

static void read_entry_member(struct json_scan *scan, struct text key, struct buffer *token, struct entry *entry)
{
    int64_t id;

    if (text_equals(key, "logprob")) {
        entry->has_logprob = !json_scan_null(scan) && json_scan_number(scan, &entry->logprob);
    } else if (text_equals(key, "id") || text_equals(key, "token_id")) {
        id = scan_integer_or(scan, -1);
        if (id >= 0 && id < ID_UNNAMED)
            entry->id = (uint32_t)id;
    } else if (text_equals(key, "token")) {
        buffer_clear(token);
        if (scan_string_or_null(scan, token) && entry->id == ID_UNNAMED)
            entry->id = id_of_token_string(buffer_text(token));
    } else {
        json_scan_skip(scan);
    }
}

/* content: [{"token":"token_id:17","logprob":-0.1,…}], with "id" (llama.cpp) or "token_id" (vLLM's generate). */
static void read_entries(struct reply_draft *draft, struct json_scan *scan)
{
    _cleanup_buffer_ struct buffer token;
    struct text key;

    buffer_init(&token, draft->text.maximum_bytes);
    if (json_scan_null(scan))
        return;
    draft->has_logprobs = true;
    for (json_scan_array(scan); json_scan_element(scan);) {
        struct entry entry = {.id = ID_UNNAMED};

        for (json_scan_object(scan); json_scan_member(scan, &key);)
            read_entry_member(scan, key, &token, &entry);
        if (json_scan_ok(scan))
            draft_add_logprob(draft, entry.has_logprob ? entry.logprob : NAN, entry.id);
    }
}

void draft_read_openai_logprobs(struct reply_draft *draft, struct json_scan *scan)
{
    struct text key;

    if (json_scan_null(scan))
        return;
    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "token_logprobs"))
            draft_read_logprobs(draft, scan);
        else if (text_equals(key, "tokens"))
            read_token_names(draft, scan);
        else if (text_equals(key, "content"))
            read_entries(draft, scan);
        else
            json_scan_skip(scan);
    }
}

/* --- choices ------------------------------------------------------------------------------------- */

/* Whether there is anything in a text or a list that the engine's parsers took out of what was sampled. */
static bool skip_aside(struct json_scan *scan)
{
    enum json_kind kind = json_scan_peek(scan);
    const char *begin = scan->at;
    bool found = false;

    if (kind != JSON_KIND_ARRAY) {
        json_scan_skip(scan);
        return kind == JSON_KIND_STRING && scan->at - begin > 2;
    }
    for (json_scan_array(scan); json_scan_element(scan); found = true)
        json_scan_skip(scan);
    return found;
}

/* Reasoning and tool calls are parsed out of the text. They cannot be put back in their places, so the text is what is
 * left; only ids, where there are any, are the whole sample. */
static void read_message(struct reply_draft *draft, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "content"))
            draft_read_text(draft, scan);
        else if (text_equals(key, "reasoning") || text_equals(key, "reasoning_content") ||
                 text_equals(key, "tool_calls"))
            draft->has_aside |= skip_aside(scan);
        else
            json_scan_skip(scan);
    }
    /* A message that only calls tools has no content. */
    draft->has_text = true;
}

static struct version_span read_span(struct reply_draft *draft, struct json_scan *scan)
{
    struct version_span span = {.start = -1, .end = -1, .name_at = draft->revisions.length_bytes};
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "version"))
            scan_string_or_null(scan, &draft->revisions);
        else if (text_equals(key, "start"))
            span.start = scan_integer_or(scan, -1);
        else if (text_equals(key, "end"))
            span.end = scan_integer_or(scan, -1);
        else
            json_scan_skip(scan);
    }
    span.name_bytes = draft->revisions.length_bytes - span.name_at;
    return span;
}

/* [{"version":"step-1","start":0,"end":36},…]: which weights made which ids. */
static void read_weight_versions(struct reply_draft *draft, struct json_scan *scan)
{
    if (json_scan_null(scan))
        return;
    for (json_scan_array(scan); json_scan_element(scan);) {
        struct version_span span = read_span(draft, scan);

        if (json_scan_ok(scan))
            draft_add_span(draft, &span);
    }
}

/* A string names the stop string that was hit; a number is a stop id; null is the end of sequence. */
static void read_stop_reason(struct reply_draft *draft, struct json_scan *scan)
{
    draft->stopped_by_string = json_scan_peek(scan) == JSON_KIND_STRING;
    json_scan_skip(scan);
}

static void read_choice(struct reply_draft *draft, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "text"))
            draft_read_text(draft, scan);
        else if (text_equals(key, "index"))
            draft_read_index(draft, scan);
        else if (text_equals(key, "message"))
            read_message(draft, scan);
        else if (text_equals(key, "logprobs"))
            draft_read_openai_logprobs(draft, scan);
        else if (text_equals(key, "token_ids") || text_equals(key, "response_token_ids"))
            draft_read_ids(draft, &draft->ids, scan);
        else if (text_equals(key, "prompt_token_ids"))
            draft_read_ids(draft, &draft->prompt_ids, scan);
        else if (text_equals(key, "finish_reason"))
            draft->has_finish = scan_string_or_null(scan, &draft->finish);
        else if (text_equals(key, "stop_reason") || text_equals(key, "matched_stop"))
            read_stop_reason(draft, scan);
        else if (text_equals(key, "weight_versions"))
            read_weight_versions(draft, scan);
        else
            json_scan_skip(scan);
    }
}

static void read_choices(struct reply_draft *draft, struct json_scan *scan)
{
    if (json_scan_null(scan))
        return;
    for (json_scan_array(scan); json_scan_element(scan);) {
        if (draft->choice_count++ == 0)
            read_choice(draft, scan);
        else
            json_scan_skip(scan);
    }
}

void draft_read_openai(struct reply_draft *draft, struct json_scan *scan)
{
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        if (text_equals(key, "choices"))
            read_choices(draft, scan);
        else if (!draft_read_common_member(draft, scan, key))
            json_scan_skip(scan);
    }
}
