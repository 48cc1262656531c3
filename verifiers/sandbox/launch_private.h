/* launch: the requests of the slot to a launcher (the holder, or its zygote), and its reports.
 *
 * One SOCK_SEQPACKET socket. An order is one message of fixed size, with descriptors by SCM_RIGHTS. The texts of a task
 * are in a memfd that a launcher maps, but does not read: what it had read once, be it with a register that was then
 * saved on its stack, the next program of Python could find in its memory. Both ends are our own code, and no program
 * has the socket; still a launcher checks what it is told. */
#ifndef VERIFIERS_SANDBOX_LAUNCH_PRIVATE_H
#define VERIFIERS_SANDBOX_LAUNCH_PRIVATE_H

#include "verifiers/sandbox/cage_private.h"
#include "verifiers/sandbox/sandbox.h"

#include <sys/mman.h>

#define TASK_ARGUMENTS_MAX (SANDBOX_ARGUMENTS_MAX + 2) /* with what runs the file, and the file */
#define TASK_FILES_MAX (SANDBOX_FILES_MAX + 2)         /* with the source, and testlib.h */
#define LAUNCH_TASKS_MAX 2                             /* at once */
#define LAUNCH_STAYERS_MAX 2                           /* beside them: processes that stay, at the places behind */
#define LAUNCH_PLACES (LAUNCH_TASKS_MAX + LAUNCH_STAYERS_MAX)

/* A program as a launcher starts it. */
struct task {
    const char *arguments[TASK_ARGUMENTS_MAX]; /* its own name is the first; for Python: its file in the box */
    size_t argument_count;
    struct sandbox_file files[TASK_FILES_MAX];
    size_t file_count;
    struct sandbox_limits limits;
    const char *venv; /* NULL: none */
    int binary;       /* executed; -1: the file that arguments[0] names (a zygote: its Python) */
};

enum launch_kind {
    LAUNCH_TASK,
    LAUNCH_KILL,   /* the tree of a task; its end is reported */
    LAUNCH_ZYGOTE, /* a holder: to make a zygote, which serves the socket that comes along */
    LAUNCH_HOLDER, /* a keeper: the same for a holder, and what else it had is ended */
    LAUNCH_BARE    /* a keeper: the same for a launcher of bare commands, beside the holder */
};

struct launch_order {
    uint32_t kind;
    uint32_t index;   /* of the task: below LAUNCH_PLACES */
    struct task task; /* pointers into `texts` */
    int fds[CAGE_FDS];
    int launcher; /* ZYGOTE, HOLDER: its socket */
    char *texts;  /* mapped; MAP_FAILED: there are none */
    size_t length_bytes;
};
#define LAUNCH_ORDER_NONE                                                                                              \
    ((struct launch_order){.fds = {-1, -1, -1, -1, -1}, .launcher = -1, .task = {.binary = -1}, .texts = MAP_FAILED})

enum launch_report_kind {
    LAUNCH_FAILED, /* it cannot be made: message says why. It is of no use */
    LAUNCH_BEGAN,  /* may be left out if the end comes at once */
    LAUNCH_ENDED   /* and everything that it left is gone */
};

struct launch_report {
    uint32_t kind;
    uint32_t index;
    pid_t sender;        /* as the reader sees it; from the kernel */
    pid_t init, program; /* as the launcher sees them; init 0: there is none */
    int32_t status;      /* ENDED: as of waitpid */
    int32_t began;       /* ENDED: 0: its set-up failed */
    int32_t box_full;    /* ENDED: there was no room left in its box */
    int32_t step, error; /* of the set-up: enum cage_step, errno */
    int64_t at_us;       /* monotonic */
    int64_t began_us;    /* ENDED */
    int64_t cpu_us;      /* ENDED: of those that were waited for */
    int64_t peak_bytes;  /* ENDED: resident, of the largest process, with what it shares */
    char message[160];
};

/* All return 0, or -1 with errno. Descriptors stay the sender's. fds: CAGE_FDS of them, -1 for none. */
int launch_send_task(int socket, uint32_t index, const struct task *task, const int *fds);
int launch_send_kill(int socket, uint32_t index);
int launch_send_zygote(int socket, int zygote);
int launch_send_holder(int socket, int holder);
int launch_send_bare(int socket, int bare);
/* Waits for it. *ret_order owns its descriptors and its mapping: it is to be finished. -1: the slot is gone, or nonsense. */
int launch_receive(int socket, struct launch_order *ret_order);
void launch_order_finish(struct launch_order *order);

int launch_report(int socket, const struct launch_report *report);
/* Never waits. 0 with *ret_report, 1: nothing yet, -1: the launcher is gone. The socket has SO_PASSCRED. */
int launch_read_report(int socket, struct launch_report *ret_report);

#endif
