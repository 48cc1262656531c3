/* A program that tries what must not work. It runs in the trial of a machine (probe.h), and in the unit tests, which run
 * it without a cage, too: there most of it must work. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_self_test_private.h"

/* --- calls that the filter refuses: with this errno, and no other ---
 *
 * None is of another architecture: around the service there may be a filter that ends who makes one. */

struct attempt {
    const char *name;
    long call;
    long arguments[6];
    int error;
};

#define TEXT(text) ((long)(text))
#define HIGH_BIT (1l << 32) /* kernels do not look at it */
#define NOT_A_CALL 100000

static const struct attempt attempts[] = {
    {"ptrace", SYS_ptrace, {PTRACE_TRACEME}, EPERM},
    {"process_vm_readv", SYS_process_vm_readv, {0}, EPERM},
    {"pidfd_getfd", SYS_pidfd_getfd, {-1}, EPERM},
    {"mount", SYS_mount, {TEXT("x"), TEXT("/"), TEXT("tmpfs")}, EPERM},
    {"umount2", SYS_umount2, {TEXT("/proc"), 2}, EPERM},
    {"pivot_root", SYS_pivot_root, {TEXT("."), TEXT(".")}, EPERM},
    {"chroot", SYS_chroot, {TEXT("/")}, EPERM},
    {"open_tree", SYS_open_tree, {AT_FDCWD, TEXT("/usr"), 0}, EPERM},
    {"unshare of users", SYS_unshare, {CLONE_NEWUSER}, EPERM},
    {"setns", SYS_setns, {-1}, EPERM},
    {"clone of users", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, EPERM},
    {"clone of mounts", SYS_clone, {CLONE_NEWNS | SIGCHLD}, EPERM},
    {"clone of a sibling", SYS_clone, {CLONE_PARENT | SIGCHLD}, EPERM},
    {"clone3", SYS_clone3, {0}, ENOSYS},
    {"add_key", SYS_add_key, {0}, EPERM},
    {"keyctl", SYS_keyctl, {KEYCTL_GET_KEYRING_ID, -3, 0}, EPERM},
    {"inotify_init1", SYS_inotify_init1, {0}, EPERM},
    {"fanotify_init", SYS_fanotify_init, {0}, EPERM},
    {"flock", SYS_flock, {0, LOCK_SH}, EPERM},
    {"fcntl of a lock", SYS_fcntl, {0, F_GETLK}, EPERM},
    {"fcntl of a lock, high bit", SYS_fcntl, {0, F_GETLK | HIGH_BIT}, EPERM},
    {"fcntl of a lease", SYS_fcntl, {0, F_GETLEASE}, EPERM},
    {"fcntl of a notice", SYS_fcntl, {0, F_NOTIFY}, EPERM},
    {"shmget", SYS_shmget, {0x7012, 4096, 0600}, EPERM},
    {"mq_open", SYS_mq_open, {TEXT("x"), O_RDONLY}, EPERM},
    {"socket of unix", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, EPERM},
    {"socket of inet", SYS_socket, {AF_INET, SOCK_STREAM, 0}, EPERM},
    {"socket of netlink", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, EPERM},
    {"socket of vsock", SYS_socket, {AF_VSOCK, SOCK_STREAM, 0}, EPERM},
    {"socketpair of tipc", SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0}, EPERM},
    {"socketpair of datagrams", SYS_socketpair, {AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0}, EPERM},
    {"socketpair of datagrams, raw", SYS_socketpair, {AF_UNIX, SOCK_RAW | HIGH_BIT, 0}, EPERM},
    {"a filter of a socket", SYS_setsockopt, {0, SOL_SOCKET, SO_ATTACH_FILTER}, EPERM},
    {"a pipe of notices", SYS_pipe2, {0, O_EXCL}, EPERM},
    {"io_setup", SYS_io_setup, {1}, EPERM},
    {"syncfs", SYS_syncfs, {0}, EPERM},
    {"taking a file out of memory", SYS_fadvise64, {0, 0, 0, POSIX_FADV_DONTNEED}, EPERM},
    {"bind", SYS_bind, {0}, EPERM},
    {"sendto with an address", SYS_sendto, {0, TEXT(""), 0, 0, TEXT(""), 2}, EPERM},
    {"bpf", SYS_bpf, {0}, EPERM},
    {"perf_event_open", SYS_perf_event_open, {0}, EPERM},
    {"userfaultfd", SYS_userfaultfd, {1}, EPERM},
    {"io_uring_setup", SYS_io_uring_setup, {1}, EPERM},
    {"memfd_secret", SYS_memfd_secret, {0}, EPERM},
    {"vmsplice", SYS_vmsplice, {0}, EPERM},
    {"mbind", SYS_mbind, {0}, EPERM},
    {"mlockall", SYS_mlockall, {1}, EPERM},
    {"kexec_load", SYS_kexec_load, {0}, EPERM},
    {"init_module", SYS_init_module, {0}, EPERM},
    {"syslog", SYS_syslog, {10}, EPERM},
    {"clock_settime", SYS_clock_settime, {0}, EPERM},
    {"sethostname", SYS_sethostname, {TEXT("x"), 1}, EPERM},
    {"sched_setscheduler", SYS_sched_setscheduler, {0, SCHED_OTHER, 0}, EPERM},
    {"setpriority", SYS_setpriority, {0, 0, 19}, EPERM},
    {"setuid", SYS_setuid, {0}, EPERM},
    {"setresuid", SYS_setresuid, {-1, -1, -1}, EPERM},
    {"setgroups", SYS_setgroups, {0}, EPERM},
    {"open_by_handle_at", SYS_open_by_handle_at, {0}, EPERM},
    {"personality", SYS_personality, {0x0040000}, EPERM},
    {"TIOCSTI", SYS_ioctl, {0, TIOCSTI, TEXT("x")}, EPERM},
    {"TIOCSTI, high bit", SYS_ioctl, {0, TIOCSTI | HIGH_BIT, TEXT("x")}, EPERM},
    {"set user id on a file", SYS_fchmod, {-1, 04755}, EPERM},
    {"a device", SYS_mknodat, {AT_FDCWD, TEXT("device"), S_IFCHR | 0600, 0x103}, EPERM},
    {"preadv2", SYS_preadv2, {0}, ENOSYS},
    {"memfd_create", SYS_memfd_create, {TEXT("x"), 0}, ENOSYS},
    {"a call that is not known", NOT_A_CALL, {0}, ENOSYS},
#if defined(__x86_64__)
    {"iopl", SYS_iopl, {0}, EPERM},
    {"modify_ldt", SYS_modify_ldt, {0}, EPERM},
#endif
};

static const struct attempt attempts_reduced[] = {
    {"setsid", SYS_setsid, {0}, EPERM},
    {"setpgid", SYS_setpgid, {0, 0}, EPERM},
    {"prlimit64 of another", SYS_prlimit64, {1, 0, 0, 0}, EPERM},
    {"fchmodat", SYS_fchmodat, {AT_FDCWD, TEXT("."), 0700}, EPERM},
    {"utimensat", SYS_utimensat, {AT_FDCWD, TEXT("."), 0, 0}, EPERM},
    {"fchownat", SYS_fchownat, {AT_FDCWD, TEXT("."), -1, -1, 0}, EPERM},
};

static bool is_refused(const struct attempt *attempt)
{
    const long *a = attempt->arguments;
    long result = syscall(attempt->call, a[0], a[1], a[2], a[3], a[4], a[5]);

    if (result == 0 && attempt->call == SYS_clone) /* the child of a call that worked */
        _exit(0);
    return result == -1 && errno == attempt->error;
}

/* --- states --- */

static bool cannot_open(const char *path, int flags)
{
    _cleanup_close_ int fd = open(path, flags | O_CLOEXEC);

    return fd < 0;
}

static bool sees_no_secrets(const struct cage_self_test *test)
{
    static const char *const paths[] = {"/etc/shadow",      "/etc/hostname", "/proc/1/mem", "/proc/1/environ",
                                        "/sys/kernel",      "/run",          "/root",       "/var/log",
                                        "/proc/sys/kernel", "/dev/kmsg",     "/home"};

    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++)
        if (!cannot_open(paths[i], O_RDONLY))
            return false;
    return !test->secret || cannot_open(test->secret, O_RDONLY);
}

static bool writes_nowhere(const struct cage_self_test *test)
{
    static const char *const folders[] = {"/", "/usr", "/etc", "/dev", "/usr/lib", "/var", "/proc"};

    (void)test;
    for (size_t i = 0; i < ARRAY_LENGTH(folders); i++)
        if (!cannot_open(folders[i], O_TMPFILE | O_RDWR))
            return false;
    return cannot_open("/proc/self/autogroup", O_WRONLY);
}

static bool has_a_box(const struct cage_self_test *test)
{
    (void)test;
    return !cannot_open("own", O_RDWR | O_CREAT | O_EXCL);
}

static bool has_no_capability(const struct cage_self_test *test)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];

    (void)test;
    return syscall(SYS_capget, &header, data) == 0 &&
           !(data[0].effective | data[0].permitted | data[1].effective | data[1].permitted);
}

static bool has_no_other_descriptor(const struct cage_self_test *test)
{
    (void)test;
    for (int fd = 3; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return false;
    return true;
}

/* At the full level nobody is outside; at the reduced one, the parent. */
static bool reaches_no_process(const struct cage_self_test *test)
{
    return test->level == SANDBOX_LEVEL_FULL ? getppid() == 0 && getpid() == 2 : kill(getppid(), 0) < 0;
}

static const struct {
    const char *name;
    bool (*holds)(const struct cage_self_test *test);
} states[] = {
    {"files outside", sees_no_secrets},
    {"writing outside", writes_nowhere},
    {"no box", has_a_box},
    {"capabilities", has_no_capability},
    {"descriptors", has_no_other_descriptor},
    {"processes outside", reaches_no_process},
};

/* --- the whole --- */

static void tell(int *count, const char *name)
{
    ++*count;
    dprintf(STDOUT_FILENO, "%s%s", *count > 1 ? ", " : "", name);
}

static void try_calls(const struct attempt *list, size_t count, int *escapes)
{
    for (size_t i = 0; i < count; i++)
        if (!is_refused(&list[i]))
            tell(escapes, list[i].name);
}

void cage_self_test(void *arg)
{
    const struct cage_self_test *test = arg;
    int escapes = 0;

    try_calls(attempts, ARRAY_LENGTH(attempts), &escapes);
    if (test->level == SANDBOX_LEVEL_REDUCED)
        try_calls(attempts_reduced, ARRAY_LENGTH(attempts_reduced), &escapes);
    for (size_t i = 0; i < ARRAY_LENGTH(states); i++)
        if (!states[i].holds(test))
            tell(&escapes, states[i].name);
    _exit(escapes < 100 ? escapes : 100);
}
