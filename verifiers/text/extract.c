#include "verifiers/text/extract.h"

#include <ctype.h>

#include "server/base/cleanup.h"
#include "verifiers/text/sentence.h"

const char *const extract_rule_names[EXTRACT_RULES + 1] = {
    "auto", "boxed", "answer_is", "gsm8k", "answer_tag", "last_number", NULL,
};

/* Tokens of the common chat templates that end a turn or begin another speaker's. Each has one '<', its first byte. */
#define TURN_TOKEN_BYTES 32
static const char turn_tokens[][TURN_TOKEN_BYTES] = {
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|EOT|>",
    "<|return|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
    "<|im_start|>user",
    "<start_of_turn>user",
    "<|start_header_id|>user",
    "<|user|>",
    "<\uFF5CUser\uFF5C>",
};

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static struct text slice(struct text text, size_t start, size_t end)
{
    return (struct text){text.data + start, end - start};
}

struct text text_trimmed(struct text text)
{
    while (text.length_bytes && is_space(text.data[0]))
        text = slice(text, 1, text.length_bytes);
    while (text.length_bytes && is_space(text.data[text.length_bytes - 1]))
        text.length_bytes--;
    return text;
}

/* A space behind a backslash is a command of LaTeX: without it the backslash would be half of one. */
static struct text trimmed_latex(struct text text)
{
    struct text trimmed = text_trimmed(text);
    size_t backslashes = 0;

    while (backslashes < trimmed.length_bytes && trimmed.data[trimmed.length_bytes - 1 - backslashes] == '\\')
        backslashes++;
    if (backslashes % 2 && trimmed.data + trimmed.length_bytes < text.data + text.length_bytes)
        trimmed.length_bytes++;
    return trimmed;
}

size_t text_find(struct text text, size_t from, const char *needle)
{
    const char *found;

    if (from >= text.length_bytes) /* also a text without data, which memmem() may not get */
        return text.length_bytes;
    found = memmem(text.data + from, text.length_bytes - from, needle, strlen(needle));
    return found ? (size_t)(found - text.data) : text.length_bytes;
}

static inline bool starts_with(struct text text, size_t at, const char *prefix)
{
    size_t length_bytes = strlen(prefix);
    return text.length_bytes - at >= length_bytes && memcmp(text.data + at, prefix, length_bytes) == 0;
}

/* Index of the last occurrence, or length_bytes. One pass, from behind. */
static size_t find_last(struct text text, const char *needle)
{
    for (size_t at = text.length_bytes; at-- > 0;)
        if (text.data[at] == needle[0] && starts_with(text, at, needle))
            return at;
    return text.length_bytes;
}

/* rest begins with '<'. <|end|> ends a turn unless the same turn continues in another channel. */
static bool turn_ends_with(struct text rest)
{
    if (rest.length_bytes < 3)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(turn_tokens); i++)
        if (memcmp(rest.data, turn_tokens[i], 3) == 0 && starts_with(rest, 0, turn_tokens[i]))
            return true;
    return starts_with(rest, 0, "<|end|>") && !starts_with(rest, strlen("<|end|>"), "<|start|>assistant");
}

/* All tokens in one pass: a text that is full of their beginnings costs no more than another one. */
struct text extract_turn(struct text completion)
{
    for (size_t at = 0; at + 1 < completion.length_bytes; at++)
        if (completion.data[at] == '<' && completion.data[at + 1] != '<' &&
            turn_ends_with(slice(completion, at, completion.length_bytes)))
            return slice(completion, 0, at);
    return completion;
}

struct text extract_final_part(struct text completion)
{
    struct text text = extract_turn(completion);
    size_t closed = find_last(text, "</think>");

    if (closed < text.length_bytes)
        text = slice(text, closed + strlen("</think>"), text.length_bytes);
    return text_find(text, 0, "<think>") < text.length_bytes ? TEXT_NONE : text;
}

/* --- numbers --- */

static size_t skip_digits(struct text text, size_t at)
{
    while (at < text.length_bytes && is_digit(text.data[at]))
        at++;
    return at;
}

static bool digit_at(struct text text, size_t at)
{
    return at < text.length_bytes && is_digit(text.data[at]);
}

/* The end of the number whose first digit (or leading point) is at `at`: groups by comma, one decimal part, one
 * denominator. */
static size_t number_end(struct text text, size_t at)
{
    at = skip_digits(text, at);
    while (at < text.length_bytes && text.data[at] == ',' && digit_at(text, at + 1))
        at = skip_digits(text, at + 1);
    if (at < text.length_bytes && text.data[at] == '.' && digit_at(text, at + 1))
        at = skip_digits(text, at + 1);
    if (at < text.length_bytes && text.data[at] == '/' && digit_at(text, at + 1))
        at = skip_digits(text, at + 1);
    return at;
}

/* --- boxes --- */

/* The index after the brace that closes the one at `open`, or 0 if none does. A backslash takes the next byte with it.
 */
static size_t after_group(struct text text, size_t open)
{
    size_t depth = 0;

    for (size_t i = open; i < text.length_bytes; i++) {
        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] == '{')
            depth++;
        else if (text.data[i] == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

static void keep_box(struct boxes *boxes, struct text content)
{
    boxes->count++;
    boxes->last = content;
    for (size_t i = 0; i < boxes->distinct && i < EXTRACT_BOXES_MAX; i++)
        if (text_same(boxes->box[i], content))
            return;
    if (boxes->distinct < EXTRACT_BOXES_MAX)
        boxes->box[boxes->distinct] = content;
    boxes->distinct++;
}

/* Behind a number without braces: the end of the text, of its formula or of its sentence. Anything else could belong to
 * the number: 42 + 3, 42\sqrt2, 42 or 43. */
static bool ends_here(struct text text, size_t at)
{
    static const char *const ends[] = {"$", "\\)", "\\]", ".\n", ".$", ".\\)", ".\\]", "\n\n"};

    if (at < text.length_bytes && text.data[at] == '.' &&
        text_trimmed(slice(text, at + 1, text.length_bytes)).length_bytes == 0)
        return true;
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++)
        if (starts_with(text, at, ends[i]))
            return true;
    return text_trimmed(slice(text, at, text.length_bytes)).length_bytes == 0;
}

/* \boxed 42: TeX would box the 4 alone, which no author means. */
static void keep_bare_number(struct text text, size_t at, struct boxes *boxes)
{
    size_t digits = at + (text.data[at] == '-');
    size_t end = digit_at(text, digits) ? number_end(text, digits) : at;

    if (end == at)
        return;
    boxes->truncated = !ends_here(text, end);
    if (!boxes->truncated)
        keep_box(boxes, slice(text, at, end));
}

/* Reads the argument of \boxed at `at`: a group, or a number on its own; anything else is prose about boxes. Returns the index
 * after it. */
static size_t read_box(struct text text, size_t command, size_t at, struct boxes *boxes)
{
    size_t after;

    while (at < text.length_bytes && is_space(text.data[at]))
        at++;
    if (at == text.length_bytes)
        return at;
    if (text.data[at] == '{') {
        after = after_group(text, at);
        boxes->truncated = after == 0;
        if (after)
            keep_box(boxes, trimmed_latex(slice(text, at + 1, after - 1)));
        boxes->last_whole = after ? slice(text, command, after) : TEXT_NONE;
        return after ? after : text.length_bytes;
    }
    boxes->last_whole = TEXT_NONE;
    keep_bare_number(text, at, boxes);
    return at;
}

void extract_boxes(struct text text, struct boxes *ret_boxes)
{
    static const char *const commands[] = {"\\boxed", "\\fbox"};
    size_t at = 0;

    *ret_boxes = (struct boxes){.last = TEXT_NONE, .last_whole = TEXT_NONE};
    while (at < text.length_bytes) {
        bool command = text.data[at] == '\\';
        size_t next = command ? at + 2 : at + 1;
        for (size_t i = 0; command && i < ARRAY_LENGTH(commands); i++) {
            size_t end = at + strlen(commands[i]);
            if (starts_with(text, at, commands[i]) && (end == text.length_bytes || !is_letter(text.data[end])))
                next = read_box(text, at, end, ret_boxes);
        }
        at = next;
    }
}

static void from_boxes(struct text text, struct extracted *ret_extracted)
{
    struct boxes boxes;

    extract_boxes(text, &boxes);
    ret_extracted->answer = boxes.truncated ? TEXT_NONE : boxes.last;
    ret_extracted->whole = boxes.last_whole;
    ret_extracted->distinct = boxes.distinct;
    ret_extracted->truncated = boxes.truncated;
}

/* --- tags and markers --- */

static void keep_tag(struct text content, struct text *first, struct extracted *extracted)
{
    extracted->answer = content;
    if (!first->data)
        *first = content;
    extracted->distinct += extracted->distinct == 0 || !text_same(*first, content);
}

static void from_answer_tag(struct text text, struct extracted *ret_extracted)
{
    struct text first = TEXT_NONE;
    size_t at = text_find(text, 0, "<answer>");
    size_t close = 0;

    while (at < text.length_bytes) {
        size_t start = at + strlen("<answer>");
        size_t next = text_find(text, start, "<answer>");

        if (close < start) /* or else it is still ahead: searched once, not once per opening tag */
            close = text_find(text, start, "</answer>");
        ret_extracted->answer = TEXT_NONE; /* an earlier one never stands in for a last one that was not closed */
        ret_extracted->truncated = close >= text.length_bytes || close >= next;
        if (!ret_extracted->truncated)
            keep_tag(trimmed_latex(slice(text, start, close)), &first, ret_extracted);
        at = next;
    }
}

static void from_auto(struct text text, struct extracted *ret_extracted)
{
    struct boxes boxes;

    extract_boxes(text, &boxes);
    if (boxes.count || boxes.truncated)
        from_boxes(text, ret_extracted);
    else
        from_answer_tag(text, ret_extracted);
}

static bool starts_with_fold(struct text text, size_t at, const char *prefix)
{
    for (size_t i = 0; prefix[i]; i++)
        if (at + i >= text.length_bytes || (text.data[at + i] | 0x20) != prefix[i])
            return false;
    return true;
}

static size_t skip(struct text text, size_t at, const char *bytes)
{
    while (at < text.length_bytes && text.data[at] && strchr(bytes, text.data[at]))
        at++;
    return at;
}

/* Emphasis and the brace of \textbf{Answer:}. */
#define AROUND_MARKER " *_}"

/* "is thus 42", "is equal to 42": the index of the value. */
static size_t skip_filler(struct text text, size_t at)
{
    static const char *const fillers[] = {"thus ", "then ", "therefore ", "hence ", "simply ", "equal to ", "exactly "};

    for (size_t i = 0; i < ARRAY_LENGTH(fillers); i++)
        if (starts_with_fold(text, at, fillers[i]))
            return at + strlen(fillers[i]);
    return at;
}

/* A heading: "**Answer:**", and the value in a line of its own. */
static size_t skip_blank_lines(struct text text, size_t at)
{
    size_t line = skip(text, at, " *_\t\r");

    return line < text.length_bytes && text.data[line] == '\n' ? skip(text, line, " *_\t\r\n") : at;
}

/* If "is", "=" or ":" follows "answer" at `at`, the index after that; else 0. */
static size_t after_marker(struct text text, size_t at)
{
    size_t end = skip(text, at + strlen("answer"), AROUND_MARKER);
    bool is = end > at + strlen("answer") && starts_with_fold(text, end, "is") &&
              (end + 2 == text.length_bytes || !isalnum((unsigned char)text.data[end + 2]));

    if (is)
        end = skip_filler(text, skip(text, end + 2, AROUND_MARKER));
    if (end < text.length_bytes && (text.data[end] == ':' || (!is && text.data[end] == '=')))
        return skip_blank_lines(text, skip(text, end + 1, AROUND_MARKER "\t"));
    return is ? end : 0;
}

/* Where a sentence ends: at a line's end, or a full stop that white space follows. */
static size_t sentence_end(struct text text, size_t at)
{
    for (; at < text.length_bytes && text.data[at] != '\n' && text.data[at] != '\r'; at++)
        if (text.data[at] == '.' && (at + 1 == text.length_bytes || is_space(text.data[at + 1])))
            break;
    return at;
}

static void from_answer_is(struct text text, struct extracted *ret_extracted)
{
    size_t last = 0;

    for (size_t at = 0; at < text.length_bytes; at++) {
        size_t after = starts_with_fold(text, at, "answer") ? after_marker(text, at) : 0;
        if (after)
            last = after;
    }
    ret_extracted->prose = true;
    if (last)
        ret_extracted->answer = sentence_bare(slice(text, last, sentence_end(text, last)));
}

static void from_gsm8k(struct text text, struct extracted *ret_extracted)
{
    size_t mark = find_last(text, "####");
    size_t end;

    ret_extracted->prose = true;
    if (mark == text.length_bytes)
        return;
    mark += strlen("####");
    end = text_find(text, mark, "\n");
    ret_extracted->answer = sentence_bare(slice(text, mark, end));
}

/* --- last number --- */

/* The bytes of a sign before `at`, 0 if there is none. One that stands between two values is none, as in "5-7". */
static size_t sign_before(struct text text, size_t at)
{
    static const char minus[] = "\xE2\x88\x92";
    size_t sign_bytes = 0;

    if (at && text.data[at - 1] == '-')
        sign_bytes = 1;
    else if (at >= 3 && memcmp(text.data + at - 3, minus, 3) == 0)
        sign_bytes = 3;
    return at > sign_bytes && isalnum((unsigned char)text.data[at - sign_bytes - 1]) ? 0 : sign_bytes;
}

static void from_last_number(struct text text, struct extracted *ret_extracted)
{
    for (size_t at = 0; at < text.length_bytes;) {
        bool point = text.data[at] == '.' && digit_at(text, at + 1);
        size_t start = at;

        if (!point && !is_digit(text.data[at])) {
            at++;
            continue;
        }
        start -= sign_before(text, at);
        at = number_end(text, point ? at + 1 : at);
        ret_extracted->answer = slice(text, start, at);
    }
}

static void (*const rules[EXTRACT_RULES])(struct text text, struct extracted *ret_extracted) = {
    [EXTRACT_AUTO] = from_auto,   [EXTRACT_BOXED] = from_boxes,           [EXTRACT_ANSWER_IS] = from_answer_is,
    [EXTRACT_GSM8K] = from_gsm8k, [EXTRACT_ANSWER_TAG] = from_answer_tag, [EXTRACT_LAST_NUMBER] = from_last_number,
};

void extract_answer(struct text completion, enum extract_rule rule, struct extracted *ret_extracted)
{
    struct text text = extract_final_part(completion);

    *ret_extracted = (struct extracted){.answer = TEXT_NONE, .text = text, .whole = TEXT_NONE};
    if (text.data)
        rules[rule](text, ret_extracted);
    if (ret_extracted->answer.length_bytes == 0)
        ret_extracted->answer = TEXT_NONE;
}
