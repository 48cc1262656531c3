#include "verifiers/math_clean.h"

#include <ctype.h>

#include "verifiers/extract.h"

/* --- what is replaced by what --- */

struct replacement {
    const char *from;
    const char *to;
};

/* Commands, without their backslash. A font is replaced by nothing: its argument stays as a group. */
static const struct replacement commands[] = {
    {"left", ""},          {"right", ""},
    {"displaystyle", ""},  {"textstyle", ""},
    {"limits", ""},        {"big", ""},
    {"Big", ""},           {"bigl", ""},
    {"bigr", ""},          {"Bigl", ""},
    {"Bigr", ""},          {"mathbf", ""},
    {"boldsymbol", ""},    {"bm", ""},
    {"mathit", ""},        {"boxed", ""},
    {"fbox", ""},          {"quad", " "},
    {"qquad", " "},        {"thinspace", " "},
    {"dfrac", "\\frac"},   {"tfrac", "\\frac"},
    {"cfrac", "\\frac"},   {"dbinom", "\\binom"},
    {"tbinom", "\\binom"}, {"times", "\\cdot"},
    {"ast", "\\cdot"},     {"div", "/"},
    {"lt", "<"},           {"gt", ">"},
    {"le", "\\leq"},       {"ge", "\\geq"},
    {"leqslant", "\\leq"}, {"geqslant", "\\geq"},
    {"ne", "\\neq"},       {"lvert", "|"},
    {"rvert", "|"},        {"vert", "|"},
    {"mid", "|"},          {"colon", ":"},
    {"lbrace", "\\{"},     {"rbrace", "\\}"},
    {"mathrm", "\\text"},  {"textbf", "\\text"},
    {"textit", "\\text"},  {"textrm", "\\text"},
    {"mbox", "\\text"},    {"mathsf", "\\text"},
    {"texttt", "\\text"},  {"operatorname", "\\text"},
    {"degree", "\\deg"},   {"varnothing", "\\emptyset"},
    {"bar", "\\overline"}, {"lbrack", "["},
    {"rbrack", "]"},
};

/* The closed list beyond ASCII. */
static const struct replacement signs[] = {
    {"\u2212", "-"},
    {"\u00d7", "\\cdot"},
    {"\u00b7", "\\cdot"},
    {"\u22c5", "\\cdot"},
    {"\u00f7", "/"},
    {"\u00b0", "\\deg"},
    {"\u221a", "\\sqrt"},
    {"\u03c0", "\\pi"},
    {"\u221e", "\\infty"},
    {"\u00b1", "\\pm"},
    {"\u2264", "\\leq"},
    {"\u2265", "\\geq"},
    {"\u2260", "\\neq"},
    {"\u2205", "\\emptyset"},
    {"\u00bd", "\\frac{1}{2}"},
    {"\u2153", "\\frac{1}{3}"},
    {"\u2154", "\\frac{2}{3}"},
    {"\u00bc", "\\frac{1}{4}"},
    {"\u00be", "\\frac{3}{4}"},
    {"\u2155", "\\frac{1}{5}"},
    {"\u2156", "\\frac{2}{5}"},
    {"\u2157", "\\frac{3}{5}"},
    {"\u2158", "\\frac{4}{5}"},
    {"\u2159", "\\frac{1}{6}"},
    {"\u215a", "\\frac{5}{6}"},
    {"\u215b", "\\frac{1}{8}"},
    {"\u215c", "\\frac{3}{8}"},
    {"\u215d", "\\frac{5}{8}"},
    {"\u215e", "\\frac{7}{8}"},
    {"\u00b2", "^{2}"},
    {"\u00b3", "^{3}"},
    {"\u20ac", "\\euro"},
    {"\u00a3", "\\pounds"},
};

/* Longest first where one begins another. */
static const struct replacement notations[] = {
    {"^{\\circ}", "\\deg"}, {"^\\circ", "\\deg"},   {"^{\\degree}", "\\deg"},
    {"^\\degree", "\\deg"}, {"^{\u00b0}", "\\deg"}, {"{,}", "{,}"},
    {",\\!", "{,}"},        {"\\,", " "},           {"\\;", " "},
    {"\\:", " "},           {"\\ ", " "},           {"\\!", ""},
    {"\\$", "$"},           {"\\%", "%"},           {"~", " "},
    {"*", "\\cdot"},
};

/* --- writing, with spaces only where they separate --- */

struct writer {
    struct buffer *out;
    bool space;   /* one is due if the next byte needs it */
    bool command; /* the last thing written was a command's name */
};

static bool is_word(char byte)
{
    return isalnum((unsigned char)byte) != 0;
}

static void put(struct writer *writer, char byte)
{
    char last = writer->out->length_bytes ? writer->out->data[writer->out->length_bytes - 1] : 0;
    bool separates = writer->space && is_word(last) && is_word(byte);

    if (byte == ' ') {
        writer->space = true;
        return;
    }
    if (writer->command ? isalpha((unsigned char)byte) : separates)
        buffer_append_byte(writer->out, ' ');
    writer->space = false;
    writer->command = false;
    buffer_append_byte(writer->out, byte);
}

static void put_string(struct writer *writer, const char *string)
{
    size_t name = 0;

    if (string[0] == '\\' && isalpha((unsigned char)string[1])) {
        put(writer, '\\');
        for (name = 1; isalpha((unsigned char)string[name]); name++)
            buffer_append_byte(writer->out, string[name]);
        writer->command = true;
    }
    for (const char *at = string + name; *at; at++)
        put(writer, *at);
}

/* --- reading --- */

static const struct replacement *find_prefix(const struct replacement *table, size_t count, struct text text, size_t at)
{
    for (size_t i = 0; i < count; i++) {
        size_t length_bytes = strlen(table[i].from);
        if (text.length_bytes - at >= length_bytes && memcmp(text.data + at, table[i].from, length_bytes) == 0)
            return &table[i];
    }
    return NULL;
}

static size_t read_command(struct text text, size_t at, struct writer *writer)
{
    char name[40] = "\\";
    size_t end = at + 1;

    while (end < text.length_bytes && isalpha((unsigned char)text.data[end]))
        end++;
    if (end - at >= sizeof name)
        return 0;
    memcpy(name, text.data + at, end - at);
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
        if (strcmp(commands[i].from, name + 1) == 0) {
            put_string(writer, commands[i].to);
            writer->space = writer->space || commands[i].to[0] == 0;
            return end;
        }
    }
    put_string(writer, name);
    return end;
}

/* A full-width digit at `at`: its value, or -1. */
static int wide_digit(struct text text, size_t at)
{
    const unsigned char *bytes = (const unsigned char *)text.data + at;
    bool is =
        text.length_bytes - at >= 3 && bytes[0] == 0xef && bytes[1] == 0xbc && bytes[2] >= 0x90 && bytes[2] <= 0x99;
    return is ? bytes[2] - 0x90 : -1;
}

/* Reads one thing; where to go on, or 0 if it is not in the list. */
static size_t read_one(struct text text, size_t at, bool wide_digits, struct writer *writer)
{
    char byte = text.data[at];
    const struct replacement *found = find_prefix(notations, ARRAY_LENGTH(notations), text, at);

    if (!found && (byte & 0x80))
        found = find_prefix(signs, ARRAY_LENGTH(signs), text, at);
    if (found) {
        put_string(writer, found->to);
        return at + strlen(found->from);
    }
    if (byte & 0x80) {
        if (!wide_digits || wide_digit(text, at) < 0)
            return 0;
        put(writer, (char)('0' + wide_digit(text, at)));
        return at + 3;
    }
    if (byte == '\\' && at + 1 < text.length_bytes && isalpha((unsigned char)text.data[at + 1]))
        return read_command(text, at, writer);
    if (byte == '\n' || byte == '\t' || byte == '\r')
        byte = ' ';
    if (byte < ' ' || byte == 0x7f)
        return 0;
    if (byte == '\\' && at + 1 < text.length_bytes && text.data[at + 1] > ' ') {
        put(writer, '\\');
        buffer_append_byte(writer->out, text.data[at + 1]);
        return text.data[at + 1] & 0x80 ? 0 : at + 2;
    }
    put(writer, byte);
    return at + 1;
}

static bool wrapped(struct text text, const char *open, const char *close)
{
    size_t before = strlen(open);
    size_t after = strlen(close);
    return text.length_bytes >= before + after && memcmp(text.data, open, before) == 0 &&
           memcmp(text.data + text.length_bytes - after, close, after) == 0;
}

static struct text without_ends(struct text text, size_t before, size_t after)
{
    return text_trimmed((struct text){text.data + before, text.length_bytes - before - after});
}

static struct text undecorated(struct text text)
{
    static const struct replacement around[] = {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}, {"**", "**"}};

    text = text_trimmed(text);
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(around); i++) {
        const struct replacement *pair = &around[i % ARRAY_LENGTH(around)];
        if (text.length_bytes > 1 && text.data[text.length_bytes - 1] == '.')
            text = without_ends(text, 0, 1);
        if (wrapped(text, pair->from, pair->to))
            text = without_ends(text, strlen(pair->from), strlen(pair->to));
    }
    return text;
}

bool math_clean(struct text answer, bool wide_digits, struct buffer *out)
{
    struct text text = undecorated(answer);
    struct writer writer = {.out = out};

    if (text.length_bytes > MATH_ANSWER_BYTES)
        return false;
    for (size_t at = 0; at < text.length_bytes;) {
        at = read_one(text, at, wide_digits, &writer);
        if (at == 0)
            return false;
    }
    return !out->failed;
}

/* --- identity --- */

/* Copies the run that is one argument without braces: digits after ^ or _, one byte elsewhere, or a command. */
static size_t brace_argument(struct text text, size_t at, bool run, struct buffer *out)
{
    size_t end = at + 1;

    if (text.data[at] == '\\')
        while (end < text.length_bytes && isalpha((unsigned char)text.data[end]))
            end++;
    else if (run && isdigit((unsigned char)text.data[at]))
        while (end < text.length_bytes && isdigit((unsigned char)text.data[end]))
            end++;
    buffer_append_byte(out, '{');
    buffer_append(out, text.data + at, end - at);
    buffer_append_byte(out, '}');
    return end;
}

static bool begins(struct text text, size_t at, const char *prefix)
{
    size_t length_bytes = strlen(prefix);
    return text.length_bytes - at >= length_bytes && memcmp(text.data + at, prefix, length_bytes) == 0;
}

/* How many arguments what stands at `at` takes, and its length. */
static int arguments_of(struct text text, size_t at, size_t *ret_length_bytes)
{
    static const struct {
        const char *name;
        int arguments;
    } takers[] = {{"^", 1}, {"_", 1}, {"\\frac", 2}, {"\\sqrt", 1}};

    for (size_t i = 0; i < ARRAY_LENGTH(takers); i++) {
        size_t end = at + strlen(takers[i].name);
        if (!begins(text, at, takers[i].name))
            continue;
        if (takers[i].name[0] == '\\' && end < text.length_bytes && isalpha((unsigned char)text.data[end]))
            continue; /* the beginning of a longer command */
        *ret_length_bytes = end - at;
        return takers[i].arguments;
    }
    *ret_length_bytes = 1;
    return 0;
}

void math_identity(struct text cleaned, struct buffer *out)
{
    for (size_t at = 0; at < cleaned.length_bytes;) {
        size_t length_bytes;
        int arguments;
        bool run = cleaned.data[at] != '\\';

        if (begins(cleaned, at, "\\text{")) {
            at += strlen("\\text"); /* its braces stay on both sides: a group */
            continue;
        }
        arguments = arguments_of(cleaned, at, &length_bytes);
        buffer_append(out, cleaned.data + at, length_bytes);
        at += length_bytes;
        while (arguments-- > 0 && at < cleaned.length_bytes) {
            if (cleaned.data[at] == ' ')
                at++;
            if (at == cleaned.length_bytes || strchr("{[(", cleaned.data[at]))
                break;
            at = brace_argument(cleaned, at, run, out);
        }
    }
}
