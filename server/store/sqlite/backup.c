#include "server/store/backup.h"

#include "server/store/sqlite/copy.h"
#include "server/store/sqlite/inspect.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* The real path of a file that does not exist, in a folder that does. */
static int resolve_new(const char *file, char **ret_path, char message[STORE_MESSAGE_BYTES])
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    _cleanup_free_ char *folder = slash ? xstrndup(file, (size_t)(slash - file) + 1) : xstrdup(".");
    _cleanup_free_ char *real = realpath(folder, NULL);
    if (!real)
        return store_refuse(errno, message, "the folder of the copy %s cannot be reached: %m", file);
    if (!*name)
        return store_refuse(EISDIR, message, "the copy %s is a folder; expected the name of a file", file);
    *ret_path = xasprintf("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
    return 0;
}

/* A log that somebody left under the copy's name would be taken for the copy's own. */
static int refuse_present(const char *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    if (copy_is_same_file(database, path))
        return store_refuse(EEXIST, message, "the copy %s is the database itself", path);
    for (size_t i = 0; copy_suffixes[i]; i++)
        if (copy_is_there(path, copy_suffixes[i]))
            return store_refuse(EEXIST, message, "%s%s is there already; a copy is never written over a file", path,
                                copy_suffixes[i]);
    return 0;
}

static int refuse_taken(const char *database, const char *path, char message[STORE_MESSAGE_BYTES])
{
    static const char *const taken[] = {"-wal", "-shm", "-journal", "-lock", ".partial", ".restoring", ".crashes"};
    size_t length = strlen(database);
    if (strncmp(path, database, length) != 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LENGTH(taken); i++)
        if (strcmp(path + length, taken[i]) == 0)
            return store_refuse(EINVAL, message, "%s is a name that the database itself uses", path);
    return 0;
}

static int find_names(const char *database, const char *file, char **ret_from, char **ret_to,
                      char message[STORE_MESSAGE_BYTES])
{
    int refused = inspect_resolve(database, ret_from, message);
    if (refused == 0)
        refused = inspect_to_read(*ret_from, message);
    if (refused == 0)
        refused = resolve_new(file, ret_to, message);
    if (refused < 0 || !*ret_to)
        return refused;
    refused = refuse_present(*ret_from, *ret_to, message);
    return refused == 0 ? refuse_taken(*ret_from, *ret_to, message) : refused;
}

static int give_name(const char *partial, const char *path, char message[STORE_MESSAGE_BYTES])
{
    int result = copy_rename(partial, path);
    if (result == 0)
        result = copy_sync_folder(path);
    else
        (void)unlink(partial);
    return result == 0 ? 0
                       : store_refuse(-result, message, "the copy %s cannot get its name: %s", path, strerror(-result));
}

int store_backup(const char *database, const char *file, const struct store_watch *watch,
                 struct store_copy_report *ret_report, char message[STORE_MESSAGE_BYTES])
{
    _cleanup_free_ char *from = NULL;
    _cleanup_free_ char *to = NULL;
    _cleanup_free_ char *partial = NULL;
    *ret_report = (struct store_copy_report){0};
    int refused = find_names(database, file, &from, &to, message);
    if (refused < 0)
        return refused;
    partial = xasprintf("%s.partial", to);
    refused = copy_make(from, partial, false, watch, ret_report, message);
    if (refused == 0)
        refused = give_name(partial, to, message);
    if (refused == 0)
        ret_report->copy = TAKE_PTR(to);
    return refused;
}

void store_copy_report_finish(struct store_copy_report *report)
{
    free(report->copy);
    free(report->kept);
    *report = (struct store_copy_report){0};
}
