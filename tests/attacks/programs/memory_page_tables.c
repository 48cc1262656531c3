// A page for every two mebibytes of 256 GiB that may only be read: 512 MiB of page tables, and hardly a resident page.
// expected: verdict=ok|memory_limit|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 400
// wall_ms: 6000
// cpu_ms: 5000
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
    long length = 1L << 38, step = 2L << 20, touched = 0;
    volatile char sum = 0;
    char *block = mmap(0, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) {
        puts("BLOCKED");
        return 0;
    }
    madvise(block, length, MADV_NOHUGEPAGE);
    for (long at = 0; at < length; at += step, touched++)
        sum += block[at];
    printf("%s %ld\n", touched > 120000 ? "ESCAPED" : "BLOCKED", touched);
    return sum;
}
