/* Shared by the tests of this room: judges in this process, and sends frames to a real worker. */
#ifndef TESTS_VERIFIERS_GRADE_H
#define TESTS_VERIFIERS_GRADE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/base/buffer.h"
#include "verifiers/registry.h"

/* options: JSON text or NULL; reference: JSON text or NULL. Fails the test if the options are refused. */
struct verdict grade_text(const char *name, const char *options, const char *reference, struct text completion);
struct verdict grade(const char *name, const char *options, const char *reference, const char *completion);
struct verdict grade_beside(const char *name, const char *options, const char *reference, struct text prompt,
                            struct text completion);

/* The usual claim: this completion is worth 1 or 0 for this reason (NULL: any). */
void expect(const char *name, const char *options, const char *reference, const char *completion, double score,
            const char *reason);

/* One case of tests/cases: the verifier's name, options, reference and what must come out. */
struct case_of_file {
    const char *id;
    const char *category;
    const char *name;
    json_t *options; /* owned */
    const json_t *reference;
    struct text prompt; /* TEXT_NONE: unknown */
    struct text completion;
    int64_t completion_tokens; /* -1: unknown */
    const json_t *beside;      /* verifiers of the same list, as in a request; NULL: none */
    double score;              /* NAN: unscored */
    const char *reason;        /* NULL: any */
};

/* The case's verdict. Where an option `of` names one of those beside, that one is judged, too, and the score settled. */
struct verdict grade_case(const struct case_of_file *one);

/* Calls `check` for every case of a file that this build has a verifier for; returns how many. */
size_t each_case(const char *file, void (*check)(const struct case_of_file *one, void *arg), void *arg);
/* The same for tests/cases/own/NAME.jsonl of every verifier NAME whose cases have no format of their own, and that needs
 * neither a slot nor an engine: a verifier without the file fails the test. */
size_t each_own_file(void (*check)(const struct case_of_file *one, void *arg), void *arg);

#endif
