// Shared anonymous memory that is written and then unmapped from the page tables: no resident set shows it.
// expected: verdict=ok|memory_limit|runtime_error|time_limit_wall|time_limit_cpu; stdout!~ESCAPED
// memory_mb: 400
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    long taken = 0;
    for (int i = 0; i < 40; i++) {
        char *block = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            break;
        for (int part = 0; part < 32; part++) {
            memset(block + ((long)part << 20), 1, 1 << 20);
            madvise(block + ((long)part << 20), 1 << 20, MADV_DONTNEED);
            taken++;
        }
    }
    printf("%s %ld\n", taken >= 1024 ? "ESCAPED" : "BLOCKED", taken);
    return 0;
}
