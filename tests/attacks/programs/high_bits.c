// Arguments that differ from the forbidden ones in the upper half, which the kernel does not look at.
// expected: verdict=pass; stdout!~ESCAPED
// stdout: CLEAN\n
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    long high = 0x100000000L;
    int pair[2], hits = 0, mine = open("mine", O_CREAT | O_RDWR, 0600);
    char letter = 'x';
    struct flock lock = {.l_type = F_RDLCK};
    if (syscall(SYS_ioctl, 0, high | TIOCSTI, &letter) == 0 || errno != EPERM) {
        if (errno != ENOTTY || !isatty(0))
            hits += errno != EPERM && errno != ENOTTY;
    }
    if (syscall(SYS_socket, high | AF_INET, SOCK_STREAM, 0) >= 0 && ++hits)
        puts("ESCAPED socket");
    if (syscall(SYS_socketpair, high | AF_UNIX, high | SOCK_DGRAM, 0, pair) == 0 && ++hits)
        puts("ESCAPED socketpair");
    if (syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0 && ++hits)
        puts("ESCAPED socketpair with flags");
    if (syscall(SYS_fcntl, mine, high | F_SETLK, &lock) == 0 && ++hits)
        puts("ESCAPED fcntl");
    if (syscall(SYS_fchmod, mine, high | 04755) == 0) {
        struct stat found;
        if (fstat(mine, &found) == 0 && found.st_mode & 06000 && ++hits)
            puts("ESCAPED fchmod");
    }
    long child = syscall(SYS_clone, high | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    if (child > 0 && ++hits)
        puts("ESCAPED clone");
    if (!hits)
        puts("CLEAN");
    return 0;
}
