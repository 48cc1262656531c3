/* The side of a holder and of its zygote: each has one socket with orders. It starts programs, and reports when they
 * began and when they ended. Between two orders it does nothing. */
#include "verifiers/sandbox/holder_private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "verifiers/sandbox/launch_private.h"
#include "verifiers/sandbox/python_private.h"

_Static_assert(LAUNCH_PLACES <= CAGE_CHILDREN_MAX, "a cage for each place");

struct running {
    bool used;
    bool settled; /* it has begun, or its set-up has failed */
    struct cage_child child;
    int64_t began_us;
};

struct launcher {
    int socket;
    int signals; /* signalfd for SIGCHLD */
    struct cage *cage;
    const struct sandbox_settings *settings; /* NULL: this is the zygote */
    pid_t zygote;
    struct running running[LAUNCH_PLACES];
};

static void report_or_end(const struct launcher *launcher, const struct launch_report *report)
{
    if (launch_report(launcher->socket, report) < 0)
        _exit(1); /* the slot is gone: as the holder ends, so does what is below it */
}

/* --- starting --- */

/* The argument of `run` of a program; it lives on the stack of start_task(), of which the program has a copy. */
struct start {
    struct cage_command command;
    const struct task *task;
    const char *arguments[TASK_ARGUMENTS_MAX + 1];
};

static void run_python(void *argument)
{
    const struct start *start = argument;
    const struct python_program program = {
        .file = start->arguments[0],
        .arguments = start->arguments + 1,
        .argument_count = start->task->argument_count - 1,
    };

    python_child(&program);
}

static size_t describe_files(const struct task *task, struct cage_file *ret_files)
{
    for (size_t i = 0; i < task->file_count; i++)
        ret_files[i] = (struct cage_file){.name = task->files[i].name, .bytes = task->files[i].bytes, .fd = -1};
    return task->file_count;
}

static int start_task(struct launcher *launcher, const struct launch_order *order, struct running *running,
                      struct cage_failure *ret_failure)
{
    const struct task *task = &order->task;
    struct cage_file files[TASK_FILES_MAX];
    struct start start = {.task = task};
    struct cage_program program = {.limits = task->limits,
                                   .files = files,
                                   .file_count = describe_files(task, files),
                                   .venv = task->venv,
                                   .run = cage_exec};

    memcpy(start.arguments, task->arguments, task->argument_count * sizeof *task->arguments);
    memcpy(program.fds, order->fds, sizeof program.fds);
    start.command = (struct cage_command){
        .path = task->binary < 0 ? start.arguments[0] : NULL, .fd = task->binary, .arguments = start.arguments};
    program.arg = &start.command;
    if (!launcher->settings) {
        program.run = run_python;
        program.arg = &start;
    }
    return cage_spawn(launcher->cage, &program, &running->child, ret_failure);
}

static void launch_task(struct launcher *launcher, const struct launch_order *order)
{
    struct running *running = &launcher->running[order->index];
    struct cage_failure failure;

    if (running->used || order->task.argument_count == 0)
        _exit(2);
    if (start_task(launcher, order, running, &failure) < 0) {
        struct launch_report report = {.kind = LAUNCH_ENDED,
                                       .index = order->index,
                                       .at_us = clock_monotonic_us(),
                                       .step = (int32_t)failure.step,
                                       .error = failure.error};
        report_or_end(launcher, &report);
        return;
    }
    running->used = true;
    running->settled = false;
    running->began_us = clock_monotonic_us();
}

/* --- zygote --- */

static void fail_zygote(int socket, const char *message)
{
    struct launch_report report = {.kind = LAUNCH_FAILED};

    snprintf(report.message, sizeof report.message, "%s", message);
    launch_report(socket, &report);
    _exit(1);
}

static void zygote_main(int socket, struct cage *cage, const struct sandbox_settings *settings)
{
    char message[sizeof((struct launch_report *)0)->message];

    prctl(PR_SET_NAME, "sandbox-zygote", 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* without namespaces, orphans of its programs come to it */
    environ = (char **)(uintptr_t)cage_environment(cage);
    if (python_zygote_init(settings->venv, message, sizeof message) < 0)
        fail_zygote(socket, message);
    launcher_serve(socket, cage, NULL);
}

static void make_zygote(struct launcher *launcher, const struct launch_order *order)
{
    pid_t pid;

    if (!launcher->settings || launcher->zygote || order->launcher < 0)
        _exit(2);
    pid = fork();
    if (pid == 0) {
        close(launcher->socket);
        close(launcher->signals);
        zygote_main(order->launcher, launcher->cage, launcher->settings);
    }
    if (pid < 0)
        fail_zygote(order->launcher, "no process for Python can be made");
    launcher->zygote = pid;
}

/* --- ends --- */

static int64_t time_us(struct timeval time)
{
    return (int64_t)time.tv_sec * US_PER_S + time.tv_usec;
}

/* The program has ended, or never began: its tree is ended, and gone, before this is said. */
static void report_end(struct launcher *launcher, uint32_t index)
{
    struct running *running = &launcher->running[index];
    struct launch_report report = {.kind = LAUNCH_ENDED,
                                   .index = index,
                                   .program = running->child.program,
                                   .init = running->child.init,
                                   .at_us = clock_monotonic_us(),
                                   .began_us = running->began_us};
    struct cage_failure failure = {0};
    struct rusage usage = {0};
    int status = 0;

    if (cage_wait(launcher->cage, &running->child, &status, &usage, &failure) < 0)
        _exit(3);
    running->used = false;
    report.status = status;
    report.began = failure.step == CAGE_NONE;
    report.step = (int32_t)failure.step;
    report.error = failure.error;
    report.cpu_us = time_us(usage.ru_utime) + time_us(usage.ru_stime);
    report.peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    report.box_full = running->child.box_full;
    report_or_end(launcher, &report);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* The holder is the first process of its namespace: what has lost its parent there is its child. */
static void reap_strangers(struct launcher *launcher)
{
    pid_t pid;

    for (size_t i = 0; i < LAUNCH_PLACES; i++)
        if (launcher->running[i].used)
            return;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        if (pid == launcher->zygote)
            launcher->zygote = 0;
}

static void see_ends(struct launcher *launcher)
{
    struct signalfd_siginfo ignored[8];

    if (read(launcher->signals, ignored, sizeof ignored) < 0 && errno != EAGAIN && errno != EINTR)
        _exit(1);
    for (uint32_t i = 0; i < LAUNCH_PLACES; i++)
        if (launcher->running[i].used && has_ended(launcher->running[i].child.program))
            report_end(launcher, i);
    reap_strangers(launcher);
}

/* --- the loop --- */

static void see_begin(struct launcher *launcher, uint32_t index, short events)
{
    struct running *running = &launcher->running[index];
    struct launch_report report = {.kind = LAUNCH_BEGAN,
                                   .index = index,
                                   .program = running->child.program,
                                   .init = running->child.init,
                                   .at_us = clock_monotonic_us()};

    if (!events || !running->used || running->settled)
        return;
    running->settled = true;
    if (events & POLLIN) /* a failure; the end is near, and says it */
        return;
    running->began_us = report.at_us;
    report_or_end(launcher, &report);
}

static void end_everything(struct launcher *launcher)
{
    for (size_t i = 0; i < LAUNCH_PLACES; i++)
        if (launcher->running[i].used)
            cage_kill(&launcher->running[i].child);
    for (size_t i = 0; i < LAUNCH_PLACES; i++)
        if (launcher->running[i].used)
            cage_wait(launcher->cage, &launcher->running[i].child, NULL, NULL, NULL);
    if (launcher->zygote) {
        /* It ends by itself: its socket has ended, too. */
        waitpid(launcher->zygote, NULL, 0);
    }
    _exit(0);
}

static void obey(struct launcher *launcher)
{
    struct launch_order order;

    if (launch_receive(launcher->socket, &order) < 0)
        end_everything(launcher);
    if (order.kind == LAUNCH_TASK)
        launch_task(launcher, &order);
    else if (order.kind == LAUNCH_KILL && launcher->running[order.index].used)
        cage_kill(&launcher->running[order.index].child);
    else if (order.kind == LAUNCH_ZYGOTE)
        make_zygote(launcher, &order);
    launch_order_finish(&order);
}

void launcher_blocked_signals(sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    for (size_t i = 0; i < ARRAY_LENGTH(slot_group_signals); i++)
        sigaddset(ret_signals, slot_group_signals[i]);
}

static int open_signals(void)
{
    sigset_t child;
    sigset_t blocked;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    launcher_blocked_signals(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

void launcher_serve(int socket, struct cage *cage, const struct sandbox_settings *settings)
{
    struct launcher launcher = {.socket = socket, .signals = open_signals(), .cage = cage, .settings = settings};
    struct pollfd polled[2 + LAUNCH_PLACES];

    if (launcher.signals < 0)
        _exit(1);
    polled[0] = (struct pollfd){socket, POLLIN, 0};
    polled[1] = (struct pollfd){launcher.signals, POLLIN, 0};
    for (;;) {
        for (size_t i = 0; i < LAUNCH_PLACES; i++) {
            const struct running *running = &launcher.running[i];
            polled[2 + i] =
                (struct pollfd){running->used && !running->settled ? running->child.status_fd : -1, POLLIN, 0};
        }
        if (poll(polled, ARRAY_LENGTH(polled), -1) < 0 && errno != EINTR)
            _exit(1);
        for (uint32_t i = 0; i < LAUNCH_PLACES; i++)
            see_begin(&launcher, i, polled[2 + i].revents);
        if (polled[1].revents)
            see_ends(&launcher);
        if (polled[0].revents)
            obey(&launcher);
    }
}
