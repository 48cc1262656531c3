#include <gmp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/cleanup.h"
#include "server/base/number.h"
#include "verifiers/code/value.h"

struct pair {
    const struct value *got;
    const struct value *expected;
    const struct tolerance *tolerance;
};

static bool equal_at(const struct pair *pair, uint32_t got, uint32_t expected);

bool tolerance_holds(const struct tolerance *tolerance, double got, double expected)
{
    double relative = tolerance->relative * fabs(expected);

    if (!isfinite(got) || !isfinite(expected))
        return false;
    return fabs(got - expected) <= (relative > tolerance->absolute ? relative : tolerance->absolute);
}

/* --- numbers --- */

static int read_big(mpz_t out, const struct value_node *node)
{
    _cleanup_free_ char *digits = malloc(node->text.length_bytes + 1);

    mpz_init(out);
    if (!digits)
        return -1;
    memcpy(digits, node->text.data, node->text.length_bytes);
    digits[node->text.length_bytes] = '\0';
    return mpz_set_str(out, digits, node->base);
}

static bool big_equal(const struct value_node *got, const struct value_node *expected)
{
    mpz_t left;
    mpz_t right;
    bool read = read_big(left, got) == 0;

    read = read_big(right, expected) == 0 && read;
    bool equal = read && mpz_cmp(left, right) == 0;
    mpz_clear(left);
    mpz_clear(right);
    return equal;
}

static bool big_is_float(const struct value_node *node, double number)
{
    mpz_t big;
    bool equal = read_big(big, node) == 0 && isfinite(number) && mpz_cmp_d(big, number) == 0;

    mpz_clear(big);
    return equal;
}

static double big_double(const struct value_node *node)
{
    mpz_t number;
    double value = read_big(number, node) == 0 ? mpz_get_d(number) : NAN;

    mpz_clear(number);
    return value;
}

static bool is_number(const struct value_node *node)
{
    return node->kind == VALUE_INTEGER || node->kind == VALUE_BIG || node->kind == VALUE_FLOAT;
}

static double as_double(const struct value_node *node)
{
    if (node->kind == VALUE_BIG)
        return big_double(node);
    return node->kind == VALUE_INTEGER ? (double)node->integer : node->number;
}

/* A whole number beyond 53 bits and a float that rounds to it are equal only if the float is that number. */
static bool is_float(const struct value_node *node, double number)
{
    if (node->kind == VALUE_BIG)
        return big_is_float(node, number);
    return number == (double)node->integer && fabs(number) < 0x1p63 && (int64_t)number == node->integer;
}

static bool mixed_equal(const struct value_node *got, const struct value_node *expected,
                        const struct tolerance *tolerance)
{
    if (got->kind == VALUE_FLOAT ? is_float(expected, got->number) : is_float(got, expected->number))
        return true;
    if (tolerance->absolute <= 0 && tolerance->relative <= 0)
        return false;
    return tolerance_holds(tolerance, as_double(got), as_double(expected));
}

static bool number_equal(const struct value_node *got, const struct value_node *expected,
                         const struct tolerance *tolerance)
{
    if (got->kind == VALUE_FLOAT && expected->kind == VALUE_FLOAT)
        return tolerance_holds(tolerance, got->number, expected->number);
    if (got->kind == VALUE_FLOAT || expected->kind == VALUE_FLOAT)
        return mixed_equal(got, expected, tolerance);
    if (got->kind != expected->kind)
        return false;
    return got->kind == VALUE_BIG ? big_equal(got, expected) : got->integer == expected->integer;
}

/* --- dicts --- */

struct entry {
    struct text key; /* as JSON would write it */
    uint32_t value;
};

#define KEY_BYTES (NUMBER_BYTES + 1)

/* TEXT_NONE: JSON has no word for it. Numbers are written to `room`. */
static struct text key_text(const struct value_node *node, char room[KEY_BYTES])
{
    static const char *const words[] = {[VALUE_NULL] = "null", [VALUE_FALSE] = "false", [VALUE_TRUE] = "true"};

    if (node->kind == VALUE_TEXT)
        return node->text;
    if (node->kind <= VALUE_TRUE)
        return text_of(words[node->kind]);
    if (node->kind == VALUE_INTEGER)
        return (struct text){room, number_format_i64(node->integer, room)};
    if (node->kind == VALUE_FLOAT)
        return (struct text){room, number_format_double(node->number, room)};
    return TEXT_NONE;
}

static int compare_entries(const void *left, const void *right)
{
    const struct text a = ((const struct entry *)left)->key;
    const struct text b = ((const struct entry *)right)->key;
    int order = memcmp(a.data, b.data, a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes);

    return order ? order : (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

/* Sorted by key, for free(); NULL if JSON has no word for one, or there is no memory. */
static struct entry *sort_entries(const struct value *value, uint32_t index)
{
    size_t count = value->nodes[index].count / 2;
    _cleanup_free_ struct entry *entries = malloc((count + 1) * (sizeof(*entries) + KEY_BYTES));
    uint32_t at = index + 1;

    if (!entries)
        return NULL;
    char *rooms = (char *)(entries + count);
    for (size_t i = 0; i < count; i++) {
        entries[i].key = key_text(&value->nodes[at], rooms + i * KEY_BYTES);
        entries[i].value = value->nodes[at].end;
        if (!entries[i].key.data)
            return NULL;
        at = value->nodes[entries[i].value].end;
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    return TAKE_PTR(entries);
}

static bool dict_equal(const struct pair *pair, uint32_t got, uint32_t expected)
{
    size_t count = pair->expected->nodes[expected].count / 2;
    _cleanup_free_ struct entry *left = NULL;
    _cleanup_free_ struct entry *right = NULL;

    if (pair->got->nodes[got].count != 2 * count)
        return false;
    left = sort_entries(pair->got, got);
    right = sort_entries(pair->expected, expected);
    if (!left || !right)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!text_same(left[i].key, right[i].key) || !equal_at(pair, left[i].value, right[i].value))
            return false;
    return true;
}

/* --- all --- */

static bool list_equal(const struct pair *pair, uint32_t got, uint32_t expected)
{
    uint32_t count = pair->expected->nodes[expected].count;

    if (pair->got->nodes[got++].count != count)
        return false;
    expected++;
    for (uint32_t i = 0; i < count; i++) {
        if (!equal_at(pair, got, expected))
            return false;
        got = pair->got->nodes[got].end;
        expected = pair->expected->nodes[expected].end;
    }
    return true;
}

static bool equal_at(const struct pair *pair, uint32_t got, uint32_t expected)
{
    const struct value_node *left = &pair->got->nodes[got];
    const struct value_node *right = &pair->expected->nodes[expected];

    if (is_number(left) && is_number(right))
        return number_equal(left, right, pair->tolerance);
    if (left->kind != right->kind || left->kind == VALUE_OTHER)
        return false;
    if (left->kind == VALUE_TEXT)
        return text_same(left->text, right->text);
    if (left->kind == VALUE_LIST)
        return list_equal(pair, got, expected);
    return left->kind != VALUE_DICT || dict_equal(pair, got, expected);
}

bool value_equal(const struct value *got, const struct value *expected, const struct tolerance *tolerance)
{
    struct pair pair = {got, expected, tolerance};

    return equal_at(&pair, 0, 0);
}

bool value_equal_only(const struct value *got, const struct value *expected, const struct tolerance *tolerance)
{
    struct pair pair = {got, expected, tolerance};

    return expected->nodes[0].kind == VALUE_LIST && expected->nodes[0].count == 1 && equal_at(&pair, 0, 1);
}
