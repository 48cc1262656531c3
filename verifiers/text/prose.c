#include "verifiers/text/prose.h"

#include <string.h>
#include <strings.h>

#include "server/base/cleanup.h"

static bool is_alnum(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

static char byte_at(struct text text, size_t at)
{
    return at < text.length_bytes ? text.data[at] : 0;
}

static bool starts_with(struct text text, size_t at, const char *prefix)
{
    size_t length = strlen(prefix);

    return text.length_bytes - at >= length && memcmp(text.data + at, prefix, length) == 0;
}

/* The length of the entry of a list of signs beyond ASCII that stands at `at`, or 0. */
static size_t listed_at(struct text text, size_t at, const char *const *list)
{
    unsigned char first = (unsigned char)byte_at(text, at);

    if (first != 0xC2 && first != 0xE2 && first != 0xE3 && first != 0xEF)
        return 0;
    for (; *list; list++)
        if (starts_with(text, at, *list))
            return strlen(*list);
    return 0;
}

/* U+00A0, U+2002 to U+200A, U+202F, U+3000 */
static const char *const wide_spaces[] = {
    "\xC2\xA0",     "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87",
    "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xAF", "\xE3\x80\x80", NULL,
};

/* Quotes, brackets of Chinese and Japanese, check marks. */
static const char *const wide_decorations[] = {
    "\xE2\x80\x98", "\xE2\x80\x99", "\xE2\x80\x9C", "\xE2\x80\x9D", "\xC2\xAB",     "\xC2\xBB",     "\xEF\xBC\x88",
    "\xEF\xBC\x89", "\xE3\x80\x90", "\xE3\x80\x91", "\xE3\x80\x8C", "\xE3\x80\x8D", "\xE3\x80\x8A", "\xE3\x80\x8B",
    "\xE2\x9C\x85", "\xE2\x9C\x94", "\xE2\x9C\x93", "\xEF\xB8\x8F", NULL,
};

static const char *const wide_lists[] = {"\xEF\xBC\x8C", "\xE3\x80\x81", "\xEF\xBC\x9B", NULL};
static const char *const wide_stops[] = {"\xE3\x80\x82", "\xEF\xBC\x8E", "\xEF\xBC\x81", NULL};
static const char *const wide_labels[] = {"\xEF\xBC\x9A", "\xE2\x80\x93", "\xE2\x80\x94", NULL};

static const char *const fonts[] = {
    "textbf", "textrm", "textsf",     "textit", "texttt", "text",  "mathrm",    "mathbf",       "mathsf",
    "mathit", "mathtt", "mbox",       "emph",   "boxed",  "fbox",  "left",      "right",        "operatorname",
    "bf",     "rm",     "boldsymbol", "bm",     "quad",   "qquad", "underline", "displaystyle", NULL,
};

static const char *const tags[] = {"b",   "strong", "i",    "em",   "u",   "p",    "br",
                                   "br/", "br /",   "code", "span", "div", "mark", NULL};

/* A command of LaTeX that shows nothing by itself. */
static size_t font_at(struct text text, size_t at)
{
    size_t end = at + 1;
    struct text name;

    if (byte_at(text, at) != '\\')
        return 0;
    if (byte_at(text, end) && strchr("()[]{},;:! ", byte_at(text, end)))
        return 2;
    while (is_alnum(byte_at(text, end)))
        end++;
    name = (struct text){text.data + at + 1, end - at - 1};
    for (const char *const *font = fonts; *font; font++)
        if (text_equals(name, *font))
            return end - at;
    return 0;
}

static size_t tag_at(struct text text, size_t at)
{
    size_t start = at + 1;

    if (byte_at(text, at) != '<')
        return 0;
    start += byte_at(text, start) == '/';
    for (const char *const *tag = tags; *tag; tag++) {
        size_t end = start + strlen(*tag);
        if (start <= text.length_bytes && starts_with(text, start, *tag) && byte_at(text, end) == '>')
            return end + 1 - at;
    }
    return 0;
}

/* The bytes of white space at `at`; a line break sets *ret_decorated. */
static size_t space_at(struct text text, size_t at, bool *ret_decorated)
{
    char byte = byte_at(text, at);

    if (byte == '\n' || byte == '\r')
        *ret_decorated = true;
    if (byte == ' ' || (byte >= '\t' && byte <= '\r'))
        return 1;
    return listed_at(text, at, wide_spaces);
}

static size_t decoration_at(struct text text, size_t at)
{
    char byte = byte_at(text, at);

    if (byte && strchr("*_`$\"'()[]{}", byte))
        return 1;
    if (byte == '\\')
        return font_at(text, at);
    if (byte == '<')
        return tag_at(text, at);
    return listed_at(text, at, wide_decorations);
}

static size_t skip_decoration(struct text text, size_t at, bool *ret_decorated)
{
    for (;;) {
        size_t length = space_at(text, at, ret_decorated);
        if (!length) {
            length = decoration_at(text, at);
            *ret_decorated |= length > 0;
        }
        if (!length)
            return at;
        at += length;
    }
}

static enum prose_kind sign_at(struct text text, size_t at, size_t *ret_length)
{
    static const struct {
        const char *bytes;
        const char *const *wide;
        enum prose_kind kind;
    } signs[] = {{",;/&", wide_lists, PROSE_LIST}, {".!", wide_stops, PROSE_STOP}, {":-", wide_labels, PROSE_LABEL}};
    char byte = byte_at(text, at);

    for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
        bool narrow = byte && strchr(signs[i].bytes, byte);
        *ret_length = narrow ? 1 : listed_at(text, at, signs[i].wide);
        if (*ret_length)
            return signs[i].kind;
    }
    *ret_length = 1;
    return PROSE_UNKNOWN;
}

/* A byte of a letter beyond ASCII: of no known sign, space or decoration. */
static bool is_foreign(struct text text, size_t at)
{
    size_t length;

    return (unsigned char)byte_at(text, at) >= 0x80 && !listed_at(text, at, wide_spaces) &&
           !listed_at(text, at, wide_decorations) && sign_at(text, at, &length) == PROSE_UNKNOWN;
}

/* Inside a word: B's, A_1, B-52, D.C, 3.5. A longer word behind a full stop is the next one: B.Paris. */
static bool joins(struct text text, size_t at)
{
    char byte = byte_at(text, at);
    char next = byte_at(text, at + 1);

    if (!byte || !strchr("'_-.", byte) || !is_alnum(next))
        return false;
    return byte != '.' || (next >= '0' && next <= '9') || !is_alnum(byte_at(text, at + 2));
}

static size_t word_end(struct text text, size_t at)
{
    while (at < text.length_bytes) {
        if (is_alnum(text.data[at]) || is_foreign(text, at))
            at++;
        else if (joins(text, at))
            at += 2;
        else if (starts_with(text, at, "\xE2\x80\x99") && is_alnum(byte_at(text, at + 3)))
            at += 3;
        else
            break;
    }
    return at;
}

struct prose_word prose_next(struct prose *prose)
{
    struct prose_word word = {PROSE_END, TEXT_NONE, false};
    size_t start = skip_decoration(prose->text, prose->at, &word.decorated);
    size_t length = 0;

    prose->at = start;
    if (start >= prose->text.length_bytes)
        return word;
    if (is_alnum(prose->text.data[start]) || is_foreign(prose->text, start)) {
        word.kind = PROSE_WORD;
        length = word_end(prose->text, start) - start;
    } else {
        word.kind = sign_at(prose->text, start, &length);
    }
    word.text = (struct text){prose->text.data + start, length};
    prose->at = start + length;
    return word;
}

struct prose_word prose_peek(struct prose prose)
{
    return prose_next(&prose);
}

bool prose_is_one_of(struct prose_word word, const char *const *list)
{
    if (word.kind != PROSE_WORD)
        return false;
    for (; *list; list++)
        if (word.text.length_bytes == strlen(*list) && strncasecmp(word.text.data, *list, word.text.length_bytes) == 0)
            return true;
    return false;
}
