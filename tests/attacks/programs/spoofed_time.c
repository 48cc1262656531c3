// Sends itself the signal of the processor limit at once.
// expected: verdict=runtime_error|time_limit_cpu
#include <signal.h>
int main(void)
{
    raise(SIGXCPU);
    return 0;
}
