// Every pipe as large as it may be, filled, in every process.
// expected: verdict=ok|pass|memory_limit|runtime_error|time_limit_wall|time_limit_cpu
// stdout: DONE\n
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static char block[1 << 16];
int main(void)
{
    for (int i = 0; i < 28; i++)
        if (fork() == 0) {
            int both[2];
            while (pipe2(both, O_NONBLOCK) == 0) {
                fcntl(both[1], F_SETPIPE_SZ, 1 << 20);
                while (write(both[1], block, sizeof block) > 0)
                    ;
            }
            usleep(300000);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    puts("DONE");
    return 0;
}
