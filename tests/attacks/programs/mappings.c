// 65,000 mappings and then the end: what takes long is the kernel's clean-up.
// expected: verdict=pass|runtime_error|memory_limit|time_limit_wall|time_limit_cpu
// stdout: DONE\n
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
    for (int i = 0; i < 65000; i++) {
        char *one = mmap(0, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (one == MAP_FAILED)
            break;
    }
    puts("DONE");
    return 0;
}
