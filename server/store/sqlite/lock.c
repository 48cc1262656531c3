#include "server/store/sqlite/lock.h"

#include "server/store/sqlite/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define PRIVATE_MODE 0600

static int refuse_locked(int fd, const char *path, char message[STORE_MESSAGE_BYTES])
{
    char pid[32] = "";
    ssize_t length = pread(fd, pid, sizeof(pid) - 1, 0);
    pid[length > 0 ? strcspn(pid, "\n") : 0] = '\0';
    return store_refuse(EWOULDBLOCK, message, "the database %s is already open in process %s", path,
                        *pid ? pid : "(unknown)");
}

int lock_take(const char *path, int *ret_fd, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *name = xasprintf("%s-lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, PRIVATE_MODE);
    *ret_fd = fd;
    if (fd < 0)
        return store_refuse(errno, message, "the lock file %s cannot be opened: %m", name);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? refuse_locked(fd, path, message)
                                    : store_refuse(errno, message, "the lock file %s cannot be locked: %m", name);
    char pid[32];
    int length = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)length, 0) != length)
        return store_refuse(errno ? errno : EIO, message, "the lock file %s cannot be written: %m", name);
    return 0;
}
