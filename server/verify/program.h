/* program: a job for the code workers that runs one program and gives its result back, graded by nobody.
 *
 * Its list has one verifier, which is in no table (verifiers/graders/program.c): so it goes through the pool as every
 * other job does, in its turn. Any thread. */
#ifndef SERVER_VERIFY_PROGRAM_H
#define SERVER_VERIFY_PROGRAM_H

#include "server/verify/pool.h"
#include "server/verify/spec.h"

/* options: the grader's; taken. total_ms: the longest time that it may need in its slot. */
struct verifier_list *program_list_create(json_t *options, int64_t total_ms);

struct program_result {
    json_t *detail; /* {"outcome", "exit_code", "signal", "wall_us", "stdout", "stderr"}; NULL: it did not run */
    char failure_code[VERIFY_CODE_BYTES]; /* then */
    char failure_message[VERDICT_MESSAGE_BYTES];
};

/* Of a job that is done. program_result_finish() is needed. */
void program_result_read(const struct verify_job *job, struct program_result *ret_result);
void program_result_finish(struct program_result *result);

#endif
