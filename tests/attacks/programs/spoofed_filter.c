// Sends itself the signal of a filter.
// expected: verdict=runtime_error|security_violation
#include <signal.h>
int main(void)
{
    raise(SIGSYS);
    return 0;
}
