/* Digits in a base, ratios, times of day. */
#include "verifiers/math/comparison.h"

#include <stdio.h>

/* --- bases --- */

#define DIGITS_MAX 256

struct digits {
    size_t count;
    char digit[DIGITS_MAX];
};

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool append_digits(struct digits *digits, struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = text.data[i];
        char upper = byte >= 'a' && byte <= 'z' ? (char)(byte - 32) : byte;
        if ((!is_digit(upper) && (upper < 'A' || upper > 'Z')) || digits->count == DIGITS_MAX)
            return false;
        digits->digit[digits->count++] = upper;
    }
    return true;
}

/* 1010, 2A, \text{2A}: what may be digits without a base behind them. */
static bool read_digits(const struct math_node *node, struct digits *digits)
{
    bool product = node->kind == MATH_PRODUCT && (node->flags & MATH_JUXTAPOSED);
    bool number = false;

    if (node->kind == MATH_NUMBER || node->kind == MATH_NAME || node->kind == MATH_TEXT || node->kind == MATH_BASED)
        return append_digits(digits, node->text);
    for (size_t i = 0; product && i < node->count; i++) {
        if (node->children[i]->kind == MATH_PRODUCT || !read_digits(node->children[i], digits))
            return false;
        number = number || node->children[i]->kind == MATH_NUMBER;
    }
    return product && number; /* letters alone are variables */
}

static bool same_digits(const struct digits *left, const struct digits *right)
{
    size_t skip_left = 0;
    size_t skip_right = 0;

    while (skip_left + 1 < left->count && left->digit[skip_left] == '0')
        skip_left++;
    while (skip_right + 1 < right->count && right->digit[skip_right] == '0')
        skip_right++;
    return text_same((struct text){left->digit + skip_left, left->count - skip_left},
                     (struct text){right->digit + skip_right, right->count - skip_right});
}

/* 2a_{16} has the form of a product: 2 times a letter with a subscript. */
static bool is_number_in(const struct math_node *product, unsigned base, struct digits *digits)
{
    char mark[8];
    const struct math_node *last = product->count ? product->children[product->count - 1] : product;
    struct text letter = last->text;
    size_t mark_bytes = (size_t)snprintf(mark, sizeof(mark), "_{%u}", base);

    if (product->kind != MATH_PRODUCT || !(product->flags & MATH_JUXTAPOSED) || last->kind != MATH_NAME ||
        letter.length_bytes != mark_bytes + 1 || memcmp(letter.data + 1, mark, mark_bytes) != 0)
        return false;
    for (size_t i = 0; i + 1 < product->count; i++)
        if (product->children[i]->kind == MATH_PRODUCT || !read_digits(product->children[i], digits))
            return false;
    return append_digits(digits, (struct text){letter.data, 1});
}

/* The base is part of what was asked: a number in another one is another answer even if it is worth the same. Where a
 * base was asked for, an answer's digits are of it unless they say otherwise; elsewhere they are of base ten. */
enum math_decision math_same_based(struct comparison *comparison, const struct math_node *reference,
                                   const struct math_node *answer)
{
    bool wanted_in_base = reference->kind == MATH_BASED;
    const struct math_node *based = wanted_in_base ? reference : answer;
    const struct math_node *other = wanted_in_base ? answer : reference;
    struct digits digits = {.count = 0};
    struct digits marked = {.count = 0};
    struct digits bare = {.count = 0};

    (void)comparison;
    if (other->kind == MATH_BASED)
        return math_say(reference->base == answer->base && fmpq_equal(reference->value, answer->value));
    if (!read_digits(based, &digits))
        return MATH_DIFFERENT;
    if (is_number_in(other, based->base, &marked))
        return math_say(same_digits(&digits, &marked));
    if (!read_digits(other, &bare) || !(based->base == 10 || wanted_in_base))
        return MATH_DIFFERENT;
    return math_say(same_digits(&digits, &bare));
}

/* --- 3:4 and 12:30 --- */

static long part_value(const struct math_node *part)
{
    long value = 0;

    if (part->kind != MATH_NUMBER || part->text.length_bytes > 2 || part->text.length_bytes == 0)
        return -1;
    for (size_t i = 0; i < part->text.length_bytes; i++)
        value = is_digit(part->text.data[i]) ? value * 10 + part->text.data[i] - '0' : 100;
    return value;
}

/* Minutes, and perhaps seconds, have two digits and end at 59. A possible time is compared as one. */
static bool is_time(const struct math_node *ratio)
{
    if (ratio->kind != MATH_RATIO || ratio->count > 3 || part_value(ratio->children[0]) < 0 ||
        part_value(ratio->children[0]) > 24)
        return false;
    for (size_t i = 1; i < ratio->count; i++) {
        long value = part_value(ratio->children[i]);
        if (ratio->children[i]->text.length_bytes != 2 || value < 0 || value > 59)
            return false;
    }
    return true;
}

/* 12:30, not 12 to 30 */
static bool is_clock(const struct math_node *ratio)
{
    return is_time(ratio) && !(ratio->flags & MATH_BY_TO);
}

static enum math_decision same_times(const struct math_node *reference, const struct math_node *answer)
{
    if (!is_time(reference) || !is_time(answer) || reference->count != answer->count)
        return MATH_DIFFERENT;
    for (size_t i = 0; i < reference->count; i++)
        if (part_value(reference->children[i]) != part_value(answer->children[i]))
            return MATH_DIFFERENT;
    return MATH_EQUAL;
}

/* The hour of the day, if the half of it is known. */
static long hour_of(const struct math_node *time, struct text half)
{
    long hour = part_value(time->children[0]);

    if (half.length_bytes == 0 || hour > 12)
        return hour;
    return hour % 12 + (half.data[0] == 'p' || half.data[0] == 'P' ? 12 : 0);
}

enum math_decision math_same_times_of_day(const struct math_node *reference, struct text wanted_half,
                                          const struct math_node *answer, struct text given_half)
{
    bool beyond_noon = part_value(reference->children[0]) > 12 || part_value(answer->children[0]) > 12;
    bool both = wanted_half.length_bytes && given_half.length_bytes;

    if (!is_time(reference) || !is_time(answer) || reference->count != answer->count)
        return MATH_DIFFERENT;
    if (!beyond_noon && !both)
        return same_times(reference, answer);
    for (size_t i = 1; i < reference->count; i++)
        if (part_value(reference->children[i]) != part_value(answer->children[i]))
            return MATH_DIFFERENT;
    return math_say(hour_of(reference, wanted_half) == hour_of(answer, given_half));
}

/* a : b is c : d if a · d = b · c, and neither b nor d is 0. */
static enum math_decision same_proportion(struct comparison *comparison, const struct math_node *reference,
                                          const struct math_node *answer, size_t part)
{
    const struct math_node *wanted[] = {reference->children[part - 1], reference->children[part]};
    const struct math_node *given[] = {answer->children[part - 1], answer->children[part]};

    const struct math_node *left = math_build(comparison, MATH_QUOTIENT, 2, wanted);
    const struct math_node *right = math_build(comparison, MATH_QUOTIENT, 2, given);

    return left && right ? math_same_scalars(comparison, left, right) : MATH_LIMIT;
}

static bool has_scalar_parts(const struct math_node *ratio)
{
    for (size_t i = 0; i < ratio->count; i++)
        if (!math_is_scalar(ratio->children[i]) || math_has_kind(ratio->children[i], MATH_PLUS_MINUS))
            return false;
    return true;
}

/* Without a number there is no proportion: compare part by part. */
static enum math_decision same_parts(struct comparison *comparison, const struct math_node *reference,
                                     const struct math_node *answer)
{
    bool scalars = has_scalar_parts(reference) && has_scalar_parts(answer);
    enum math_decision decision = math_say(reference->count == answer->count);

    for (size_t i = scalars ? 1 : 0; i < reference->count && decision != MATH_DIFFERENT; i++)
        decision =
            math_both(decision, scalars ? same_proportion(comparison, reference, answer, i)
                                        : math_same_bodies(comparison, reference->children[i], answer->children[i]));
    return decision;
}

/* 3 : 4 is the fraction 3/4. */
static enum math_decision same_fraction(struct comparison *comparison, const struct math_node *ratio,
                                        const struct math_node *other, bool reference_is_ratio)
{
    const struct math_node *quotient;

    if (ratio->count != 2 || !has_scalar_parts(ratio) || !math_is_scalar(other) ||
        math_has_kind(other, MATH_PLUS_MINUS))
        return MATH_DIFFERENT;
    quotient = math_build(comparison, MATH_QUOTIENT, 2, (const struct math_node *const *)ratio->children);
    if (!quotient)
        return MATH_LIMIT;
    return reference_is_ratio ? math_same_scalars(comparison, quotient, other)
                              : math_same_scalars(comparison, other, quotient);
}

enum math_decision math_same_ratios(struct comparison *comparison, const struct math_node *reference,
                                    const struct math_node *answer)
{
    bool ratios = reference->kind == MATH_RATIO && answer->kind == MATH_RATIO;

    /* 3 to 4 may be a range, too: a ratio only where one is wanted. */
    if ((reference->flags | answer->flags) & MATH_BY_TO)
        return ratios && !is_clock(reference) && !is_clock(answer) ? same_parts(comparison, reference, answer)
                                                                   : MATH_DIFFERENT;
    if (is_time(reference) || is_time(answer))
        return same_times(reference, answer);
    if (ratios)
        return same_parts(comparison, reference, answer);
    return reference->kind == MATH_RATIO ? same_fraction(comparison, reference, answer, true)
                                         : same_fraction(comparison, answer, reference, false);
}
