// The signal that a parent gets is the child's choice: SIGKILL and SIGSTOP for whoever started this program.
// expected: verdict=pass|ok|runtime_error|time_limit_wall
// stdout: DONE\n
// runs: 4
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    int numbers[] = {SIGKILL, SIGSTOP, SIGTERM, SIGSEGV, SIGUSR1, SIGALRM, SIGPIPE, SIGRTMAX};
    for (int i = 0; i < 8; i++)
        if (syscall(SYS_clone, CLONE_PARENT | numbers[i], 0, 0, 0, 0) == 0)
            _exit(0);
    usleep(20000);
    puts("DONE");
    return 0;
}
