// A process that is left behind floods the output of its dead parent.
// expected: verdict=pass|ok|output_limit
// stdout: first\n
#include <string.h>
#include <unistd.h>
static char block[65536];
int main(void)
{
    memset(block, 'x', sizeof block);
    write(1, "first\n", 6);
    if (fork() == 0) {
        setsid();
        for (;;)
            write(1, block, sizeof block);
    }
    return 0;
}
