// 16 processes share the time of one: each is below its own limit.
// expected: verdict=time_limit_cpu|time_limit_wall
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 15; i++)
        if (fork() == 0)
            break;
    for (;;)
        ;
}
