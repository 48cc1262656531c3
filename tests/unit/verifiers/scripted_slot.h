/* scripted_slot: sandbox_run() for tests of the verifier code. Nothing is run: the test says what each run came to, and
 * sees what was asked for. */
#ifndef TESTS_SCRIPTED_SLOT_H
#define TESTS_SCRIPTED_SLOT_H

#include "verifiers/sandbox/sandbox.h"

struct scripted_result {
    enum sandbox_outcome outcome;
    int exit_code;
    int signal;
    int64_t wall_ms;
    const char *output;
    const char *error;
    const char *records;
};

/* The results of the next programs, in their order (a pair takes two). One program more than that fails the test. */
void script_results(const struct scripted_result *results, size_t count);
void script_lost_slot(void);  /* the next run gives -1 */
size_t script_programs(void); /* that were run since the last script */
/* A copy of a text of the last run's program: "source", "input", or the name of a file; NULL: it has no such file. */
const char *script_text(size_t program, const char *name);
const struct sandbox_program *script_program(size_t program); /* of the last run: limits, arguments, language */

#endif
