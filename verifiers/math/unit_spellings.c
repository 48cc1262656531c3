/* The spellings of units: meters, metre and m are one. */
#include "verifiers/math/unit_spellings.h"

#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"

/* In one spelling each, singular and lower case, except symbols. A symbol is looked for as it stands first. */
static const struct {
    const char *name;
    const char *spellings[8];
} known[] = {
    {"m", {"m", "meter", "metre"}},
    {"mm", {"mm", "millimeter", "millimetre"}},
    {"cm", {"cm", "centimeter", "centimetre"}},
    {"dm", {"dm", "decimeter", "decimetre"}},
    {"km", {"km", "kilometer", "kilometre"}},
    {"in", {"in", "inch", "inche", "''", "\""}},
    {"ft", {"ft", "foot", "feet"}},
    {"yd", {"yd", "yard"}},
    {"mi", {"mi", "mile"}},
    {"g", {"g", "gram", "gramme"}},
    {"mg", {"mg", "milligram"}},
    {"kg", {"kg", "kilogram", "kilo"}},
    {"t", {"t", "ton", "tonne"}},
    {"lb", {"lb", "pound"}},
    {"oz", {"oz", "ounce"}},
    {"l", {"l", "L", "liter", "litre"}},
    {"ml", {"ml", "mL", "milliliter", "millilitre"}},
    {"gal", {"gal", "gallon"}},
    {"s", {"s", "sec", "second"}},
    {"ms", {"ms", "millisecond"}},
    {"min", {"min", "minute"}},
    {"h", {"h", "hr", "hour"}},
    {"day", {"day", "d"}},
    {"week", {"week", "wk"}},
    {"month", {"month", "mo"}},
    {"year", {"year", "yr"}},
    {"degree", {"degree", "deg", "\xC2\xB0", "circ"}},
    {"rad", {"rad", "radian"}},
    {"celsius", {"celsius", "\xC2\xB0\x43", "degC", "circC"}},
    {"fahrenheit", {"fahrenheit", "\xC2\xB0\x46", "degF", "circF"}},
    {"K", {"K", "kelvin"}},
    {"N", {"N", "newton"}},
    {"J", {"J", "joule"}},
    {"kJ", {"kJ", "kilojoule"}},
    {"W", {"W", "watt"}},
    {"kW", {"kW", "kilowatt"}},
    {"Pa", {"Pa", "pascal"}},
    {"V", {"V", "volt"}},
    {"A", {"A", "amp", "ampere"}},
    {"C", {"C", "coulomb"}},
    {"Hz", {"Hz", "hertz"}},
    {"mol", {"mol", "mole"}},
    {"ohm", {"ohm", "\xCE\xA9", "Omega"}},
    {"dollar", {"dollar", "$", "USD", "buck", "usd"}},
    {"cent", {"cent", "\xC2\xA2"}},
    {"euro", {"euro", "\xE2\x82\xAC", "EUR", "eur"}},
    {"unit", {"unit"}},
    {"people", {"people", "person"}},
    {"child", {"child", "children"}},
    {"man", {"man", "men"}},
    {"woman", {"woman", "women"}},
};

static const char *find_known(const char *word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        for (size_t k = 0; k < ARRAY_LENGTH(known[i].spellings) && known[i].spellings[k]; k++)
            if (strcmp(known[i].spellings[k], word) == 0)
                return known[i].name;
    return NULL;
}

void math_lower_unit(char *word)
{
    for (; *word; word++)
        if (*word >= 'A' && *word <= 'Z')
            *word = (char)(*word + 32);
}

/* The word's one spelling, in place: symbols as they are, words in lower case, both perhaps with a plural's s. */
void math_spell_unit(char word[UNIT_WORD_BYTES])
{
    const char *name = find_known(word);
    size_t length_bytes;

    /* Mm is no mm: that M is another prefix. */
    if (!name && !(word[0] == 'M' && word[1] && !word[2])) {
        math_lower_unit(word);
        name = find_known(word);
    }
    length_bytes = strlen(word);
    if (!name && length_bytes > 2 && word[length_bytes - 1] == 's' && word[length_bytes - 2] != 's') {
        word[length_bytes - 1] = 0;
        name = find_known(word);
    }
    if (name)
        snprintf(word, UNIT_WORD_BYTES, "%s", name);
}

bool math_is_unit_word(struct text word)
{
    char spelled[UNIT_WORD_BYTES];

    if (word.length_bytes == 0 || word.length_bytes >= UNIT_WORD_BYTES)
        return false;
    snprintf(spelled, sizeof spelled, "%.*s", (int)word.length_bytes, word.data);
    math_spell_unit(spelled);
    return find_known(spelled) != NULL;
}
