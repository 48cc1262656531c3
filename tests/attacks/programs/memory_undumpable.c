// The same, and none of them lets its memory be looked at.
// expected: verdict=ok|memory_limit|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 1400
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int status, good = 0;
    for (int i = 0; i < 30; i++)
        if (fork() == 0) {
            prctl(PR_SET_DUMPABLE, 0);
            volatile char *block = malloc(64 << 20);
            if (!block)
                _exit(1);
            for (long at = 0; at < 64 << 20; at += 4096)
                block[at] = 1;
            sleep(1);
            _exit(0);
        }
    while (wait(&status) > 0)
        good += status == 0;
    printf("%s %d\n", good >= 28 ? "ESCAPED" : "BLOCKED", good);
    return 0;
}
