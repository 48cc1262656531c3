#include "verifiers/schema/ecma.h"

#include <stdbool.h>
#include <stdint.h>

#include "server/base/cleanup.h"
#include "server/base/utf8.h"

#define SPACE "\\s\\p{Z}\xef\xbb\xbf" /* \s of PCRE2 is that of ASCII here; and U+FEFF */

struct translation {
    const char *at;
    const char *end;
    struct buffer *out;
    const char *problem;
};

static bool fail(struct translation *translation, const char *problem)
{
    if (!translation->problem)
        translation->problem = problem;
    return false;
}

static bool next_is(const struct translation *translation, char byte)
{
    return translation->at < translation->end && *translation->at == byte;
}

static bool begins(const struct translation *translation, const char *with)
{
    size_t length_bytes = strlen(with);
    return (size_t)(translation->end - translation->at) >= length_bytes &&
           memcmp(translation->at, with, length_bytes) == 0;
}

static bool is_name_byte(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '_';
}

/* As it is: the count of a pattern's work would take \x{2028} for so many repeats. */
static void put_character(struct translation *translation, uint32_t character)
{
    if (character > ' ' && character < 0x7F && !is_name_byte((char)character))
        buffer_append_byte(translation->out, '\\');
    utf8_append(translation->out, character);
}

/* --- characters by number --- */

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Exactly so many digits. */
static bool take_hex(struct translation *translation, int digits, uint32_t *ret_value)
{
    *ret_value = 0;
    for (int i = 0; i < digits; i++, translation->at++) {
        if (translation->at == translation->end || hex_value(*translation->at) < 0)
            return fail(translation, "an escape that has too few digits");
        *ret_value = *ret_value * 16 + (uint32_t)hex_value(*translation->at);
    }
    return true;
}

/* Behind \u{. */
static bool take_braced_hex(struct translation *translation, uint32_t *ret_value)
{
    const char *first = translation->at;

    *ret_value = 0;
    for (; translation->at < translation->end && hex_value(*translation->at) >= 0; translation->at++) {
        *ret_value = *ret_value * 16 + (uint32_t)hex_value(*translation->at);
        if (*ret_value > 0x10FFFF)
            return fail(translation, "\\u{…} beyond U+10FFFF");
    }
    if (translation->at == first || !next_is(translation, '}'))
        return fail(translation, "\\u{…} that is no number");
    translation->at++;
    return true;
}

/* Behind \u. */
static bool take_unicode(struct translation *translation, uint32_t *ret_value)
{
    uint32_t low;

    if (next_is(translation, '{')) {
        translation->at++;
        return take_braced_hex(translation, ret_value) &&
               (*ret_value < 0xD800 || *ret_value > 0xDFFF || fail(translation, "half a surrogate pair"));
    }
    if (!take_hex(translation, 4, ret_value))
        return false;
    if (*ret_value < 0xD800 || *ret_value > 0xDFFF)
        return true;
    if (*ret_value > 0xDBFF || !begins(translation, "\\u"))
        return fail(translation, "half a surrogate pair");
    translation->at += 2;
    if (!take_hex(translation, 4, &low) || low < 0xDC00 || low > 0xDFFF)
        return fail(translation, "half a surrogate pair");
    *ret_value = 0x10000 + ((*ret_value - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

/* --- properties --- */

static const struct {
    const char *name; /* of ECMAScript */
    const char *same; /* of PCRE2 */
} categories[] = {
    {"Cased_Letter", "L&"},
    {"LC", "L&"},
    {"Close_Punctuation", "Pe"},
    {"Connector_Punctuation", "Pc"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Currency_Symbol", "Sc"},
    {"Dash_Punctuation", "Pd"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Enclosing_Mark", "Me"},
    {"Final_Punctuation", "Pf"},
    {"Format", "Cf"},
    {"Initial_Punctuation", "Pi"},
    {"Letter", "L"},
    {"Letter_Number", "Nl"},
    {"Line_Separator", "Zl"},
    {"Lowercase_Letter", "Ll"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Math_Symbol", "Sm"},
    {"Modifier_Letter", "Lm"},
    {"Modifier_Symbol", "Sk"},
    {"Nonspacing_Mark", "Mn"},
    {"Number", "N"},
    {"Open_Punctuation", "Ps"},
    {"Other", "C"},
    {"Other_Letter", "Lo"},
    {"Other_Number", "No"},
    {"Other_Punctuation", "Po"},
    {"Other_Symbol", "So"},
    {"Paragraph_Separator", "Zp"},
    {"Private_Use", "Co"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Spacing_Mark", "Mc"},
    {"Surrogate", "Cs"},
    {"Symbol", "S"},
    {"Titlecase_Letter", "Lt"},
    {"Unassigned", "Cn"},
    {"Uppercase_Letter", "Lu"},
};

static const struct {
    struct text before; /* up to the equals sign */
    const char *same;
} property_kinds[] = {
    {TEXT_LITERAL("General_Category"), ""},
    {TEXT_LITERAL("gc"), ""},
    {TEXT_LITERAL("Script"), "sc:"},
    {TEXT_LITERAL("sc"), "sc:"},
    {TEXT_LITERAL("Script_Extensions"), "scx:"},
    {TEXT_LITERAL("scx"), "scx:"},
};

static struct text take_name(struct translation *translation)
{
    const char *first = translation->at;

    while (translation->at < translation->end && is_name_byte(*translation->at))
        translation->at++;
    return (struct text){first, (size_t)(translation->at - first)};
}

static const char *property_kind(struct text before)
{
    for (size_t i = 0; i < ARRAY_LENGTH(property_kinds); i++)
        if (text_same(before, property_kinds[i].before))
            return property_kinds[i].same;
    return NULL;
}

/* Behind \p or \P, which is `letter`. */
static bool take_property(struct translation *translation, char letter)
{
    const char *kind = "";
    struct text name;

    if (!next_is(translation, '{'))
        return fail(translation, "\\p without {…}");
    translation->at++;
    name = take_name(translation);
    if (next_is(translation, '=')) {
        kind = property_kind(name);
        translation->at++;
        name = take_name(translation);
    }
    if (!kind || name.length_bytes == 0 || !next_is(translation, '}'))
        return fail(translation, "\\p{…} that names no property");
    translation->at++;
    buffer_append_format(translation->out, "\\%c{%s", letter, kind);
    for (size_t i = 0; i < ARRAY_LENGTH(categories); i++)
        if (text_equals(name, categories[i].name))
            name = text_of(categories[i].same);
    buffer_append(translation->out, name.data, name.length_bytes);
    buffer_append_byte(translation->out, '}');
    return true;
}

/* --- escapes that are the same in a class and outside --- */

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
    return is_name_byte(byte) && !is_digit(byte) && byte != '_';
}

/* Behind \c. */
static bool take_control(struct translation *translation)
{
    if (translation->at == translation->end || !is_letter(*translation->at))
        return fail(translation, "\\c without a letter");
    put_character(translation, (uint32_t)*translation->at++ & 0x1F);
    return true;
}

/* Behind \, with a character that has no meaning: itself, if it is none that could get one. */
static bool take_itself(struct translation *translation)
{
    unsigned char byte = (unsigned char)*translation->at;

    if (is_letter((char)byte) || is_digit((char)byte))
        return fail(translation, "an escape that does not exist");
    if (byte < 0x80) {
        put_character(translation, byte);
        translation->at++;
    }
    return true; /* a longer character is taken as it is, next */
}

static bool take_escaped(struct translation *translation)
{
    char byte = *translation->at++;
    uint32_t value;

    switch (byte) {
    case 'd':
    case 'D':
    case 'w':
    case 'W':
    case 't':
    case 'n':
    case 'r':
    case 'f':
        buffer_append_format(translation->out, "\\%c", byte);
        return true;
    case 'v':
        put_character(translation, 0x0B);
        return true;
    case 'c':
        return take_control(translation);
    case 'p':
    case 'P':
        return take_property(translation, byte);
    case 'x':
        if (!take_hex(translation, 2, &value))
            return false;
        put_character(translation, value);
        return true;
    case 'u':
        if (!take_unicode(translation, &value))
            return false;
        put_character(translation, value);
        return true;
    case '0':
        put_character(translation, 0);
        return translation->at == translation->end || !is_digit(*translation->at) ||
               fail(translation, "an octal escape");
    default:
        translation->at--;
        return take_itself(translation);
    }
}

/* --- classes --- */

struct class
{
    size_t begin;   /* of its members in `out` */
    bool negative;  /* [^…] */
    bool not_space; /* \S is among its members */
};

/* One member or one end of a range; a class's own signs are escaped. */
static bool take_member(struct translation *translation, struct class *class)
{
    char byte = *translation->at;

    if (byte == '\\') {
        if (++translation->at == translation->end)
            return fail(translation, "\\ at the end");
        byte = *translation->at;
        if (byte == 's') {
            translation->at++;
            buffer_append_string(translation->out, SPACE);
            return true;
        }
        if (byte == 'b') {
            translation->at++;
            put_character(translation, 0x08);
            return true;
        }
        class->not_space |= byte == 'S';
        translation->at += byte == 'S';
        return byte == 'S' || take_escaped(translation);
    }
    translation->at++;
    if (byte == '[' || byte == '^' || byte == '\0')
        put_character(translation, (unsigned char)byte);
    else
        buffer_append_byte(translation->out, byte);
    return true;
}

/* Appends the members between two texts. */
static void put_around(struct buffer *out, const char *before, const struct buffer *members, const char *behind)
{
    buffer_append_string(out, before);
    buffer_append(out, members->data, members->length_bytes);
    buffer_append_string(out, behind);
}

/* PCRE2 has no \S of Unicode in a class: what is no space, or is one of the others. */
static void put_class_beside(struct buffer *out, const struct class *class, const struct buffer *members)
{
    if (class->negative && members->length_bytes)
        put_around(out, "(?:(?![", members, "])[" SPACE "])");
    else if (class->negative)
        buffer_append_string(out, "[" SPACE "]");
    else if (members->length_bytes)
        put_around(out, "(?:[", members, "]|[^" SPACE "])");
    else
        buffer_append_string(out, "[^" SPACE "]");
}

static void put_class(struct translation *translation, const struct class *class)
{
    _cleanup_buffer_ struct buffer members;
    struct buffer *out = translation->out;

    buffer_init(&members, ECMA_PATTERN_BYTES);
    buffer_append(&members, buffer_text(out).data + class->begin, out->length_bytes - class->begin);
    out->length_bytes = class->begin;
    if (class->not_space)
        put_class_beside(out, class, &members);
    else if (members.length_bytes)
        put_around(out, class->negative ? "[^" : "[", &members, "]");
    else
        buffer_append_string(out, class->negative ? "(?s:.)" : "(?!)");
}

/* At [. */
static bool take_class(struct translation *translation)
{
    struct class class = {.begin = translation->out->length_bytes};

    translation->at++;
    class.negative = next_is(translation, '^');
    translation->at += class.negative;
    while (!next_is(translation, ']')) {
        if (translation->at == translation->end)
            return fail(translation, "[ without ]");
        if (!take_member(translation, &class))
            return false;
    }
    translation->at++;
    if (translation->out->failed)
        return false;
    put_class(translation, &class);
    return true;
}

/* --- outside of classes --- */

/* \1 or \k<name>, of a group that took no part: matches nothing at all. */
static bool take_reference(struct translation *translation)
{
    const char *first = translation->at;
    struct text name;

    if (*translation->at == 'k') {
        translation->at++;
        if (!next_is(translation, '<'))
            return fail(translation, "\\k without <…>");
        translation->at++;
        name = take_name(translation);
        if (!name.length_bytes || !next_is(translation, '>'))
            return fail(translation, "\\k<…> that is no name");
        translation->at++;
        buffer_append_format(translation->out, "(?(<%.*s>)\\k<%.*s>)", (int)name.length_bytes, name.data,
                             (int)name.length_bytes, name.data);
        return true;
    }
    while (translation->at < translation->end && is_digit(*translation->at) && translation->at - first < 5)
        translation->at++;
    name = (struct text){first, (size_t)(translation->at - first)};
    buffer_append_format(translation->out, "(?(%.*s)\\g{%.*s})", (int)name.length_bytes, name.data,
                         (int)name.length_bytes, name.data);
    return true;
}

/* At \. */
static bool take_escape(struct translation *translation)
{
    char byte;

    if (++translation->at == translation->end)
        return fail(translation, "\\ at the end");
    byte = *translation->at;
    if (byte == 's' || byte == 'S') {
        translation->at++;
        buffer_append_string(translation->out, byte == 's' ? "[" SPACE "]" : "[^" SPACE "]");
        return true;
    }
    if (byte == 'b' || byte == 'B') {
        translation->at++;
        buffer_append_format(translation->out, "\\%c", byte);
        return true;
    }
    if (byte == 'k' || (byte >= '1' && byte <= '9'))
        return take_reference(translation);
    return take_escaped(translation);
}

/* At (. */
static bool take_group(struct translation *translation)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<"};

    if (begins(translation, "(*"))
        return fail(translation, "a quantifier with nothing before it");
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (!begins(translation, kinds[i]))
            continue;
        buffer_append_string(translation->out, kinds[i]);
        translation->at += strlen(kinds[i]);
        return true;
    }
    if (begins(translation, "(?"))
        return fail(translation, "a group of a kind that ECMA-262 does not have");
    buffer_append_byte(translation->out, '(');
    translation->at++;
    return true;
}

/* {2}, {2,} or {2,5}: behind it; else NULL. */
static const char *behind_counts(const struct translation *translation)
{
    const char *at = translation->at + 1;
    const char *first = at;

    while (at < translation->end && is_digit(*at))
        at++;
    if (at == first)
        return NULL;
    if (at < translation->end && *at == ',')
        at++;
    while (at < translation->end && is_digit(*at))
        at++;
    return at < translation->end && *at == '}' ? at + 1 : NULL;
}

/* At * + ? or {. Only one ? may stand behind it: a++ is of other dialects. */
static bool take_quantifier(struct translation *translation)
{
    const char *behind = *translation->at == '{' ? behind_counts(translation) : translation->at + 1;

    if (!behind) { /* a brace */
        buffer_append_string(translation->out, "\\{");
        translation->at++;
        return true;
    }
    buffer_append(translation->out, translation->at, (size_t)(behind - translation->at));
    translation->at = behind;
    if (next_is(translation, '?')) {
        buffer_append_byte(translation->out, '?');
        translation->at++;
    }
    if (next_is(translation, '*') || next_is(translation, '+') || next_is(translation, '?') ||
        (next_is(translation, '{') && behind_counts(translation)))
        return fail(translation, "a quantifier with nothing before it");
    return true;
}

static bool take_plain(struct translation *translation)
{
    char byte = *translation->at++;

    if (byte == '.')
        buffer_append_string(translation->out, "[^\\n\\r\xe2\x80\xa8\xe2\x80\xa9]");
    else if (byte == '$')
        buffer_append_string(translation->out, "\\z");
    else if (byte == '}' || byte == ']')
        put_character(translation, (unsigned char)byte);
    else
        buffer_append_byte(translation->out, byte);
    return true;
}

static bool take_one(struct translation *translation)
{
    switch (*translation->at) {
    case '\\':
        return take_escape(translation);
    case '[':
        return take_class(translation);
    case '(':
        return take_group(translation);
    case '*':
    case '+':
    case '?':
    case '{':
        return take_quantifier(translation);
    default:
        return take_plain(translation);
    }
}

const char *ecma_translate(struct text pattern, struct buffer *out)
{
    struct translation translation = {.at = pattern.data, .end = pattern.data + pattern.length_bytes, .out = out};

    while (translation.at < translation.end && !out->failed)
        if (!take_one(&translation))
            break;
    if (out->failed)
        return "it is too long";
    return translation.problem;
}
