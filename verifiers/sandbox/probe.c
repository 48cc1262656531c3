#include "verifiers/sandbox/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"
#include "verifiers/sandbox/cage_self_test_private.h"

#define TRIAL_SECONDS_MAX 60

struct trial {
    struct cage_failure failure; /* step NONE: the level holds */
    char escaped[160];           /* what worked and must not */
};

/* --- what to change --- */

struct advice {
    enum cage_step step;
    int error; /* 0: any */
    const char *text;
};

#define APPARMOR                                                                                                       \
    "AppArmor lets a process make a user namespace and then forbids to use it: load a profile with `userns,` for "     \
    "rolloutd, or set kernel.apparmor_restrict_unprivileged_userns=0."
#define CONTAINER                                                                                                      \
    "A seccomp profile (Docker's default, for one) or a chroot forbids it: allow unshare, clone, mount, umount2, "     \
    "pivot_root, move_mount, open_tree, mount_setattr, setns and sethostname in the container's profile, or leave "    \
    "the "                                                                                                             \
    "chroot."

#define NAMESPACES                                                                                                     \
    "There are too many namespaces: raise user.max_pid_namespaces and its neighbours (net, mnt, ipc, uts, cgroup)."

static const struct advice advices[] = {
    {CAGE_DROP_ROOT, EINVAL, "sandbox.uid is 0: name an ordinary user."},
    {CAGE_DROP_ROOT, 0,
     "The process is root and may not become another user: give it CAP_SETUID and CAP_SETGID, or start it as an "
     "ordinary user."},
    {CAGE_USER_NAMESPACE, ENOSPC, "User namespaces are forbidden on this machine: raise user.max_user_namespaces."},
    {CAGE_USER_NAMESPACE, EPERM, CONTAINER},
    {CAGE_USER_NAMESPACE, EINVAL, "The kernel has no user namespaces (CONFIG_USER_NS), or the process has threads."},
    {CAGE_ID_MAP, ENOENT, "There is no /proc here: mount it."},
    {CAGE_ID_MAP, 0, APPARMOR},
    {CAGE_NAMESPACES, ENOSPC, NAMESPACES},
    {CAGE_NAMESPACES, 0, APPARMOR},
    {CAGE_INIT, ENOSPC, NAMESPACES},
    {CAGE_PROGRAM_NAMESPACES, ENOSPC, NAMESPACES},
    {CAGE_ROOT, EPERM, CONTAINER},
    {CAGE_ROOT, EACCES, APPARMOR},
    {CAGE_ROOT, ENOSYS, "The kernel is older than Linux 5.12."},
    {CAGE_DEVICES, 0, "/dev must have null, zero, full and urandom."},
    {CAGE_SETTINGS, 0,
     "A folder of the settings (python.venv, sandbox.testlib) is not there, or the user that programs run as may not "
     "read it."},
    {CAGE_PROC, EPERM,
     "Parts of /proc are masked by the container: procMount: Unmasked in Kubernetes, --security-opt "
     "systempaths=unconfined in Docker."},
    {CAGE_LANDLOCK, ENOSYS, "The kernel has no Landlock: Linux 5.13 or newer, with CONFIG_SECURITY_LANDLOCK."},
    {CAGE_LANDLOCK, EOPNOTSUPP, "Landlock is off: add landlock to the kernel's parameter lsm=."},
    {CAGE_BOX, 0, "At the reduced level programs need a folder: make /tmp or /dev/shm writable."},
    {CAGE_FILTER, 0, "The kernel refuses a seccomp filter (CONFIG_SECCOMP_FILTER)."},
    {CAGE_ESCAPE, 0, "Calls that must fail have worked. Please report it with the kernel's version."},
};

static const char *advice_for(struct cage_failure failure)
{
    for (size_t i = 0; i < ARRAY_LENGTH(advices); i++)
        if (advices[i].step == failure.step && (advices[i].error == 0 || advices[i].error == failure.error))
            return advices[i].text;
    return "The log has the step and its errno; docs/sandbox.md says what each of them needs.";
}

/* --- one trial --- */

static const struct sandbox_limits trial_limits = {.wall_ms = 10000,
                                                   .cpu_ms = 10000,
                                                   .memory_bytes = 64 << 20,
                                                   .output_bytes = 4096,
                                                   .disk_bytes = 1 << 20,
                                                   .processes = 4};

/* The program's output fits into the pipe. */
static void read_escapes(int fd, struct trial *trial)
{
    ssize_t count = read(fd, trial->escaped, sizeof trial->escaped - 1);

    trial->escaped[count > 0 ? count : 0] = '\0';
}

static void run_self_test(struct cage *cage, struct cage_program *program, int output, struct trial *trial)
{
    struct cage_child child;
    int status = 0;

    if (cage_spawn(cage, program, &child, &trial->failure) < 0)
        return;
    close(program->fds[1]);
    if (cage_wait(cage, &child, &status, NULL, &trial->failure) < 0)
        trial->failure = (struct cage_failure){CAGE_FORK, errno};
    read_escapes(output, trial);
    if (trial->failure.step == CAGE_NONE && status != 0)
        trial->failure = (struct cage_failure){CAGE_ESCAPE, 0};
}

/* In a child. */
static void try_level(const struct sandbox_settings *settings, struct trial *trial)
{
    struct cage_self_test test = {settings->level, NULL};
    struct cage_program program = {.limits = trial_limits, .run = cage_self_test, .arg = &test};
    struct cage *cage = cage_hold(settings, &trial->failure);
    int output[2];
    int null;

    if (!cage)
        return;
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || pipe2(output, O_CLOEXEC) < 0) {
        trial->failure = (struct cage_failure){CAGE_DESCRIPTORS, errno};
        return;
    }
    memcpy(program.fds, (const int[CAGE_FDS]){null, output[1], null, -1, -1}, sizeof program.fds);
    run_self_test(cage, &program, output[0], trial);
    closep(&cage->boxes); /* nothing holds them any more */
}

static void run_trial(const struct sandbox_settings *settings, int result) __attribute__((noreturn));
static void run_trial(const struct sandbox_settings *settings, int result)
{
    struct trial trial = {{CAGE_NONE, 0}, ""};

    signal(SIGALRM, SIG_DFL);
    alarm(TRIAL_SECONDS_MAX);
    try_level(settings, &trial);
    if (settings->level == SANDBOX_LEVEL_REDUCED)
        cage_boxes_sweep();
    _exit(write(result, &trial, sizeof trial) == sizeof trial ? 0 : 1);
}

static bool holds(const struct sandbox_settings *settings, enum sandbox_level level, struct trial *ret_trial)
{
    struct sandbox_settings of_trial = *settings;
    int result[2];
    pid_t pid;

    of_trial.level = level;
    *ret_trial = (struct trial){{CAGE_FORK, 0}, ""};
    if (pipe2(result, O_CLOEXEC) < 0)
        return false;
    pid = fork();
    if (pid == 0)
        run_trial(&of_trial, result[1]);
    close(result[1]);
    if (pid < 0 || read(result[0], ret_trial, sizeof *ret_trial) != sizeof *ret_trial)
        *ret_trial = (struct trial){{CAGE_FORK, errno}, ""};
    close(result[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return ret_trial->failure.step == CAGE_NONE;
}

/* --- the report --- */

#define OPEN_REDUCED "metadata of files outside, total disk space, number of processes"

static void put_failure(const struct trial *trial, struct sandbox_report *report)
{
    bool escaped = *trial->escaped && trial->failure.step == CAGE_ESCAPE;

    snprintf(report->step, sizeof report->step, "%s", cage_step_names[trial->failure.step]);
    report->error = trial->failure.error;
    snprintf(report->advice, sizeof report->advice, "%s%s%s%s", advice_for(trial->failure), escaped ? " (" : "",
             escaped ? trial->escaped : "", escaped ? ")" : "");
}

void sandbox_probe(const struct sandbox_settings *settings, struct sandbox_report *ret_report)
{
    struct trial full;
    struct trial reduced;

    *ret_report = (struct sandbox_report){.level = SANDBOX_LEVEL_NONE, .landlock_abi = cage_landlock_abi()};
    if (holds(settings, SANDBOX_LEVEL_FULL, &full)) {
        ret_report->level = SANDBOX_LEVEL_FULL;
        return;
    }
    put_failure(&full, ret_report);
    if (!holds(settings, SANDBOX_LEVEL_REDUCED, &reduced))
        return;
    ret_report->level = SANDBOX_LEVEL_REDUCED;
    snprintf(ret_report->open, sizeof ret_report->open, OPEN_REDUCED "%s",
             ret_report->landlock_abi < 6 ? ", the program's own signals" : "");
}
