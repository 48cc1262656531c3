// Grows, forks, lets the parent go: the memory stays with a process that nobody waits for.
// expected: verdict=ok|memory_limit|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 900
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 20; i++) {
        volatile char *block = malloc(60 << 20);
        if (!block)
            break;
        for (long at = 0; at < 60 << 20; at += 4096)
            block[at] = 1;
        if (i == 19)
            puts("ESCAPED");
        fflush(stdout);
        if (i % 3 == 2 && fork() > 0)
            _exit(0);
    }
    pause();
}
