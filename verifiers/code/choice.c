#include "verifiers/code/choice.h"

#include <stdlib.h>

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9E3779B97F4A7C15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

static int compare_indexes(const void *left, const void *right)
{
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;

    return (a > b) - (a < b);
}

void choose_tests(size_t count, size_t most, uint64_t seed, size_t *ret_chosen, size_t *ret_count)
{
    *ret_count = most < count ? most : count;
    for (size_t i = 0; i < count; i++)
        ret_chosen[i] = i;
    if (most >= count)
        return;
    for (size_t i = 0; i < most && i < count; i++) {
        size_t other = i + (size_t)(splitmix64(&seed) % (count - i));
        size_t index = ret_chosen[i];
        ret_chosen[i] = ret_chosen[other];
        ret_chosen[other] = index;
    }
    qsort(ret_chosen, most, sizeof(*ret_chosen), compare_indexes);
}
