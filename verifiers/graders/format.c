/* format: is the completion laid out as asked? An automaton over tags: each once, in order, nothing outside, no blank
 * content. A tag in another spelling (<THINK>, < think >, <think id="1">, <think/>) is one too many. The text ends at the
 * first end-of-turn token, as it does for every answer (extract.h). Reasons, a closed set: well_formed, tag_count,
 * tag_missing, blank, text_outside, no_answer, box_count, reasoning_not_closed. */
#include <strings.h>

#include "server/base/buffer.h"
#include "verifiers/rows.h"
#include "verifiers/text/extract.h"

#define FIELDS_MAX 32
#define FIELD_NAME_BYTES 64

static const char *const templates[] = {"think_answer", "think_only", "tag_count", "boxed_once", "xml_fields", NULL};

static const struct verifier_option options[] = {
    {"template", OPTION_CHOICE, NULL, templates, 0, 0,
     "think_answer: <think>…</think><answer>…</answer>; think_only: <think>…</think> and an answer; tag_count: a "
     "quarter "
     "for each of the four tags on its own line, once; boxed_once: one box after the reasoning; xml_fields: `fields` "
     "in order"},
    {"think_prefilled", OPTION_BOOL, "false", NULL, 0, 0,
     "the prompt ends with <think>, so the completion must close it and not open it"},
    {"fields", OPTION_TEXTS, "[]", NULL, 0, FIELDS_MAX, "names of the tags of xml_fields, in order"},
};

static bool is_name(struct text name)
{
    if (name.length_bytes == 0 || name.length_bytes > FIELD_NAME_BYTES || memchr(name.data, 0, name.length_bytes))
        return false;
    for (size_t i = 0; i < name.length_bytes; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", name.data[i]))
            return false;
    return true;
}

/* Is the element before `place` of the same name, in any case? */
static bool is_repeated(const json_t *fields, size_t place)
{
    for (size_t i = 0; i < place; i++)
        if (strcasecmp(json_string_value(json_array_get(fields, i)),
                       json_string_value(json_array_get(fields, place))) == 0)
            return true;
    return false;
}

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    const json_t *fields = json_object_get(filled, "fields");
    bool wanted = option_is(filled, "template", "xml_fields");
    size_t i;
    const json_t *field;

    if (wanted != (json_array_size(fields) > 0))
        return verifier_refuse(ret_problem, "fields", "goes with template xml_fields, and only with that");
    json_array_foreach (fields, i, field) {
        if (!is_name(json_text_of(field)))
            return verifier_refuse(ret_problem, "fields", "element %zu is no name of letters, digits, _ and -", i);
        if (is_repeated(fields, i))
            return verifier_refuse(ret_problem, "fields", "element %zu has the name of another one", i);
    }
    return 0;
}

/* Unicode's White_Space, controls, and what nobody sees: signs of direction, joiners, variation selectors, fillers. */
static const struct {
    uint32_t first, last;
} invisible[] = {
    {0x0000, 0x0020}, {0x007f, 0x00a0}, {0x00ad, 0x00ad}, {0x034f, 0x034f}, {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f},
    {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
    {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
};

/* The code point that `text`, which is UTF-8, begins with. */
static uint32_t code_point(struct text text, size_t *ret_bytes)
{
    unsigned char first = (unsigned char)text.data[0];
    size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t point = first & (bytes == 1 ? 0xffu : 0x7fu >> bytes);

    *ret_bytes = bytes < text.length_bytes ? bytes : text.length_bytes;
    for (size_t i = 1; i < *ret_bytes; i++)
        point = point << 6 | ((unsigned char)text.data[i] & 0x3fu);
    return point;
}

static bool is_invisible(uint32_t point)
{
    for (size_t i = 0; i < ARRAY_LENGTH(invisible); i++)
        if (point >= invisible[i].first && point <= invisible[i].last)
            return true;
    return false;
}

static bool is_blank(struct text text)
{
    for (size_t bytes; text.length_bytes; text.data += bytes, text.length_bytes -= bytes)
        if (!is_invisible(code_point(text, &bytes)))
            return false;
    return true;
}

static size_t count_of(struct text text, const char *needle)
{
    size_t count = 0;

    for (size_t at = text_find(text, 0, needle); at < text.length_bytes;
         at = text_find(text, at + strlen(needle), needle))
        count++;
    return count;
}

/* Tags of one name. */
struct tags {
    struct text name;
    size_t opening, closing; /* <name>, </name> */
    size_t others;           /* any other spelling */
};

static size_t skip_blanks(struct text text, size_t at)
{
    while (at < text.length_bytes && text.data[at] && strchr(" \t\r\n", text.data[at]))
        at++;
    return at;
}

static struct text name_at(struct text text, size_t at)
{
    struct text name = {text.data + at, 0};

    while (at + name.length_bytes < text.length_bytes && is_name((struct text){text.data + at + name.length_bytes, 1}))
        name.length_bytes++;
    return name;
}

/* A tag ends at its > before the next <. */
static bool is_closed(struct text text, size_t at)
{
    while (at < text.length_bytes && text.data[at] != '<' && text.data[at] != '>')
        at++;
    return at < text.length_bytes && text.data[at] == '>';
}

/* The tag of this name whose < is at `start`. */
static void count_tag(struct tags *tags, struct text text, size_t start, struct text name, bool closing)
{
    size_t end = (size_t)(name.data - text.data) + name.length_bytes;
    bool plain = text_same(name, tags->name) && name.data - (text.data + start) == 1 + closing &&
                 end < text.length_bytes && text.data[end] == '>';

    if (plain && closing)
        tags->closing++;
    else if (plain)
        tags->opening++;
    else
        tags->others += is_closed(text, end);
}

/* In one pass for all names. */
static void count_tags(struct text text, struct tags *tags, size_t count)
{
    for (size_t start = text_find(text, 0, "<"); start < text.length_bytes; start = text_find(text, start + 1, "<")) {
        size_t at = skip_blanks(text, start + 1);
        bool closing = at < text.length_bytes && text.data[at] == '/';
        struct text name = name_at(text, closing ? skip_blanks(text, at + 1) : at);
        for (size_t i = 0; name.length_bytes && i < count; i++)
            if (name.length_bytes == tags[i].name.length_bytes &&
                strncasecmp(name.data, tags[i].name.data, name.length_bytes) == 0)
                count_tag(&tags[i], text, start, name, closing);
    }
}

static bool are_once(const struct tags *tags, size_t opening)
{
    return tags->opening == opening && tags->closing == 1 && tags->others == 0;
}

static bool has_tags(struct text text, struct text name, size_t opening)
{
    struct tags tags = {.name = name};

    count_tags(text, &tags, 1);
    return are_once(&tags, opening);
}

/* Takes `<tag>content</tag>` off the front. NULL, or the reason why not. */
static const char *take_block(struct text *rest, const char *open, const char *close, struct text *ret_content)
{
    size_t start = strlen(open);
    size_t end;

    *rest = text_trimmed(*rest);
    if (rest->length_bytes < start || memcmp(rest->data, open, start) != 0)
        return "tag_missing";
    end = text_find(*rest, start, close);
    if (end == rest->length_bytes)
        return "tag_missing";
    *ret_content = (struct text){rest->data + start, end - start};
    *rest = (struct text){rest->data + end + strlen(close), rest->length_bytes - end - strlen(close)};
    return is_blank(*ret_content) ? "blank" : NULL;
}

/* The reasoning off the front, opened by the completion or by the prompt. */
static const char *take_thinking(struct text *rest, bool prefilled)
{
    struct text content;
    size_t end;

    if (!has_tags(*rest, TEXT_LITERAL("think"), prefilled ? 0 : 1))
        return "tag_count";
    if (!prefilled)
        return take_block(rest, "<think>", "</think>", &content);
    end = text_find(*rest, 0, "</think>");
    content = (struct text){rest->data, end};
    *rest = (struct text){rest->data + end + strlen("</think>"), rest->length_bytes - end - strlen("</think>")};
    return is_blank(content) ? "blank" : NULL;
}

static void answer(struct verdict *ret_verdict, const char *reason)
{
    verdict_set(ret_verdict, !reason, reason ? reason : "well_formed");
}

static void think_answer(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct text whole = extract_turn(input->completion);
    struct text rest = whole;
    struct text content;
    const char *reason = take_thinking(&rest, option_is_true(input->options, "think_prefilled"));

    /* Counted over the whole text, so that the reasoning cannot hold an answer either. */
    if (!reason && !has_tags(whole, TEXT_LITERAL("answer"), 1))
        reason = "tag_count";
    if (!reason)
        reason = take_block(&rest, "<answer>", "</answer>", &content);
    if (!reason && !is_blank(rest))
        reason = "text_outside";
    answer(ret_verdict, reason);
}

static void think_only(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct text rest = extract_turn(input->completion);
    const char *reason = take_thinking(&rest, option_is_true(input->options, "think_prefilled"));

    if (!reason && is_blank(rest))
        reason = "no_answer";
    answer(ret_verdict, reason);
}

/* Lines may end with CRLF. */
static void append_lines(struct buffer *out, struct text text)
{
    for (size_t at = 0; at < text.length_bytes;) {
        size_t end = text_find(text, at, "\r\n");
        buffer_append(out, text.data + at, end - at);
        at = end + (end < text.length_bytes);
    }
}

/* The tag that the prompt has written earns its quarter with another one beside it, not alone. */
static void tag_count(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_buffer_ struct buffer lines;
    bool prefilled = option_is_true(input->options, "think_prefilled");
    unsigned found;

    buffer_init(&lines, input->completion.length_bytes + 1);
    append_lines(&lines, extract_turn(input->completion));
    found = count_of(buffer_text(&lines), "\n</think>\n") == 1;
    found += count_of(buffer_text(&lines), "\n<answer>\n") == 1;
    found += count_of(buffer_text(&lines), "\n</answer>") == 1;
    if (prefilled)
        found += found && count_of(buffer_text(&lines), "<think>\n") == 0;
    else
        found += count_of(buffer_text(&lines), "<think>\n") == 1;
    verdict_set_score(ret_verdict, found / 4.0, found == 4 ? "well_formed" : "tag_count");
}

/* Commands that show nothing by themselves. */
static size_t empty_command_bytes(struct text text)
{
    static const char *const commands[] = {"\\text",  "\\mathrm", "\\textbf", "\\mathbf", "\\mbox", "\\quad",
                                           "\\qquad", "\\ ",      "\\,",      "\\;",      "\\:",    "\\!",
                                           "{",       "}",        "$",        "~"};
    size_t longest = 0;

    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
        size_t bytes = strlen(commands[i]);
        if (bytes > longest && bytes <= text.length_bytes && memcmp(text.data, commands[i], bytes) == 0)
            longest = bytes;
    }
    return longest;
}

/* \boxed{\text{ }}, too. */
static bool is_blank_box(struct text box)
{
    for (size_t bytes; box.length_bytes; box.data += bytes, box.length_bytes -= bytes) {
        bytes = empty_command_bytes(box);
        if (!bytes && !is_invisible(code_point(box, &bytes)))
            return false;
    }
    return true;
}

static const char *check_box(struct text text)
{
    struct boxes boxes = {.count = 0};
    struct boxes inner = {.count = 0};

    extract_boxes(text, &boxes);
    if (boxes.truncated || boxes.count != 1)
        return boxes.count == 0 ? "no_answer" : "box_count";
    extract_boxes(boxes.last, &inner);
    if (inner.count || inner.truncated)
        return "box_count";
    return is_blank_box(boxes.last) ? "blank" : NULL;
}

static void boxed_once(const struct verifier_input *input, struct verdict *ret_verdict)
{
    struct text turn = extract_turn(input->completion);
    struct text text = extract_final_part(input->completion);
    bool open =
        option_is_true(input->options, "think_prefilled") && text_find(turn, 0, "</think>") == turn.length_bytes;

    answer(ret_verdict, !text.data || open ? "reasoning_not_closed" : check_box(text));
}

static const char *take_field(struct text *rest, const struct tags *tags)
{
    char open[FIELD_NAME_BYTES + 4];
    char close[FIELD_NAME_BYTES + 4];
    struct text content;

    snprintf(open, sizeof open, "<%.*s>", (int)tags->name.length_bytes, tags->name.data);
    snprintf(close, sizeof close, "</%.*s>", (int)tags->name.length_bytes, tags->name.data);
    return are_once(tags, 1) ? take_block(rest, open, close, &content) : "tag_count";
}

/* Where the prompt has opened the reasoning, a first field `think` is that. */
static void xml_fields(const struct verifier_input *input, struct verdict *ret_verdict)
{
    const json_t *fields = json_object_get(input->options, "fields");
    bool prefilled = option_is_true(input->options, "think_prefilled");
    struct text rest = extract_turn(input->completion);
    struct tags tags[FIELDS_MAX] = {0};
    size_t count = json_array_size(fields);
    size_t i;
    const json_t *field;

    json_array_foreach (fields, i, field)
        tags[i].name = json_text_of(field);
    count_tags(rest, tags, count);
    const char *reason = prefilled ? take_thinking(&rest, true) : NULL;
    for (i = prefilled && text_equals(tags[0].name, "think"); i < count && !reason; i++)
        reason = take_field(&rest, &tags[i]);
    if (!reason && !is_blank(rest))
        reason = "text_outside";
    answer(ret_verdict, reason);
}

static void (*const graders[])(const struct verifier_input *input, struct verdict *ret_verdict) = {
    think_answer, think_only, tag_count, boxed_once, xml_fields,
};

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    for (size_t i = 0; templates[i]; i++)
        if (option_is(input->options, "template", templates[i]))
            graders[i](input, ret_verdict);
}

const struct verifier verifier_format = {
    .name = "format",
    .version = "3",
    .help = "1 if the completion follows a template (tag_count: 0 to 1 in quarters)",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .grade = grade,
};
