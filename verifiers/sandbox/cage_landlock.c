/* Landlock: what a process may do with files, TCP ports, abstract sockets and signals of others, decided by itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"

/* Of interface 6; headers of older kernels know a part of it. */
struct ruleset {
    uint64_t files;
    uint64_t ports;
    uint64_t scopes;
};

#define ALL_PORTS 3  /* bind, connect */
#define ALL_SCOPES 3 /* abstract sockets, signals */
#define TRUNCATE (1ull << 14)
#define IOCTL_OF_DEVICE (1ull << 15)
#define MAKE_DEVICE (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define READ_AND_RUN (READ | LANDLOCK_ACCESS_FS_EXECUTE)

int cage_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (int)abi;
}

static uint64_t known_file_rights(int abi)
{
    if (abi >= 5)
        return IOCTL_OF_DEVICE | (IOCTL_OF_DEVICE - 1);
    return (abi >= 3 ? TRUNCATE << 1 : abi == 2 ? TRUNCATE : (uint64_t)LANDLOCK_ACCESS_FS_REFER) - 1;
}

struct place {
    const char *path;
    uint64_t rights;
};

/* Places that programs of the reduced level see beside their box. A machine need not have all of them. */
static const struct place places[] = {{"/usr", READ_AND_RUN},
                                      {"/bin", READ_AND_RUN},
                                      {"/lib", READ_AND_RUN},
                                      {"/lib32", READ_AND_RUN},
                                      {"/lib64", READ_AND_RUN},
                                      {"/etc/ld.so.cache", LANDLOCK_ACCESS_FS_READ_FILE},
                                      {"/etc/alternatives", READ},
                                      {"/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE},
                                      {"/dev/zero", LANDLOCK_ACCESS_FS_READ_FILE},
                                      {"/dev/full", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE},
                                      {"/dev/random", LANDLOCK_ACCESS_FS_READ_FILE},
                                      {"/dev/urandom", LANDLOCK_ACCESS_FS_READ_FILE}};

static int allow(int ruleset, int folder, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {rights, folder};

    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int allow_place(int ruleset, const struct place *place)
{
    _cleanup_close_ int fd = open(place->path, O_PATH | O_CLOEXEC);

    return fd < 0 ? 0 : allow(ruleset, fd, place->rights);
}

static int allow_files(int ruleset, int box, uint64_t known, const struct sandbox_settings *settings)
{
    const struct place own[] = {{settings->venv, READ_AND_RUN}, {settings->testlib, READ}};

    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        if (allow_place(ruleset, &places[i]) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LENGTH(own); i++)
        if (*own[i].path && allow_place(ruleset, &own[i]) < 0)
            return -1;
    for (size_t i = 0; i < SANDBOX_VENVS_MAX; i++)
        if (*settings->venvs[i] && allow_place(ruleset, &(struct place){settings->venvs[i], READ_AND_RUN}) < 0)
            return -1;
    return allow(ruleset, box, known & ~(uint64_t)(MAKE_DEVICE | IOCTL_OF_DEVICE));
}

static size_t ruleset_bytes(int abi)
{
    return abi >= 6 ? sizeof(struct ruleset) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

int cage_landlock_make(int abi, int box, const struct sandbox_settings *settings)
{
    uint64_t known = known_file_rights(abi);
    struct ruleset what = {box < 0 ? 0 : known, abi >= 4 ? ALL_PORTS : 0, abi >= 6 ? ALL_SCOPES : 0};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &what, ruleset_bytes(abi), 0);

    if (ruleset < 0)
        return -1;
    if (box >= 0 && allow_files(ruleset, box, known, settings) < 0) {
        close(ruleset);
        return -1;
    }
    return ruleset;
}
