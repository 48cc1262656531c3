/* What the files of the room know of an open store. */
#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H

#include "server/store/database.h"

#include <pthread.h>

struct store {
    char *path;
    char *owner;
    int64_t owner_epoch;
    int lock_fd;
    struct database writer; /* the writer thread's, once it runs */
    struct store_metrics metrics;

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

/* Carries out one operation inside the open transaction. The status; a message beside it if it is not OK. */
enum store_status operation_run(struct store *store, struct store_op *op);
/* What it carries, for the bound of the queue. */
size_t operation_bytes(const struct store_op *op);

#endif
