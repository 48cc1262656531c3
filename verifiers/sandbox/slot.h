/* slot: the processes that run programs, one or a pair of them at a time, for one client (sandbox.h).
 *
 *   keeper ─┬─ supervisor ── socket ── client
 *           ├─ bare launcher (no sandbox) ── commands of the settings
 *           └─ holder (namespaces, read-only root) ─┬─ programs
 *                                                   └─ zygote ── programs of Python
 *
 * The supervisor is outside the namespaces: it feeds and reads the pipes, keeps the limits, compiles, and answers. The
 * holder makes the programs' processes, and with the first program of Python the zygote. It is replaced after 1,000
 * programs and after anything odd. The keeper, the first process, makes holders; it has never held a program, and so
 * there is none in the memory of a zygote. A command that the settings want without a sandbox is started by a launcher of
 * its own, a child of the keeper that is in no namespace. No program can end the slot; it ends with all its processes when
 * its socket ends, on SLOT_END_SIGNAL to the keeper, and when the keeper or its parent dies. Signals that a terminal or a
 * supervisor of services sends to a whole group (SIGINT, SIGTERM, SIGHUP, SIGQUIT) do not end it: the service drains. */
#ifndef VERIFIERS_SANDBOX_SLOT_H
#define VERIFIERS_SANDBOX_SLOT_H

#include "server/base/hash.h"
#include "verifiers/sandbox/sandbox.h"

#include <signal.h>
#include <sys/types.h>

/* The protection that the machine offers, found by a trial (probe.h); a greater one is better. */
enum sandbox_level {
    SANDBOX_LEVEL_NONE,    /* nothing but limits, a group of its own and closed descriptors: a bare command */
    SANDBOX_LEVEL_REDUCED, /* Landlock, seccomp, limits and the kill of the tree, but no namespaces */
    SANDBOX_LEVEL_FULL
};

#define SANDBOX_BARE_MAX 64
#define SANDBOX_VENVS_MAX 8

struct sandbox_settings {          /* of fixed size: it travels in an order to the spawner */
    char venv[SANDBOX_PATH_BYTES]; /* folder of a read-only virtual environment; empty: none */
    char venvs[SANDBOX_VENVS_MAX]
              [SANDBOX_PATH_BYTES];   /* of commands, for programs to see: one that is away is left out */
    char testlib[SANDBOX_PATH_BYTES]; /* folder that holds testlib.h; empty: none */
    uid_t uid;                        /* root drops to it (user and group) before anything else */
    enum sandbox_level min_level;     /* below it nothing is run */
    enum sandbox_level level;         /* at which programs are run: what the probe has found */
    size_t bare_count;                /* commands that may run without a sandbox, by what they are */
    uint8_t bare[SANDBOX_BARE_MAX][SHA256_BYTES];
};

/* The identity of a command: a digest of its words, its files and its virtual environment. */
void sandbox_command_digest(const struct sandbox_program *command, uint8_t ret_digest[SHA256_BYTES]);
/* Lets this command run bare: its words, its files and its environment, whatever its input. At most SANDBOX_BARE_MAX are taken. */
void sandbox_allow_bare(struct sandbox_settings *settings, const struct sandbox_program *command);
bool sandbox_may_be_bare(const struct sandbox_settings *settings, const struct sandbox_program *program);

#define SLOT_END_SIGNAL SIGUSR2

/* In a freshly forked child: standard streams on /dev/null, every other descriptor but fd closed, PR_SET_PDEATHSIG set.
 * Serves fd until it ends, or ends the process at once if the slot cannot be made. */
void slot_main(int fd, const struct sandbox_settings *settings) __attribute__((noreturn));

#endif
