// Every signal to process 1: a handler that it inherited would run in the memory that it shares.
// expected: verdict=pass
// stdout: SENT\n
// runs: 4
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
    for (int round = 0; round < 20; round++)
        for (int number = 1; number < 65; number++) {
            siginfo_t info = {.si_code = -1};
            kill(1, number);
            syscall(SYS_tgkill, 1, 1, number);
            syscall(SYS_rt_sigqueueinfo, 1, number, &info);
        }
    usleep(50000);
    puts("SENT");
    return 0;
}
