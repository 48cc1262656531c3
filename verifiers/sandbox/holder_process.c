/* The holder's process, in its image. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "verifiers/sandbox/holder_private.h"
#include "verifiers/sandbox/launch_private.h"

/* A program must have every signal as it is by default, whatever the service ignores and a sanitizer handles; what is
 * blocked instead, is not blocked in a program. */
static void reset_signals(void)
{
    sigset_t blocked;

    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, SIG_DFL); /* fails for a few that have no other */
    launcher_blocked_signals(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void fail(int socket, const struct cage_failure *failure)
{
    struct launch_report report = {.kind = LAUNCH_FAILED, .step = (int32_t)failure->step, .error = failure->error};

    snprintf(report.message, sizeof report.message, "%s: %s", cage_step_names[failure->step], strerror(failure->error));
    launch_report(socket, &report);
    _exit(1);
}

void holder_serve(int socket, const struct sandbox_settings *settings)
{
    struct cage_failure failure;
    struct cage *cage;

    if (fcntl(socket, F_SETFD, FD_CLOEXEC) < 0)
        _exit(1);
    reset_signals();
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* it writes to its own /proc; cage_hold() takes it back */
    cage = cage_hold(settings, &failure);
    if (!cage)
        fail(socket, &failure);
    launcher_serve(socket, cage, settings);
}
