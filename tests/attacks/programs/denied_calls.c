// The calls that no program of a sandbox needs, each with arguments that would succeed or fail in another way without a filter.
// expected: verdict=pass; stdout!~ESCAPED
// stdout: CLEAN\n
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
static char page[4096] __attribute__((aligned(4096)));
static long words[64];
struct call { const char *name; long number, a, b, c, d, e; };
#define P (long)page
static const struct call calls[] = {
    {"ptrace", SYS_ptrace, 0, 0, 0, 0, 0},
    {"process_vm_readv", SYS_process_vm_readv, 1, 0, 0, 0, 0},
    {"process_vm_writev", SYS_process_vm_writev, 1, 0, 0, 0, 0},
    {"kcmp", SYS_kcmp, 1, 1, 0, 0, 0},
    {"pidfd_getfd", 438, -1, 0, 0, 0, 0},
    {"process_madvise", 440, -1, 0, 0, 0, 0},
    {"mount", SYS_mount, 0, 0, 0, 0, 0},
    {"umount2", SYS_umount2, P, 0, 0, 0, 0},
    {"pivot_root", SYS_pivot_root, P, P, 0, 0, 0},
    {"chroot", SYS_chroot, (long)"/box", 0, 0, 0, 0},
    {"fsopen", 430, (long)"tmpfs", 0, 0, 0, 0},
    {"fsconfig", 431, -1, 0, 0, 0, 0},
    {"fsmount", 432, -1, 0, 0, 0, 0},
    {"fspick", 433, -100, (long)"/box", 0, 0, 0},
    {"open_tree", 428, -100, (long)"/box", 0, 0, 0},
    {"move_mount", 429, -100, P, -100, P, 0},
    {"mount_setattr", 442, -100, (long)"/box", 0, P, 32},
    {"unshare files", SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0},
    {"unshare mount", SYS_unshare, CLONE_NEWNS, 0, 0, 0, 0},
    {"setns", SYS_setns, 0, 0, 0, 0, 0},
    {"keyctl", SYS_keyctl, 0, -3, 0, 0, 0},
    {"add_key", SYS_add_key, (long)"user", (long)"attack_key", (long)"x", 1, -3},
    {"request_key", SYS_request_key, (long)"user", (long)"attack_key", 0, 0, 0},
    {"bpf", SYS_bpf, 0, P, 64, 0, 0},
    {"perf_event_open", SYS_perf_event_open, P, 0, -1, -1, 0},
    {"userfaultfd", SYS_userfaultfd, 1, 0, 0, 0, 0},
    {"io_uring_setup", 425, 4, P, 0, 0, 0},
    {"io_uring_enter", 426, -1, 0, 0, 0, 0},
    {"io_uring_register", 427, -1, 0, 0, 0, 0},
    {"init_module", SYS_init_module, P, 0, P, 0, 0},
    {"delete_module", SYS_delete_module, P, 0, 0, 0, 0},
    {"kexec_load", SYS_kexec_load, 0, 0, 0, 0, 0},
    {"reboot", SYS_reboot, 0, 0, 0, 0, 0},
    {"swapon", SYS_swapon, P, 0, 0, 0, 0},
    {"acct", SYS_acct, 0, 0, 0, 0, 0},
    {"syslog", SYS_syslog, 10, 0, 0, 0, 0},
    {"quotactl", SYS_quotactl, 0, 0, 0, 0, 0},
    {"settimeofday", SYS_settimeofday, (long)words, 0, 0, 0, 0},
    {"clock_settime", SYS_clock_settime, 0, (long)words, 0, 0, 0},
    {"sethostname", SYS_sethostname, (long)"x", 1, 0, 0, 0},
    {"setdomainname", SYS_setdomainname, (long)"x", 1, 0, 0, 0},
    {"iopl", SYS_iopl, 0, 0, 0, 0, 0},
    {"ioperm", SYS_ioperm, 0, 1, 0, 0, 0},
    {"modify_ldt", SYS_modify_ldt, 0, P, 64, 0, 0},
    {"name_to_handle_at", SYS_name_to_handle_at, -100, (long)"/box", P, (long)words, 0},
    {"open_by_handle_at", SYS_open_by_handle_at, -100, P, 0, 0, 0},
    {"fanotify_init", SYS_fanotify_init, 0, 0, 0, 0, 0},
    {"inotify_init", SYS_inotify_init, 0, 0, 0, 0, 0},
    {"inotify_init1", SYS_inotify_init1, 0, 0, 0, 0, 0},
    {"mbind", SYS_mbind, P, 4096, 0, 0, 0},
    {"set_mempolicy", SYS_set_mempolicy, 0, 0, 0, 0, 0},
    {"migrate_pages", SYS_migrate_pages, 0, 0, 0, 0, 0},
    {"move_pages", SYS_move_pages, 0, 0, 0, 0, 0},
    {"memfd_secret", 447, 0, 0, 0, 0, 0},
    {"vmsplice", SYS_vmsplice, 1, (long)words, 0, 0, 0},
    {"mlockall", SYS_mlockall, MCL_FUTURE, 0, 0, 0, 0},
    {"shmget", SYS_shmget, 0x7012, 4096, 0600, 0, 0},
    {"msgget", SYS_msgget, 0x7012, 0600, 0, 0, 0},
    {"semget", SYS_semget, 0x7012, 1, 0600, 0, 0},
    {"mq_open", SYS_mq_open, (long)"attack_queue", O_RDWR, 0, 0, 0},
    {"setuid", SYS_setuid, 0, 0, 0, 0, 0},
    {"setgid", SYS_setgid, 0, 0, 0, 0, 0},
    {"setgroups", SYS_setgroups, 0, 0, 0, 0, 0},
    {"setresuid", SYS_setresuid, 0, 0, 0, 0, 0},
    {"mknod", SYS_mknod, (long)"null", S_IFCHR | 0666, 0x103, 0, 0},
    {"personality", SYS_personality, 0x0400000, 0, 0, 0, 0},
    {"socket unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, 0},
    {"socket inet", SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0},
    {"socket inet6", SYS_socket, AF_INET6, SOCK_DGRAM, 0, 0, 0},
    {"socket netlink", SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, 0},
    {"socket packet", SYS_socket, AF_PACKET, SOCK_RAW, 0, 0, 0},
    {"socket alg", SYS_socket, 38, SOCK_SEQPACKET, 0, 0, 0},
    {"socket vsock", SYS_socket, 40, SOCK_STREAM, 0, 0, 0},
    {"socketpair datagram", SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, (long)words, 0},
    {"socketpair raw", SYS_socketpair, AF_UNIX, SOCK_RAW, 0, (long)words, 0},
    {"io_setup", SYS_io_setup, 1, (long)words, 0, 0, 0},
    {"pipe2 of notices", SYS_pipe2, (long)words, O_EXCL, 0, 0, 0},
    {"syncfs", SYS_syncfs, 0, 0, 0, 0, 0},
    {"fadvise64", SYS_fadvise64, 0, 0, 0, 4, 0},
    {"setsockopt of a filter", SYS_setsockopt, 0, SOL_SOCKET, SO_ATTACH_FILTER, 0, 0},
    {"preadv2", SYS_preadv2, 0, 0, 0, 0, 0},
    {"clone of a sibling", SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0},
    {"flock", SYS_flock, 0, 1, 0, 0, 0},
    {"clone new user", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0},
    {"lookup_dcookie", SYS_lookup_dcookie, 0, P, 64, 0, 0},
    {"nfsservctl", SYS_nfsservctl, 0, 0, 0, 0, 0},
    {"vhangup", SYS_vhangup, 0, 0, 0, 0, 0},
    {"cachestat", 451, 0, P, P, 0, 0},
    {"a number that no kernel knows", 4000, 0, 0, 0, 0, 0},
    {"x32 getpid", 0x40000000 + SYS_getpid, 0, 0, 0, 0, 0},
};
int main(void)
{
    int hits = 0;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const struct call *c = &calls[i];
        errno = 0;
        long got = syscall(c->number, c->a, c->b, c->c, c->d, c->e);
        if (got == 0 && strncmp(c->name, "clone", 5) == 0)
            _exit(0);
        if (got < 0 && (errno == EPERM || errno == ENOSYS || errno == EACCES || errno == EAFNOSUPPORT))
            continue;
        hits++;
        printf("ESCAPED %s: %ld, errno %d\n", c->name, got, errno);
    }
    int file = open("/usr/lib/os-release", O_RDONLY);
    struct flock lock = {.l_type = F_RDLCK};
    if (file >= 0 && fcntl(file, F_SETLK, &lock) == 0 && ++hits)
        puts("ESCAPED F_SETLK");
    if (file >= 0 && fcntl(file, F_OFD_SETLK, &lock) == 0 && ++hits)
        puts("ESCAPED F_OFD_SETLK");
    if (file >= 0 && fcntl(file, F_SETLEASE, F_RDLCK) == 0 && ++hits)
        puts("ESCAPED F_SETLEASE");
    int folder = open("/usr/lib", O_RDONLY | O_DIRECTORY);
    if (folder >= 0 && fcntl(folder, F_NOTIFY, 1) == 0 && ++hits)
        puts("ESCAPED F_NOTIFY");
    if (!hits)
        puts("CLEAN");
    return 0;
}
