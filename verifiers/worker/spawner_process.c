/* The spawner itself: one small process without threads. It forks workers and their slots, kills them when told, reaps
 * them, ends on EOF. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/sanitizer.h"
#include "server/base/signals.h"
#include "verifiers/sandbox/probe.h"
#include "verifiers/sandbox/slot.h"
#include "verifiers/worker/spawner.h"
#include "verifiers/worker/spawner_wire_private.h"
#include "verifiers/worker/worker.h"

#define CHILDREN_MAX 1024
#define SLOT_END_US (5 * US_PER_S) /* for the end of a slot with all its programs; then it is killed */

/* A worker and its slot. */
struct child {
    uint32_t id;
    pid_t pid;               /* 0: ended */
    pid_t slot;              /* 0: ended, or there was none. The place is free when both are */
    int64_t slot_ends_by_us; /* NEVER_US: it need not end */
};

struct state {
    struct child children[CHILDREN_MAX];
    int signals; /* signalfd for SIGCHLD */
};

static struct child *find_child(struct state *state, uint32_t id)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++)
        if (state->children[i].pid && state->children[i].id == id)
            return &state->children[i];
    return NULL;
}

static struct child *free_child(struct state *state)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++)
        if (!state->children[i].pid && !state->children[i].slot)
            return &state->children[i];
    return NULL;
}

/* fds: passed along; NULL: none. A service that is gone is noticed by the next read. */
static void send_report(struct spawner_report *what, const int fds[2])
{
    struct iovec part = {what, sizeof *what};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fds) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), fds, 2 * sizeof(int));
    }
    while (sendmsg(SPAWNER_FD, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

static void report(enum spawner_event_kind kind, uint32_t id, int value, const int fds[2])
{
    send_report(&(struct spawner_report){.kind = kind, .id = id, .value = value}, fds);
}

/* In the child: keep the descriptors that are given, as 3 and 4 (-1: none), and nothing else. Standard error stays only
 * where a sanitizer reports to it. */
static void become_child(const char *name, int fd, int another, pid_t parent)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    /* Out of the way of 3 and 4, then to their places. */
    if (another >= 0 && (another = fcntl(another, F_DUPFD, WORKER_SLOT_FD + 1)) < 0)
        _exit(1);
    if (dup2(fd, SPAWNER_FD) < 0 || (another >= 0 && dup2(another, WORKER_SLOT_FD) < 0))
        _exit(1);
    if (close_range(another >= 0 ? WORKER_SLOT_FD + 1 : SPAWNER_FD + 1, ~0u, 0) < 0 || chdir("/") < 0)
        _exit(1);
    if (!UNDER_SANITIZER && dup2(0, 2) < 0)
        _exit(1);
}

/* A page that says that nothing is graded, of a size that cannot be changed. -1 with errno. */
static int make_page(struct worker_page **ret_page)
{
    int fd = memfd_create("worker-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *page = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof **ret_page) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        page = mmap(NULL, sizeof **ret_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        closep(&fd);
        return -1;
    }
    *ret_page = page;
    (*ret_page)->at = WORKER_READS;
    return fd;
}

/* The descriptors of a new worker: ends of sockets; -1: none. */
struct making {
    int service[2]; /* the service's end, the worker's end */
    int slot[2];    /* the worker's end, the slot's end */
    int page_fd;
    struct worker_page *page;
};

static void making_finish(struct making *making)
{
    closep(&making->service[0]);
    closep(&making->service[1]);
    closep(&making->slot[0]);
    closep(&making->slot[1]);
    closep(&making->page_fd);
    if (making->page)
        munmap(making->page, sizeof *making->page);
}

static int make_sockets(struct making *making, bool with_slot)
{
    making->page_fd = make_page(&making->page);
    if (making->page_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, making->service) < 0 ||
        fcntl(making->service[0], F_SETFL, O_NONBLOCK) < 0)
        return -1;
    return with_slot ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, making->slot) : 0;
}

static pid_t fork_slot(const struct making *making, const struct sandbox_settings *sandbox)
{
    pid_t self = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        become_child("sandbox-slot", making->slot[1], -1, self);
        slot_main(SPAWNER_FD, sandbox);
    }
    return pid;
}

static pid_t fork_worker(const struct making *making, const struct sandbox_settings *sandbox)
{
    pid_t self = getpid();
    pid_t pid = fork();

    if (pid == 0) {
        become_child(sandbox ? "code-worker" : "text-worker", making->service[1], making->slot[0], self);
        worker_main(SPAWNER_FD, sandbox, making->page);
    }
    return pid;
}

/* sandbox: NULL: no slot. */
static int make_child(struct child *child, uint32_t id, const struct sandbox_settings *sandbox, struct making *making)
{
    pid_t slot = 0;
    pid_t pid;

    if (make_sockets(making, sandbox != NULL) < 0 || (sandbox && (slot = fork_slot(making, sandbox)) < 0))
        return -1;
    pid = fork_worker(making, sandbox);
    if (pid < 0 && !slot)
        return -1;
    *child = (struct child){id, pid < 0 ? 0 : pid, slot, pid < 0 ? 0 : NEVER_US};
    return pid < 0 ? -1 : 0;
}

static void make_worker(struct state *state, const struct spawner_order *order)
{
    struct child *child = free_child(state);
    const struct sandbox_settings *sandbox = order->worker_kind == WORKER_CODE ? &order->sandbox : NULL;
    struct making making = {{-1, -1}, {-1, -1}, -1, NULL};

    if (!child)
        report(SPAWNER_FAILED, order->id, EMFILE, NULL);
    else if (make_child(child, order->id, sandbox, &making) < 0)
        report(SPAWNER_FAILED, order->id, errno, NULL);
    else
        report(SPAWNER_MADE, order->id, 0, (int[]){making.service[0], making.page_fd});
    making_finish(&making);
}

/* In a child of its own, so that workers are made and reaped meanwhile. */
static void probe(const struct sandbox_settings *sandbox)
{
    struct spawner_report what = {.kind = SPAWNER_PROBED};
    pid_t self = getpid();
    pid_t pid = fork();

    if (pid > 0)
        return;
    if (pid == 0)
        become_child("sandbox-probe", SPAWNER_FD, -1, self);
    if (pid == 0)
        sandbox_probe(sandbox, &what.probed);
    else
        snprintf(what.probed.advice, sizeof what.probed.advice, "the trial could not be made: %s", strerror(errno));
    send_report(&what, NULL);
    if (pid == 0)
        _exit(0);
}

/* It ends what runs in it, and then itself. */
static void end_slot(struct child *child)
{
    if (!child->slot || child->slot_ends_by_us != NEVER_US)
        return;
    kill(child->slot, SLOT_END_SIGNAL);
    child->slot_ends_by_us = clock_monotonic_us() + SLOT_END_US;
}

static void kill_worker(struct state *state, uint32_t id)
{
    struct child *child = find_child(state, id);

    if (!child)
        return;
    kill(child->pid, SIGKILL);
    end_slot(child);
}

static void note_end(struct child *child, pid_t pid, int status)
{
    if (child->pid == pid) {
        child->pid = 0;
        end_slot(child);
        report(SPAWNER_ENDED, child->id, status, NULL);
    } else if (child->slot == pid) {
        child->slot = 0;
        if (child->pid)
            report(SPAWNER_SLOT_ENDED, child->id, status, NULL);
    }
}

static void reap(struct state *state)
{
    struct signalfd_siginfo ignored;
    int status;
    pid_t pid;

    if (read(state->signals, &ignored, sizeof ignored) < 0 && errno != EAGAIN)
        _exit(1);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < CHILDREN_MAX; i++)
            note_end(&state->children[i], pid, status);
}

/* Kills slots that have not ended in time. When to look again, in milliseconds; -1: never. */
static int kill_late_slots(struct state *state)
{
    int64_t now_us = clock_monotonic_us();
    int64_t next_us = NEVER_US;

    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        struct child *child = &state->children[i];
        if (!child->slot || child->slot_ends_by_us == NEVER_US)
            continue;
        if (child->slot_ends_by_us <= now_us) {
            kill(child->slot, SIGKILL);
            child->slot_ends_by_us = now_us + SLOT_END_US;
        }
        if (child->slot_ends_by_us < next_us)
            next_us = child->slot_ends_by_us;
    }
    return next_us == NEVER_US ? -1 : (int)((next_us - now_us) / US_PER_MS) + 1;
}

static void end_with_children(struct state *state)
{
    for (size_t i = 0; i < CHILDREN_MAX; i++) {
        if (state->children[i].pid)
            kill(state->children[i].pid, SIGKILL);
        end_slot(&state->children[i]);
    }
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
    _exit(0);
}

static void obey(struct state *state)
{
    struct spawner_order order;
    ssize_t count = recv(SPAWNER_FD, &order, sizeof order, MSG_DONTWAIT);

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count != sizeof order) /* the service is gone: so are we, and the workers with us */
        end_with_children(state);
    if (order.kind == SPAWNER_ORDER_MAKE)
        make_worker(state, &order);
    else if (order.kind == SPAWNER_ORDER_KILL)
        kill_worker(state, order.id);
    else if (order.kind == SPAWNER_ORDER_PROBE)
        probe(&order.sandbox);
}

/* A terminal's or a supervisor's signal to the whole group must not take the workers from a service that drains. */
static void set_signals(struct state *state)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t child;

    signals_ignore_meaningless();
    for (size_t i = 0; i < ARRAY_LENGTH(ignored); i++)
        signal(ignored[i], SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_SETMASK, &child, NULL);
    state->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (state->signals < 0)
        _exit(1);
}

static void serve(void)
{
    static struct state state;
    struct pollfd polled[2];

    prctl(PR_SET_NAME, "spawner", 0, 0, 0);
    close_range(SPAWNER_FD + 1, ~0u, 0); /* of the program that it was started from */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* whatever a killed slot leaves is reaped here */
    set_signals(&state);
    polled[0] = (struct pollfd){SPAWNER_FD, POLLIN, 0};
    polled[1] = (struct pollfd){state.signals, POLLIN, 0};
    for (;;) {
        if (poll(polled, 2, kill_late_slots(&state)) < 0 && errno != EINTR)
            _exit(1);
        if (polled[1].revents)
            reap(&state);
        if (polled[0].revents)
            obey(&state);
    }
}

void spawner_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[0], SPAWNER_ARGV0) == 0 && strcmp(argv[1], SPAWNER_ARGV1) == 0)
        serve();
}
