/* cage: everything that makes one process harmless.
 *
 * A process calls cage_hold() once and is a holder from then on: in user, network, uts, mount and pid namespaces of its
 * own, on a read-only root with little more than /usr. It, and the children that it forks (the Python zygote), call
 * cage_spawn() for each program: a process in pid, mount and ipc namespaces of its own, with a private /box, limits, no
 * capability, Landlock and a seccomp filter. At the reduced level there are no namespaces: Landlock, the filter and a
 * process group must do. At the level none there is nothing but a session, limits and closed descriptors: for a command
 * that the settings want so.
 *
 * Not thread-safe, and a holder has no threads. It neither ignores nor handles signals; it may block them (a program
 * starts with none blocked, SIGPIPE and SIGCHLD as they are by default). */
#ifndef VERIFIERS_SANDBOX_CAGE_PRIVATE_H
#define VERIFIERS_SANDBOX_CAGE_PRIVATE_H

#include "server/base/text.h"
#include "verifiers/sandbox/sandbox.h"
#include "verifiers/sandbox/slot.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Where a set-up can fail: its name, and what may be changed then. */
#define CAGE_STEPS(STEP)                                                                                               \
    STEP(NONE, "")                                                                                                     \
    STEP(DROP_ROOT, "drop root")                                                                                       \
    STEP(USER_NAMESPACE, "user namespace")                                                                             \
    STEP(ID_MAP, "id map")                                                                                             \
    STEP(NAMESPACES, "namespaces")                                                                                     \
    STEP(ROOT, "read-only root")                                                                                       \
    STEP(DEVICES, "devices")                                                                                           \
    STEP(SETTINGS, "folders of the settings")                                                                          \
    STEP(PROC, "proc")                                                                                                 \
    STEP(FORK, "fork")                                                                                                 \
    STEP(INIT, "init")                                                                                                 \
    STEP(PROGRAM_NAMESPACES, "namespaces of a program")                                                                \
    STEP(BOX, "box")                                                                                                   \
    STEP(FILES, "files in the box")                                                                                    \
    STEP(DESCRIPTORS, "descriptors")                                                                                   \
    STEP(LIMITS, "limits")                                                                                             \
    STEP(CAPABILITIES, "capabilities")                                                                                 \
    STEP(LANDLOCK, "landlock")                                                                                         \
    STEP(FILTER, "seccomp filter")                                                                                     \
    STEP(EXEC, "exec")                                                                                                 \
    STEP(ESCAPE, "self-test")

enum cage_step {
#define STEP(name, text) CAGE_##name,
    CAGE_STEPS(STEP)
#undef STEP
        CAGE_STEP_COUNT
};
extern const char *const cage_step_names[CAGE_STEP_COUNT];

struct cage_failure {
    enum cage_step step; /* CAGE_NONE: nothing failed */
    int error;           /* errno */
};

struct cage; /* of one holder, and a copy of each child that it forks */

/* Root becomes this user and group, for good. Anybody else stays who he is, and so does root of a user namespace that has
 * no other user: outside of it he is an ordinary one. -1 with errno. */
int cage_drop_root(uid_t uid);

/* Makes the calling process a holder of settings->level, root dropped first if it is root. NULL
 * with *ret_failure: the process is then good for nothing but _exit.
 *
 * At the full level it forks: who returns is a child, the first process of its pid namespace, and the process that
 * called waits for it with every descriptor closed, and ends as it ends. Kill that one, and the kernel ends the holder
 * and all that is below it. Pids that a holder sees are those of its namespace.
 *
 * The holder and its children are not dumpable. Every descriptor that a holder has is closed in its programs. */
struct cage *cage_hold(const struct sandbox_settings *settings, struct cage_failure *ret_failure);

/* The whole environment of an exec'ed program: names and values, NULL at the end. HOME and TMPDIR are the box; at
 * the reduced level every program has a box of its own, and these are right only in it (cage_exec does it). A zygote puts
 * them into its environ. */
char *const *cage_environment(const struct cage *cage);

/* Takes away what dead holders of this user, and the calling process, have left of boxes. A holder of the reduced level is
 * ended by a signal: its keeper does it then, or else the next holder. At the full level nothing is ever left. A folder is
 * left if nobody has it locked. */
void cage_boxes_sweep(void);

struct cage_file {     /* put into the box before the program starts; it may write to it */
    const char *name;  /* no slash */
    struct text bytes; /* TEXT_NONE: the whole file behind fd instead, which must be a regular one or a memfd */
    int fd;
    bool executable;
};

#define CAGE_FDS 5

struct cage_program {
    int fds[CAGE_FDS]; /* become 0 to 4: standard streams, records, peer; 3 and 4 may be -1. The caller keeps its own */
    struct sandbox_limits limits; /* what a kernel keeps of them: cpu_ms of each process (whole seconds, rounded up,
                                     plus one), memory_bytes of each process, disk_bytes, processes. The rest is the
                                     caller's */
    const struct cage_file *files;
    size_t file_count;
    const char *venv; /* an exec'ed program finds what is in its bin first; NULL */
    /* Called in the program's process once it is caged, in its box. Must not return: what does is a status of 127.
     * cage_exec, or a function of the holder's own (Python). */
    void (*run)(void *arg);
    void *arg;
};

/* The arg of cage_exec: a program behind a path or a descriptor (a memfd; not a script). Only if it cannot be exec'ed has
 * the set-up failed. */
struct cage_command {
    const char *path;             /* absolute, or relative to the box */
    int fd;                       /* if path is NULL */
    const char *const *arguments; /* argv, NULL at the end */
};
void cage_exec(void *arg);

#define CAGE_CHILDREN_MAX 4 /* at once, of one holder */

struct cage_child {
    pid_t program; /* 0: none. As the caller sees it, who is its parent; wait with WNOWAIT only, or by cage_wait() */
    pid_t init;    /* full level: kill it, and everything in the program's pid namespace dies. Reduced: 0 */
    int status_fd; /* readable when the program begins (end of file) or when its set-up failed */
    int slot;      /* private */
    bool box_full; /* behind cage_wait(), full level: at the program's end there was no room left in its box */
};

/* Starts a program; it may still fail to begin (cage_wait tells). -1: nothing was started, *ret_failure says why. */
int cage_spawn(struct cage *cage, const struct cage_program *program, struct cage_child *ret_child,
               struct cage_failure *ret_failure);

/* Ends the program and all its descendants at once. cage_wait() must follow. */
void cage_kill(const struct cage_child *child);

/* Waits until the program has ended, then ends whatever it left, waits until that is gone, and takes its box away.
 * *ret_status as of waitpid. *ret_failure: step NONE, or why it never began (the status then means nothing); nothing that
 * a program does can make it look so. Both out-parameters may be NULL. -1 with errno if there is no such child. */
int cage_wait(struct cage *cage, struct cage_child *child, int *ret_status, struct rusage *ret_usage,
              struct cage_failure *ret_failure);

#endif
