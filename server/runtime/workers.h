/* workers: N threads that parse, compute and render, each with its own read connection to the store.
 *
 * A job gets immutable input and returns an immutable result: `run` is called on a worker, then `done` on the loop
 * thread. Each lane has a bounded queue of its own and lanes take turns, so that no job waits behind another lane's
 * queue. One thread is kept for small requests, whatever the other lanes hold. Submitting is for the loop thread only.
 */
#ifndef SERVER_RUNTIME_WORKERS_H
#define SERVER_RUNTIME_WORKERS_H

#include "server/runtime/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct workers;
struct store;
struct store_reader;

enum workers_lane {
    LANE_REQUEST, /* small requests: the lane of a job that names none */
    LANE_BATCH,   /* engine replies, verdicts, closing of batches */
    LANE_HEAVY,   /* requests that keep a thread for long: one thread fewer than `threads`, at least one */
    LANE_RECORD,  /* requests that read the record: at most `readers` threads */
    LANE_REPORT,  /* requests that read and compute for seconds: one at a time */
    LANE_COUNT
};

struct job {
    struct loop_message message; /* first: the way back */
    struct job *next;
    enum workers_lane lane;
    void (*run)(struct job *job,
                struct store_reader *reader); /* any worker thread; reader NULL: the store cannot be read */
    void (*done)(struct job *job);            /* loop thread; owns the job again */
};

struct workers_limits {
    size_t threads;     /* at least 1 */
    size_t readers;     /* as many threads more: what LANE_RECORD may take. 0: it shares `threads` */
    size_t queue_limit; /* jobs that wait in one lane */
};

/* store: NULL: there is none to read. */
struct workers *workers_create(struct loop *loop, struct store *store, const struct workers_limits *limits);
/* Waits for running jobs; queued ones are run too. Their `done` is delivered while the loop still runs, or dropped. */
void workers_destroy(struct workers *workers);

bool workers_submit(struct workers *workers, struct job *job); /* false: its lane is full, the job is untouched */
/* For what holds a place already (a dispatched sample, the closing of a batch): never refused. */
void workers_submit_reserved(struct workers *workers, struct job *job);
/* Wakes as many threads as were given work since the last call: once per turn of the loop, because a wake-up for each
 * job costs more than most jobs. A thread that is awake takes new jobs without it. */
void workers_flush(struct workers *workers);
size_t workers_queued(const struct workers *workers);

#endif
