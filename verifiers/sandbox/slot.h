/* slot: the process that runs programs, one or a pair of them at a time, for one client (sandbox.h).
 *
 *   client ── socket ── slot (supervisor) ── holder (namespaces, read-only root) ── programs
 *                                               └── zygote (python) ── programs
 *
 * The slot is outside the namespaces: it feeds and reads the pipes, keeps the limits, kills, compiles, and answers. The
 * holder (and below it the zygote, made with the first Python program) makes the programs' processes. It is rebuilt
 * after 1,000 programs and after anything odd. Whatever programs do, the slot lives on; it ends with all its processes
 * when its socket ends, on SIGTERM, and when its parent dies. */
#ifndef VERIFIERS_SANDBOX_SLOT_H
#define VERIFIERS_SANDBOX_SLOT_H

#include <sys/types.h>

enum sandbox_level { /* what the machine offers, found by a trial; a greater one is better */
                     SANDBOX_LEVEL_NONE,
                     SANDBOX_LEVEL_REDUCED, /* Landlock, seccomp, limits and the kill of the tree, but no namespaces */
                     SANDBOX_LEVEL_FULL
};

#define SANDBOX_PATH_BYTES 256

struct sandbox_settings {             /* of fixed size: it travels in an order to the spawner */
    char venv[SANDBOX_PATH_BYTES];    /* folder of a read-only virtual environment; empty: none */
    char testlib[SANDBOX_PATH_BYTES]; /* folder that holds testlib.h; empty: none */
    uid_t uid;                        /* root drops to it (user and group) before anything else */
    enum sandbox_level min_level;
    enum sandbox_level
        level; /* what the probe found: at which a slot runs its programs. Below min_level it runs none */
};

/* In a freshly forked child: standard streams on /dev/null, every other descriptor but fd closed, PR_SET_PDEATHSIG set.
 * Serves fd until it ends, or ends the process at once if the slot cannot be made. */
void slot_main(int fd, const struct sandbox_settings *settings) __attribute__((noreturn));

#endif
