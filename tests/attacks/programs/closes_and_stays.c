// Closes all three streams and stays: the end of its output is not the end of it.
// expected: verdict=time_limit_wall
#include <unistd.h>
int main(void)
{
    close(0), close(1), close(2);
    for (;;)
        pause();
}
