/* A process becomes a holder. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"

const char *const cage_step_names[CAGE_STEP_COUNT] = {
#define STEP(name, text) text,
    CAGE_STEPS(STEP)
#undef STEP
};

static enum cage_step step_or(bool done, enum cage_step step)
{
    return done ? CAGE_NONE : step;
}

/* --- ids --- */

static int write_file(const char *path, const char *text)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* The one id that an ordinary user may map: its own. */
static int map_ids(uid_t user, gid_t group)
{
    char users[48];
    char groups[48];

    snprintf(users, sizeof users, "%d %u 1", CAGE_INSIDE_ID, user);
    snprintf(groups, sizeof groups, "%d %u 1", CAGE_INSIDE_ID, group);
    if (write_file("/proc/self/setgroups", "deny") < 0 || write_file("/proc/self/uid_map", users) < 0)
        return -1;
    return write_file("/proc/self/gid_map", groups);
}

/* --- namespaces --- */

/* The process that called stays outside. */
static void wait_for_holder(pid_t holder) __attribute__((noreturn));
static void wait_for_holder(pid_t holder)
{
    int status;

    close_range(0, ~0u, 0);
    while (waitpid(holder, &status, 0) < 0 && errno == EINTR)
        continue;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* The kernel's own fork, rather than libc's and unshare(): a process with threads may not make a user namespace, and some
 * sanitizers give one to every process that libc forks. */
static enum cage_step enter_pid_namespace(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    long holder = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

    if (holder > 0)
        wait_for_holder((pid_t)holder);
    if (holder < 0)
        return CAGE_USER_NAMESPACE;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return CAGE_FORK;
    return step_or(map_ids(user, group) == 0, CAGE_ID_MAP);
}

static enum cage_step make_namespaces(void)
{
    bool made = unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP) == 0;

    return step_or(made && sethostname("sandbox", 7) == 0 && setdomainname("", 0) == 0, CAGE_NAMESPACES);
}

/* --- what is the same for all programs is done once, and inherited --- */

/* A limit of one byte for core files: there is none, and a kernel that pipes them to a program does not run it, which it
 * does at 0. */
static int limit_all(void)
{
    static const struct {
        int resource;
        rlim_t limit;
    } limits[] = {{RLIMIT_CORE, 1},   {RLIMIT_MEMLOCK, 0}, {RLIMIT_MSGQUEUE, 0},
                  {RLIMIT_RTPRIO, 0}, {RLIMIT_NICE, 0},    {RLIMIT_SIGPENDING, 64}};

    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
        struct rlimit limit = {limits[i].limit, limits[i].limit};
        struct rlimit old;
        if (getrlimit(limits[i].resource, &old) < 0)
            return -1;
        if (old.rlim_max < limit.rlim_max)
            continue;
        if (setrlimit(limits[i].resource, &limit) < 0)
            return -1;
    }
    return 0;
}

/* No exec gives a capability from now on. A holder of the full level keeps those that it has. */
static int bound_capabilities(enum sandbox_level level)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -1;
    for (int i = 0; level == SANDBOX_LEVEL_FULL && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
        if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
            return -1;
    return 0;
}

static enum cage_step settle_process(struct cage *cage)
{
    umask(077);
    setsid(); /* one for all programs: a session is a scheduling group, and makes each of them 25 us later */
    if (limit_all() < 0)
        return CAGE_LIMITS;
    if (bound_capabilities(cage->level) < 0)
        return CAGE_CAPABILITIES;
    if (cage->level != SANDBOX_LEVEL_NONE && cage_filter_make(cage->level, cage->landlock_abi, &cage->filter) < 0)
        return CAGE_FILTER;
    /* Its memory is also that of the inits (cage_init.c), which programs see as process 1. */
    return step_or(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, CAGE_CAPABILITIES);
}

/* --- levels --- */

static enum cage_step hold_full(struct cage *cage, const struct sandbox_settings *settings)
{
    enum cage_step step = enter_pid_namespace();

    if (step == CAGE_NONE)
        step = make_namespaces();
    if (step == CAGE_NONE)
        step = cage_root_enter(settings);
    if (step != CAGE_NONE)
        return step;
    cage->pid_namespace = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (cage->pid_namespace < 0)
        return CAGE_PROC;
    cage->stacks = mmap(NULL, (size_t)CAGE_CHILDREN_MAX * CAGE_INIT_STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (cage->stacks == MAP_FAILED)
        return CAGE_INIT;
    if (cage->landlock_abi > 3)
        cage->landlock = cage_landlock_make(cage->landlock_abi, -1, settings);
    return step_or(cage->landlock_abi <= 3 || cage->landlock >= 0, CAGE_LANDLOCK);
}

static bool is_there(const char *folder)
{
    return !*folder || access(folder, R_OK | X_OK) == 0;
}

/* Orphans of programs become children of the holder, which can thus wait for them. */
static enum cage_step hold_bare(struct cage *cage)
{
    cage->foreign_processes = cage_processes_of_user();
    cage->boxes = cage_boxes_make(cage->boxes_path, sizeof cage->boxes_path);
    if (cage->boxes < 0)
        return CAGE_BOX;
    return step_or(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, CAGE_FORK);
}

static enum cage_step hold_reduced(struct cage *cage)
{
    if (cage->landlock_abi == 0) {
        errno = ENOSYS;
        return CAGE_LANDLOCK;
    }
    if (!is_there(cage->settings.venv) || !is_there(cage->settings.testlib))
        return CAGE_SETTINGS;
    return hold_bare(cage);
}

static void set_environment(struct cage *cage)
{
    static char same[][40] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                              "LANG=C.UTF-8",
                              "USER=sandbox",
                              "PYTHONHASHSEED=0",
                              "PYTHONINTMAXSTRDIGITS=0", /* a task may ask for a number of any length */
                              "OMP_NUM_THREADS=1",
                              "OPENBLAS_NUM_THREADS=1",
                              "MKL_NUM_THREADS=1",
                              "OPENSSL_CONF=/dev/null"};
    const char *home = cage->level == SANDBOX_LEVEL_FULL ? BOX_PATH : cage->boxes_path;
    size_t count = 0;

    while (count < ARRAY_LENGTH(same)) {
        cage->environment[count] = same[count];
        count++;
    }
    snprintf(cage->home, sizeof cage->home, "HOME=%s", home);
    snprintf(cage->temporary, sizeof cage->temporary, "TMPDIR=%s", home);
    cage->environment[count] = cage->home;
    cage->environment[count + 1] = cage->temporary;
}

static enum cage_step hold(struct cage *cage, const struct sandbox_settings *settings)
{
    enum cage_step step;

    if (cage_drop_root(settings->uid) < 0)
        return CAGE_DROP_ROOT;
    /* Where the machine has no memory left a program ends first, and not the service. A wish: /proc may be masked. */
    (void)write_file("/proc/self/oom_score_adj", "1000");
    cage->landlock_abi = cage_landlock_abi();
    step = cage->level == SANDBOX_LEVEL_FULL      ? hold_full(cage, settings)
           : cage->level == SANDBOX_LEVEL_REDUCED ? hold_reduced(cage)
                                                  : hold_bare(cage);
    set_environment(cage);
    return step == CAGE_NONE ? settle_process(cage) : step;
}

struct cage *cage_hold(const struct sandbox_settings *settings, struct cage_failure *ret_failure)
{
    struct cage *cage = xcalloc(1, sizeof *cage);

    cage->level = settings->level;
    cage->settings = *settings;
    cage->pid_namespace = cage->landlock = cage->boxes = -1;
    *ret_failure = (struct cage_failure){hold(cage, settings), 0};
    if (ret_failure->step == CAGE_NONE)
        return cage;
    ret_failure->error = errno;
    closep(&cage->boxes);
    free(cage);
    return NULL;
}

char *const *cage_environment(const struct cage *cage)
{
    return cage->environment;
}
