#include "verifiers/sandbox/run_parts_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "verifiers/sandbox/usage_private.h"

#define MAPPED_BYTES (64 << 20) /* of a resident peak: files of /usr, and what was the launcher's */
#define STAYER_CPU_MS INT64_C(31536000000)
#define PEER_GRACE_US (100 * US_PER_MS) /* for the first of a pair, once the second has ended */

int run_socket(const struct runs *runs, const struct run *run)
{
    return run->job->python ? runs->holder->zygote : run->job->bare ? runs->holder->bare : runs->holder->socket;
}

/* --- ends --- */

void run_end_broken(struct run *run, const char *message)
{
    run->ended = true;
    run->odd = true;
    run->finished->outcome = SANDBOX_BROKEN;
    run->finished->began = false;
    if (!run->finished->message[0])
        snprintf(run->finished->message, sizeof run->finished->message, "%s", message);
}

void run_kill(const struct runs *runs, struct run *run, enum reason reason)
{
    if (run->reason != REASON_NONE || run->ended)
        return;
    run->reason = reason;
    run->kill_us = clock_monotonic_us();
    if (!run->sent)
        run_end_broken(run, "not started");
    else if (launch_send_kill(run_socket(runs, run), run->index) < 0)
        run_end_broken(run, "the holder is gone");
}

/* It failed, and had next to all that it may have: the kernel gave it no more, and what a program makes of that is its
 * own affair. Or it was gone before the watch saw all that it had. */
static bool lacked_memory(const struct run *run)
{
    int64_t limit_bytes = run->job->task.limits.memory_bytes;

    return (run->finished->exit_code != 0 && run->finished->peak_bytes >= limit_bytes - limit_bytes / 16) ||
           run->finished->peak_bytes > limit_bytes + MAPPED_BYTES;
}

/* The outcome if nobody killed the program. */
static enum sandbox_outcome outcome_by_status(struct run *run, int status)
{
    struct finished *finished = run->finished;

    finished->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    finished->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (run->finished->pump.over)
        return SANDBOX_OUTPUT;
    if (finished->signal == SIGXCPU || finished->cpu_us > run->job->task.limits.cpu_ms * US_PER_MS)
        return SANDBOX_TIMEOUT;
    if (finished->signal == SIGSYS)
        return SANDBOX_VIOLATION;
    return lacked_memory(run) ? SANDBOX_MEMORY : SANDBOX_ENDED;
}

static enum sandbox_outcome outcome_of(struct run *run, int status)
{
    static const enum sandbox_outcome killed[] = {
        [REASON_WALL] = SANDBOX_TIMEOUT,  [REASON_CPU] = SANDBOX_TIMEOUT, [REASON_MEMORY] = SANDBOX_MEMORY,
        [REASON_OUTPUT] = SANDBOX_OUTPUT, [REASON_PEER] = SANDBOX_ENDED,  [REASON_BROKEN] = SANDBOX_BROKEN,
    };
    enum sandbox_outcome by_itself = outcome_by_status(run, status);

    return run->reason == REASON_NONE ? by_itself : killed[run->reason];
}

/* A set-up failed. That a binary cannot be executed is its own fault: a source can make it so. */
static void end_unbegun(struct run *run, const struct launch_report *report)
{
    struct finished *finished = run->finished;
    enum cage_step step =
        report->step >= 0 && report->step < CAGE_STEP_COUNT ? (enum cage_step)report->step : CAGE_NONE;

    snprintf(finished->message, sizeof finished->message, "%s: %s", cage_step_names[step], strerror(report->error));
    run_end_broken(run, "");
    run->odd = step != CAGE_EXEC;
    if (step == CAGE_EXEC && run->job->task.binary >= 0) {
        finished->outcome = SANDBOX_ENDED;
        finished->exit_code = 127;
        finished->began = true;
    }
}

/* The machine had no memory, and the kernel ended a process of a program below its limit: no fault of its own. One that
 * fails by itself at that moment is tried again, too. */
static bool fell_to_the_machine(struct holder *holder, const struct run *run, int status)
{
    int64_t before = holder->killed;

    if (run->reason != REASON_NONE || status == 0)
        return false;
    holder->killed = usage_killed_for_memory();
    return holder->killed != before;
}

static void see_end(struct holder *holder, struct run *run, const struct launch_report *report)
{
    struct finished *finished = run->finished;

    run->ended = true;
    pump_drain(&finished->pump);
    if (!report->began) {
        end_unbegun(run, report);
        return;
    }
    finished->began = true;
    finished->wall_us = report->at_us - report->began_us;
    finished->cpu_us = report->cpu_us - run->cpu_before_us;
    if (run->peak.cpu_us > finished->cpu_us)
        finished->cpu_us = run->peak.cpu_us;
    finished->peak_bytes = report->peak_bytes > run->peak.memory_bytes ? report->peak_bytes : run->peak.memory_bytes;
    if (fell_to_the_machine(holder, run, report->status)) {
        run_end_broken(run, "the kernel ended a program: the machine has no memory left");
        return;
    }
    finished->outcome = outcome_of(run, report->status);
    if (finished->outcome == SANDBOX_ENDED && finished->exit_code == 0 && report->box_full)
        finished->outcome = SANDBOX_VIOLATION; /* a child failed for it, and nobody asked: dd … ; echo done */
    if (run->reason == REASON_PEER)
        snprintf(finished->message, sizeof finished->message, "ended with its peer");
}

/* --- reports --- */

static void launcher_is_gone(struct runs *runs, int socket, const char *message)
{
    for (size_t i = 0; i < runs->count; i++)
        if (!runs->list[i].ended && run_socket(runs, &runs->list[i]) == socket)
            run_end_broken(&runs->list[i], message);
}

static struct run *find_run(struct runs *runs, uint32_t index)
{
    for (size_t i = 0; i < runs->count; i++)
        if (runs->list[i].index == index)
            return &runs->list[i];
    return NULL;
}

static void see_report(struct runs *runs, int socket, const struct launch_report *report)
{
    struct run *run = find_run(runs, report->index);

    if (report->kind == LAUNCH_FAILED)
        launcher_is_gone(runs, socket, report->message);
    else if (!run && report->kind == LAUNCH_ENDED && report->index >= LAUNCH_TASKS_MAX)
        runs->holder->left[report->index - LAUNCH_TASKS_MAX] = true;
    if (!run || run->ended || run_socket(runs, run) != socket)
        return;
    run->launcher = report->sender;
    if (report->kind == LAUNCH_BEGAN) {
        run->began = true;
        run->began_us = report->at_us;
        run->watch_us = report->at_us + WATCH_US;
        run->init = report->init;
        run->program = report->program;
    } else if (report->kind == LAUNCH_ENDED)
        see_end(runs->holder, run, report);
}

static void see_reports(struct runs *runs, int socket)
{
    struct launch_report report;
    int result;

    while ((result = launch_read_report(socket, &report)) == 0)
        see_report(runs, socket, &report);
    if (result < 0)
        launcher_is_gone(runs, socket, "the holder is gone");
}

/* A pair ends soon after its second one; neither is of use without the other one. */
static void check_pair(struct runs *runs)
{
    struct run *first = &runs->list[0];
    struct run *second = &runs->list[1];

    if (runs->count < 2)
        return;
    if (second->ended && !first->ended && !first->give_up_us)
        first->give_up_us = clock_monotonic_us() + PEER_GRACE_US;
    if (second->ended && second->finished->outcome == SANDBOX_BROKEN)
        run_kill(runs, first, REASON_BROKEN);
    if (first->ended && first->finished->outcome == SANDBOX_BROKEN)
        run_kill(runs, second, REASON_BROKEN);
}

/* --- the loop --- */

static int timeout_ms(const struct runs *runs)
{
    int64_t next_us = NEVER_US;
    int64_t left_us;

    for (size_t i = 0; i < runs->count; i++)
        next_us = run_next_us(&runs->list[i]) < next_us ? run_next_us(&runs->list[i]) : next_us;
    left_us = next_us - clock_monotonic_us();
    return next_us == NEVER_US ? -1 : left_us <= 0 ? 0 : (int)(left_us / US_PER_MS) + 1;
}

static bool all_ended(const struct runs *runs)
{
    return runs->list[0].ended && (runs->count < 2 || runs->list[1].ended);
}

enum { POLL_CLIENT, POLL_HOLDER, POLL_ZYGOTE, POLL_BARE, POLL_PUMPS };

static void move_pump(struct runs *runs, struct run *run, const struct pollfd *polled)
{
    if (run->ended)
        return;
    pump_move(&run->finished->pump, polled);
    if (run->finished->pump.over)
        run_kill(runs, run, REASON_OUTPUT);
}

/* A launcher that no program waits for may be gone already. */
static int polled_socket(const struct runs *runs, int socket)
{
    for (size_t i = 0; i < runs->count; i++)
        if (!runs->list[i].ended && run_socket(runs, &runs->list[i]) == socket)
            return socket;
    return -1;
}

/* False: the client is gone. */
bool run_turn(struct runs *runs)
{
    struct pollfd polled[POLL_PUMPS + LAUNCH_TASKS_MAX * PUMP_POLLED];
    int64_t now_us;

    polled[POLL_CLIENT] = (struct pollfd){runs->client, POLLRDHUP, 0};
    polled[POLL_HOLDER] = (struct pollfd){polled_socket(runs, runs->holder->socket), POLLIN, 0};
    polled[POLL_ZYGOTE] = (struct pollfd){polled_socket(runs, runs->holder->zygote), POLLIN, 0};
    polled[POLL_BARE] = (struct pollfd){polled_socket(runs, runs->holder->bare), POLLIN, 0};
    for (size_t i = 0; i < runs->count; i++)
        pump_poll(&runs->list[i].finished->pump, polled + POLL_PUMPS + i * PUMP_POLLED);
    if (poll(polled, POLL_PUMPS + runs->count * PUMP_POLLED, timeout_ms(runs)) < 0)
        return errno == EINTR;
    if (polled[POLL_CLIENT].revents)
        return false;
    for (size_t i = 0; i < runs->count; i++)
        move_pump(runs, &runs->list[i], polled + POLL_PUMPS + i * PUMP_POLLED);
    if (polled[POLL_HOLDER].revents)
        see_reports(runs, runs->holder->socket);
    if (polled[POLL_ZYGOTE].revents)
        see_reports(runs, runs->holder->zygote);
    if (polled[POLL_BARE].revents)
        see_reports(runs, runs->holder->bare);
    now_us = clock_monotonic_us();
    for (size_t i = 0; i < runs->count; i++)
        run_check_time(runs, &runs->list[i], now_us);
    check_pair(runs);
    return true;
}

/* --- starting --- */

/* The kernel's count of CPU time is that of all runs of a process that stays, not of one. */
static int send_task(const struct runs *runs, const struct run *run, const int *theirs)
{
    struct task task = run->job->task;

    if (run->job->stays)
        task.limits.cpu_ms = STAYER_CPU_MS;
    return launch_send_task(run_socket(runs, run), run->index, &task, theirs);
}

/* peer: -1, or the program's end of the socket between a pair. */
void run_start(struct runs *runs, struct run *run, int peer)
{
    const struct job *job = run->job;
    int theirs[CAGE_FDS];
    int result = pump_init(&run->finished->pump, job->input, job->records, job->stays,
                           (size_t)job->task.limits.output_bytes, theirs);
    int own = theirs[3];

    if (own < 0)
        theirs[3] = job->target;
    theirs[4] = peer;
    if (result == 0 && job->python)
        result = holder_start_zygote(runs->holder);
    if (result == 0 && job->bare)
        result = holder_start_bare(runs->holder);
    run->sent_us = clock_monotonic_us();
    if (result == 0)
        result = send_task(runs, run, theirs);
    for (size_t i = 0; i < 3; i++)
        closep(&theirs[i]);
    closep(&own);
    run->sent = result == 0;
    if (result < 0)
        run_end_broken(run, strerror(errno));
}

static void start_all(struct runs *runs)
{
    int pair[2] = {-1, -1};

    if (runs->count == 2 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        run_end_broken(&runs->list[0], "no socket for a pair");
    for (size_t i = 0; i < runs->count; i++)
        if (!runs->list[i].ended)
            run_start(runs, &runs->list[i], pair[i]);
    closep(&pair[0]);
    closep(&pair[1]);
    runs->holder->launched += (unsigned)runs->count;
}

enum run_end run_sum_up(const struct runs *runs)
{
    bool odd = false;
    bool broken = false;
    bool began = false;

    for (size_t i = 0; i < runs->count; i++) {
        odd = odd || runs->list[i].odd;
        began = began || runs->list[i].began || runs->list[i].finished->began;
        broken = broken || runs->list[i].finished->outcome == SANDBOX_BROKEN;
    }
    return !odd ? RUN_DONE : broken && !began ? RUN_NOT_BEGUN : RUN_ODD;
}

enum run_end run_jobs(struct holder *holder, int client, const struct job *jobs, size_t count,
                      struct finished *ret_finished)
{
    struct runs runs = {.holder = holder, .client = client, .count = count};

    for (size_t i = 0; i < count; i++) {
        ret_finished[i] = (struct finished){.outcome = SANDBOX_BROKEN, .exit_code = -1, .pump = PUMP_NONE};
        runs.list[i] = (struct run){.job = &jobs[i], .finished = &ret_finished[i], .index = (uint32_t)i};
    }
    start_all(&runs);
    check_pair(&runs);
    while (!all_ended(&runs))
        if (!run_turn(&runs))
            return RUN_CLIENT_GONE;
    return run_sum_up(&runs);
}
