// clone(CLONE_PARENT): children of whoever started this program. If that one waits for this program alone, they stay zombies,
// and their process-id namespace never ends.
// expected: verdict=pass|ok|runtime_error|time_limit_wall
// stdout: DONE\n
// runs: 8
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 12; i++) {
        long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
            _exit(i);
    }
    if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) {
        pause();
        _exit(0);
    }
    if (syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0) == 0) /* no signal when it ends */
        _exit(3);
    usleep(20000);
    puts("DONE");
    return 0;
}
