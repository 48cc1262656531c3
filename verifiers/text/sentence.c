#include "verifiers/text/sentence.h"

#include <ctype.h>
#include <stdbool.h>
#include <strings.h>

#include "server/base/cleanup.h"
#include "verifiers/text/extract.h"

#define WORD_BYTES 32

/* --- explanations --- */

enum content {
    WORDS_ONLY,
    FORMULAS, /* without digits, which could be another value: "where $k$ is an integer" */
};

/* Opening words of explanations, and the tokens allowed inside them. */
static const struct {
    const char *words;
    enum content content;
} openings[] = {
    {"because", FORMULAS},       {"since", FORMULAS},         {"where", FORMULAS},       {"for all", FORMULAS},
    {"for any", FORMULAS},       {"for each", FORMULAS},      {"for every", FORMULAS},   {"which", WORDS_ONLY},
    {"thus", WORDS_ONLY},        {"hence", WORDS_ONLY},       {"therefore", WORDS_ONLY}, {"as asked", WORDS_ONLY},
    {"as desired", WORDS_ONLY},  {"as expected", WORDS_ONLY}, {"as needed", WORDS_ONLY}, {"as requested", WORDS_ONLY},
    {"as required", WORDS_ONLY}, {"as stated", WORDS_ONLY},   {"as wanted", WORDS_ONLY}, {"in total", WORDS_ONLY},
    {"altogether", WORDS_ONLY},  {"i hope", WORDS_ONLY},
};

/* Behind these another value may follow, or this one is not meant. */
/* clang-format off */
static const char *const denials[] = {
    "or", "nor", "not", "no", "never", "none", "cannot", "but", "however", "though", "yet", "although", "maybe",
    "perhaps", "possible", "possibly", "probably", "might", "may", "could", "can", "should", "otherwise", "else",
    "unless", "except", "if", "when", "instead", "rather", "wrong", "false", "incorrect", "mistake", "mistaken",
    "doubt", "unsure", "guess", "either", "neither", "both", "also", "too", "other", "another", "others", "vs",
    "versus", "xor", "lor", "vee", "wait", "actually", "sorry", "half", "halved", "halves", "third", "thirds",
    "quarter", "quarters", "dozen", "percent", "times", "plus", "minus", "negative", "squared", "cubed", "root",
    "factorial", "mod", "modulo", "divided", "doubled", "tripled", "multiplied", "inverse", "opposite",
    "reciprocal", "base", "binary", "octal", "about", "around", "almost", "nearly", "roughly", "close", "near",
    "between", "less", "more", "least", "most", "than", "bound", "remainder", "alternatively", "one", "ones", "two",
    "ten", "eleven", "forty", "infinity", "undefined", "unknown", "over", "without", "wrongly", "percentage",
    "impossible", "hex", "decimal", "hexadecimal", "unlikely", "lie", "lies", "fail", "fails", "nonsense", "absurd",
    "invalid", "extraneous", "discard", "discarded", "reject", "rejected", "hardly", "off", "contradicts",
    "contradict", "made", "increased", "incremented", "decreased", "decremented", "numerator", "denominator",
    "short", "negation", "negated", "square", "flipped", "reversed", "swapped", "sign", "unit", "score", "add",
    "added", "increase", "decrease", "exceed", "exceeds", "below", "above", "under", "beyond",
};
/* clang-format on */

/* "six", "sixty", "approximate", "alternative" */
static const char *const denied_stems[] = {
    "zero",   "three",  "four",     "five",   "six",    "seven",   "eight",   "nine",     "twel",  "thirt",
    "fift",   "twent",  "hundre",   "thous",  "millio", "billion", "trillio", "quadrill", "twice", "thric",
    "googol", "approx", "alternat", "uncert", "doubl",  "tripl",   "subtra",  "multip",
};

static bool is_letter(struct text text, size_t at)
{
    return at < text.length_bytes && isalpha((unsigned char)text.data[at]);
}

static bool starts_with(struct text text, const char *prefix)
{
    size_t length_bytes = strlen(prefix);
    return text.length_bytes >= length_bytes && memcmp(text.data, prefix, length_bytes) == 0;
}

static struct text from(struct text text, size_t at)
{
    return (struct text){text.data + at, text.length_bytes - at};
}

/* The letters from the start of `text`, in lower case; a longer word is cut. */
static size_t read_word(struct text text, char ret_word[WORD_BYTES])
{
    size_t length = 0;

    for (; is_letter(text, length); length++)
        if (length < WORD_BYTES - 1)
            ret_word[length] = (char)tolower((unsigned char)text.data[length]);
    ret_word[length < WORD_BYTES ? length : WORD_BYTES - 1] = 0;
    return length;
}

/* isn't, won't: what follows the word. */
static bool is_contracted_not(struct text text)
{
    static const char *const apostrophes[] = {"'t", "\xE2\x80\x99t"};

    for (size_t i = 0; i < ARRAY_LENGTH(apostrophes); i++)
        if (starts_with(text, apostrophes[i]) && !is_letter(text, strlen(apostrophes[i])))
            return true;
    return false;
}

static bool is_denial(const char *word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(denials); i++)
        if (strcmp(word, denials[i]) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LENGTH(denied_stems); i++)
        if (strncmp(word, denied_stems[i], strlen(denied_stems[i])) == 0)
            return true;
    return false;
}

struct seen {
    bool denial, separator, formula, digit;
};

/* One word or sign of an explanation; how many bytes it has. */
static size_t look(struct text text, struct seen *seen)
{
    char word[WORD_BYTES];
    size_t length = read_word(text, word);

    if (length) {
        seen->denial |= is_denial(word) || is_contracted_not(from(text, length));
        seen->separator |= strcmp(word, "and") == 0;
        return length;
    }
    if (starts_with(text, "\xE2\x80")) /* dashes and curly quotes */
        return 2 + (text.length_bytes > 2);
    seen->separator |= text.data[0] == ',' || text.data[0] == ';';
    seen->digit |= isdigit((unsigned char)text.data[0]) != 0;
    seen->formula |= text.data[0] == 0 || !strchr(" \t.,;:'\"`()*_}-", text.data[0]);
    return 1;
}

/* An "and" or a comma in front of a formula may begin another answer. */
static bool is_explanation(struct text text, enum content content)
{
    struct seen seen = {false, false, false, false};

    for (size_t at = 0; at < text.length_bytes;)
        at += look(from(text, at), &seen);
    if (seen.denial || seen.digit)
        return false;
    return !seen.formula || (content != WORDS_ONLY && !seen.separator);
}

/* The opening that stands at `at`, or their number. */
static size_t opening_at(struct text text, size_t at)
{
    size_t i = 0;

    if (at && (is_letter(text, at - 1) || text.data[at - 1] == '\\'))
        return ARRAY_LENGTH(openings);
    for (; i < ARRAY_LENGTH(openings); i++) {
        size_t length = strlen(openings[i].words);
        if (text.length_bytes - at >= length && strncasecmp(text.data + at, openings[i].words, length) == 0 &&
            !is_letter(text, at + length))
            break;
    }
    return i;
}

/* An odd dollar is money. */
static bool has_formulas(struct text text)
{
    size_t dollars = 0;

    for (size_t i = 0; i < text.length_bytes; i++)
        dollars += text.data[i] == '$';
    return dollars % 2 == 0;
}

/* The beginning of the first explanation, outside of formulas and braces: only that one can end the value, since a later
 * one would leave it in. */
static size_t value_end(struct text text)
{
    bool formulas = has_formulas(text);
    bool inside = false;
    size_t depth = 0;

    for (size_t at = 0; at < text.length_bytes; at++) {
        char byte = text.data[at];
        size_t opening = at && !inside && depth == 0 ? opening_at(text, at) : ARRAY_LENGTH(openings);
        if (opening < ARRAY_LENGTH(openings))
            return is_explanation(from(text, at), openings[opening].content) ? at : text.length_bytes;
        inside ^= formulas && byte == '$';
        depth += byte == '{';
        depth -= byte == '}' && depth;
    }
    return text.length_bytes;
}

/* --- what stands around a value --- */

static struct text without(struct text text, size_t before, size_t after)
{
    return text_trimmed((struct text){text.data + before, text.length_bytes - before - after});
}

static bool is_emphasis(char byte)
{
    return byte == '*' || byte == '_' || byte == '`';
}

/* The star of R^* is not emphasis. */
static struct text without_emphasis(struct text text)
{
    struct text rest = text;

    while (rest.length_bytes && is_emphasis(rest.data[0]))
        rest = without(rest, 1, 0);
    while (rest.length_bytes && is_emphasis(rest.data[rest.length_bytes - 1]))
        rest.length_bytes--;
    if (rest.length_bytes && rest.data[rest.length_bytes - 1] == '^')
        return text;
    return text_trimmed(rest);
}

/* "42", not "42" or "43". */
static struct text without_quotes(struct text text)
{
    static const char *const quotes[][2] = {
        {"\"", "\""}, {"'", "'"}, {"\xE2\x80\x9C", "\xE2\x80\x9D"}, {"\xE2\x80\x98", "\xE2\x80\x99"}, {"``", "''"}};

    for (size_t i = 0; i < ARRAY_LENGTH(quotes); i++) {
        size_t before = strlen(quotes[i][0]);
        size_t after = strlen(quotes[i][1]);
        if (text.length_bytes > before + after && starts_with(text, quotes[i][0]) &&
            text_find(text, before, quotes[i][1]) == text.length_bytes - after)
            return without(text, before, after);
    }
    return text;
}

/* \textbf{Answer: 42}: the brace was opened before the sentence began. */
static struct text without_open_brace(struct text text)
{
    size_t opened = 0;
    size_t closed = 0;

    for (size_t i = 0; i < text.length_bytes; i++) {
        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] == '}')
            closed++;
        else if (text.data[i] == '{')
            opened++;
    }
    return closed == opened + 1 && text.length_bytes && text.data[text.length_bytes - 1] == '}' ? without(text, 0, 1)
                                                                                                : text;
}

/* 0.333... has no full stop, and the comma of 42\, is LaTeX's. */
static struct text without_stop(struct text text)
{
    char last = text.length_bytes > 1 ? text.data[text.length_bytes - 1] : 0;

    if ((last != '.' && last != ',' && last != ';') || text.data[text.length_bytes - 2] == '\\' ||
        (last == '.' && text.data[text.length_bytes - 2] == '.'))
        return text;
    return without(text, 0, 1);
}

#define LAYERS_MAX 4

struct text sentence_bare(struct text sentence)
{
    struct text bare = text_trimmed(sentence);

    for (int layer = 0; layer < LAYERS_MAX && bare.length_bytes; layer++)
        bare = without_open_brace(without_stop(without_quotes(without_emphasis(bare))));
    return bare;
}

/* Joints between a value and its explanation: 42 (because …), 42 — because …, 42: because … */
static struct text without_joint(struct text text)
{
    static const char *const joints[] = {"(", ":", " -", "\xE2\x80\x93", "\xE2\x80\x94"};

    for (size_t i = 0; i < ARRAY_LENGTH(joints); i++) {
        size_t length = strlen(joints[i]);
        if (text.length_bytes > length && memcmp(text.data + text.length_bytes - length, joints[i], length) == 0)
            return without(text, 0, length);
    }
    return text;
}

struct text sentence_value(struct text sentence)
{
    size_t end = value_end(sentence);

    if (end == sentence.length_bytes)
        return sentence;
    return sentence_bare(without_joint(text_trimmed((struct text){sentence.data, end})));
}
