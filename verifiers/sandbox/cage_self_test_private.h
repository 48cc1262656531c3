/* A program that tries everything that a cage must prevent. */
#ifndef VERIFIERS_SANDBOX_CAGE_SELF_TEST_PRIVATE_H
#define VERIFIERS_SANDBOX_CAGE_SELF_TEST_PRIVATE_H

#include "verifiers/sandbox/slot.h"

struct cage_self_test {
    enum sandbox_level level;
    const char *secret; /* a file outside that must not be readable; NULL: none */
};

/* A cage_program's run, with a struct cage_self_test. Writes the names of what worked to its standard output, and ends
 * with their number. */
void cage_self_test(void *arg);

#endif
