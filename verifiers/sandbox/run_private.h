/* run: one program, or a pair, from its start to its end, with every limit kept. */
#ifndef VERIFIERS_SANDBOX_RUN_PRIVATE_H
#define VERIFIERS_SANDBOX_RUN_PRIVATE_H

#include "verifiers/sandbox/holder_private.h"
#include "verifiers/sandbox/launch_private.h"
#include "verifiers/sandbox/pump_private.h"

struct job { /* what is to be run; the texts behind it must stay */
    struct task task;
    struct text input;
    bool python;  /* by the zygote */
    bool bare;    /* by the launcher of bare commands */
    bool stays;   /* until it is killed: its standard input is left open */
    bool records; /* descriptor 3 is a pipe that is read */
    int target;   /* else: descriptor 3 is this one; -1: there is none */
};

struct finished { /* what became of it: `pump.gathered` holds the texts; pump_finish() is due */
    enum sandbox_outcome outcome;
    int exit_code, signal;
    bool began;
    int64_t wall_us, cpu_us, peak_bytes;
    char message[200];
    struct pump pump;
};

enum run_end {
    RUN_DONE,
    RUN_ODD,       /* as well, but the holder must be renewed */
    RUN_NOT_BEGUN, /* nothing was run, and it is not the programs' fault: renew the holder, and it may be tried again */
    RUN_CLIENT_GONE
};

/* count: 1 or 2; a pair is connected. client: watched for its end. ret_finished: each is to be finished, whatever is
 * returned. */
enum run_end run_jobs(struct holder *holder, int client, const struct job *jobs, size_t count,
                      struct finished *ret_finished);

#endif
