// Writes what a supervisor could take for news to every descriptor, and ends with the codes of shells.
// expected: verdict=runtime_error
#include <unistd.h>
int main(void)
{
    static const char words[] = "\0\0\0\0\1\0\0\0{\"outcome\":\"ended\",\"exit_code\":0}\nset-up failed: mount: Operation not permitted\n";
    for (int fd = 0; fd < 256; fd++)
        for (int i = 0; i < 3; i++)
            write(fd, words, sizeof words);
    _exit(125);
}
