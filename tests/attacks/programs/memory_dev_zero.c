// The same through /dev/zero, which is shared memory, too, in 24 processes.
// expected: verdict=ok|memory_limit|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 450
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 24; i++)
        if (fork() == 0) {
            int zero = open("/dev/zero", O_RDWR);
            char *block = mmap(0, 48 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, zero, 0);
            if (block == MAP_FAILED)
                _exit(1);
            memset(block, 1, 48 << 20);
            madvise(block, 48 << 20, MADV_DONTNEED);
            sleep(1);
            _exit(0);
        }
    int status, good = 0;
    while (wait(&status) > 0)
        good += status == 0;
    printf("%s %d\n", good >= 20 ? "ESCAPED" : "BLOCKED", good);
    return 0;
}
