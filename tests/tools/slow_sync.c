/* Preloaded: fsync and fdatasync as slow as SLOW_SYNC_US says, and for as long as the file SLOW_SYNC_FILE exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_the_disk(void)
{
    const char *duration_us = getenv("SLOW_SYNC_US");
    const char *file = getenv("SLOW_SYNC_FILE");
    if (duration_us)
        usleep((useconds_t)atoi(duration_us));
    while (file && access(file, F_OK) == 0)
        usleep(1000);
}

static int really(const char *name, int fd)
{
    int (*function)(int);
    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function(fd);
}

int fsync(int fd)
{
    wait_for_the_disk();
    return really("fsync", fd);
}

int fdatasync(int fd)
{
    wait_for_the_disk();
    return really("fdatasync", fd);
}
