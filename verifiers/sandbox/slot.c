#include "verifiers/sandbox/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "server/base/cleanup.h"
#include "server/base/signals.h"
#include "server/base/text.h"
#include "verifiers/sandbox/cage_private.h"
#include "verifiers/sandbox/holder_private.h"
#include "verifiers/sandbox/supervisor_private.h"

#define TESTLIB_BYTES ((off_t)4 << 20)

/* The header as a text that is never freed; TEXT_NONE if it is not there. */
static struct text read_testlib(const char *folder)
{
    char path[SANDBOX_PATH_BYTES + sizeof "/testlib.h"];
    _cleanup_close_ int fd = -1;
    struct stat status;
    char *bytes;

    snprintf(path, sizeof path, "%.*s/testlib.h", SANDBOX_PATH_BYTES - 1, folder);
    fd = folder[0] ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size > TESTLIB_BYTES)
        return TEXT_NONE;
    bytes = xcalloc(1, (size_t)status.st_size + 1);
    return read(fd, bytes, (size_t)status.st_size) == status.st_size ? (struct text){bytes, (size_t)status.st_size}
                                                                     : TEXT_NONE;
}

/* Nothing below is root: neither outside of its namespaces, nor inside. */
static int drop_root(uid_t uid)
{
    pid_t parent = getppid();

    if (cage_drop_root(uid) < 0)
        return -1;
    /* A change of ids takes it away. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ? -1 : 0;
}

static void supervisor_main(int client, int keeper, pid_t parent, struct text testlib,
                            const struct sandbox_settings *settings)
{
    prctl(PR_SET_NAME, "sandbox-slot", 0, 0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    supervisor_serve(client, keeper, testlib, settings);
}

void slot_main(int fd, const struct sandbox_settings *settings)
{
    struct text testlib = read_testlib(settings->testlib);
    pid_t self = getpid();
    pid_t supervisor;
    int pair[2];

    prctl(PR_SET_NAME, "sandbox-keeper", 0, 0, 0);
    signals_ignore_meaningless();
    for (size_t i = 0; i < ARRAY_LENGTH(slot_group_signals); i++)
        signal(slot_group_signals[i], SIG_IGN);
    if (settings->level < settings->min_level || settings->level == SANDBOX_LEVEL_NONE || drop_root(settings->uid) < 0)
        _exit(1);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* Orphans become children of this process, which ends them. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        _exit(1);
    supervisor = fork();
    if (supervisor < 0)
        _exit(1);
    if (supervisor == 0) {
        close(pair[1]);
        supervisor_main(fd, pair[0], self, testlib, settings);
    }
    close(fd);
    close(pair[0]);
    keeper_serve(pair[1], supervisor, settings);
}
