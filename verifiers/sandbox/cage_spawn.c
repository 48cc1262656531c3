/* The holder's side of a program: start, kill, wait. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"

static int free_slot(const struct cage *cage)
{
    for (int i = 0; i < CAGE_CHILDREN_MAX; i++)
        if (!cage->busy[i])
            return i;
    errno = EAGAIN;
    return -1;
}

static pid_t wait_for(pid_t pid, int *ret_status, struct rusage *ret_usage)
{
    pid_t result;

    do
        result = wait4(pid, ret_status, 0, ret_usage);
    while (result < 0 && errno == EINTR);
    return result;
}

static void end_init(pid_t init)
{
    if (init > 0) {
        kill(init, SIGKILL);
        wait_for(init, NULL, NULL);
    }
}

/* One that is exec'ed borrows this process's memory until then, which saves a copy of the page tables. So its set-up must
 * leave there nothing but what the next one's overwrites. */
static pid_t fork_program(struct cage *cage, const struct cage_program *program, int slot, const int pipe[2])
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork): posix_spawn cannot cage */
    pid_t pid = program->run == cage_exec ? vfork() : fork();

    if (pid == 0)
        cage_enter(cage, program, slot, pipe[1]);
    return pid;
}

#define BOX_FILES_MAX "4096"
#define FULL_BLOCKS 1 /* of a page: one that is left is of no use to a file that grows */

static int set_option(int context, const char *name, const char *value)
{
    return fsconfig(context, FSCONFIG_SET_STRING, name, value, 0);
}

int cage_box_make(const struct sandbox_limits *limits)
{
    _cleanup_close_ int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    char size[24];

    snprintf(size, sizeof size, "%lld", (long long)limits->disk_bytes);
    if (context < 0 || set_option(context, "size", size) < 0 || set_option(context, "nr_inodes", BOX_FILES_MAX) < 0 ||
        set_option(context, "mode", "0700") < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    return fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

bool cage_box_is_full(int box_mount)
{
    struct statfs left;

    return fstatfs(box_mount, &left) == 0 && (left.f_bfree <= FULL_BLOCKS || left.f_ffree == 0);
}

/* The program is forked while the caller's children go to the new pid namespace. */
static enum cage_step spawn_both(struct cage *cage, const struct cage_program *program, const int pipe[2],
                                 struct cage_child *child)
{
    enum cage_step step = CAGE_NONE;
    int error;

    if (cage->level == SANDBOX_LEVEL_FULL) {
        cage->box_mounts[child->slot] = cage_box_make(&program->limits);
        step = cage->box_mounts[child->slot] < 0 ? CAGE_BOX : CAGE_NONE;
    }
    if (cage->level == SANDBOX_LEVEL_FULL && step == CAGE_NONE) {
        child->init = cage_init_spawn(cage, child->slot);
        step = child->init < 0 ? CAGE_INIT : CAGE_NONE;
    }
    if (step == CAGE_NONE) {
        child->program = fork_program(cage, program, child->slot, pipe);
        step = child->program < 0 ? CAGE_FORK : CAGE_NONE;
    }
    error = errno;
    if (cage->level == SANDBOX_LEVEL_FULL && setns(cage->pid_namespace, CLONE_NEWPID) < 0 && step == CAGE_NONE) {
        error = errno;
        step = CAGE_INIT;
    }
    errno = error;
    return step;
}

static void close_box(struct cage *cage, int slot)
{
    if (cage->level != SANDBOX_LEVEL_FULL || slot < 0)
        return;
    closep(&cage->box_mounts[slot]);
    cage->box_mounts[slot] = -1;
}

static int give_up(struct cage *cage, struct cage_child *child, enum cage_step step, struct cage_failure *ret_failure)
{
    *ret_failure = (struct cage_failure){step, errno};
    close_box(cage, child->slot);
    if (child->program > 0) {
        kill(child->program, SIGKILL);
        wait_for(child->program, NULL, NULL);
    }
    end_init(child->init);
    *child = (struct cage_child){.status_fd = -1};
    return -1;
}

int cage_spawn(struct cage *cage, const struct cage_program *program, struct cage_child *ret_child,
               struct cage_failure *ret_failure)
{
    int pipe[2] = {-1, -1};
    enum cage_step step;

    *ret_child = (struct cage_child){.status_fd = -1, .slot = free_slot(cage)};
    if (ret_child->slot < 0)
        return give_up(cage, ret_child, CAGE_FORK, ret_failure);
    cage->box_mounts[ret_child->slot] = -1;
    if (pipe2(pipe, O_CLOEXEC) < 0)
        return give_up(cage, ret_child, CAGE_DESCRIPTORS, ret_failure);
    step = spawn_both(cage, program, pipe, ret_child);
    close(pipe[1]);
    if (step != CAGE_NONE) {
        close(pipe[0]);
        return give_up(cage, ret_child, step, ret_failure);
    }
    cage->busy[ret_child->slot] = true;
    ret_child->status_fd = pipe[0];
    return 0;
}

/* Reduced: the group is the program's until it is waited for, so that its number names nobody else. */
void cage_kill(const struct cage_child *child)
{
    if (child->program <= 0)
        return;
    if (child->init > 0) {
        kill(child->init, SIGKILL);
        return;
    }
    kill(-child->program, SIGKILL);
    kill(child->program, SIGKILL); /* it may not be the leader of its group yet */
}

/* All that the program has left are this process's children once their parents have ended, because it is a subreaper;
 * and none can have left the group. */
static void reap_group(pid_t group)
{
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR)
        continue;
}

/* Without taking the program's status: its number must stay its own until its group is dead. */
static void end_rest(const struct cage_child *child)
{
    siginfo_t info;

    if (child->init == 0) {
        while (waitid(P_PID, (id_t)child->program, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
            continue;
        cage_kill(child);
    }
}

/* Empty: it began. A program cannot write to the pipe: it is closed when it begins. */
static struct cage_failure read_failure(int status_fd)
{
    struct cage_failure failure = {CAGE_NONE, 0};
    ssize_t count;

    do
        count = read(status_fd, &failure, sizeof failure);
    while (count < 0 && errno == EINTR);
    return failure;
}

static void remove_box(struct cage *cage, int slot)
{
    char name[CAGE_BOX_NAME_BYTES];

    cage_box_name(getpid(), slot, name);
    if (cage->level != SANDBOX_LEVEL_FULL)
        cage_box_remove(cage->boxes, name);
}

int cage_wait(struct cage *cage, struct cage_child *child, int *ret_status, struct rusage *ret_usage,
              struct cage_failure *ret_failure)
{
    pid_t program = child->program;
    struct cage_failure failure;

    if (program <= 0) {
        errno = ECHILD;
        return -1;
    }
    end_rest(child);
    if (wait_for(program, ret_status, ret_usage) < 0)
        return -1;
    failure = read_failure(child->status_fd);
    if (ret_failure)
        *ret_failure = failure;
    close(child->status_fd);
    end_init(child->init);
    if (child->init == 0)
        reap_group(program);
    bool full = cage->level == SANDBOX_LEVEL_FULL && cage_box_is_full(cage->box_mounts[child->slot]);
    remove_box(cage, child->slot);
    close_box(cage, child->slot);
    cage->busy[child->slot] = false;
    *child = (struct cage_child){.status_fd = -1, .box_full = full};
    return 0;
}
