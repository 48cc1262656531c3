/* Shared by the files that run tests: trial.c has what is common, and tests with standard input; checker.c the checkers of a
 * reference; trial_calls.c and trial_asserts.c the rest. */
#ifndef VERIFIERS_CODE_TRIAL_PRIVATE_H
#define VERIFIERS_CODE_TRIAL_PRIVATE_H

#include "verifiers/code/trial.h"

#define REASON_WRONG "wrong_answer"
#define REASON_RUNTIME "runtime_error"
#define REASON_COMPILE "compile_error"
#define REASON_TIMEOUT "timeout"

/* Programs in the slot. False: one of them never began, and the trial has a failure. */
bool trial_sandbox(struct trial *trial, const struct sandbox_program *programs, size_t count,
                   struct sandbox_result *ret_results);
struct sandbox_program trial_program(const struct trial *trial, struct text source, struct text input);

/* NULL if the program came to its end with exit code 0. */
const char *trial_reason(const struct sandbox_result *result);
/* One more test that ran. reason: NULL if it passed; result: for the detail, NULL for none. False: the trial is over. */
bool trial_count(struct trial *trial, size_t index, double score, const char *reason,
                 const struct sandbox_result *result);
void trial_fail(struct trial *trial, const char *code, const char *message);
/* The time of the whole trial is over: the tests from chosen[from] count as not passed. */
bool trial_is_late(struct trial *trial, size_t from);

void trial_run_calls(struct trial *trial);
void trial_run_asserts(struct trial *trial);

/* The verdict of a checker of the reference on an output: a score from 0 to 1, or NAN with a failure in the trial. */
double checker_score(struct trial *trial, struct text input, struct text output, struct text answer);

#endif
