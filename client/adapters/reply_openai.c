/* Replies of OpenAI's form, as vLLM, SGLang, llama.cpp and others vary it. */
#include "client/adapters/reply.h"

#include <math.h>
#include <string.h>

/* --- log-probabilities --------------------------------------------------------------------------- */

/* tokens: ["token_id:17", …] or their texts. */
static void read_token_names(struct reply_draft *draft, struct json_scan *scan)
{
    if (json_scan_null(scan))
        return;
    draft->beside.count = 0;
    for (json_scan_array(scan); json_scan_element(scan);) {
        buffer_clear(&draft->token);
        scan_string_or_null(scan, &draft->token);
        draft_add_id(draft, &draft->beside, id_of_token_string(buffer_text(&draft->token)));
    }
    draft->beside.present = true;
}

static void read_entry_token(struct reply_draft *draft, struct json_scan *scan)
{
    buffer_clear(&draft->token);
    if (scan_string_or_null(scan, &draft->token) && draft->entry.id == ID_UNNAMED)
        draft->entry.id = id_of_token_string(buffer_text(&draft->token));
}

/* content: [{"token":"token_id:17","logprob":-0.1,…}], with "id" (llama.cpp) or "token_id" (vLLM's generate). */
static void read_entries(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"logprob", draft_read_entry_logprob}, {"token", read_entry_token},       {"id", draft_read_entry_id},
        {"token_id", draft_read_entry_id},     {"bytes", draft_read_entry_bytes},
    };

    draft_read_entries(draft, scan, members, ARRAY_LENGTH(members));
}

static void read_logprobs(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"token_logprobs", draft_read_logprobs}, {"tokens", read_token_names}, {"content", read_entries}};

    if (!json_scan_null(scan))
        draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
}

/* --- choices ------------------------------------------------------------------------------------- */

/* True if a text or a list that the engine's parsers took out of the sample is not empty. */
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

static void read_aside(struct reply_draft *draft, struct json_scan *scan)
{
    draft->has_aside |= skip_aside(scan);
}

/* Reasoning and tool calls are parsed out of the text. They cannot be put back in their places, so the text is
 * the rest; only ids, where there are any, are the whole sample. */
static void read_message(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"content", draft_read_text},
        {"reasoning", read_aside},
        {"reasoning_content", read_aside},
        {"tool_calls", read_aside},
    };

    draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
    /* A message that only calls tools has no content. */
    draft->has_text = true;
}

static void read_span_version(struct reply_draft *draft, struct json_scan *scan)
{
    scan_string_or_null(scan, &draft->revisions);
}

static void read_span_start(struct reply_draft *draft, struct json_scan *scan)
{
    draft->span.start = draft_read_whole(draft, scan, "start");
}

static void read_span_end(struct reply_draft *draft, struct json_scan *scan)
{
    draft->span.end = draft_read_whole(draft, scan, "end");
}

/* [{"version":"step-1","start":0,"end":36},…]: which weights made which ids. */
static void read_weight_versions(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"version", read_span_version}, {"start", read_span_start}, {"end", read_span_end}};

    if (json_scan_null(scan))
        return;
    for (json_scan_array(scan); json_scan_element(scan);) {
        draft->span = (struct version_span){.start = -1, .end = -1, .name_at = draft->revisions.length_bytes};
        draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
        draft->span.name_bytes = draft->revisions.length_bytes - draft->span.name_at;
        if (json_scan_ok(scan))
            draft_add_span(draft, &draft->span);
    }
}

/* A string names the stop string that was hit; a number is a stop id; null is the end of sequence. */
static void read_stop_reason(struct reply_draft *draft, struct json_scan *scan)
{
    draft->stopped_by_string |= json_scan_peek(scan) == JSON_KIND_STRING;
    json_scan_skip(scan);
}

static void read_choice(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"text", draft_read_text},
        {"index", draft_read_index},
        {"message", read_message},
        {"logprobs", read_logprobs},
        {"token_ids", draft_read_ids},
        {"response_token_ids", draft_read_ids},
        {"prompt_token_ids", draft_read_prompt_ids},
        {"finish_reason", draft_read_finish},
        {"stop_reason", read_stop_reason},
        {"matched_stop", read_stop_reason},
        {"weight_versions", read_weight_versions},
    };

    draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
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
    static const struct draft_member members[] = {{"choices", read_choices}, DRAFT_COMMON_MEMBERS};

    draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
}
