// A filter of its own that answers every call with an error, and one that kills: both are the program's own ends.
// expected: verdict=ok|runtime_error|security_violation|time_limit_wall|time_limit_cpu
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1)};
    struct sock_fprog program = {1, code};
    puts("hello");
    fflush(stdout);
    if (fork() == 0) {
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        for (;;)
            ;
    }
    code[0].k = SECCOMP_RET_KILL_PROCESS;
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    for (;;)
        syscall(SYS_getpid);
}
