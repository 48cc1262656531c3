/* Shared by the tests of cages: a test runs at each level that it names, if this machine offers that. */
#ifndef TESTS_UNIT_VERIFIERS_CAGE_FIXTURE_H
#define TESTS_UNIT_VERIFIERS_CAGE_FIXTURE_H

#include "tests/unit/base/cmocka_all.h"

#include "verifiers/sandbox/sandbox.h"

extern enum sandbox_level level_full, level_reduced;

/* Rows of a table of tests. */
#define AT(level, test)                                                                                                \
    {                                                                                                                  \
#test " (" #level ")", test, NULL, NULL, &(level_##level)                                                      \
    }
#define BOTH(test) AT(full, test), AT(reduced, test)

/* For a test of such a row. */
enum sandbox_level level_of(void **state);
void assert_script(void **state, const char *script, const char *output);

/* The table, without what this machine does not offer. To be returned by main(). */
int run_offered(const char *group, struct CMUnitTest *tests, size_t count);

#endif
