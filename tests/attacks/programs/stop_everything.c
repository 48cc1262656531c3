// All of its processes stop, and so does it; nobody is left that could go on.
// expected: verdict=time_limit_wall
#include <signal.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 10; i++)
        if (fork() == 0)
            for (;;)
                pause();
    usleep(20000);
    kill(-1, SIGSTOP);
    raise(SIGSTOP);
    for (;;)
        pause();
}
