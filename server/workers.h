/* workers: N threads that parse, compute and render, each with its own read connection to the store.
 *
 * A job gets immutable input and returns an immutable result: `run` is called on a worker, then `done` on the loop
 * thread. The queue is bounded; submitting is for the loop thread only. */
#ifndef SERVER_WORKERS_H
#define SERVER_WORKERS_H

#include "server/loop.h"

#include <stdbool.h>
#include <stddef.h>

struct workers;
struct store;
struct store_reader;

struct job {
    struct loop_message message; /* first: the way back */
    struct job *next;
    void (*run)(struct job *job,
                struct store_reader *reader); /* any worker thread; reader NULL: the store cannot be read */
    void (*done)(struct job *job);            /* loop thread; owns the job again */
};

struct workers *workers_create(struct loop *loop, struct store *store, size_t threads, size_t queue_limit);
/* Waits for running jobs; queued ones are run too. Their `done` is delivered while the loop still runs, or dropped. */
void workers_destroy(struct workers *workers);

bool workers_submit(struct workers *workers, struct job *job); /* false: the queue is full, the job is untouched */
/* For what holds a place already (a dispatched sample, the closing of a batch): never refused. */
void workers_submit_reserved(struct workers *workers, struct job *job);
/* Wakes as many threads as were given work since the last call: once per turn of the loop, because a wake-up for each
 * job costs more than most jobs. A thread that is awake takes new jobs without it. */
void workers_flush(struct workers *workers);
size_t workers_queued(const struct workers *workers);

#endif
