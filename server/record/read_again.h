/* read_again: a job that could not read the record is run again, at growing distances and at least once a second. */
#ifndef SERVER_RECORD_READ_AGAIN_H
#define SERVER_RECORD_READ_AGAIN_H

#include "server/runtime/loop.h"
#include "server/runtime/workers.h"

struct live_batch;

/* Zeroed at first; lives beside its job. */
struct read_again {
    struct loop_timer timer;
    struct workers *workers;
    struct job *job;
    int64_t pause_us; /* the last; 0: it has not failed yet */
};

/* Loop thread, from the job's `done`. Those who wait for the batch are told that it cannot be read now. */
void read_again_later(struct read_again *again, struct live_batch *live, struct job *job);

#endif
