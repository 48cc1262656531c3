/* Preloaded: fsync and fdatasync as slow as SLOW_SYNC_US says, and for as long as the file SLOW_SYNC_FILE exists. While
 * one hangs there is a file of that name with ".waits"; a file with ".step" lets one pass, and is gone then. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void hang(const char *file)
{
    char waits[PATH_MAX];
    char step[PATH_MAX];
    snprintf(waits, sizeof(waits), "%s.waits", file);
    snprintf(step, sizeof(step), "%s.step", file);
    while (access(file, F_OK) == 0 && access(step, F_OK) != 0) {
        if (access(waits, F_OK) != 0)
            close(open(waits, O_WRONLY | O_CREAT, 0644));
        usleep(1000);
    }
    unlink(waits);
    unlink(step);
}

static void wait_for_the_disk(void)
{
    const char *duration_us = getenv("SLOW_SYNC_US");
    const char *file = getenv("SLOW_SYNC_FILE");
    if (duration_us)
        usleep((useconds_t)atoi(duration_us));
    if (file)
        hang(file);
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
