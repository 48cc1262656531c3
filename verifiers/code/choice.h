/* choice: the tests of a set that are run. Pure. Any thread.
 *
 * With n of count tests: a Fisher-Yates shuffle of 0 … count-1 that stops after n steps; step i swaps place i with place
 * i + r mod (count - i), where r is the next number of splitmix64 seeded with `seed`. The chosen ones run in their order. */
#ifndef VERIFIERS_CODE_CHOICE_H
#define VERIFIERS_CODE_CHOICE_H

#include <stddef.h>
#include <stdint.h>

/* ret_chosen[count]: the first *ret_count of them are the indexes, rising. most: at least 1. */
void choose_tests(size_t count, size_t most, uint64_t seed, size_t *ret_chosen, size_t *ret_count);

#endif
