#include "verifiers/math_unit.h"

#include <ctype.h>
#include <stdio.h>

#include "server/base/cleanup.h"

#define WORDS_MAX 4

/* What makes another statement of the number than its value. */
static const char *const forbidden[] = {
    "and",     "or",       "not",       "but",        "nor",        "is",
    "are",     "isn",      "either",    "neither",    "minus",      "plus",
    "times",   "negative", "over",      "divided",    "squared",    "cubed",
    "dozen",   "dozens",   "hundred",   "hundreds",   "thousand",   "thousands",
    "million", "millions", "billion",   "billions",   "trillion",   "trillions",
    "half",    "halves",   "third",     "thirds",     "quarter",    "quarters",
    "fourth",  "fourths",  "fifth",     "fifths",     "sixth",      "sixths",
    "seventh", "sevenths", "eighth",    "eighths",    "ninth",      "ninths",
    "tenth",   "tenths",   "hundredth", "hundredths", "thousandth", "thousandths",
    "percent", "mod",      "base",      "to",         "through",    "than",
    "less",    "more",     "least",     "most",       "about",      "approximately",
    "pi",      "sqrt",     "if",        "k",          "e",          "i",
    "j",       "x",        "y",         "z",          "n",          "a",
    "b",       "p",        "q",         "r",          "t",          "u",
    "v",       "w",        "factorial", "one",        "two",        "sin",
    "cos",     "tan",      "log",       "exp",        "otherwise",  "unless",
    "except",
};

/* Units that need no \text, in one spelling. */
static const struct {
    const char *from;
    const char *to;
} known[] = {
    {"mm", "mm"},          {"cm", "cm"},          {"km", "km"},          {"kg", "kg"},         {"ml", "ml"},
    {"meter", "m"},        {"meters", "m"},       {"metre", "m"},        {"metres", "m"},      {"m", "m"},
    {"centimeter", "cm"},  {"centimeters", "cm"}, {"kilometer", "km"},   {"kilometers", "km"}, {"kilometre", "km"},
    {"kilometres", "km"},  {"gram", "g"},         {"grams", "g"},        {"g", "g"},           {"kilogram", "kg"},
    {"kilograms", "kg"},   {"degree", "degree"},  {"degrees", "degree"}, {"dollar", "dollar"}, {"dollars", "dollar"},
    {"cent", "cent"},      {"cents", "cent"},     {"hour", "hour"},      {"hours", "hour"},    {"minute", "minute"},
    {"minutes", "minute"}, {"second", "second"},  {"seconds", "second"}, {"day", "day"},       {"days", "day"},
    {"inch", "inch"},      {"inches", "inch"},    {"foot", "ft"},        {"feet", "ft"},       {"ft", "ft"},
    {"mile", "mile"},      {"miles", "mile"},     {"mph", "mph"},        {"unit", "unit"},     {"units", "unit"},
};

static bool text_is(struct text word, const char *string)
{
    return text_equals(word, string);
}

static bool is_forbidden(struct text word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(forbidden); i++)
        if (text_is(word, forbidden[i]))
            return true;
    return false;
}

static const char *known_unit(struct text word, bool single_letters)
{
    if (word.length_bytes < 2 && !single_letters)
        return NULL;
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (text_is(word, known[i].from))
            return known[i].to;
    return NULL;
}

/* The next word of letters at `at`, or an empty one. */
static struct text word_at(const char *at, const char *end)
{
    const char *stop = at;

    while (stop < end && (isalpha((unsigned char)*stop) || (*stop == '-' && stop > at)))
        stop++;
    return (struct text){at, (size_t)(stop - at)};
}

static bool append(char unit[MATH_UNIT_BYTES], const char *what, size_t length_bytes)
{
    size_t had = strlen(unit);

    if (had + length_bytes + 2 > MATH_UNIT_BYTES)
        return false;
    snprintf(unit + had, MATH_UNIT_BYTES - had, "%s%.*s", had ? " " : "", (int)length_bytes, what);
    return true;
}

enum words { WORDS_IN_TEXT, WORDS_IN_PROSE, WORDS_KNOWN };

/* Words up to `end`; all of them must be allowed. Lower case, the plural's s taken off what is not in the list. */
static bool read_words(const char **at, const char *end, enum words words, char found[MATH_UNIT_BYTES])
{
    bool only_known = words == WORDS_KNOWN;
    size_t shortest = words == WORDS_IN_PROSE ? 3 : 1;

    for (int count = 0; *at < end; count++) {
        struct text word = word_at(*at, end);
        char lower[MATH_UNIT_BYTES];
        const char *spelled;

        if (word.length_bytes == 0 || word.length_bytes >= sizeof lower || count == WORDS_MAX)
            return false;
        for (size_t i = 0; i < word.length_bytes; i++)
            lower[i] = (char)tolower((unsigned char)word.data[i]);
        spelled = known_unit(word, words == WORDS_IN_TEXT);
        word = (struct text){lower, word.length_bytes};
        /* 2ab is a product, 2 apples are not. */
        if (is_forbidden(word) || (!spelled && (only_known || word.length_bytes < shortest)))
            return false;
        if (!spelled && word.length_bytes > 3 && lower[word.length_bytes - 1] == 's')
            word.length_bytes--;
        if (!append(found, spelled ? spelled : lower, spelled ? strlen(spelled) : word.length_bytes))
            return false;
        *at += word_at(*at, end).length_bytes;
        while (*at < end && **at == ' ')
            ++*at;
    }
    return true;
}

/* ^2, ^{2}, ^3 after a unit. */
static void take_exponent(struct number_reader *reader, char found[MATH_UNIT_BYTES])
{
    static const char *const forms[] = {"^2", "^3", "^{2}", "^{3}"};

    for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
        size_t length_bytes = strlen(forms[i]);
        if ((size_t)(reader->end - reader->at) >= length_bytes && memcmp(reader->at, forms[i], length_bytes) == 0) {
            reader->at += length_bytes;
            append(found, i % 2 ? "^3" : "^2", 2);
            return;
        }
    }
}

static bool take_text(struct number_reader *reader, char found[MATH_UNIT_BYTES])
{
    const char *start = reader->at + strlen("\\text{");
    const char *close = memchr(start, '}', (size_t)(reader->end - start));

    if (!close)
        return false;
    while (start < close && *start == ' ')
        start++;
    if (start == close || !read_words(&start, close, WORDS_IN_TEXT, found))
        return false;
    reader->at = close + 1;
    take_exponent(reader, found);
    return true;
}

static bool begins(const struct number_reader *reader, const char *what)
{
    size_t length_bytes = strlen(what);
    return (size_t)(reader->end - reader->at) >= length_bytes && memcmp(reader->at, what, length_bytes) == 0;
}

/* Two units for one number: $5 dollars is fine, $5 cents is not. */
static bool merge(char unit[MATH_UNIT_BYTES], const char *found)
{
    if (unit[0] && strcmp(unit, found) != 0)
        return false;
    snprintf(unit, MATH_UNIT_BYTES, "%s", found);
    return true;
}

bool math_unit_take(struct number_reader *reader, bool prose, char unit[MATH_UNIT_BYTES])
{
    char found[MATH_UNIT_BYTES] = "";

    if (begins(reader, "\\deg")) {
        reader->at += strlen("\\deg");
        return merge(unit, "degree");
    }
    if (begins(reader, "\\text{and}") || begins(reader, "\\text{or}"))
        return true; /* a separator of a list */
    if (begins(reader, "\\text{"))
        return take_text(reader, found) && merge(unit, found);
    if (reader->at < reader->end && isalpha((unsigned char)*reader->at) && !begins(reader, "and ") &&
        !begins(reader, "or ")) {
        if (!read_words(&reader->at, reader->end, prose ? WORDS_IN_PROSE : WORDS_KNOWN, found)) {
            reader->status = NUMBER_OUTSIDE;
            return false;
        }
        take_exponent(reader, found);
        return merge(unit, found);
    }
    return true;
}

bool math_units_agree(const char *left, const char *right)
{
    return !left[0] || !right[0] || strcmp(left, right) == 0;
}
