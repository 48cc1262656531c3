#include "verifiers/worker/own_program_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/cleanup.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Linux 6.3 may want to be told; one that does not know the flag refuses it. */
static int make_executable_memory(void)
{
    const unsigned executable = 0x10; /* MFD_EXEC */
    int fd = memfd_create("rolloutd", MFD_CLOEXEC | MFD_ALLOW_SEALING | executable);

    return fd < 0 && errno == EINVAL ? memfd_create("rolloutd", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int copy_all(int from, int to, off_t bytes)
{
    off_t at = 0;

    while (at < bytes)
        if (sendfile(to, from, &at, (size_t)(bytes - at)) <= 0)
            return -1;
    return fcntl(to, F_ADD_SEALS, SEALS);
}

int own_program_copy(void)
{
    _cleanup_close_ int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;

    if (file < 0 || fstat(file, &status) < 0 || status.st_uid == 0)
        return -1;
    int copy = make_executable_memory();
    /* Its mode says whether it may be executed: some machines forbid it for files in memory. */
    if (copy >= 0 && (copy_all(file, copy, status.st_size) < 0 || faccessat(copy, "", X_OK, AT_EMPTY_PATH) < 0)) {
        close(copy);
        return -1;
    }
    return copy;
}
