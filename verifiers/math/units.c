/* Units: what is written in words or signs becomes a product of units with exponents.
 *
 * No conversion: 120 mm is not 12 cm. Spelled or as a symbol, singular or plural, m^2 or square meters is the same. */
#include "verifiers/math/comparison.h"

#include <stdio.h>

#include "server/base/cleanup.h"
#include "verifiers/math/unit_spellings.h"

#define FACTORS_MAX 8

struct factor {
    char name[UNIT_WORD_BYTES];
    int exponent;
};

struct unit {
    size_t count;
    struct factor factor[FACTORS_MAX];
};

/* --- reading --- */

struct unit_reader {
    const char *at;
    const char *end;
    int sign;     /* -1 for what follows "per" or a stroke */
    int exponent; /* of "square" or "cubic", for the next word */
};

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (unsigned char)byte >= 0x80 || byte == '$' ||
           byte == '\'' || byte == '"';
}

static bool add_factor(struct unit *unit, const char *word, int exponent)
{
    for (size_t i = 0; i < unit->count; i++) {
        if (strcmp(unit->factor[i].name, word) == 0) {
            unit->factor[i].exponent += exponent;
            return true;
        }
    }
    if (unit->count == FACTORS_MAX)
        return false;
    snprintf(unit->factor[unit->count].name, UNIT_WORD_BYTES, "%s", word);
    unit->factor[unit->count++].exponent = exponent;
    return true;
}

/* ^2, ^{-1}, or two signs of Unicode */
static int read_exponent(struct unit_reader *reader)
{
    const char *at = reader->at;
    bool negative;
    int value = 0;

    if (at == reader->end || *at != '^')
        return 1;
    at++;
    while (at < reader->end && (*at == '{' || *at == ' '))
        at++;
    negative = at < reader->end && *at == '-';
    at += negative;
    for (; at < reader->end && *at >= '0' && *at <= '9' && value < 100; at++)
        value = value * 10 + *at - '0';
    while (at < reader->end && *at == '}')
        at++;
    reader->at = at;
    return negative ? -value : value;
}

static bool read_word(struct unit_reader *reader, char ret_word[UNIT_WORD_BYTES])
{
    size_t length_bytes = 0;

    while (reader->at < reader->end && is_letter(*reader->at)) {
        static const char square[] = "\xC2\xB2";
        static const char cubic[] = "\xC2\xB3";
        bool more = reader->end - reader->at >= 2;
        if (more && (memcmp(reader->at, square, 2) == 0 || memcmp(reader->at, cubic, 2) == 0))
            break;
        if (length_bytes + 1 >= UNIT_WORD_BYTES)
            return false;
        ret_word[length_bytes++] = *reader->at++;
    }
    ret_word[length_bytes] = 0;
    return length_bytes > 0;
}

static bool take_superscript(struct unit_reader *reader, int *ret_exponent)
{
    if (reader->end - reader->at < 2 || (unsigned char)reader->at[0] != 0xC2 ||
        ((unsigned char)reader->at[1] != 0xB2 && (unsigned char)reader->at[1] != 0xB3))
        return false;
    *ret_exponent = (unsigned char)reader->at[1] == 0xB2 ? 2 : 3;
    reader->at += 2;
    return true;
}

/* Words that say something about the unit before or after them. */
static const struct {
    const char *word;
    int before;  /* exponent for the next word */
    int after;   /* exponent for the last word */
    bool divide; /* the next word is below the stroke */
} modifiers[] = {
    {"square", 2, 0, false}, {"sq", 2, 0, false}, {"cubic", 3, 0, false}, {"cu", 3, 0, false}, {"squared", 0, 2, false},
    {"cubed", 0, 3, false},  {"per", 0, 0, true}, {"an", 0, 0, true},     {"of", 0, 0, false},
};

static bool modify(struct unit_reader *reader, struct unit *unit, const char *word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(modifiers); i++) {
        if (strcmp(modifiers[i].word, word) != 0)
            continue;
        if (modifiers[i].before)
            reader->exponent = modifiers[i].before;
        if (modifiers[i].after && unit->count)
            unit->factor[unit->count - 1].exponent *= modifiers[i].after;
        if (modifiers[i].divide)
            reader->sign = -1;
        return true;
    }
    return false;
}

/* Units that are two in one word. */
static bool add_compound(struct unit *unit, const char *word, int sign)
{
    static const struct {
        const char *word, *above, *below;
    } compounds[] = {{"mph", "mi", "h"}, {"kph", "km", "h"}, {"kmh", "km", "h"}};

    for (size_t i = 0; i < ARRAY_LENGTH(compounds); i++)
        if (strcmp(compounds[i].word, word) == 0)
            return add_factor(unit, compounds[i].above, sign) && add_factor(unit, compounds[i].below, -sign);
    return false;
}

static bool read_factor(struct unit_reader *reader, struct unit *unit)
{
    char word[UNIT_WORD_BYTES];
    char folded[UNIT_WORD_BYTES];
    int exponent;

    if (!read_word(reader, word))
        return false;
    snprintf(folded, sizeof folded, "%s", word);
    math_lower_unit(folded);
    if (modify(reader, unit, folded) || add_compound(unit, folded, reader->sign))
        return true;
    math_spell_unit(word);
    if (!take_superscript(reader, &exponent))
        exponent = read_exponent(reader);
    exponent *= reader->sign * reader->exponent;
    reader->sign = 1;
    reader->exponent = 1;
    return add_factor(unit, word, exponent);
}

/* Braces, layout and product signs say nothing. */
static bool skip_sign(struct unit_reader *reader)
{
    static const char *const commands[] = {"\\text",   "\\mathrm", "\\mathit", "\\cdot", "\\times", "\\mbox",
                                           "\\textrm", "\\rm",     "\\,",      "\\ ",    "\\;",     "\\!"};

    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
        size_t length_bytes = strlen(commands[i]);
        if ((size_t)(reader->end - reader->at) >= length_bytes && memcmp(reader->at, commands[i], length_bytes) == 0) {
            reader->at += length_bytes;
            return true;
        }
    }
    if (*reader->at == '/')
        reader->sign = -1;
    reader->at++;
    return true;
}

static bool read_unit(struct text text, struct unit *unit)
{
    struct unit_reader reader = {text.data, text.data + text.length_bytes, 1, 1};

    unit->count = 0;
    while (reader.at < reader.end) {
        bool read = is_letter(*reader.at) ? read_factor(&reader, unit) : skip_sign(&reader);
        if (!read)
            return false;
    }
    return true;
}

static bool names(const struct unit *unit, const char *name)
{
    for (size_t i = 0; i < unit->count; i++)
        if (strcmp(unit->factor[i].name, name) == 0)
            return true;
    return false;
}

/* Degrees Celsius are one unit. */
static void join_degrees(struct unit *unit)
{
    if (!names(unit, "celsius") && !names(unit, "fahrenheit"))
        return;
    for (size_t i = 0; i < unit->count; i++)
        if (strcmp(unit->factor[i].name, "degree") == 0)
            unit->factor[i] = unit->factor[--unit->count];
}

static bool has_factor(const struct unit *unit, const struct factor *factor)
{
    for (size_t i = 0; i < unit->count; i++)
        if (unit->factor[i].exponent == factor->exponent && strcmp(unit->factor[i].name, factor->name) == 0)
            return true;
    return false;
}

bool math_same_units(struct text left, struct text right)
{
    struct unit wanted;
    struct unit given;

    if (text_same(left, right))
        return true;
    if (!read_unit(left, &wanted) || !read_unit(right, &given))
        return false;
    join_degrees(&wanted);
    join_degrees(&given);
    if (wanted.count != given.count)
        return false;
    for (size_t i = 0; i < wanted.count; i++)
        if (!has_factor(&given, &wanted.factor[i]))
            return false;
    return true;
}

/* --- taking units off a tree --- */

static bool merge(struct text *unit, struct text found)
{
    if (unit->length_bytes && !math_same_units(*unit, found))
        return false;
    if (!unit->length_bytes)
        *unit = found;
    return true;
}

static const struct math_node *take_off(struct comparison *comparison, const struct math_node *node, struct text *unit,
                                        bool *ret_clash);

static const struct math_node *take_from_terms(struct comparison *comparison, const struct math_node *node,
                                               struct text *unit, bool *ret_clash)
{
    const struct math_node **terms = math_allocate(comparison->rules->arena, node->count * sizeof(struct math_node *));

    for (size_t i = 0; terms && i < node->count; i++)
        terms[i] = take_off(comparison, node->children[i], unit, ret_clash);
    return terms ? math_with_children(comparison, node, terms) : NULL;
}

/* A unit belongs to the whole, in whichever of its terms it stands: 2 + \sqrt{3} cm. */
static const struct math_node *take_off(struct comparison *comparison, const struct math_node *node, struct text *unit,
                                        bool *ret_clash)
{
    bool terms = node->kind == MATH_SUM || node->kind == MATH_NEGATE || node->kind == MATH_PLUS_MINUS;

    if (node->kind == MATH_QUANTITY) {
        *ret_clash |= !merge(unit, node->text);
        return take_off(comparison, node->children[0], unit, ret_clash);
    }
    if (node->kind == MATH_DEGREES) {
        *ret_clash |= !merge(unit, TEXT_LITERAL("degree"));
        return node->children[0];
    }
    if (!terms || (!math_has_kind(node, MATH_QUANTITY) && !math_has_kind(node, MATH_DEGREES)))
        return node;
    return take_from_terms(comparison, node, unit, ret_clash);
}

enum math_decision math_take_unit(struct comparison *comparison, const struct math_node *node,
                                  const struct math_node **ret_node, struct text *ret_unit)
{
    bool clash = false;

    *ret_unit = TEXT_LITERAL("");
    *ret_node = take_off(comparison, node, ret_unit, &clash);
    if (!*ret_node)
        return MATH_LIMIT;
    return clash ? MATH_UNDECIDED : MATH_EQUAL;
}
