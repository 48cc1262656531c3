// A core file would be written, or a handler of the machine started with it.
// expected: verdict=runtime_error
// runs: 2
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    volatile char *block = malloc(10 << 20);
    for (long at = 0; at < 10 << 20; at++)
        block[at] = 1;
    if (fork() == 0)
        abort();
    usleep(50000);
    return *(volatile int *)8;
}
