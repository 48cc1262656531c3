/* Numbers in running text: fields of JSON objects, and what a pattern finds. */
#include "server/base/number.h"
#include "verifiers/judge/read_private.h"
#include "verifiers/text/pattern.h"

#include <math.h>

/* --- json_score --- */

/* Lists that look like lists of objects and are none: each may be read to the end of the text. */
#define BROKEN_LISTS_MAX 3

struct object_scan {
    struct judge_search *search;
    struct text text;
    size_t at;
    int broken_lists;
};

static json_t *load_here(const struct object_scan *scan, size_t *ret_length_bytes)
{
    json_error_t error;
    json_t *value = json_loadb(scan->text.data + scan->at, scan->text.length_bytes - scan->at,
                               JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);

    *ret_length_bytes = value ? (size_t)error.position : 0;
    return value;
}

/* From an opening brace to behind the one that closes it, strings skipped as in JSON; 0: nothing closes it. A reader of
 * JSON that gives up has not come further. */
static size_t braces_bytes(struct text rest)
{
    size_t depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < rest.length_bytes; i++) {
        char byte = rest.data[i];
        if (in_string && byte == '\\')
            i++;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && byte == '{')
            depth++;
        else if (!in_string && byte == '}' && --depth == 0)
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

/* Braces that hold no JSON: prose, or a verdict off the form. */
static void pass_braces(struct object_scan *scan)
{
    struct text rest = {scan->text.data + scan->at, scan->text.length_bytes - scan->at};
    size_t length_bytes = braces_bytes(rest);

    if (length_bytes > 0)
        rest.length_bytes = length_bytes;
    if (names_field(rest, scan->search->rule->field))
        judge_search_add(scan->search, NULL);
    scan->at += rest.length_bytes;
}

static void take_object(struct object_scan *scan)
{
    size_t length_bytes;
    json_t *object = load_here(scan, &length_bytes);
    struct text field = scan->search->rule->field;
    const json_t *value = json_object_getn(object, field.data, field.length_bytes);

    if (value)
        judge_search_add_number(scan->search, json_is_number(value) ? json_number_value(value) : NAN);
    if (object)
        scan->at += length_bytes;
    else
        pass_braces(scan);
    json_decref(object);
}

static bool opens_list_of_objects(const struct object_scan *scan)
{
    size_t at = scan->at + 1;

    while (at < scan->text.length_bytes && strchr(" \t\r\n", scan->text.data[at]) && scan->text.data[at])
        at++;
    return at < scan->text.length_bytes && scan->text.data[at] == '{';
}

/* Objects in a list are not at the top. */
static void pass_list(struct object_scan *scan)
{
    size_t length_bytes = 0;
    json_t *list =
        opens_list_of_objects(scan) && scan->broken_lists < BROKEN_LISTS_MAX ? load_here(scan, &length_bytes) : NULL;

    if (!list && opens_list_of_objects(scan))
        scan->broken_lists++;
    scan->at += list ? length_bytes : 1;
    json_decref(list);
}

void judge_search_objects(struct judge_search *search, struct text text)
{
    struct object_scan scan = {.search = search, .text = text};

    while (scan.at < text.length_bytes) {
        if (text.data[scan.at] == '{')
            take_object(&scan);
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
    const char *end = digits.data + digits.length_bytes;

    return digits.data && number_parse(digits.data, end, &number) == end ? number.value : NAN;
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
    /* What comes behind the limit is unknown. */
    if (result == PATTERN_WORK_LIMIT || result == PATTERN_GAVE_UP)
        search->fine = false;
}
