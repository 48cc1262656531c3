// A core file would be written, or a handler of the machine started with it.
// expected: verdict=runtime_error
// runs: 2
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char *block = malloc(10 << 20);
    memset(block, 1, 10 << 20);
    if (fork() == 0)
        abort();
    usleep(50000);
    return *(volatile int *)8;
}
