/* forms: a reference of `code` as one set of tests, whichever data set it comes from. The page docs/verifiers/code.md has
 * the forms; they are told apart by their keys, and keys that no form needs are not read.
 *
 * Pure, except that it allocates. Any thread; FORMS_UNPACK only in a locked-down process. */
#ifndef VERIFIERS_CODE_FORMS_H
#define VERIFIERS_CODE_FORMS_H

#include "verifiers/sandbox/sandbox.h"
#include "verifiers/verifier.h"

enum test_kind {
    TESTS_STDIN, /* {"stdin": text, "stdout": text} */
    TESTS_CALLS, /* {"args": JSON text of a list, "expect": JSON text, "wrapped": true if a list of one may stand for it} */
    TESTS_ASSERTS, /* Python text that raises nothing */
};

struct test_set {
    enum test_kind kind;
    json_t *tests;  /* at least one */
    json_t *before; /* TESTS_ASSERTS: texts that both sides run first: imports, set-up */
    struct text
        entry; /* TESTS_CALLS: the function; TESTS_ASSERTS: the name that belongs to the program whatever else it is;
                            TEXT_NONE */
    bool functions;       /* TESTS_ASSERTS: a test ends with run_test(NAME) and imports from `solution` */
    struct text prompt;   /* what the program continues; TEXT_NONE */
    const char *language; /* that the row names; NULL */
    double wall_ms;       /* of the row; NAN */
    double memory_mb;
    const json_t *checker; /* TESTS_STDIN; NULL */
    json_t *kept;          /* what the texts point into */
};

enum forms_depth {
    FORMS_LOOK,   /* packed tests are not unpacked */
    FORMS_UNPACK, /* all is read */
};

/* entry: the option, for a reference without a name of its own; TEXT_NONE. 0, or -1 with the problem; finish in both cases. */
int forms_read(const json_t *reference, struct text entry, enum forms_depth depth, struct test_set *ret_set,
               struct verifier_problem *ret_problem);
void test_set_finish(struct test_set *set);

#endif
