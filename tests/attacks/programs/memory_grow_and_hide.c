// Grows, forks, lets the parent go: the memory stays with a process that nobody waits for.
// expected: verdict=ok|memory_limit|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 600
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 20; i++) {
        char *block = malloc(60 << 20);
        if (!block)
            break;
        memset(block, i + 1, 60 << 20);
        if (i == 19)
            puts("ESCAPED");
        fflush(stdout);
        if (i % 3 == 2 && fork() > 0)
            _exit(0);
    }
    pause();
}
