/* The root of a holder: a small file system in memory with little more than /usr, which nobody can write to. Few mounts
 * are in it, because each program's mount namespace is a copy of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/cleanup.h"
#include "server/base/whole.h"
#include "verifiers/sandbox/cage_parts_private.h"

#define ROOT_OPTIONS "mode=0755,size=16m,nr_inodes=8192"

static int bind_attributes(int tree, const char *path, uint64_t attributes)
{
    struct mount_attr attr = {.attr_set = attributes};

    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) < 0)
        return -1;
    return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}

/* Every mount below the folder comes along: a user namespace may not take one of them away. */
static int take(const char *path)
{
    return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

static int bind_folder(const char *from, const char *to)
{
    _cleanup_close_ int tree = take(from);

    if (tree < 0 || (mkdir(to, 0755) < 0 && errno != EEXIST))
        return -1;
    return bind_attributes(tree, to, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int make_file(const char *path, const char *bytes, size_t length_bytes)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    return fd < 0 ? -1 : write_whole(fd, bytes, length_bytes);
}

/* --- system folders: /usr, and the links into it or what an older layout has in their place --- */

static int copy_system_folder(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);

    if (length >= 0) {
        target[length] = '\0';
        return symlink(target, path + 1);
    }
    if (errno == ENOENT)
        return 0;
    return bind_folder(path, path + 1);
}

static int make_system_folders(int usr)
{
    static const char *const folders[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

    if (mkdir("usr", 0755) < 0 ||
        bind_attributes(usr, "usr", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LENGTH(folders); i++)
        if (copy_system_folder(folders[i]) < 0)
            return -1;
    return 0;
}

/* --- /etc: copies, which cost a program nothing where mounts would --- */

static int copy_file(const char *from, const char *to)
{
    _cleanup_close_ int source = open(from, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *bytes = NULL;
    struct stat status;

    if (source < 0)
        return errno == ENOENT ? 0 : -1;
    if (fstat(source, &status) < 0)
        return -1;
    bytes = xcalloc(1, (size_t)status.st_size + 1);
    ssize_t count = read(source, bytes, (size_t)status.st_size);
    return count < 0 ? -1 : make_file(to, bytes, (size_t)count);
}

/* /etc/alternatives: links alone, to what a distribution chose for `cc` or for a library. */
static int copy_links(const char *from, const char *to)
{
    DIR *folder = opendir(from);
    const struct dirent *entry;
    char target[PATH_MAX];
    int result = 0;

    if (!folder)
        return errno == ENOENT ? 0 : -1;
    int made = mkdir(to, 0755) < 0 ? -1 : open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);
    result = made < 0 ? -1 : 0;
    while (result == 0 && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length < 0 || strstr(entry->d_name, ".gz")) /* manuals */
            continue;
        target[length] = '\0';
        result = symlinkat(target, made, entry->d_name);
    }
    closep(&made);
    closedir(folder);
    return result;
}

/* No list of users: a library that finds none does without, and a program has no reason to ask. */
static int make_etc(void)
{
    if (mkdir("etc", 0755) < 0 || copy_file("/etc/ld.so.cache", "etc/ld.so.cache") < 0)
        return -1;
    return copy_links("/etc/alternatives", "etc/alternatives");
}

/* --- /dev --- */

static int bind_device(const char *from, const char *to)
{
    _cleanup_close_ int tree = open_tree(AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (tree < 0 || make_file(to, NULL, 0) < 0)
        return -1;
    return bind_attributes(tree, to, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

static int make_devices(void)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"};
    static const char *const links[][2] = {{"urandom", "dev/random"},         {"/proc/self/fd", "dev/fd"},
                                           {"/proc/self/fd/0", "dev/stdin"},  {"/proc/self/fd/1", "dev/stdout"},
                                           {"/proc/self/fd/2", "dev/stderr"}, {BOX_PATH, "dev/shm"}};

    if (mkdir("dev", 0755) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LENGTH(devices); i++)
        if (bind_device(devices[i], devices[i] + 1) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LENGTH(links); i++)
        if (symlink(links[i][0], links[i][1]) < 0)
            return -1;
    return 0;
}

/* --- folders of the settings, at the path that they have outside --- */

static int make_parents(const char *path)
{
    char part[SANDBOX_PATH_BYTES];

    for (size_t i = 1; path[i] && i < sizeof part; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part + 1, 0755) < 0 && errno != EEXIST && errno != EROFS)
            return -1;
    }
    return 0;
}

static bool is_plain(const char *path)
{
    return *path == '/' && !strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "//");
}

/* Places below /usr are there already, or nowhere. */
static int bind_setting(const char *path)
{
    if (!*path)
        return 0;
    if (strncmp(path, "/usr/", 5) == 0)
        return access(path + 1, R_OK | X_OK);
    if (!is_plain(path)) {
        errno = EINVAL;
        return -1;
    }
    return make_parents(path) < 0 ? -1 : bind_folder(path, path + 1);
}

/* One that cannot be had fails its own command, and no other program. */
static void bind_venvs(const struct sandbox_settings *settings)
{
    for (size_t i = 0; i < SANDBOX_VENVS_MAX; i++)
        if (strcmp(settings->venvs[i], settings->venv) != 0)
            (void)bind_setting(settings->venvs[i]);
}

/* --- the whole --- */

/* /proc is of the holder's pid namespace: a kernel lets a program mount its own only where one can be seen. */
static int make_proc(void)
{
    if (mkdir("proc", 0555) < 0)
        return -1;
    return mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/* After the folders of the settings: one of them may be in /tmp. */
static int make_places(void)
{
    static const char *const links[] = {"tmp", "var/tmp"};

    if (mkdir("box", 0755) < 0 || (mkdir("var", 0755) < 0 && errno != EEXIST))
        return -1;
    for (size_t i = 0; i < ARRAY_LENGTH(links); i++)
        if (symlink(BOX_PATH, links[i]) < 0 && errno != EEXIST)
            return -1;
    return 0;
}

/* The old root goes: it lies on top of the new one after the first call, and is let go by the second. */
static int change_root(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return -1;
    return mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof attr);
}

/* The new root is made on top of /usr, the one folder that must be there. */
static int cover(int *ret_usr)
{
    *ret_usr = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -1 : take("/usr");
    return *ret_usr < 0 || mount("root", "/usr", "tmpfs", MS_NOSUID | MS_NODEV, ROOT_OPTIONS) < 0 || chdir("/usr") < 0
               ? -1
               : 0;
}

enum cage_step cage_root_enter(const struct sandbox_settings *settings)
{
    _cleanup_close_ int usr = -1;

    if (cover(&usr) < 0 || make_system_folders(usr) < 0 || make_etc() < 0)
        return CAGE_ROOT;
    if (make_devices() < 0)
        return CAGE_DEVICES;
    if (bind_setting(settings->venv) < 0 || bind_setting(settings->testlib) < 0)
        return CAGE_SETTINGS;
    bind_venvs(settings);
    if (make_places() < 0)
        return CAGE_ROOT;
    if (make_proc() < 0)
        return CAGE_PROC;
    return change_root() < 0 ? CAGE_ROOT : CAGE_NONE;
}
