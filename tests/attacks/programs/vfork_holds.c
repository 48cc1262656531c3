// The parent of a vfork() waits for a child that does not come back, and no signal but one reaches it.
// expected: verdict=time_limit_wall|time_limit_cpu
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    if (vfork() == 0)
        for (;;)
            pause();
    return 0;
}
