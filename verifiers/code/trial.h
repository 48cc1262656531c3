/* trial: one program and its tests, in the slot of the worker that checkers.
 *
 * Each test is a fresh sandbox; calls share one while they fit into the limits. Under `score: all` the first test that fails
 * ends the trial. The word of a program about itself decides nothing: outputs and values are compared here, and how it ended is
 * the slot's word. One thread. */
#ifndef VERIFIERS_CODE_TRIAL_H
#define VERIFIERS_CODE_TRIAL_H

#include "verifiers/code/compare.h"
#include "verifiers/code/forms.h"
#include "verifiers/sandbox/sandbox.h"

#define FAILURE_SANDBOX "sandbox_unavailable"
#define FAILURE_CHECKER "checker_failed"
#define FAILURE_MEMORY "verifier_crashed"
#define FAILURE_REFERENCE "reference_unreadable"

struct trial {
    int fd; /* of the slot */
    const struct test_set *set;
    enum sandbox_language language;
    struct text source;  /* the program as it is run: what comes before it, then the code */
    size_t prompt_bytes; /* of the source, in front: the prompt that it continues */
    struct text prelude; /* calls and asserts: run before the program, in the same names */
    struct sandbox_limits limits;
    struct compare_rule rule;
    bool all;             /* the first failure ends it */
    int64_t left_us;      /* of the whole trial, for programs */
    const size_t *chosen; /* indexes of the tests to run, in their order */
    size_t chosen_count;

    /* the result */
    double score; /* sum over the tests that ran */
    size_t ran;
    size_t passed;
    const char *reason;       /* of the first failure; NULL: none */
    const char *failure_code; /* nothing can be said; NULL */
    char failure_message[VERDICT_MESSAGE_BYTES];
    json_t *first_failed; /* NULL: none */
};

/* Runs the tests. A slot that is lost is the failure sandbox_unavailable. */
void trial_run(struct trial *trial);
void trial_finish(struct trial *trial);

/* Can a reference's checker be run? 0, or -1 with the problem. Pure; any thread. */
int checker_check(const json_t *checker, struct verifier_problem *ret_problem);

#endif
