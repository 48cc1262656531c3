// Does not read eight mebibytes of input, closes it half way, and writes much on the other side.
// expected: verdict=output_limit|ok
// stdin_mb: 8
#include <string.h>
#include <unistd.h>
static char block[65536];
int main(void)
{
    read(0, block, 1000);
    close(0);
    memset(block, 'y', sizeof block);
    for (int i = 0; i < 20; i++) {
        write(2, block, sizeof block);
        write(1, block, sizeof block);
    }
    return 0;
}
