/* A program's side of its cage: one step after the other, from the fork to the first instruction of the program. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "server/base/sanitizer.h"
#include "server/base/whole.h"
#include "verifiers/sandbox/cage_parts_private.h"

#define STACK_BYTES (64ll << 20)       /* of Python; its threads have what was the limit when the service began */
#define DATA_ROOM_BYTES (1ll << 30)    /* a thread with a stack of 512 MiB touches a few pages of it */
#define ADDRESS_ROOM_BYTES (4ll << 30) /* each thread reserves 64 MiB for its malloc */
#define DESCRIPTORS_MAX 64
#define BARE_DESCRIPTORS_MAX 1024
/* Of the holder and what is around it: itself and its outer process, zygote, inits, a neighbour. They share the count. */
#define OWN_PROCESSES 8
#define FOREIGN_PROCESSES_MARGIN 256

struct entry {
    struct cage *cage;
    const struct cage_program *program;
    int slot;
    int status;
    int box; /* reduced: its folder */
};

/* --- namespaces and the box --- */

static int enter_namespaces(struct entry *entry)
{
    (void)entry;
    return unshare(CLONE_NEWNS | CLONE_NEWIPC);
}

static int mount_box(struct entry *entry)
{
    int box = entry->cage->box_mounts[entry->slot];

    return move_mount(box, "", AT_FDCWD, BOX_PATH, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -1 : chdir(BOX_PATH);
}

/* Only what is about processes, and only about its own. Nothing can be written: the rank of its scheduling group is that
 * of all programs of the holder. */
static int mount_proc(struct entry *entry)
{
    (void)entry;
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, "subset=pid,hidepid=2");
}

/* Its homes are the box: the environment is the process's own copy. */
static int make_box_folder(struct entry *entry)
{
    struct cage *cage = entry->cage;
    char name[CAGE_BOX_NAME_BYTES];

    cage_box_name(getppid(), entry->slot, name);
    if (mkdirat(cage->boxes, name, 0700) < 0)
        return -1;
    entry->box = openat(cage->boxes, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf(cage->home, sizeof cage->home, "HOME=%s/%s", cage->boxes_path, name);
    snprintf(cage->temporary, sizeof cage->temporary, "TMPDIR=%s/%s", cage->boxes_path, name);
    return entry->box < 0 ? -1 : fchdir(entry->box);
}

static int copy_all(int to, int from)
{
    struct stat status;
    off_t at = 0;

    if (fstat(from, &status) < 0)
        return -1;
    while (at < status.st_size)
        if (sendfile(to, from, &at, (size_t)(status.st_size - at)) <= 0)
            return -1;
    return 0;
}

static int put_file(const struct cage_file *file)
{
    _cleanup_close_ int fd =
        open(file->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file->executable ? 0700 : 0600);

    if (fd < 0)
        return -1;
    return file->bytes.data ? write_whole(fd, file->bytes.data, file->bytes.length_bytes) : copy_all(fd, file->fd);
}

static int put_files(struct entry *entry)
{
    for (size_t i = 0; i < entry->program->file_count; i++)
        if (put_file(&entry->program->files[i]) < 0)
            return -1;
    return 0;
}

/* --- descriptors --- */

/* Above those that the program gets. *fd is replaced; the old one is closed with all others. */
static int lift(int *fd)
{
    if (*fd < 0 || *fd > CAGE_COMMAND_FD)
        return 0;
    *fd = fcntl(*fd, F_DUPFD_CLOEXEC, CAGE_COMMAND_FD + 1);
    return *fd < 0 ? -1 : 0;
}

static int put_fd(int from, int to, int flags)
{
    if (from < 0)
        return close(to) < 0 && errno != EBADF ? -1 : 0;
    return dup3(from, to, flags) < 0 ? -1 : 0;
}

static const struct cage_command *command_of(const struct cage_program *program)
{
    return program->run == cage_exec ? program->arg : NULL;
}

static int place_fds(struct entry *entry)
{
    const struct cage_command *command = command_of(entry->program);
    int fds[CAGE_COMMAND_FD + 1];

    memcpy(fds, entry->program->fds, sizeof entry->program->fds);
    fds[CAGE_STATUS_FD] = entry->status;
    fds[CAGE_COMMAND_FD] = command && !command->path ? command->fd : -1;
    for (int i = 0; i <= CAGE_COMMAND_FD; i++)
        if (lift(&fds[i]) < 0)
            return -1;
    entry->status = fds[CAGE_STATUS_FD]; /* the old number may be another one's soon */
    for (int i = 0; i <= CAGE_COMMAND_FD; i++)
        if (put_fd(fds[i], i, i >= CAGE_FDS ? O_CLOEXEC : 0) < 0)
            return -1;
    entry->status = CAGE_STATUS_FD;
    return 0;
}

/* The holder's signals, sockets and files are not a program's. */
static int leave_holder(struct entry *entry)
{
    sigset_t none;

    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    if (sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setpgid(0, 0) < 0 || place_fds(entry) < 0)
        return -1;
    return 0;
}

/* Without a sandbox it ends with its launcher, and nothing but its session tells what is its own. */
static int leave_bare_launcher(struct entry *entry)
{
    sigset_t none;

    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 || setsid() < 0)
        return -1;
    return place_fds(entry);
}

static int close_rest(struct entry *entry)
{
    (void)entry;
    return close_range(CAGE_COMMAND_FD + 1, ~0u, 0);
}

/* --- limits --- */

static int limit(int resource, rlim_t soft, rlim_t hard)
{
    struct rlimit new = {soft, hard};
    struct rlimit old;

    if (setrlimit(resource, &new) == 0)
        return 0;
    /* One that was lower before is low enough. */
    return errno == EPERM && getrlimit(resource, &old) == 0 && old.rlim_max <= hard ? 0 : -1;
}

static rlim_t process_limit(const struct entry *entry)
{
    int64_t count = entry->program->limits.processes + OWN_PROCESSES;

    if (entry->cage->level != SANDBOX_LEVEL_FULL)
        count += entry->cage->foreign_processes + FOREIGN_PROCESSES_MARGIN;
    return (rlim_t)count;
}

static int limit_both(int resource, rlim_t value)
{
    return limit(resource, value, value);
}

/* An exec'ed program's main stack has no limit but that of its memory: deep recursion needs it. And where there is none,
 * a C library gives each thread 2 MiB rather than as much. */
static int limit_stack(bool executed)
{
    struct rlimit old;

    if (!executed)
        return limit_both(RLIMIT_STACK, STACK_BYTES);
    if (getrlimit(RLIMIT_STACK, &old) < 0)
        return -1;
    old.rlim_cur = old.rlim_max;
    return setrlimit(RLIMIT_STACK, &old);
}

/* Memory that is touched is the watch's affair (run.c). RLIMIT_DATA counts what can be written privately, touched or
 * not: it is above the limit of memory, and is what a program can have at most between two looks. RLIMIT_AS is far above
 * it, as runtimes reserve addresses: it is the end of shared pages, of stacks and of page tables. The shadow memory of a
 * sanitizer counts for both; an exec'ed program leaves it behind. */
static int limit_memory(const struct entry *entry, bool executed)
{
    bool instrumented = UNDER_SANITIZER && !executed;
    rlim_t data = (rlim_t)entry->program->limits.memory_bytes + DATA_ROOM_BYTES;

    return limit_both(RLIMIT_DATA, instrumented ? RLIM_INFINITY : data) < 0
               ? -1
               : limit_both(RLIMIT_AS, instrumented ? RLIM_INFINITY : data + ADDRESS_ROOM_BYTES);
}

static int set_limits(struct entry *entry)
{
    const struct sandbox_limits *limits = &entry->program->limits;
    rlim_t seconds = (rlim_t)((limits->cpu_ms + 999) / 1000 + 1);
    bool executed = entry->program->run == cage_exec;

    if (limit(RLIMIT_CPU, seconds, seconds + 1) < 0 || limit_stack(executed) < 0 || limit_memory(entry, executed) < 0 ||
        limit_both(RLIMIT_FSIZE, (rlim_t)limits->disk_bytes) < 0 || limit_both(RLIMIT_NOFILE, DESCRIPTORS_MAX) < 0)
        return -1;
    return limit_both(RLIMIT_NPROC, process_limit(entry));
}

/* Addresses that a driver of a device reserves have no measure. */
static int set_bare_limits(struct entry *entry)
{
    const struct sandbox_limits *limits = &entry->program->limits;
    rlim_t seconds = (rlim_t)((limits->cpu_ms + 999) / 1000 + 1);

    if (limit(RLIMIT_CPU, seconds, seconds + 1) < 0 || limit_stack(true) < 0 ||
        limit_both(RLIMIT_DATA, (rlim_t)limits->memory_bytes + DATA_ROOM_BYTES) < 0 ||
        limit_both(RLIMIT_FSIZE, (rlim_t)limits->disk_bytes) < 0 || limit_both(RLIMIT_NOFILE, BARE_DESCRIPTORS_MAX) < 0)
        return -1;
    return limit_both(RLIMIT_NPROC, process_limit(entry));
}

/* --- rights --- */

static int drop_capabilities(struct entry *entry)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};

    if (syscall(SYS_capset, &header, none) < 0)
        return -1;
    /* A forked program's memory is its own; without this its files in /proc were root's. One that is exec'ed is still in
     * the holder's, which must stay closed, and gets its own, open, by the exec. */
    return command_of(entry->program) ? 0 : prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int restrict_self(struct entry *entry)
{
    return entry->cage->landlock < 0 ? 0 : (int)syscall(SYS_landlock_restrict_self, entry->cage->landlock, 0);
}

static int restrict_to_box(struct entry *entry)
{
    _cleanup_close_ int ruleset = cage_landlock_make(entry->cage->landlock_abi, entry->box, &entry->cage->settings);

    return ruleset < 0 ? -1 : (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/* Without SPEC_ALLOW old kernels switch on costly measures against Spectre for who has a filter. */
static int load_filter(struct entry *entry)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &entry->cage->filter);
}

/* --- the whole --- */

struct entry_step {
    enum cage_step step;
    int (*take)(struct entry *entry);
};

/* Landlock's ruleset is a descriptor of the holder: it comes before their numbers change. */
static const struct entry_step full_steps[] = {
    {CAGE_PROGRAM_NAMESPACES, enter_namespaces},
    {CAGE_BOX, mount_box},
    {CAGE_PROC, mount_proc},
    {CAGE_FILES, put_files},
    {CAGE_CAPABILITIES, drop_capabilities},
    {CAGE_LANDLOCK, restrict_self},
    {CAGE_DESCRIPTORS, leave_holder},
    {CAGE_DESCRIPTORS, close_rest},
    {CAGE_LIMITS, set_limits},
    {CAGE_FILTER, load_filter},
};
static const struct entry_step reduced_steps[] = {
    {CAGE_BOX, make_box_folder},      {CAGE_FILES, put_files},          {CAGE_CAPABILITIES, drop_capabilities},
    {CAGE_LANDLOCK, restrict_to_box}, {CAGE_DESCRIPTORS, leave_holder}, {CAGE_DESCRIPTORS, close_rest},
    {CAGE_LIMITS, set_limits},        {CAGE_FILTER, load_filter},
};

static const struct entry_step bare_steps[] = {
    {CAGE_BOX, make_box_folder},
    {CAGE_FILES, put_files},
    {CAGE_CAPABILITIES, drop_capabilities},
    {CAGE_DESCRIPTORS, leave_bare_launcher},
    {CAGE_DESCRIPTORS, close_rest},
    {CAGE_LIMITS, set_bare_limits},
};

static const struct {
    const struct entry_step *steps;
    size_t count;
} steps_of[] = {
    [SANDBOX_LEVEL_NONE] = {bare_steps, ARRAY_LENGTH(bare_steps)},
    [SANDBOX_LEVEL_REDUCED] = {reduced_steps, ARRAY_LENGTH(reduced_steps)},
    [SANDBOX_LEVEL_FULL] = {full_steps, ARRAY_LENGTH(full_steps)},
};

static void fail(int status, enum cage_step step) __attribute__((noreturn));
static void fail(int status, enum cage_step step)
{
    struct cage_failure failure = {step, errno};

    while (write(status, &failure, sizeof failure) < 0 && errno == EINTR)
        continue;
    _exit(127);
}

static char *const *environment; /* of this program */

/* Its programs come first. Only in the holder's copies, or until the next one is started: an exec'ed one takes its own along. */
static void set_environment(struct cage *cage, const char *venv)
{
    static char *own[ARRAY_LENGTH(cage->environment) + 1];
    size_t count = 0;

    environment = cage->environment;
    if (!venv)
        return;
    while (cage->environment[count]) {
        own[count] = cage->environment[count];
        count++;
    }
    snprintf(cage->search_path, sizeof cage->search_path, "PATH=%.*s/bin:%s", SANDBOX_PATH_BYTES - 1, venv,
             cage->environment[0] + strlen("PATH="));
    snprintf(cage->virtual_environment, sizeof cage->virtual_environment, "VIRTUAL_ENV=%.*s", SANDBOX_PATH_BYTES - 1,
             venv);
    own[0] = cage->search_path; /* where the other one's stands */
    own[count] = cage->virtual_environment;
    own[count + 1] = NULL;
    environment = own;
}

void cage_enter(struct cage *cage, const struct cage_program *program, int slot, int status)
{
    const struct entry_step *steps = steps_of[cage->level].steps;
    struct entry entry = {cage, program, slot, status, -1};

    for (size_t i = 0; i < steps_of[cage->level].count; i++)
        if (steps[i].take(&entry) < 0)
            fail(entry.status, steps[i].step);
    set_environment(cage, program->venv);
    if (!command_of(program))
        close(CAGE_STATUS_FD); /* it begins */
    program->run(program->arg);
    _exit(127);
}

void cage_exec(void *arg)
{
    const struct cage_command *command = arg;
    union { /* execve is not declared as leaving them alone */
        const char *const *constant;
        char *const *variable;
    } arguments = {command->arguments};

    if (command->path)
        execve(command->path, arguments.variable, environment);
    else
        execveat(CAGE_COMMAND_FD, "", arguments.variable, environment, AT_EMPTY_PATH);
    fail(CAGE_STATUS_FD, CAGE_EXEC);
}
