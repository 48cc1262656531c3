// Ends as if it had been killed for its memory: it was not.
// expected: verdict=runtime_error
#include <signal.h>
#include <unistd.h>
int main(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}
