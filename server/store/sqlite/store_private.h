/* State of an open store, for the files of the room. */
#ifndef SERVER_STORE_SQLITE_STORE_PRIVATE_H
#define SERVER_STORE_SQLITE_STORE_PRIVATE_H

#include "server/store/sqlite/database.h"
#include "server/store/sqlite/deletion.h"
#include "server/store/sqlite/indexes.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define STORE_FILES 3 /* the database, its write-ahead log, the index of that */

struct store_file {
    bool known;
    dev_t device;
    ino_t inode;
};

struct store {
    char *path;
    char *owner;
    int64_t owner_epoch;
    int64_t last_old_draft; /* 0: none */
    int lock_fd;
    struct database writer; /* the writer thread's, once it runs */
    struct store_metrics metrics;

    struct store_file files[STORE_FILES]; /* as they were opened; the writer's, once it runs, as is what follows */
    int64_t most_bytes;                   /* of the database file, up to now */
    _Atomic(const char *) lost;           /* why the files are not those any more; NULL: they are */
    struct missing_indexes missing;
    struct deletion *deletion;
    struct store_retention retention;
    atomic_size_t missing_left; /* of those, not built yet */
    atomic_bool interrupted;    /* the store closes: a step that takes long ends */

    size_t commit_rows;
    int64_t commit_delay_us;
    int64_t commit_patience_us;
    size_t queue_ops;
    size_t queue_bytes;
    size_t cache_bytes;
    void (*finished)(void *arg, struct store_op *list);
    void *finished_arg;
    void (*committed)(size_t operations, int64_t duration_us);

    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct store_op *first;
    struct store_op **last;
    size_t queued_ops;
    size_t queued_bytes;
    size_t reserved_ops;
    size_t urgent_ops; /* those of the queued that somebody waits for */
    bool gathering;    /* the writer waits for more rows until commit_delay */
    bool closing;
};

int writer_start(struct store *store); /* 0 or an errno value */
void writer_stop(struct store *store); /* carries out what is queued first */

void files_remember(struct store *store);
/* Writer thread. Why what is written now would be found by nobody; NULL: all is well. */
const char *files_check(struct store *store);

/* Carries out one operation inside the open transaction. The status; a message beside it if it is not OK. */
enum store_status operation_run(struct store *store, struct store_op *op);
/* Its bytes, for the bound of the queue. */
size_t operation_bytes(const struct store_op *op);

#endif
