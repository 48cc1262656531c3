/* Words that are units, and words that are none. */
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

/* clang-format off */
/* Words that make another statement of the number than its value, or take it back. */
static const char *const forbidden[] = {
    "and", "or", "not", "but", "nor", "is", "are", "isn", "either", "neither", "minus", "plus", "times", "negative",
    "over", "divided", "squared", "cubed", "dozen", "dozens", "hundred", "hundreds", "thousand", "thousands",
    "million", "millions", "billion", "billions", "trillion", "trillions", "half", "halves", "third", "thirds",
    "quarter", "quarters", "fourth", "fourths", "fifth", "fifths", "sixth", "sixths", "seventh", "sevenths",
    "eighth", "eighths", "ninth", "ninths", "tenth", "tenths", "hundredth", "hundredths", "thousandth",
    "thousandths", "mod", "base", "to", "through", "than", "possibly", "less", "more", "least", "most", "about",
    "approximately", "pi", "sqrt", "if", "k", "e", "i", "j", "x", "y", "z", "n", "a", "b", "p", "q", "r", "t", "u",
    "v", "w", "factorial", "one", "two", "sin", "cos", "tan", "log", "exp", "otherwise", "unless", "except",
    "maybe", "perhaps", "was", "were", "the", "when", "where", "wrong", "false", "incorrect", "modulo", "ten",
    "tens", "eleven", "twelve", "forty", "forties", "gross", "lakh", "lakhs", "crore", "crores", "mega", "giga",
    "bn", "mn", "tn", "teen", "teens", "ty", "th", "st", "nd", "rd", "root", "radical", "point", "no", "none",
    "nope", "never", "nothing", "without", "permille", "permil", "doubled", "tripled", "halved", "inverse",
    "reciprocal", "probably", "guess", "unknown", "undefined", "infinity", "else", "instead", "vs", "versus", "xor",
    "from", "below", "loss", "above", "under", "too", "hardly", "unlikely", "likely", "guessed", "guesses",
    "almost", "nearly", "roughly", "approx", "circa", "impossible", "rejected", "invalid", "extraneous", "cannot",
    "can't", "couldn't", "others", "say", "says", "said", "ignore", "ignored", "hopefully", "supposedly",
    "allegedly", "presumably", "apparently", "seemingly", "sorry", "excluding", "fewer", "nth", "couple", "mille",
    "ppm", "ppb", "bps", "basis", "would", "should", "could", "might", "must", "wait", "actually", "oops", "error",
    "mistake", "typo", "estimate", "estimates", "estimated", "reject", "discard", "discarded", "neglect", "until",
    "between", "among", "this", "that", "previous", "instructions", "negated", "inverted", "reversed", "flipped",
    "swapped", "conjugate", "pairs", "trios", "kilo", "milli", "tera", "refuted", "disproved", "fail", "fails",
    "failed", "bogus", "untrue", "nonsense", "void", "nil", "null", "uncertain", "doubtful", "alternatively", "lie",
    "absurd", "myriad", "myriads", "excluded", "mistaken", "unsure", "ish", "mln", "mlrd", "mrd", "milliard", "milliards",
    "bln", "mio", "tsd", "score", "scores", "brace", "trio", "included", "omitted", "missing", "assumed", "assuming", "suppose", "supposed", "disregard",
};
/* clang-format on */

/* Words that cannot end a unit: it would be another number, or none. 2 complex roots are two. */
static const char *const forbidden_last[] = {
    "hex",     "hexadecimal", "octal",      "binary",      "decimal", "imaginary", "complex",
    "fold",    "score",       "scores",     "double",      "triple",  "quadruple", "grand",
    "minimum", "maximum",     "percentage", "percentages", "choose",  "small",     "large",
    "big",     "many",        "few",        "much",        "false",   "high",      "low",
};

/* Words of numbers: "six", "sixths", "sixty", "sixteen". */
static const char *const number_stems[] = {
    "zero",  "three",   "four",    "five",    "six",     "seven", "eight",    "nine",  "twel",  "thirt",  "fift",
    "twent", "hundred", "thousan", "million", "billion", "trill", "quadrill", "twice", "thric", "googol", "quintill",
};

/* Units that need no \text. Those that could be a product of variables (mg, ml) are not among them. */
static const char *const bare_units[] = {
    "mm",   "cm",   "dm",   "km",   "kg",   "ft",   "yd",  "hr",  "hrs", "min", "mins", "sec",  "secs", "day",
    "days", "mph",  "kph",  "kmh",  "lb",   "lbs",  "oz",  "Hz",  "kHz", "MHz", "GHz",  "kW",   "kWh",  "kJ",
    "kPa",  "Pa",   "mol",  "mmol", "eV",   "keV",  "MeV", "GeV", "nm",  "rad", "per",  "inch", "foot", "feet",
    "mile", "yard", "gram", "hour", "unit", "cent", "mL",  "ml",  "deg", "cc",  "USD",  "EUR",  "GBP",
};

static bool is_number_word(struct text word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(number_stems); i++) {
        size_t length_bytes = strlen(number_stems[i]);
        if (word.length_bytes >= length_bytes && memcmp(word.data, number_stems[i], length_bytes) == 0)
            return true;
    }
    return false;
}

/* Single letters are units, except those usual for variables or thousands: M is molar. */
bool math_is_no_unit(struct text word)
{
    char lower[MATH_WORD_BYTES];
    struct text folded = math_lowered(word, lower);

    if (word.length_bytes == 1 && strchr("JMNVW", word.data[0]))
        return false;
    if (folded.length_bytes > 4 && memcmp(folded.data + folded.length_bytes - 4, "fold", 4) == 0)
        return true;
    return text_equals(word, "MM") || math_is_listed(forbidden, ARRAY_LENGTH(forbidden), folded) ||
           is_number_word(folded);
}

bool math_may_end_unit(struct text word)
{
    char lower[MATH_WORD_BYTES];

    return !math_is_listed(forbidden_last, ARRAY_LENGTH(forbidden_last), math_lowered(word, lower));
}

bool math_is_bare_unit(struct text word)
{
    return math_is_listed(bare_units, ARRAY_LENGTH(bare_units), word);
}
