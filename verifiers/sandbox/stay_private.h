/* stay: processes that serve more than one run, each one line after the other. They end with the holder. */
#ifndef VERIFIERS_SANDBOX_STAY_PRIVATE_H
#define VERIFIERS_SANDBOX_STAY_PRIVATE_H

#include "server/base/hash.h"
#include "verifiers/sandbox/run_parts_private.h"

#define STAY_RUNS_MAX 1000 /* of one process */

struct stayer {
    bool lives;
    uint8_t key[SHA256_BYTES]; /* what it is */
    struct job job;
    struct run run;
    struct finished finished; /* of the last run */
    unsigned runs;
    uint64_t used; /* a greater one: later */
};

struct stayers {
    struct stayer list[LAUNCH_STAYERS_MAX];
    uint64_t uses;
};

void stayers_init(struct stayers *stayers);
/* The holder is renewed: they are gone, and what the last one said stays until the next run. */
void stayers_forget(struct stayers *stayers);

/* One run: by the process of this key, or by a new one, for which the least used makes room. job->input is one line with
 * its end. *ret_finished stays until the next run; its outcome is SANDBOX_ANSWERED, or how the process ended. */
enum run_end stay_run(struct stayers *stayers, struct holder *holder, int client, const struct job *job,
                      const uint8_t key[SHA256_BYTES], const struct finished **ret_finished);
/* Ends the process of this key, if there is one. */
enum run_end stay_leave(struct stayers *stayers, struct holder *holder, int client, const uint8_t key[SHA256_BYTES]);

#endif
