#include "verifiers/text/markers_private.h"

#include <string.h>
#include <strings.h>

#include "server/base/cleanup.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/prose.h"

#define DETOUR_BYTES 96 /* of "answer to this question is" */
#define REMARK_BYTES 200
#define TRIES_MAX 4096 /* markers that claim nothing: beyond, none does */

static char byte_at(struct text text, size_t at)
{
    return at < text.length_bytes ? text.data[at] : 0;
}

static bool is_alnum(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

static bool is_line_end(char byte)
{
    return byte == '\n' || byte == '\r';
}

static struct text slice(struct text text, size_t start, size_t end)
{
    return (struct text){text.data + start, end - start};
}

static bool starts_with(struct text text, size_t at, struct text prefix)
{
    if (prefix.length_bytes > 1 && ((byte_at(text, at + 1) ^ prefix.data[1]) & ~0x20))
        return false; /* soon, as it is asked at most bytes of a text */
    return at <= text.length_bytes && text.length_bytes - at >= prefix.length_bytes &&
           strncasecmp(text.data + at, prefix.data, prefix.length_bytes) == 0;
}

/* The length of the entry that stands at `at` as a whole word, or 0. */
static size_t word_of_list(struct text text, size_t at, const char *const *list, size_t count)
{
    char first = (char)(byte_at(text, at) | 0x20);

    for (size_t i = 0; i < count; i++) {
        struct text entry = {list[i], first == list[i][0] ? strlen(list[i]) : 0};
        if (entry.length_bytes && starts_with(text, at, entry) && !is_alnum(byte_at(text, at + entry.length_bytes)))
            return entry.length_bytes;
    }
    return 0;
}

/* Spaces, emphasis and quotes within a line. */
static size_t skip_around(struct text text, size_t at)
{
    for (;;) {
        char byte = byte_at(text, at);
        if (byte && strchr(" \t*_`}\"'", byte))
            at++;
        else if (starts_with(text, at, TEXT_LITERAL("\xC2\xA0")) || starts_with(text, at, TEXT_LITERAL("**")))
            at += 2;
        else if (starts_with(text, at, TEXT_LITERAL("</b>")))
            at += 4;
        else if (starts_with(text, at, TEXT_LITERAL("</strong>")))
            at += 9;
        else
            return at;
    }
}

/* --- before a marker --- */

static size_t start_of_word(struct text text, size_t end)
{
    while (end && (is_alnum(text.data[end - 1]) || text.data[end - 1] == '\''))
        end--;
    return end;
}

/* "if the answer is A", "a wrong answer: A": no claim. */
static bool is_disowned(struct text text, size_t at)
{
    static const char *const passed[] = {"the",   "my",   "our",  "your", "this", "that", "final", "correct",
                                         "right", "best", "true", "real", "only", "is",   "was",   NULL};
    static const char *const disowning[] = {
        "if",       "whether", "suppose", "supposing", "assume", "assuming", "unless", "wrong", "incorrect",
        "false",    "not",     "never",   "another",   "other",  "possible", "second", "next",  "potential",
        "tempting", "each",    "every",   "what",      "which",  "isn't",    "cannot", "no",    NULL};
    struct prose_word word = {.kind = PROSE_WORD};

    for (int words = 0; words < 8; words++) {
        while (at && (text.data[at - 1] == ' ' || text.data[at - 1] == '*' || text.data[at - 1] == '_'))
            at--;
        size_t start = start_of_word(text, at);
        word.text = slice(text, start, at);
        if (prose_is_one_of(word, disowning))
            return true;
        if (!prose_is_one_of(word, passed))
            return false;
        at = start;
    }
    return false;
}

/* Only the signs of a heading, and "final" or the like, before it on its line. */
static bool begins_line(struct text text, size_t at)
{
    static const char *const heads[] = {"the", "my", "final", "correct", "short", NULL};
    struct prose_word word = {.kind = PROSE_WORD};

    for (int words = 0; words < 4; words++) {
        while (at && strchr(" \t#*_>-", text.data[at - 1]) && text.data[at - 1])
            at--;
        if (at == 0 || is_line_end(text.data[at - 1]))
            return true;
        size_t start = start_of_word(text, at);
        word.text = slice(text, start, at);
        if (!prose_is_one_of(word, heads))
            return false;
        at = start;
    }
    return false;
}

/* --- behind a marker --- */

/* The end of the line, or of the tag that the line closes. */
static size_t value_end(struct text text, size_t at)
{
    while (at < text.length_bytes && !is_line_end(text.data[at]) &&
           !(text.data[at] == '<' && byte_at(text, at + 1) == '/'))
        at++;
    return at;
}

/* The first line from `at` on that is not blank has the value. */
static size_t value_start(struct text text, size_t at)
{
    at = skip_around(text, at);
    while (is_line_end(byte_at(text, at)))
        at = skip_around(text, at + 1);
    return at;
}

static struct text value_at(struct text text, size_t at)
{
    return slice(text, at, value_end(text, at));
}

static size_t skip_colon(struct text text, size_t at)
{
    static const char *const colons[] = {"\xEF\xBC\x9A", ":", "=>", "->", "=", "\xE2\x86\x92", "- ", "\xE2\x80\x93 ",
                                         "\xE2\x80\x94 "};

    for (size_t i = 0; i < ARRAY_LENGTH(colons); i++)
        if (starts_with(text, at, text_of(colons[i])))
            return at + strlen(colons[i]);
    return 0;
}

/* The index behind a verb, or at one that denies, which then begins the value. 0: there is no verb. */
static size_t skip_verb(struct text text, size_t at)
{
    static const char *const verbs[] = {"is",       "are",     "was",       "must be",    "should be",
                                        "would be", "will be", "has to be", "can only be"};
    static const char *const denying[] = {"isn't",     "isn\xE2\x80\x99t", "aren't",    "wasn't",
                                          "cannot be", "can't be",         "can not be"};
    size_t length = word_of_list(text, at, denying, ARRAY_LENGTH(denying));

    if (length)
        return at;
    length = word_of_list(text, at, verbs, ARRAY_LENGTH(verbs));
    return length && byte_at(text, at + length) != '\'' ? at + length : 0;
}

/* "answer to this question is": the index of the verb, or `at`. */
static size_t skip_detour(struct text text, size_t at)
{
    static const char *const detours[] = {"to", "for", "of", "in", "among", "from", "here", "then", "therefore"};
    size_t end = at + DETOUR_BYTES < text.length_bytes ? at + DETOUR_BYTES : text.length_bytes;
    size_t start = byte_at(text, at) == ',' ? at + 1 + (byte_at(text, at + 1) == ' ') : at;

    if (!word_of_list(text, start, detours, ARRAY_LENGTH(detours)))
        return at;
    for (size_t i = start; i < end && !is_line_end(text.data[i]) && !strchr(".?!:", text.data[i] ? text.data[i] : '.');
         i++)
        if (text.data[i] == ' ' && skip_verb(text, i + 1))
            return i + 1;
    return at;
}

/* "is consistent with the data": a remark that names no letter and denies nothing, to the end of its sentence or line. */
static bool is_remark(const struct claims_rule *rule, struct text rest)
{
    static const char *const remarks[] = {"consistent", "based",     "supported", "correct",  "right",    "confirmed",
                                          "reasonable", "justified", "derived",   "obtained", "found",    "explained",
                                          "clear",      "plausible", "above",     "below",    "verified", "in",
                                          "also",       "indeed",    "therefore", "thus",     NULL};
    static const char *const takes_back[] = {"not", "no",      "wrong",  "incorrect", "false", "but",
                                             "or",  "unclear", "unsure", "none",      NULL};
    struct prose at = {rest, 0};
    struct prose_word word;

    if (rest.length_bytes > REMARK_BYTES)
        at.text.length_bytes = REMARK_BYTES;
    for (size_t i = 0; i < at.text.length_bytes; i++)
        if (is_line_end(rest.data[i]))
            at.text.length_bytes = i;
    word = prose_next(&at);
    if (!prose_is_one_of(word, remarks))
        return false;
    for (; word.kind != PROSE_END && word.kind != PROSE_STOP; word = prose_next(&at))
        if (prose_is_one_of(word, takes_back) ||
            (word.kind == PROSE_WORD && word.text.length_bytes == 1 && !strchr("a", word.text.data[0]) &&
             labels_place(rule->labels, word.text.data[0]) < LABELS_MAX))
            return false;
    return true;
}

/* The claim of the marker from `start` to `end`, or TEXT_NONE. */
static struct text claim_of(const struct claims_rule *rule, struct text text, size_t start, size_t end, bool complete)
{
    static const char *const nouns[] = {"choice", "option", "letter", "key", "number"};
    size_t at = skip_around(text, end);
    size_t behind;

    at += word_of_list(text, at, nouns, ARRAY_LENGTH(nouns));
    at = skip_around(text, at);
    behind = skip_colon(text, at);
    if (behind || complete)
        return value_at(text, value_start(text, behind ? behind : at));
    if (at == text.length_bytes || is_line_end(text.data[at])) {
        at = value_start(text, at);
        return begins_line(text, start) && at < text.length_bytes ? value_at(text, at) : TEXT_NONE;
    }
    behind = skip_verb(text, skip_detour(text, at));
    if (!behind)
        return TEXT_NONE;
    at = skip_around(text, behind);
    behind = skip_colon(text, at);
    at = value_start(text, behind ? behind : at);
    return is_remark(rule, slice(text, at, text.length_bytes)) ? TEXT_NONE : value_at(text, at);
}

/* --- finding one --- */

/* "Answers" and "Answer(s)", too. Returns the index behind the marker that stands at `at`, or 0. */
static size_t marker_end(struct text text, size_t at, struct text marker, bool complete)
{
    size_t end = at + marker.length_bytes;

    if (!starts_with(text, at, marker) || (is_alnum(marker.data[0]) && at && is_alnum(text.data[at - 1])))
        return 0;
    if (complete)
        return end;
    if (starts_with(text, end, TEXT_LITERAL("(s)")))
        end += 3;
    else if (starts_with(text, end, TEXT_LITERAL("s")))
        end++;
    return is_alnum(byte_at(text, end)) ? 0 : end;
}

static void note_first_bytes(const struct claims_rule *rule, bool ret_begins[256])
{
    memset(ret_begins, 0, 256);
    for (size_t i = 0; i < rule->marker_count; i++) {
        unsigned char first = (unsigned char)rule->markers[i].data[0];
        ret_begins[first] = true;
        if (is_alnum((char)first) && first > '9')
            ret_begins[first ^ 0x20] = true;
    }
}

static struct text claim_at(const struct claims_rule *rule, struct text text, size_t at, size_t *tries)
{
    struct text value = TEXT_NONE;

    for (size_t i = 0; i < rule->marker_count && !value.data; i++) {
        struct text marker = rule->markers[i];
        bool complete = !is_alnum(marker.data[marker.length_bytes - 1]);
        size_t end = marker_end(text, at, marker, complete);
        *tries += end > 0;
        if (end && !is_disowned(text, at))
            value = claim_of(rule, text, at, end, complete);
    }
    return value;
}

struct text markers_last(const struct claims_rule *rule, struct text text)
{
    bool begins[256];
    struct text value = TEXT_NONE;
    size_t tries = 0;

    note_first_bytes(rule, begins);
    for (size_t at = text.length_bytes; at-- > 0 && !value.data && tries < TRIES_MAX;)
        if (begins[(unsigned char)text.data[at]])
            value = claim_at(rule, text, at, &tries);
    return value;
}
