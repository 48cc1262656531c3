// Holds its own binary open, becomes a shell (the file is no longer busy) and writes into it: a cache must hand out the original.
// expected: verdict=pass; stdout!~FORGED
// stdout: CLEAN\n
// runs: 6
// again: 2
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    puts("CLEAN");
    fflush(stdout);
    int held = open("/proc/self/exe", O_RDONLY);
    if (held >= 0 && held != 9)
        dup2(held, 9);
    execl("/bin/sh", "sh", "-c",
          "{ printf '#!/bin/sh\\necho FORGED\\n' > /proc/self/fd/9; chmod 777 /proc/self/fd/9; cp /proc/self/fd/9 copy && printf FORGED >> /proc/self/fd/9; } 2>/dev/null; exit 0", (char *)0);
    return 0;
}
