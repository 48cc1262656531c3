/* The seccomp filter of programs: known calls less a list, an errno rather than death. A list of what is allowed, with
 * death for the rest, ends one program in a thousand for a call that its library tries once and could do without; a
 * verdict would then be wrong. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"

/* Calls behind it are newer than this list, which was made with Linux 6.1: they do not exist for a program. Numbers from
 * 424 on are the same on every architecture; x32 calls have a bit above them. */
#define LAST_KNOWN_CALL 450

#if defined(__x86_64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the filter is known for x86-64 and arm64"
#endif

#define LOW_WORD 0xffffffffu /* kernels read some arguments as 32 bits: the upper half must not hide them */

static const char *const denied[] = {
    /* other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_getfd",
    /* mounts, namespaces, roots */
    "mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fsmount", "fsconfig", "fspick", "open_tree",
    "move_mount", "mount_setattr", "unshare", "setns",
    /* what is shared by everybody of one user, or of one machine: a channel between programs */
    "add_key", "request_key", "keyctl", "inotify_init", "inotify_init1", "inotify_add_watch", "fanotify_init",
    "fanotify_mark", "flock", "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl", "semtimedop", "msgget",
    "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify",
    "mq_getsetattr", "lookup_dcookie", "name_to_handle_at", "open_by_handle_at",
    /* sockets with names: one network namespace serves all programs of a holder */
    "socket", "bind", "connect", "listen", "accept", "accept4", "socketcall",
    /* parts of the kernel with a long list of holes, that no solution needs */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_secret",
    "vmsplice", "modify_ldt", "mbind", "set_mempolicy", "set_mempolicy_home_node", "move_pages", "migrate_pages",
    "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp", "mlockall",
    /* asynchronous files: their number is one for the whole machine */
    "io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents",
    /* the machine */
    "init_module", "finit_module", "delete_module", "create_module", "kexec_load", "kexec_file_load", "reboot",
    "swapon", "swapoff", "acct", "syslog", "quotactl", "quotactl_fd", "settimeofday", "clock_settime",
    "clock_settime64", "stime", "adjtimex", "clock_adjtime", "clock_adjtime64", "sethostname", "setdomainname", "iopl",
    "ioperm", "vhangup", "nfsservctl", "uselib", "sysfs", "_sysctl", "sync", "syncfs",
    /* a rank behind everybody else's: waiting for a processor is no part of a program's time */
    "setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr",
    /* ids */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid"};

/* Calls that a C library replaces by others when it is told that they do not exist. clone3: its flags are behind a pointer, so
 * that only clone can be checked. preadv2: with a flag it tells whether a page of /usr is in memory. memfd_create: files
 * outside of the box, which count for no process once they wait in a socket's queue. */
static const char *const absent[] = {"clone3", "preadv2", "memfd_create"};

struct rule {
    const char *call;
    unsigned argument;
    enum scmp_compare compare;
    scmp_datum_t first, second; /* of SCMP_CMP_MASKED_EQ: mask, value */
};

#define BITS(call, argument, bits)                                                                                     \
    {                                                                                                                  \
        call, argument, SCMP_CMP_MASKED_EQ, bits, bits                                                                 \
    }
#define VALUE(call, argument, value)                                                                                   \
    {                                                                                                                  \
        call, argument, SCMP_CMP_MASKED_EQ, LOW_WORD, (uint32_t)(value)                                                \
    }
#define KIND(call, argument, kind)                                                                                     \
    {                                                                                                                  \
        call, argument, SCMP_CMP_MASKED_EQ, S_IFMT, kind                                                               \
    }

#define KIND_OF_SOCKET(kind)                                                                                           \
    {                                                                                                                  \
        "socketpair", 1, SCMP_CMP_MASKED_EQ, 0xf, kind                                                                 \
    }

static const struct rule denied_arguments[] = {
    BITS("clone", 0, CLONE_NEWNS),
    BITS("clone", 0, CLONE_NEWCGROUP),
    BITS("clone", 0, CLONE_NEWUTS),
    BITS("clone", 0, CLONE_NEWIPC),
    BITS("clone", 0, CLONE_NEWUSER),
    BITS("clone", 0, CLONE_NEWPID),
    BITS("clone", 0, CLONE_NEWNET),
    /* a sibling would be the holder's child, for which it does not wait */
    BITS("clone", 0, CLONE_PARENT),
    /* locks of files that everybody sees, /dev/null for one */
    VALUE("fcntl", 1, F_SETLK),
    VALUE("fcntl", 1, F_SETLKW),
    VALUE("fcntl", 1, F_GETLK),
    VALUE("fcntl", 1, F_OFD_SETLK),
    VALUE("fcntl", 1, F_OFD_SETLKW),
    VALUE("fcntl", 1, F_OFD_GETLK),
    VALUE("fcntl", 1, F_SETLEASE),
    VALUE("fcntl", 1, F_GETLEASE),
    VALUE("fcntl", 1, F_NOTIFY),
    /* typing into a terminal */
    VALUE("ioctl", 1, TIOCSTI),
    VALUE("ioctl", 1, TIOCLINUX),
    VALUE("ioctl", 1, TIOCSCTTY),
    BITS("chmod", 1, S_ISUID),
    BITS("chmod", 1, S_ISGID),
    BITS("fchmod", 1, S_ISUID),
    BITS("fchmod", 1, S_ISGID),
    BITS("fchmodat", 2, S_ISUID),
    BITS("fchmodat", 2, S_ISGID),
    KIND("mknod", 1, S_IFCHR),
    KIND("mknod", 1, S_IFBLK),
    KIND("mknodat", 2, S_IFCHR),
    KIND("mknodat", 2, S_IFBLK),
    {"personality", 0, SCMP_CMP_NE, LOW_WORD, 0}, /* but the question which one it is */
    {"socketpair", 0, SCMP_CMP_NE, AF_UNIX, 0},
    /* one for datagrams, which raw is, too, writes to any name: sendmsg() has it behind a pointer */
    KIND_OF_SOCKET(SOCK_DGRAM),
    KIND_OF_SOCKET(SOCK_RAW),
    /* an address behind it names somebody; sockets of socketpair have none */
    {"sendto", 4, SCMP_CMP_NE, 0, 0},
    /* programs for the kernel, and pipes of its news */
    VALUE("setsockopt", 2, SO_ATTACH_FILTER),
    VALUE("setsockopt", 2, SO_ATTACH_BPF),
    BITS("pipe2", 1, O_EXCL), /* O_NOTIFICATION_PIPE */
    /* whoever takes /usr out of memory makes every other program wait for the disk */
    VALUE("fadvise64", 3, POSIX_FADV_DONTNEED)};

/* Without namespaces one killpg() must reach every process of a program, and its user's other processes and files are
 * within reach. Landlock leaves alone what a path says about a file: mode, owner, times, attributes. Nor does it matter how
 * a descriptor was opened: who may read the file of a virtual environment could change its mode, if the user owns it. */
static const char *const denied_reduced[] = {
    "setsid", "setpgid",   "sched_setaffinity", "chmod",    "fchmodat",  "chown",       "lchown",       "fchownat",
    "utime",  "utimes",    "futimesat",         "setxattr", "lsetxattr", "removexattr", "lremovexattr", "fchmod",
    "fchown", "fsetxattr", "fremovexattr"};
/* A file that is open may get the time of now, as by `touch`. */
static const struct rule denied_arguments_reduced[] = {
    {"prlimit64", 0, SCMP_CMP_NE, 0, 0}, {"utimensat", 1, SCMP_CMP_NE, 0, 0},  {"utimensat", 2, SCMP_CMP_NE, 0, 0},
    VALUE("ioctl", 1, FS_IOC_SETFLAGS),  VALUE("ioctl", 1, FS_IOC_FSSETXATTR), VALUE("ioctl", 1, FS_IOC_SETVERSION)};
/* Landlock keeps signals in from interface 6 on, and truncate from 3 on. */
static const char *const denied_without_scope[] = {
    "kill", "tkill", "tgkill", "pidfd_send_signal", "rt_sigqueueinfo", "rt_tgsigqueueinfo"};
static const char *const denied_without_truncate[] = {"truncate"};

static int add_calls(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int call = seccomp_syscall_resolve_name(names[i]);
        int result = call < 0 ? 0 : seccomp_rule_add(filter, action, call, 0); /* < 0: this architecture has none */
        if (result < 0)
            return result;
    }
    return 0;
}

static int add_rules(scmp_filter_ctx filter, const struct rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int call = seccomp_syscall_resolve_name(rules[i].call);
        struct scmp_arg_cmp compare = {rules[i].argument, rules[i].compare, rules[i].first, rules[i].second};
        int result = call < 0 ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, 1, &compare);
        if (result < 0)
            return result;
    }
    return 0;
}

#define DENY(filter, names) add_calls(filter, SCMP_ACT_ERRNO(EPERM), names, ARRAY_LENGTH(names))

static int add_reduced(scmp_filter_ctx filter, int landlock_abi)
{
    int result = DENY(filter, denied_reduced);

    if (result == 0)
        result = add_rules(filter, denied_arguments_reduced, ARRAY_LENGTH(denied_arguments_reduced));
    if (result == 0 && landlock_abi < 6)
        result = DENY(filter, denied_without_scope);
    if (result == 0 && landlock_abi < 3)
        result = DENY(filter, denied_without_truncate);
    return result;
}

static int fill(scmp_filter_ctx filter, enum sandbox_level level, int landlock_abi)
{
    int result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

    if (result == 0)
        result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree: it is shorter to check, too */
    if (result == 0)
        result = DENY(filter, denied);
    if (result == 0)
        result = add_calls(filter, SCMP_ACT_ERRNO(ENOSYS), absent, ARRAY_LENGTH(absent));
    if (result == 0)
        result = add_rules(filter, denied_arguments, ARRAY_LENGTH(denied_arguments));
    if (result == 0 && level == SANDBOX_LEVEL_REDUCED)
        result = add_reduced(filter, landlock_abi);
    return result;
}

/* The library has no word for numbers that it does not know. */
static const struct sock_filter front[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCHITECTURE, 0, 3),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN_CALL, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

/* The rules as the kernel takes them. The library writes to a descriptor alone. */
static int export(const scmp_filter_ctx filter, struct sock_fprog *ret_filter)
{
    _cleanup_close_ int fd = memfd_create("filter", MFD_CLOEXEC);
    int result = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
    off_t bytes = result < 0 ? result : lseek(fd, 0, SEEK_END);

    if (bytes < 0)
        return result < 0 ? result : -errno;
    size_t count = ARRAY_LENGTH(front) + (size_t)bytes / sizeof(struct sock_filter);
    struct sock_filter *program = xcalloc(count, sizeof *program);
    memcpy(program, front, sizeof front);
    if (pread(fd, program + ARRAY_LENGTH(front), (size_t)bytes, 0) != bytes) {
        free(program);
        return -EIO;
    }
    *ret_filter = (struct sock_fprog){(unsigned short)count, program};
    return 0;
}

int cage_filter_make(enum sandbox_level level, int landlock_abi, struct sock_fprog *ret_filter)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int result = filter ? fill(filter, level, landlock_abi) : -ENOMEM;

    if (result == 0)
        result = export(filter, ret_filter);
    seccomp_release(filter);
    errno = -result;
    return result < 0 ? -1 : 0;
}
