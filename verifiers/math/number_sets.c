/* R, Z, N and the others, with what their marks say: R^+ is R_{>0}. */
#include "verifiers/math/comparison.h"

#include <stdio.h>

#include "server/base/cleanup.h"

#define SET_BYTES 24

/* Marks that mean the same, each in its one spelling. */
static const struct {
    const char *from, *to;
} marks[] = {
    {"{+}", "{>0}"},
    {"{-}", "{<0}"},
    {"{\\geq0}", "{\\ge0}"},
    {"{\\leq0}", "{\\le0}"},
};

/* Without spaces, a mark below. False if it is longer than any that is known. */
static bool spell(struct text text, char ret_name[SET_BYTES])
{
    size_t length_bytes = 0;

    for (size_t i = 0; i < text.length_bytes; i++) {
        if (text.data[i] == ' ')
            continue;
        if (length_bytes + 1 == SET_BYTES)
            return false;
        ret_name[length_bytes++] = text.data[i] == '^' ? '_' : text.data[i];
    }
    ret_name[length_bytes] = 0;
    for (size_t i = 0; length_bytes > 2 && i < ARRAY_LENGTH(marks); i++)
        if (strcmp(ret_name + 2, marks[i].from) == 0)
            snprintf(ret_name + 2, SET_BYTES - 2, "%s", marks[i].to);
    return true;
}

bool math_same_number_sets(const struct math_node *reference, const struct math_node *answer)
{
    char wanted[SET_BYTES];
    char given[SET_BYTES];

    if (text_same(reference->text, answer->text))
        return true;
    return spell(reference->text, wanted) && spell(answer->text, given) && strcmp(wanted, given) == 0;
}

bool math_is_real_half(const struct math_node *set, enum math_relation *ret_relation)
{
    static const struct {
        const char *name;
        enum math_relation relation;
    } halves[] = {
        {"R_{>0}", MATH_GREATER},
        {"R_{<0}", MATH_LESS},
        {"R_{\\ge0}", MATH_GREATER_EQUAL},
        {"R_{\\le0}", MATH_LESS_EQUAL},
    };
    char name[SET_BYTES];

    for (size_t i = 0; spell(set->text, name) && i < ARRAY_LENGTH(halves); i++) {
        if (strcmp(halves[i].name, name) == 0) {
            *ret_relation = halves[i].relation;
            return true;
        }
    }
    return false;
}
