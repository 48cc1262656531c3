/* Numbers in running text: fields of JSON objects, and what a pattern finds. */
#include "server/base/number.h"
#include "verifiers/judge/read_private.h"
#include "verifiers/text/pattern.h"

#include <math.h>

/* --- json_score --- */

struct object_scan {
    struct judge_search *search;
    struct text text;
    size_t at;
    bool lists_end; /* false: one was never closed, so that no other is looked for */
};

/* From an opening bracket to behind the one that closes it, strings skipped as in JSON; 0: nothing closes it. */
static size_t enclosed_bytes(struct text rest, char opening, char closing)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < rest.length_bytes; i++) {
        char byte = rest.data[i];
        if (in_string && byte == '\\')
            i++;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && byte == opening)
            depth++;
        else if (!in_string && byte == closing && --depth == 0)
            return i + 1;
    }
    return 0;
}

/* "field", as it would stand in an object. */
static bool names_field(struct text part, struct text field)
{
    char quoted[JUDGE_LABEL_BYTES + 3];

    quoted[0] = '"';
    memcpy(quoted + 1, field.data, field.length_bytes);
    quoted[field.length_bytes + 1] = '"';
    return memmem(part.data, part.length_bytes, quoted, field.length_bytes + 2) != NULL;
}

/* Braces that name the field and hold no JSON are a verdict off the form. */
static void read_object(struct judge_search *search, struct text part)
{
    struct text field = search->rule->field;
    json_t *object = json_loadb(part.data, part.length_bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    const json_t *value = json_object_getn(object, field.data, field.length_bytes);

    if (!object)
        judge_search_add(search, NULL);
    else if (value)
        judge_search_add_number(search, json_is_number(value) ? json_number_value(value) : NAN);
    json_decref(object);
}

static struct text rest_of(const struct object_scan *scan)
{
    return (struct text){scan->text.data + scan->at, scan->text.length_bytes - scan->at};
}

/* An object, or braces of prose. Nothing behind a brace that is never closed is at the top. */
static void take_braces(struct object_scan *scan)
{
    struct text part = rest_of(scan);
    size_t length_bytes = enclosed_bytes(part, '{', '}');

    if (length_bytes > 0)
        part.length_bytes = length_bytes;
    if (names_field(part, scan->search->rule->field))
        read_object(scan->search, part);
    scan->at += part.length_bytes;
}

static bool opens_list_of_objects(struct text rest)
{
    size_t at = 1;

    while (at < rest.length_bytes && rest.data[at] && strchr(" \t\r\n", rest.data[at]))
        at++;
    return at < rest.length_bytes && rest.data[at] == '{';
}

/* Objects in a list are not at the top. */
static void pass_list(struct object_scan *scan)
{
    struct text rest = rest_of(scan);
    bool is_list = scan->lists_end && opens_list_of_objects(rest);
    size_t length_bytes = is_list ? enclosed_bytes(rest, '[', ']') : 0;

    if (is_list && length_bytes == 0)
        scan->lists_end = false;
    scan->at += length_bytes ? length_bytes : 1;
}

void judge_search_objects(struct judge_search *search, struct text text)
{
    struct object_scan scan = {.search = search, .text = text, .lists_end = true};

    while (scan.at < text.length_bytes) {
        if (text.data[scan.at] == '{')
            take_braces(&scan);
        else if (text.data[scan.at] == '[')
            pass_list(&scan);
        else
            scan.at++;
    }
}

/* --- rating --- */

static double number_of(struct text digits)
{
    struct number number;

    if (!digits.data)
        return NAN;
    const char *end = digits.data + digits.length_bytes;
    return number_parse(digits.data, end, &number) == end ? number.value : NAN;
}

/* Behind the last match; an empty one takes a character. */
static size_t next_start(struct text text, struct text match)
{
    size_t at = (size_t)(match.data - text.data) + match.length_bytes;

    if (match.length_bytes > 0)
        return at;
    do
        at++;
    while (at < text.length_bytes && ((unsigned char)text.data[at] & 0xc0) == 0x80);
    return at;
}

void judge_search_ratings(struct judge_search *search, struct text text)
{
    char problem[PATTERN_PROBLEM_BYTES];
    _cleanup_(pattern_destroyp) struct pattern *pattern = pattern_create(search->rule->pattern, problem);
    enum pattern_result result = pattern ? PATTERN_NO_MATCH : PATTERN_GAVE_UP;
    size_t at = 0;

    while (pattern && at <= text.length_bytes && (result = pattern_match(pattern, text, at, false)) == PATTERN_MATCH) {
        struct text match = pattern_group(pattern, 0);
        judge_search_add_number(search, match.data ? number_of(pattern_group(pattern, 1)) : NAN);
        at = match.data ? next_start(text, match) : text.length_bytes + 1;
    }
    /* The text behind the limit is unknown. */
    if (result == PATTERN_WORK_LIMIT || result == PATTERN_GAVE_UP)
        search->fine = false;
}
