/* Objects of a reply, member by member: a name that is read stands once, and a count is a count. */
#include "client/adapters/reply.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 64 /* longer than any that is read */

const char *const draft_count_names[] = {
    [COUNT_COMPLETION] = "completion_tokens", [COUNT_PROMPT] = "prompt_tokens",       [COUNT_TOTAL] = "total_tokens",
    [COUNT_CACHED] = "cached_tokens",         [COUNT_REASONING] = "reasoning_tokens",
};

/* The first problem is kept: later ones are often its consequences. */
void draft_problem(struct reply_draft *draft, const char *format, ...)
{
    va_list arguments;

    if (draft->problem[0])
        return;
    va_start(arguments, format);
    vsnprintf(draft->problem, sizeof(draft->problem), format, arguments);
    va_end(arguments);
}

/* --- names --------------------------------------------------------------------------------------- */

static size_t find_plain(const struct draft_member *members, size_t count, struct text name)
{
    size_t i = 0;

    while (i < count && !text_equals(name, members[i].name))
        i++;
    return i;
}

/* "choic\u0065s" is the same name, for every other reader. */
static size_t find_member(const struct draft_member *members, size_t count, struct text key)
{
    struct json_scan scan;
    struct buffer name;
    size_t found = count;

    if (!memchr(key.data, '\\', key.length_bytes))
        return find_plain(members, count, key);
    buffer_init(&name, NAME_MAX_BYTES);
    json_scan_init(&scan, (struct text){key.data - 1, key.length_bytes + 2}); /* with its quotes */
    if (json_scan_string(&scan, &name))
        found = find_plain(members, count, buffer_text(&name));
    buffer_finish(&name);
    return found;
}

void draft_read_members(struct reply_draft *draft, struct json_scan *scan, const struct draft_member *members,
                        size_t count)
{
    uint64_t seen = 0;
    struct text key;

    for (json_scan_object(scan); json_scan_member(scan, &key);) {
        size_t found = find_member(members, count, key);

        if (found == count) {
            json_scan_skip(scan);
            continue;
        }
        if (seen & UINT64_C(1) << found)
            draft_problem(draft, "\"%s\" stands twice in one object of the reply", members[found].name);
        seen |= UINT64_C(1) << found;
        members[found].read(draft, scan);
    }
}

void draft_read_members_if_any(struct reply_draft *draft, struct json_scan *scan, const struct draft_member *members,
                               size_t count)
{
    if (json_scan_peek(scan) == JSON_KIND_OBJECT)
        draft_read_members(draft, scan, members, count);
    else
        json_scan_skip(scan);
}

/* --- whole numbers ------------------------------------------------------------------------------- */

/* By its value, not by its spelling: 5, 5.0 and 5e0 are one number. -1: null. */
int64_t draft_read_whole(struct reply_draft *draft, struct json_scan *scan, const char *name)
{
    double value = NAN;

    if (json_scan_null(scan))
        return -1;
    if (json_scan_peek(scan) == JSON_KIND_NUMBER)
        json_scan_number(scan, &value);
    else
        json_scan_skip(scan);
    if (value >= 0 && value <= INT32_MAX && value == floor(value))
        return (int64_t)value;
    if (json_scan_ok(scan))
        draft_problem(draft, "\"%s\" of the reply is no whole number from 0 to %d", name, INT32_MAX);
    return -1;
}

static void read_count(struct reply_draft *draft, struct json_scan *scan, enum draft_count which)
{
    draft->counts[which] = draft_read_whole(draft, scan, draft_count_names[which]);
}

void draft_read_completion_tokens(struct reply_draft *draft, struct json_scan *scan)
{
    read_count(draft, scan, COUNT_COMPLETION);
}

void draft_read_prompt_tokens(struct reply_draft *draft, struct json_scan *scan)
{
    read_count(draft, scan, COUNT_PROMPT);
}

void draft_read_cached_tokens(struct reply_draft *draft, struct json_scan *scan)
{
    read_count(draft, scan, COUNT_CACHED);
}

static void read_total_tokens(struct reply_draft *draft, struct json_scan *scan)
{
    read_count(draft, scan, COUNT_TOTAL);
}

static void read_reasoning_tokens(struct reply_draft *draft, struct json_scan *scan)
{
    read_count(draft, scan, COUNT_REASONING);
}

static void read_prompt_details(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {{"cached_tokens", draft_read_cached_tokens}};

    draft_read_members_if_any(draft, scan, members, ARRAY_LENGTH(members));
}

static void read_completion_details(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {{"reasoning_tokens", read_reasoning_tokens}};

    draft_read_members_if_any(draft, scan, members, ARRAY_LENGTH(members));
}

void draft_read_usage(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {
        {"completion_tokens", draft_read_completion_tokens},
        {"prompt_tokens", draft_read_prompt_tokens},
        {"total_tokens", read_total_tokens},
        {"prompt_tokens_details", read_prompt_details},
        {"completion_tokens_details", read_completion_details},
    };

    if (!json_scan_null(scan))
        draft_read_members(draft, scan, members, ARRAY_LENGTH(members));
}

/* --- counts against the request ------------------------------------------------------------------------------ */

static bool is_above(const struct reply_draft *draft, enum draft_count which, int64_t most)
{
    return most >= 0 && draft->counts[which] > most;
}

static bool refuse_count(const struct reply_draft *draft, enum draft_count which, int64_t most,
                         struct sample_error *ret_error)
{
    refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the engine counts %lld %s, where at most %lld can be",
                 (long long)draft->counts[which], draft_count_names[which], (long long)most);
    return false;
}

bool draft_counts_agree(const struct reply_draft *draft, int64_t max_tokens, struct sample_error *ret_error)
{
    if (is_above(draft, COUNT_COMPLETION, max_tokens))
        return refuse_count(draft, COUNT_COMPLETION, max_tokens, ret_error);
    if (is_above(draft, COUNT_REASONING, max_tokens))
        return refuse_count(draft, COUNT_REASONING, max_tokens, ret_error);
    if (is_above(draft, COUNT_CACHED, draft->counts[COUNT_PROMPT]))
        return refuse_count(draft, COUNT_CACHED, draft->counts[COUNT_PROMPT], ret_error);
    return true;
}
