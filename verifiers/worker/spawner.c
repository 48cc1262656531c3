/* The service's side of the spawner. */
#include "verifiers/worker/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "server/base/cleanup.h"
#include "server/base/sanitizer.h"
#include "verifiers/worker/own_program_private.h"
#include "verifiers/worker/spawner_wire_private.h"
#include "verifiers/worker/worker.h"

#define STOP_MS 1000

/* Nothing of the service's environment goes along, but a sanitizer's settings. */
static char **minimal_environment(char *room[2])
{
    char *settings = UNDER_SANITIZER ? getenv("ASAN_OPTIONS") : NULL;

    room[0] = settings ? settings - strlen("ASAN_OPTIONS=") : NULL;
    room[1] = NULL;
    return room;
}

#define PROGRAM_FD (SPAWNER_FD + 1)

/* program: the descriptor that is executed; -1: none. */
static int describe_start(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int fd, int program)
{
    sigset_t none;
    int error;

    sigemptyset(&none);
    error = posix_spawn_file_actions_adddup2(actions, fd, SPAWNER_FD);
    if (!error && program >= 0)
        error = posix_spawn_file_actions_adddup2(actions, program, PROGRAM_FD);
    if (!error)
        error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDWR, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(actions, 0, 1);
    if (!error)
        error = posix_spawn_file_actions_addclosefrom_np(actions, program >= 0 ? PROGRAM_FD + 1 : PROGRAM_FD);
    if (!error)
        error = posix_spawnattr_setsigmask(attributes, &none);
    if (!error)
        error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
    return error;
}

static int start_process(int fd, pid_t *ret_pid)
{
    char *const arguments[] = {(char *)(uintptr_t)SPAWNER_ARGV0, (char *)(uintptr_t)SPAWNER_ARGV1, NULL};
    /* A sanitizer looks for its symbols in the file. */
    _cleanup_close_ int program = UNDER_SANITIZER ? -1 : own_program_copy();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char path[32];
    char *room[2];
    int error;

    if (program >= 0)
        snprintf(path, sizeof path, "/proc/self/fd/%d", PROGRAM_FD);
    else
        snprintf(path, sizeof path, "/proc/self/exe");
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    error = describe_start(&actions, &attributes, fd, program);
    if (!error)
        error = posix_spawn(ret_pid, path, &actions, &attributes, arguments, minimal_environment(room));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return error ? -1 : 0;
}

int spawner_start(struct spawner *ret_spawner)
{
    _cleanup_close_ int theirs = -1;
    int pair[2];

    *ret_spawner = (struct spawner){0, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    theirs = pair[1];
    /* Only this end: the flag belongs to the open description, and the spawner waits in its writes. */
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0 || start_process(theirs, &ret_spawner->pid) < 0) {
        close(pair[0]);
        return -1;
    }
    ret_spawner->fd = pair[0];
    return 0;
}

/* True once it has ended. */
static bool ends_within(pid_t pid, int limit_ms)
{
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd polled = {fd, POLLIN, 0};

    return fd >= 0 && poll(&polled, 1, limit_ms) == 1;
}

void spawner_stop(struct spawner *spawner)
{
    if (spawner->fd >= 0)
        close(spawner->fd);
    if (spawner->pid > 0) {
        /* On EOF it kills and reaps its workers itself; killed, it would leave that to PDEATHSIG and to process 1. */
        if (!ends_within(spawner->pid, STOP_MS))
            kill(spawner->pid, SIGKILL);
        while (waitpid(spawner->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    *spawner = (struct spawner){0, -1};
}

static int order(const struct spawner *spawner, const struct spawner_order *message)
{
    return send(spawner->fd, message, sizeof *message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

int spawner_make_worker(const struct spawner *spawner, uint32_t id, const struct sandbox_settings *sandbox)
{
    struct spawner_order message = {.kind = SPAWNER_ORDER_MAKE, .id = id};

    if (sandbox) {
        message.worker_kind = WORKER_CODE;
        message.sandbox = *sandbox;
    }
    return order(spawner, &message);
}

int spawner_kill_worker(const struct spawner *spawner, uint32_t id)
{
    return order(spawner, &(struct spawner_order){.kind = SPAWNER_ORDER_KILL, .id = id});
}

int spawner_probe(const struct spawner *spawner, const struct sandbox_settings *sandbox)
{
    return order(spawner, &(struct spawner_order){.kind = SPAWNER_ORDER_PROBE, .sandbox = *sandbox});
}

#define PASSED 2

/* Both or none: a process that has no place for one of them gets the others, which nobody would ever close. */
static bool passed_descriptors(struct msghdr *message, int ret_fds[PASSED])
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(message);
    size_t count = 0;

    ret_fds[0] = ret_fds[1] = -1;
    if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
        count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (count > 0)
        memcpy(ret_fds, CMSG_DATA(control), (count < PASSED ? count : PASSED) * sizeof(int));
    if (count == PASSED)
        return true;
    closep(&ret_fds[0]);
    closep(&ret_fds[1]);
    return false;
}

/* Its size is sealed: a worker cannot take it away from under the service. */
static const struct worker_page *map_page(int fd)
{
    void *page = mmap(NULL, sizeof(struct worker_page), PROT_READ, MAP_SHARED, fd, 0);

    return page == MAP_FAILED ? NULL : page;
}

void worker_page_unmap(const struct worker_page *page)
{
    if (page)
        munmap((void *)(uintptr_t)page, sizeof *page);
}

void spawner_receive(const struct spawner *spawner, struct spawner_event *ret_event)
{
    struct spawner_report report;
    struct iovec part = {&report, sizeof report};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    int fds[2];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t count = recvmsg(spawner->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *ret_event = (struct spawner_event){.kind = SPAWNER_NOTHING, .fd = -1};
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count != sizeof report) {
        ret_event->kind = SPAWNER_GONE;
        return;
    }
    ret_event->kind = (enum spawner_event_kind)report.kind;
    ret_event->id = report.id;
    ret_event->error = report.kind == SPAWNER_FAILED ? report.value : 0;
    if (passed_descriptors(&message, fds)) {
        ret_event->fd = fds[0];
        ret_event->page = map_page(fds[1]);
        close(fds[1]);
    } else if (report.kind == SPAWNER_MADE) { /* the worker ends, as its socket has */
        ret_event->kind = SPAWNER_FAILED;
        ret_event->error = EMFILE;
    }
    ret_event->status = report.kind == SPAWNER_ENDED ? report.value : 0;
    ret_event->probed = report.probed;
}
