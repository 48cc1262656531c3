#include "server/base/whole.h"

#include <errno.h>
#include <unistd.h>

int write_whole(int fd, const void *bytes, size_t length_bytes)
{
    const char *at = bytes;

    while (length_bytes) {
        ssize_t count = write(fd, at, length_bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return -1;
        at += count;
        length_bytes -= (size_t)count;
    }
    return 0;
}

int read_whole(int fd, void *bytes, size_t length_bytes)
{
    char *at = bytes;

    while (length_bytes) {
        ssize_t count = read(fd, at, length_bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return -1;
        at += count;
        length_bytes -= (size_t)count;
    }
    return 0;
}
