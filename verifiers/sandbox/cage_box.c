/* Boxes of the reduced level: folders of a file system that is there. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "verifiers/sandbox/cage_parts_private.h"

#define PREFIX "rolloutd-box-"

/* --- taking one away --- */

/* A folder inside of a box moves up beside it and waits for its turn: so neither depth nor the length of a path matters,
 * and no more than one folder is open. */
struct removal {
    int boxes;
    unsigned moved;   /* folders that came up */
    unsigned removed; /* of them */
};

#define MOVED_NAME_BYTES 32
#define PASSES_MAX 8

static void put_moved_name(unsigned number, char ret_name[MOVED_NAME_BYTES])
{
    snprintf(ret_name, MOVED_NAME_BYTES, "old-%d-%u", getpid(), number);
}

/* A folder that cannot be written to cannot be moved: its own `..` would change. */
static int move_up(struct removal *removal, int folder, const char *name)
{
    char to[MOVED_NAME_BYTES];

    put_moved_name(++removal->moved, to);
    if (fchmodat(folder, name, 0700, 0) < 0)
        return -1;
    return renameat(folder, name, removal->boxes, to);
}

static int remove_entry(struct removal *removal, int folder, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(folder, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    return unlinkat(folder, name, AT_REMOVEDIR) == 0 ? 0 : move_up(removal, folder, name);
}

static int empty_folder(struct removal *removal, DIR *folder)
{
    const struct dirent *entry;

    rewinddir(folder);
    while ((entry = readdir(folder)))
        if (remove_entry(removal, dirfd(folder), entry->d_name) < 0)
            return -1;
    return 0;
}

/* A file system may leave an entry out while others are taken away: then once more. */
static int remove_one(struct removal *removal, const char *name)
{
    int fd = openat(removal->boxes, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    int result = -1;

    if (!folder) {
        closep(&fd);
        return -1;
    }
    for (int i = 0; i < PASSES_MAX && result < 0; i++) {
        if (empty_folder(removal, folder) < 0)
            break;
        result = unlinkat(removal->boxes, name, AT_REMOVEDIR);
    }
    closedir(folder);
    return result;
}

void cage_box_name(pid_t launcher, int slot, char ret_name[CAGE_BOX_NAME_BYTES])
{
    snprintf(ret_name, CAGE_BOX_NAME_BYTES, "%d-%d", launcher, slot);
}

int cage_box_remove(int boxes, const char *name)
{
    struct removal removal = {boxes, 0, 0};
    char moved[MOVED_NAME_BYTES];

    if (fchmodat(boxes, name, 0700, 0) < 0)
        return errno == ENOENT ? 0 : -1;
    if (remove_one(&removal, name) < 0)
        return -1;
    while (removal.removed < removal.moved) {
        put_moved_name(++removal.removed, moved);
        if (remove_one(&removal, moved) < 0)
            return -1;
    }
    return 0;
}

/* --- the folder of all boxes of a holder --- */

/* A holder has a lock on its folder: neither a number that means another process in another pid namespace, nor one that is
 * used again, says whether it lives. */
static int open_and_lock(int parent, const char *name)
{
    int boxes = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (boxes < 0 || flock(boxes, LOCK_EX | LOCK_NB) == 0)
        return boxes;
    close(boxes);
    return -1;
}

static void remove_if_left_over(int parent, const char *name)
{
    int boxes = open_and_lock(parent, name);
    DIR *folder = boxes < 0 ? NULL : fdopendir(boxes);
    const struct dirent *entry;

    if (!folder) {
        closep(&boxes);
        return;
    }
    while ((entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            cage_box_remove(dirfd(folder), entry->d_name);
    unlinkat(parent, name, AT_REMOVEDIR); /* as long as it is locked */
    closedir(folder);
}

static bool is_own(int parent, const char *name)
{
    struct stat status;

    return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 && fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_uid == geteuid();
}

static void remove_left_over(DIR *parent)
{
    const struct dirent *entry;

    while ((entry = readdir(parent)))
        if (is_own(dirfd(parent), entry->d_name))
            remove_if_left_over(dirfd(parent), entry->d_name);
}

static const char *const parents[] = {"/tmp", "/dev/shm", "/var/tmp"};

void cage_boxes_sweep(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(parents); i++) {
        DIR *parent = opendir(parents[i]);
        if (parent) {
            remove_left_over(parent);
            closedir(parent);
        }
    }
}

/* Another process may sweep it away before it is locked: then it has no name. */
static int make_in(const char *parent, char *ret_path, size_t path_bytes)
{
    struct stat status;

    for (int i = 0; i < PASSES_MAX; i++) {
        snprintf(ret_path, path_bytes, "%s/" PREFIX "XXXXXX", parent);
        if (!mkdtemp(ret_path))
            return -1;
        int boxes = open_and_lock(AT_FDCWD, ret_path);
        if (boxes >= 0 && fstat(boxes, &status) == 0 && status.st_nlink > 0)
            return boxes;
        closep(&boxes);
    }
    return -1;
}

int cage_boxes_make(char *ret_path, size_t path_bytes)
{
    int fd = -1;

    cage_boxes_sweep();
    for (size_t i = 0; i < ARRAY_LENGTH(parents) && fd < 0; i++)
        fd = make_in(parents[i], ret_path, path_bytes);
    return fd;
}

/* --- the user's other processes --- */

/* Threads count. A folder has a link for each of its folders, and two more. */
static int64_t threads_of(int proc, const char *name)
{
    char path[64];
    struct stat status;

    snprintf(path, sizeof path, "%.20s/task", name);
    if (fstatat(proc, path, &status, 0) < 0 || status.st_uid != geteuid() || status.st_nlink < 3)
        return 0;
    return (int64_t)status.st_nlink - 2;
}

int64_t cage_processes_of_user(void)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    int64_t count = 0;

    while (proc && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0]))
            count += threads_of(dirfd(proc), entry->d_name);
    if (proc)
        closedir(proc);
    return count;
}
