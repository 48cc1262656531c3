// Only 0, 1 and 2 are open, and no two of them are the same two-way thing.
// expected: verdict=pass; stdout!~TRACE
// stdout: CLEAN\n
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    int hit = 0;
    for (int fd = 3; fd < 4096; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            hit = fd;
    if ((fcntl(0, F_GETFL) & O_ACCMODE) == O_WRONLY || (fcntl(1, F_GETFL) & O_ACCMODE) == O_RDONLY)
        hit = -1;
    if (hit)
        printf("TRACE %d\n", hit);
    else
        puts("CLEAN");
    return 0;
}
