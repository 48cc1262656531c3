// The same by mappings and calls that change a file without opening it for writing.
// expected: verdict=pass; stdout!~FORGED
// stdout: CLEAN\n
// runs: 6
// again: 2
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sendfile.h>
#include <unistd.h>
int main(void)
{
    int held = open("/proc/self/exe", O_RDONLY);
    char *seen = mmap(0, 4096, PROT_READ, MAP_SHARED, held, 0);
    if (seen != MAP_FAILED && mprotect(seen, 4096, PROT_READ | PROT_WRITE) == 0)
        seen[0] = 'X';
    fchmod(held, 0777);
    if (ftruncate(held, 10) == 0 || truncate("/proc/self/exe", 10) == 0 || fallocate(held, 0, 0, 1 << 20) == 0)
        puts("FORGED");
    int both = open("/proc/self/exe", O_RDWR);
    if (both >= 0)
        puts("FORGED");
    puts("CLEAN");
    return 0;
}
