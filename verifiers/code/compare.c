#include "verifiers/code/compare.h"

#include <strings.h>

#include "server/base/cleanup.h"
#include "server/base/number.h"

const char *const compare_mode_names[COMPARE_MODES + 1] = {"lines", "exact", "tokens", "float", "json", NULL};

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static struct text without_blanks_behind(struct text text)
{
    while (text.length_bytes && is_blank(text.data[text.length_bytes - 1]))
        text.length_bytes--;
    return text;
}

static bool next_line(struct text text, size_t *at, struct text *ret_line)
{
    const char *start = text.data + *at;
    size_t left = text.length_bytes - *at;
    const char *feed = left ? memchr(start, '\n', left) : NULL;

    if (!left)
        return false;
    *ret_line = without_blanks_behind((struct text){start, feed ? (size_t)(feed - start) : left});
    *at += feed ? (size_t)(feed - start) + 1 : left;
    return true;
}

bool next_word(struct text text, size_t *at, struct text *ret_word)
{
    while (*at < text.length_bytes && is_blank(text.data[*at]))
        ++*at;
    size_t start = *at;
    while (*at < text.length_bytes && !is_blank(text.data[*at]))
        ++*at;
    *ret_word = (struct text){text.data + start, *at - start};
    return *at > start;
}

static bool lines_equal(struct text got, struct text expected)
{
    struct text left;
    struct text right;
    size_t at = 0;
    size_t expected_at = 0;

    got = without_blanks_behind(got);
    expected = without_blanks_behind(expected);
    while (next_line(got, &at, &left))
        if (!next_line(expected, &expected_at, &right) || !text_same(left, right))
            return false;
    return !next_line(expected, &expected_at, &right);
}

/* --- words --- */

static struct text without_sign(struct text word)
{
    if (word.length_bytes > 1 && (word.data[0] == '+' || word.data[0] == '-'))
        return (struct text){word.data + 1, word.length_bytes - 1};
    return word;
}

static bool is_whole(struct text word)
{
    struct text digits = without_sign(word);

    for (size_t i = 0; i < digits.length_bytes; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
    return digits.length_bytes > 0;
}

static struct text significant(struct text word)
{
    struct text digits = without_sign(word);

    while (digits.length_bytes > 1 && digits.data[0] == '0') {
        digits.data++;
        digits.length_bytes--;
    }
    return digits;
}

static bool whole_equal(struct text got, struct text expected)
{
    struct text left = significant(got);
    bool negative = got.data[0] == '-';

    return text_same(left, significant(expected)) && (negative == (expected.data[0] == '-') || text_equals(left, "0"));
}

/* A decimal with sign, fraction and exponent, also ".5" and "5.": how programs print them. */
static bool read_float(struct text word, double *ret_value)
{
    struct text digits = without_sign(word);
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    bool any = false;
    bool fraction = false;
    size_t at = 0;

    for (; at < digits.length_bytes; at++) {
        char byte = digits.data[at];
        if (byte == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (byte < '0' || byte > '9')
            break;
        any = true;
        if (mantissa < UINT64_MAX / 10 - 10) {
            mantissa = mantissa * 10 + (uint64_t)(byte - '0');
            exponent -= fraction;
        } else {
            exponent += !fraction;
        }
    }
    if (!any)
        return false;
    if (at < digits.length_bytes && (digits.data[at] | 0x20) == 'e') {
        struct text rest = {digits.data + at + 1, digits.length_bytes - at - 1};
        int64_t more = 0;
        if (!is_whole(rest) || rest.length_bytes > 6)
            return false;
        for (size_t i = rest.length_bytes - without_sign(rest).length_bytes; i < rest.length_bytes; i++)
            more = more * 10 + (rest.data[i] - '0');
        exponent += rest.data[0] == '-' ? -more : more;
        at = digits.length_bytes;
    }
    *ret_value = number_from_decimal(mantissa, exponent) * (word.data[0] == '-' ? -1 : 1);
    return at == digits.length_bytes;
}

/* As C, Python and Java print it, with any sign. */
static bool is_nan(struct text word)
{
    struct text letters = without_sign(word);

    return letters.length_bytes == 3 && strncasecmp(letters.data, "nan", 3) == 0;
}

static bool word_equal(struct text got, struct text expected, const struct compare_rule *rule)
{
    double left;
    double right;

    if (rule->mode == COMPARE_FLOAT && is_whole(got) && is_whole(expected))
        return whole_equal(got, expected);
    if (rule->mode == COMPARE_FLOAT && read_float(got, &left) && read_float(expected, &right))
        return tolerance_holds(&rule->tolerance, left, right);
    if (rule->mode == COMPARE_FLOAT && is_nan(got))
        return false;
    return text_same(got, expected);
}

static bool words_equal(struct text got, struct text expected, const struct compare_rule *rule)
{
    struct text left;
    struct text right;
    size_t at = 0;
    size_t expected_at = 0;

    while (next_word(got, &at, &left))
        if (!next_word(expected, &expected_at, &right) || !word_equal(left, right, rule))
            return false;
    return !next_word(expected, &expected_at, &right);
}

static bool json_equal(struct text got, struct text expected, const struct tolerance *tolerance)
{
    _cleanup_value_ struct value left = {.nodes = NULL};
    _cleanup_value_ struct value right = {.nodes = NULL};

    return value_read_json(got, &left) == 0 && value_read_json(expected, &right) == 0 &&
           value_equal(&left, &right, tolerance);
}

bool compare_output(struct text got, struct text expected, const struct compare_rule *rule)
{
    switch (rule->mode) {
    case COMPARE_LINES:
        return lines_equal(got, expected);
    case COMPARE_EXACT:
        return text_same(got, expected);
    case COMPARE_TOKENS:
    case COMPARE_FLOAT:
        return words_equal(got, expected, rule);
    case COMPARE_JSON:
        return json_equal(got, expected, &rule->tolerance);
    case COMPARE_MODES:
        break;
    }
    return false;
}
