#include "verifiers/sandbox/image_private.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "schema/embedded.h"
#include "server/base/cleanup.h"
#include "server/base/whole.h"

extern const struct embedded_file sandbox_images[]; /* one */

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

/* Variables that an operator may have set for the loader or a sanitizer. */
static const char *const kept[] = {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};

static void keep_environment(char *ret_environment[ARRAY_LENGTH(kept) + 1])
{
    size_t count = 0;

    for (char **variable = environ; *variable; variable++)
        for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
            if (strncmp(*variable, kept[i], strlen(kept[i])) == 0 && (*variable)[strlen(kept[i])] == '=')
                ret_environment[count++] = *variable;
    ret_environment[count] = NULL;
}

/* Kernels from 6.3 on want to be told that it will be executed; older ones do not know the flag. */
static int create(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    return fd < 0 ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

/* A file in memory that nobody can change any more, from its start. */
static int make_file(const char *name, const void *bytes, size_t length_bytes)
{
    int fd = create(name);

    if (fd >= 0 && write_whole(fd, bytes, length_bytes) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    closep(&fd);
    return -1;
}

/* To a number above that of the settings in the image. */
static int lift(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, IMAGE_SETTINGS_FD + 1);
}

void image_exec(const struct sandbox_settings *settings)
{
    _cleanup_close_ int image = make_file("sandbox-holder", sandbox_images[0].data, sandbox_images[0].size_bytes);
    _cleanup_close_ int given = make_file("sandbox-settings", settings, sizeof *settings);
    _cleanup_close_ int high_image = lift(image);
    _cleanup_close_ int high_given = lift(given);
    char *arguments[] = {(char[]){"sandbox-holder"}, NULL};
    char *environment[ARRAY_LENGTH(kept) + 1];

    keep_environment(environment);
    if (high_image < 0 || high_given < 0 || dup2(high_given, IMAGE_SETTINGS_FD) < 0)
        return;
    fcntl(IMAGE_SOCKET_FD, F_SETFD, 0);
    execveat(high_image, "", arguments, environment, AT_EMPTY_PATH);
    fcntl(IMAGE_SOCKET_FD, F_SETFD, FD_CLOEXEC);
}
