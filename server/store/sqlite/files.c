/* The files under an open store: whether they are still those that were opened. SQLite keeps writing into a file that
 * was deleted or replaced, and nobody finds what it wrote. */
#include "server/base/log.h"
#include "server/store/sqlite/store_private.h"

#include <errno.h>
#include <sys/stat.h>

enum loss { THERE, DELETED, REPLACED, TRUNCATED };

static const char *const losses[STORE_FILES][4] = {
    {NULL, "the database file was deleted", "the database file was replaced", "the database file was truncated"},
    {NULL, "the write-ahead log was deleted", "the write-ahead log was replaced", NULL},
    {NULL, "the index of the write-ahead log was deleted", "the index of the write-ahead log was replaced", NULL},
};

static int look(const struct store *store, size_t file, struct stat *ret_status)
{
    static const char *const suffixes[STORE_FILES] = {"", "-wal", "-shm"};
    char name[PATH_MAX + 8];
    snprintf(name, sizeof(name), "%s%s", store->path, suffixes[file]);
    return stat(name, ret_status);
}

void files_remember(struct store *store)
{
    struct stat status;
    for (size_t i = 0; i < STORE_FILES; i++) {
        bool there = look(store, i, &status) == 0;
        store->files[i] = (struct store_file){there, there ? status.st_dev : 0, there ? status.st_ino : 0};
        if (there && i == 0)
            store->most_bytes = status.st_size;
    }
}

/* The size of the file by its own header. Through SQLite's descriptor: closing one of ours would let its locks go. Negative
 * if it has no header any more. */
static int64_t own_size(const struct store *store)
{
    sqlite3_file *file = NULL;
    unsigned char header[100];
    if (sqlite3_file_control(store->writer.handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file ||
        !file->pMethods || file->pMethods->xRead(file, header, sizeof(header), 0) != SQLITE_OK ||
        memcmp(header, "SQLite format 3", 16) != 0)
        return -1;
    int64_t page_bytes = header[16] << 8 | header[17];
    int64_t pages = (int64_t)header[28] << 24 | header[29] << 16 | header[30] << 8 | header[31];
    return pages * (page_bytes == 1 ? 65536 : page_bytes);
}

/* It grows with every checkpoint, and shrinks where somebody vacuums it: then it says so itself. */
static bool is_truncated(struct store *store, int64_t size_bytes)
{
    if (size_bytes < store->most_bytes) {
        int64_t wanted_bytes = own_size(store);
        if (wanted_bytes < 0 || size_bytes < wanted_bytes)
            return true;
    }
    store->most_bytes = size_bytes;
    return false;
}

static enum loss find_loss(struct store *store, size_t file)
{
    const struct store_file *known = &store->files[file];
    struct stat status;
    if (!known->known)
        return THERE;
    if (look(store, file, &status) < 0)
        return errno == ENOENT || errno == ENOTDIR ? DELETED : THERE;
    if (status.st_dev != known->device || status.st_ino != known->inode)
        return REPLACED;
    return file == 0 && is_truncated(store, status.st_size) ? TRUNCATED : THERE;
}

const char *files_check(struct store *store)
{
    const char *before = atomic_load_explicit(&store->lost, memory_order_relaxed);
    const char *lost = NULL;
    for (size_t i = 0; i < STORE_FILES && !lost; i++)
        lost = losses[i][find_loss(store, i)];
    if (lost && !before)
        log_event(LOG_LEVEL_ERROR, lost, "database", store->path, NULL);
    if (!lost && before)
        log_event(LOG_LEVEL_INFO, "the files of the database are there again", "database", store->path, NULL);
    atomic_store_explicit(&store->lost, lost, memory_order_relaxed);
    return lost;
}

const char *store_lost(const struct store *store)
{
    return atomic_load_explicit(&store->lost, memory_order_relaxed);
}
