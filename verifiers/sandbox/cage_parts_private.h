/* Shared by the files of the cage. */
#ifndef VERIFIERS_SANDBOX_CAGE_PARTS_PRIVATE_H
#define VERIFIERS_SANDBOX_CAGE_PARTS_PRIVATE_H

#include "verifiers/sandbox/cage_private.h"

#include <linux/filter.h>

#define BOX_PATH "/box"
#define CAGE_INSIDE_ID 1000 /* user and group of programs, in their namespace */
#define CAGE_INIT_STACK_BYTES (16 << 10)
#define CAGE_STATUS_FD 5 /* in a program's process, until it begins */
#define CAGE_COMMAND_FD 6

/* The version of Landlock's interface that the kernel offers. 0: none. */
int cage_landlock_abi(void);

/* A ruleset. box: a descriptor of a program's folder, at the reduced level. At the full one -1: the files that a program
 * sees are its mount namespace's business, and Landlock keeps signals, abstract sockets and TCP in. -1 with errno. */
int cage_landlock_make(int abi, int box, const struct sandbox_settings *settings);

/* The filter of programs, in memory that stays. -1 with errno. */
int cage_filter_make(enum sandbox_level level, int landlock_abi, struct sock_fprog *ret_filter);

/* In a new mount namespace: makes the read-only root and enters it. CAGE_NONE, or the step that failed, with errno. */
enum cage_step cage_root_enter(const struct sandbox_settings *settings);

/* At the reduced level a box is a folder of a file system that is there, in one for all boxes of this process. Those of
 * dead processes are taken away. A descriptor of it, locked, or -1 with errno: the folder is in use until it is closed,
 * and so are its copies in the processes that were forked meanwhile. */
int cage_boxes_make(char *ret_path, size_t path_bytes);
/* The name of a box: a holder and its zygote run programs at once, in one folder of boxes. launcher: the process that starts it. */
#define CAGE_BOX_NAME_BYTES 24
void cage_box_name(pid_t launcher, int slot, char ret_name[CAGE_BOX_NAME_BYTES]);
/* Removes a box with files of any depth, mode and name, as a program may have left them. -1 with errno: something is left. */
int cage_box_remove(int boxes, const char *name);

/* How many processes and threads the user has, as far as /proc tells. */
int64_t cage_processes_of_user(void);

struct cage {
    enum sandbox_level level;
    struct sandbox_settings settings;
    int pid_namespace; /* full: the holder's, to come back to */
    int landlock_abi;
    int landlock; /* full: the ruleset of all programs. -1: none */
    int boxes;    /* reduced, none: the folder of boxes */
    char boxes_path[64];
    int64_t foreign_processes; /* reduced, none: of this user, when the holder was made */
    struct sock_fprog filter;
    char *environment[16];
    char search_path[SANDBOX_PATH_BYTES + 64]; /* of a program with a virtual environment: made anew for each */
    char virtual_environment[SANDBOX_PATH_BYTES + 16];
    char home[96];
    char temporary[96];
    bool busy[CAGE_CHILDREN_MAX];
    int box_mounts
        [CAGE_CHILDREN_MAX]; /* full: of those that are busy, so that one can be looked at when its program is gone */
    char *stacks;            /* full: of inits */
};

/* In a program's process: everything, then program->run. Tells status (a descriptor) if something fails. */
void cage_enter(struct cage *cage, const struct cage_program *program, int slot, int status) __attribute__((noreturn));

/* The file system of a box, mounted nowhere yet: a descriptor, or -1 with errno. Full level. */
int cage_box_make(const struct sandbox_limits *limits);
/* Nothing more can be written to it. */
bool cage_box_is_full(int box_mount);

/* Makes a pid namespace with its init. The caller's next child will be in it, too. -1 with errno. */
pid_t cage_init_spawn(const struct cage *cage, int slot);

#endif
