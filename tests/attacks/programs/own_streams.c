// Opens its own output for reading, its input for writing, makes both pipes small, and asks for signals to process 1.
// expected: verdict=pass|ok|time_limit_wall
// stdout: CLEAN\n
// stdin: hello\n
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    char held[4096];
    int in = open("/proc/self/fd/1", O_RDONLY | O_NONBLOCK), out = open("/proc/self/fd/0", O_WRONLY | O_NONBLOCK);
    for (int fd = 0; fd < 3; fd++) {
        fcntl(fd, F_SETPIPE_SZ, 4096);
        fcntl(fd, F_SETOWN, 1);
        fcntl(fd, F_SETSIG, SIGKILL);
        fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC | O_APPEND);
    }
    if (out >= 0)
        for (int i = 0; i < 100; i++)
            write(out, held, sizeof held);
    puts("CLEAN");
    fflush(stdout);
    if (in >= 0 && fork() == 0)
        for (int i = 0; i < 1000; i++)
            read(in, held, sizeof held);
    return 0;
}
