/* Preloaded: as long as the file REFUSE_READS_FILE exists, no thread but the first one can open a database (*.db) to
 * read it, nor find out that another descriptor of this process is of the same file (SQLite would take that). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_refused(const char *path, int flags)
{
    const char *file = getenv("REFUSE_READS_FILE");
    size_t length = strlen(path);
    return file && (flags & O_ACCMODE) == O_RDONLY && length > 3 && strcmp(path + length - 3, ".db") == 0 &&
           gettid() != getpid() && access(file, F_OK) == 0;
}

static int really_stat(const char *name, const char *path, void *status)
{
    int (*function)(const char *, void *);
    if (is_refused(path, O_RDONLY)) {
        errno = EACCES;
        return -1;
    }
    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function(path, status);
}

int stat(const char *path, struct stat *status)
{
    return really_stat("stat", path, status);
}

int stat64(const char *path, struct stat64 *status)
{
    return really_stat("stat64", path, status);
}

static int really(const char *name, const char *path, int flags, va_list arguments)
{
    int (*function)(const char *, int, ...);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    if (is_refused(path, flags)) {
        errno = EMFILE;
        return -1;
    }
    *(void **)&function = dlsym(RTLD_NEXT, name);
    return function(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = really("open", path, flags, arguments);
    va_end(arguments);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int fd = really("open64", path, flags, arguments);
    va_end(arguments);
    return fd;
}
