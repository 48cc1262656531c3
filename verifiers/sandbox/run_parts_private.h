/* Shared by the files of a run: run.c (its beginning, its end, the loop), run_watch.c (its limits), stay.c (a process that
 * serves many runs). */
#ifndef VERIFIERS_SANDBOX_RUN_PARTS_PRIVATE_H
#define VERIFIERS_SANDBOX_RUN_PARTS_PRIVATE_H

#include "verifiers/sandbox/run_private.h"
#include "verifiers/sandbox/usage_private.h"

#define WATCH_US (20 * US_PER_MS)

enum reason { REASON_NONE, REASON_WALL, REASON_CPU, REASON_MEMORY, REASON_OUTPUT, REASON_PEER, REASON_BROKEN };

struct run {
    const struct job *job;
    struct finished *finished;
    uint32_t index;
    bool sent, began, ended, odd;
    enum reason reason; /* for which it was killed */
    int64_t sent_us, began_us, kill_us, watch_us;
    int64_t late_us, late_cpu_us;            /* when its time was up, and what it had computed */
    int64_t waited_us;                       /* for a processor that others had: no part of its wall time */
    int64_t cpu_before_us, waited_before_us; /* what one that stays had used before this run */
    int64_t give_up_us;                      /* of the first of a pair */
    pid_t launcher;                          /* as this process sees it */
    pid_t init, program;                     /* as the launcher sees them */
    pid_t init_root, root;                   /* the same as this process sees them; 0: not known */
    int64_t own_bytes;                       /* of memory that each Python program has from its zygote */
    struct usage peak;
};

struct runs {
    struct holder *holder;
    int client;
    size_t count;
    struct run list[LAUNCH_TASKS_MAX];
};

/* Sends it to its launcher. peer: -1, or the program's end of the socket between a pair. */
void run_start(struct runs *runs, struct run *run, int peer);
/* Waits for something and deals with it. False: the client is gone. */
bool run_turn(struct runs *runs);
/* For this reason; its end is reported later. Fine on one that has ended. */
void run_kill(const struct runs *runs, struct run *run, enum reason reason);
void run_end_broken(struct run *run, const char *message);
enum run_end run_sum_up(const struct runs *runs);               /* all have ended */
int run_socket(const struct runs *runs, const struct run *run); /* of its launcher */

/* One that stays begins with another input: its limits are counted from here. */
void run_begin_again(struct run *run);
/* Ends what has passed a limit. */
void run_check_time(struct runs *runs, struct run *run, int64_t now_us);
/* When it must be looked at again; NEVER_US: it has ended. */
int64_t run_next_us(const struct run *run);

#endif
