#include "verifiers/judge/chat.h"

#include "server/base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>

static void _printf_(3, 4) fail(struct judge_problem *problem, const char *code, const char *format, ...)
{
    va_list arguments;

    problem->code = code;
    va_start(arguments, format);
    vsnprintf(problem->message, sizeof problem->message, format, arguments);
    va_end(arguments);
}

static struct text text_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_string(value) ? (struct text){json_string_value(value), json_string_length(value)} : TEXT_NONE;
}

/* Ends of a reply that is no whole verdict, as engines call them. */
static const struct {
    const char *word;
    const char *code;
    const char *message;
} bad_ends[] = {
    {"length", JUDGE_TRUNCATED_CODE, "the judge's reply was cut off: what would have followed is unknown"},
    {"max_tokens", JUDGE_TRUNCATED_CODE, "the judge's reply was cut off: what would have followed is unknown"},
    {"model_length", JUDGE_TRUNCATED_CODE, "the judge's reply was cut off: what would have followed is unknown"},
    {"content_filter", JUDGE_UNREADABLE_CODE, "the engine filtered the judge's reply"},
    {"safety", JUDGE_UNREADABLE_CODE, "the engine filtered the judge's reply"},
    {"tool_calls", JUDGE_UNREADABLE_CODE, "the judge called a tool in place of a verdict"},
    {"function_call", JUDGE_UNREADABLE_CODE, "the judge called a tool in place of a verdict"},
    {"abort", "engine_error", "the engine broke the judge's reply off"},
    {"error", "engine_error", "the engine broke the judge's reply off"},
};

static bool has_bad_end(const json_t *choice, struct judge_problem *problem)
{
    struct text reason = text_at(choice, "finish_reason");

    for (size_t i = 0; i < ARRAY_LENGTH(bad_ends); i++) {
        if (text_equals(reason, bad_ends[i].word)) {
            fail(problem, bad_ends[i].code, "%s", bad_ends[i].message);
            return true;
        }
    }
    return false;
}

static bool is_blank(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (!text.data[i] || !strchr(" \t\r\n\v\f", text.data[i]))
            return false;
    return true;
}

static void check_message(const json_t *message, struct judge_problem *problem)
{
    const json_t *content = json_object_get(message, "content");

    if (text_at(message, "refusal").length_bytes > 0)
        fail(problem, JUDGE_UNREADABLE_CODE, "the judge refused to reply");
    else if (json_array_size(json_object_get(message, "tool_calls")) > 0)
        fail(problem, JUDGE_UNREADABLE_CODE, "the judge called a tool in place of a verdict");
    else if (content && !json_is_null(content) && !json_is_string(content))
        fail(problem, JUDGE_INVALID_REPLY_CODE, "the content of the judge's reply is no text");
    else if (is_blank(text_at(message, "content")))
        fail(problem, JUDGE_UNREADABLE_CODE, "the judge's reply is blank");
}

void chat_read(const json_t *body, struct text *ret_content, struct judge_problem *ret_problem)
{
    const json_t *choices = json_object_get(body, "choices");
    const json_t *choice = json_array_get(choices, 0);
    const json_t *message = json_object_get(choice, "message");

    *ret_problem = (struct judge_problem){NULL, ""};
    *ret_content = text_at(message, "content");
    if (!body)
        fail(ret_problem, JUDGE_INVALID_REPLY_CODE, "the judge's reply is no JSON");
    else if (json_array_size(choices) != 1)
        fail(ret_problem, JUDGE_INVALID_REPLY_CODE, "the judge's reply has %zu choices in place of one",
             json_array_size(choices));
    else if (!json_is_object(message))
        fail(ret_problem, JUDGE_INVALID_REPLY_CODE, "the judge's reply has no message");
    else if (!has_bad_end(choice, ret_problem))
        check_message(message, ret_problem);
}

/* --- reasoning --- */

#define OPENS TEXT_LITERAL("<think>")
#define CLOSES TEXT_LITERAL("</think>")

/* The place of the mark at `from` or later; the text's length: none. */
static size_t find(struct text text, struct text mark, size_t from)
{
    const char *at = from < text.length_bytes
                         ? memmem(text.data + from, text.length_bytes - from, mark.data, mark.length_bytes)
                         : NULL;

    return at ? (size_t)(at - text.data) : text.length_bytes;
}

void chat_put_final(struct text content, struct buffer *out)
{
    size_t kept_bytes = out->length_bytes;
    size_t opens = find(content, OPENS, 0);
    size_t closes = find(content, CLOSES, 0);
    size_t from = 0;

    while (opens < content.length_bytes || closes < content.length_bytes) {
        if (closes < opens) { /* begun in the prompt */
            out->length_bytes = kept_bytes;
        } else if (closes < content.length_bytes) {
            buffer_append(out, content.data + from, opens - from);
            buffer_append_byte(out, '\n'); /* what stood on both sides is not one word */
        } else {
            out->length_bytes = kept_bytes;
            return;
        }
        from = closes + CLOSES.length_bytes;
        closes = find(content, CLOSES, from);
        if (opens < from)
            opens = find(content, OPENS, from);
    }
    if (from < content.length_bytes)
        buffer_append(out, content.data + from, content.length_bytes - from);
}
