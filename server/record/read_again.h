/* read_again: a job that could not read the record is run again, at growing distances and at least once a second. */
#ifndef SERVER_RECORD_READ_AGAIN_H
#define SERVER_RECORD_READ_AGAIN_H

#include "server/runtime/loop.h"
#include "server/runtime/workers.h"

/* Lives beside its job. Those who use it set the first five members; the others begin as zeroes. */
struct read_again {
    struct loop *loop;
    struct workers *workers;
    const char *batch;         /* its id, for the log; not owned */
    void (*failed)(void *arg); /* each time: tells those who wait that the record cannot be read now */
    void *arg;
    struct loop_timer timer;
    struct job *job;
    int64_t pause_us; /* the last; 0: it has not failed yet */
};

/* Loop thread, from the job's `done`. */
void read_again_later(struct read_again *again, struct job *job);

#endif
