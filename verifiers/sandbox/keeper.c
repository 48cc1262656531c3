/* The keeper: the first process of a slot. It makes holders, and ends whatever is below it. It has never held a
 * program, and never will. */
#include "verifiers/sandbox/holder_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/image_private.h"
#include "verifiers/sandbox/launch_private.h"
#include "verifiers/sandbox/usage_private.h"

/* --- the holder's process --- */

static void holder_main(int socket, const struct sandbox_settings *settings, pid_t parent, const char *name)
{
    prctl(PR_SET_NAME, name, 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    if (dup2(socket, IMAGE_SOCKET_FD) < 0 || close_range(IMAGE_SOCKET_FD + 1, ~0u, 0) < 0)
        _exit(1);
    image_exec(settings);
    holder_serve(IMAGE_SOCKET_FD, settings);
}

/* --- the keeper's --- */

struct keeper {
    int socket;
    pid_t supervisor;
    pid_t holder;  /* 0: none */
    bool had_bare; /* and so boxes may be left */
    const struct sandbox_settings *settings;
};

static bool wait_one(struct keeper *keeper)
{
    pid_t pid = waitpid(-1, NULL, 0);

    if (pid > 0 && pid == keeper->supervisor)
        keeper->supervisor = 0;
    if (pid > 0 && pid == keeper->holder)
        keeper->holder = 0;
    return pid > 0 || errno == EINTR;
}

/* Kills all children except the supervisor. Orphans have become children of this process. */
static size_t kill_others(const struct keeper *keeper)
{
    pid_t pids[256];
    size_t count = usage_children(getpid(), pids, ARRAY_LENGTH(pids));
    size_t others = 0;

    for (size_t i = 0; i < count; i++)
        if (pids[i] != keeper->supervisor) {
            kill(pids[i], SIGKILL);
            others++;
        }
    return others;
}

static void end_others(struct keeper *keeper)
{
    if (keeper->holder)
        kill(keeper->holder, SIGKILL);
    while ((keeper->holder || kill_others(keeper)) && wait_one(keeper))
        continue;
}

static void end(struct keeper *keeper)
{
    if (keeper->supervisor)
        kill(keeper->supervisor, SIGKILL);
    keeper->supervisor = 0;
    end_others(keeper);
    while (wait_one(keeper))
        continue;
    if (keeper->settings->level == SANDBOX_LEVEL_REDUCED || keeper->had_bare)
        cage_boxes_sweep();
    _exit(0);
}

static void make_holder(struct keeper *keeper, int socket)
{
    pid_t self = getpid();
    pid_t pid;

    end_others(keeper);
    pid = fork();
    if (pid == 0)
        holder_main(socket, keeper->settings, self, "sandbox-holder");
    if (pid > 0)
        keeper->holder = pid;
}

/* One that is asked for again has died: what it left is ended first, with the next holder at the latest. */
static void make_bare(struct keeper *keeper, int socket)
{
    struct sandbox_settings settings = *keeper->settings;
    pid_t self = getpid();

    settings.level = SANDBOX_LEVEL_NONE;
    keeper->had_bare = true;
    if (fork() == 0)
        holder_main(socket, &settings, self, "sandbox-bare");
}

static void obey(struct keeper *keeper)
{
    struct launch_order order;

    if (launch_receive(keeper->socket, &order) < 0 || order.launcher < 0)
        end(keeper);
    if (order.kind == LAUNCH_HOLDER)
        make_holder(keeper, order.launcher);
    else if (order.kind == LAUNCH_BARE)
        make_bare(keeper, order.launcher);
    else
        end(keeper);
    launch_order_finish(&order);
    if (send(keeper->socket, "", 1, MSG_NOSIGNAL) != 1)
        end(keeper);
}

static void reap(struct keeper *keeper)
{
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == keeper->holder)
            keeper->holder = 0;
        if (pid == keeper->supervisor) {
            keeper->supervisor = 0;
            end(keeper);
        }
    }
}

static int open_signals(void)
{
    sigset_t wanted;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SLOT_END_SIGNAL);
    signal(SLOT_END_SIGNAL, SIG_DFL);
    sigprocmask(SIG_SETMASK, &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void see_signals(struct keeper *keeper, int signals)
{
    struct signalfd_siginfo seen[8];
    ssize_t count = read(signals, seen, sizeof seen);

    for (ssize_t i = 0; i < count / (ssize_t)sizeof *seen; i++)
        if (seen[i].ssi_signo == SLOT_END_SIGNAL)
            end(keeper);
    reap(keeper);
}

void keeper_serve(int socket, pid_t supervisor, const struct sandbox_settings *settings)
{
    struct keeper keeper = {.socket = socket, .supervisor = supervisor, .settings = settings};
    struct pollfd polled[2] = {{socket, POLLIN, 0}, {open_signals(), POLLIN, 0}};

    if (polled[1].fd < 0)
        end(&keeper);
    for (;;) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            end(&keeper);
        if (polled[1].revents)
            see_signals(&keeper, polled[1].fd);
        if (polled[0].revents)
            obey(&keeper);
    }
}
