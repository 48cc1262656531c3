/* A copy takes the place of a database in one step that cannot be half done: the rename of NAME.restoring to NAME. While
 * a file NAME.restoring is there, the old files may be partly moved away, so no service opens the database. */
#include "server/store/backup.h"
#include "server/store/sqlite/copy.h"
#include "server/store/sqlite/inspect.h"
#include "server/store/sqlite/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct restoring {
    char *from;
    char *to;
    char *partial; /* the copy while it is written */
    char *ready;   /* INSPECT_RESTORING: the copy when it is whole */
    char *kept;    /* the new name of the old database */
    int lock_fd;
    char *message; /* STORE_MESSAGE_BYTES */
};

static void restoring_finish(struct restoring *restoring)
{
    if (restoring->lock_fd >= 0)
        close(restoring->lock_fd);
    free(restoring->from);
    free(restoring->to);
    free(restoring->partial);
    free(restoring->ready);
    free(restoring->kept);
}

static int find_names(struct restoring *restoring, const char *file, const char *database)
{
    int refused = inspect_resolve(file, &restoring->from, restoring->message);
    if (refused == 0)
        refused = inspect_to_read(restoring->from, restoring->message);
    if (refused == 0)
        refused = inspect_resolve(database, &restoring->to, restoring->message);
    if (refused == 0 && strcmp(restoring->from, restoring->to) == 0)
        refused = store_refuse(EINVAL, restoring->message, "%s is the database itself, not a copy of it", file);
    if (refused == 0)
        refused = inspect_place(restoring->to, restoring->message);
    if (refused < 0)
        return refused;
    restoring->partial = xasprintf("%s.partial", restoring->to);
    restoring->ready = xasprintf("%s" INSPECT_RESTORING, restoring->to);
    return 0;
}

static bool is_taken(const char *path)
{
    for (size_t i = 0; copy_suffixes[i]; i++)
        if (copy_is_there(path, copy_suffixes[i]))
            return true;
    return false;
}

static int refuse_present(const struct restoring *restoring, bool replace)
{
    if (replace || !is_taken(restoring->to))
        return 0;
    return store_refuse(EEXIST, restoring->message,
                        "the database %s, or a log of it, is there already; --replace keeps it under another name",
                        restoring->to);
}

/* Files that root makes belong to the owner of the old database, or of its folder. One that was moved away before a
 * restore was cut off has left its owner to the copy. */
static bool find_owner(const struct restoring *restoring, struct stat *ret_owner)
{
    _cleanup_free_ char *folder = xstrndup(restoring->to, (size_t)(strrchr(restoring->to, '/') - restoring->to) + 1);
    return geteuid() == 0 && (stat(restoring->to, ret_owner) == 0 || stat(restoring->ready, ret_owner) == 0 ||
                              stat(folder, ret_owner) == 0);
}

/* At once: it stays after a refusal, and a service that cannot open it does not start. */
static void give_lock(const struct restoring *restoring)
{
    struct stat owner;
    if (find_owner(restoring, &owner) && fchown(restoring->lock_fd, owner.st_uid, owner.st_gid) < 0)
        return; /* as it is on a file system without owners */
}

static void give_copy(const struct restoring *restoring)
{
    struct stat owner;
    if (find_owner(restoring, &owner) && lchown(restoring->partial, owner.st_uid, owner.st_gid) < 0)
        return;
}

static int name_after(struct restoring *restoring, time_t time_s)
{
    struct tm when;
    char stamp[32];
    if (!gmtime_r(&time_s, &when))
        return -errno;
    (void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &when);
    free(restoring->kept);
    restoring->kept = xasprintf("%s.replaced-%s", restoring->to, stamp);
    return 0;
}

/* The old database is called after the time of the copy that replaces it, or the next second whose name is free. The
 * copy bears that time: one that finishes what another began takes it over, so that all the old files come together. */
static int name_kept(struct restoring *restoring)
{
    struct stat status;
    bool begun = stat(restoring->ready, &status) == 0;
    if (!begun && stat(restoring->partial, &status) < 0)
        return -errno;
    int result = name_after(restoring, status.st_mtim.tv_sec);
    while (result == 0 && !begun && is_taken(restoring->kept))
        result = name_after(restoring, ++status.st_mtim.tv_sec);
    struct timespec times[2] = {status.st_atim, status.st_mtim};
    if (result == 0 && utimensat(AT_FDCWD, restoring->partial, times, 0) < 0)
        result = -errno;
    return result;
}

static int move_aside(const struct restoring *restoring)
{
    for (size_t i = 0; copy_suffixes[i]; i++) {
        _cleanup_free_ char *old = xasprintf("%s%s", restoring->to, copy_suffixes[i]);
        _cleanup_free_ char *kept = xasprintf("%s%s", restoring->kept, copy_suffixes[i]);
        int result = copy_is_there(restoring->to, copy_suffixes[i]) ? copy_rename(old, kept) : 0;
        if (result < 0)
            return result;
    }
    return copy_sync_folder(restoring->to);
}

static int put_in_place(struct restoring *restoring)
{
    int result = name_kept(restoring);
    if (result == 0)
        result = rename(restoring->partial, restoring->ready) == 0 ? copy_sync_folder(restoring->to) : -errno;
    if (result == 0)
        result = move_aside(restoring);
    if (result == 0)
        result = copy_rename(restoring->ready, restoring->to);
    return result == 0 ? copy_sync_folder(restoring->to) : result;
}

static int replace_database(struct restoring *restoring, struct store_copy_report *report)
{
    int result = put_in_place(restoring);
    if (result < 0) {
        (void)unlink(restoring->partial);
        return store_refuse(-result, restoring->message,
                            "the database %s cannot be replaced: %s; rolloutd restore again finishes it", restoring->to,
                            strerror(-result));
    }
    report->copy = TAKE_PTR(restoring->to);
    if (copy_is_there(restoring->kept, "") || copy_is_there(restoring->kept, "-wal"))
        report->kept = TAKE_PTR(restoring->kept);
    return 0;
}

int store_restore(const char *file, const char *database, bool replace, const struct store_watch *watch,
                  struct store_copy_report *ret_report, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_(restoring_finish) struct restoring restoring = {.lock_fd = -1, .message = message};
    *ret_report = (struct store_copy_report){0};
    int refused = find_names(&restoring, file, database);
    if (refused == 0)
        refused = lock_take(restoring.to, &restoring.lock_fd, message);
    if (refused == 0)
        give_lock(&restoring);
    if (refused == 0)
        refused = refuse_present(&restoring, replace);
    if (refused == 0)
        refused = copy_make(restoring.from, restoring.partial, true, watch, ret_report, message);
    if (refused < 0)
        return refused;
    give_copy(&restoring);
    return replace_database(&restoring, ret_report);
}
