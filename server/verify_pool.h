/* verify_pool: the text workers, their sockets and the deadlines of their jobs. Loop thread only.
 *
 * One job is one completion with all its verifiers, one frame there and one back. A worker is given a few small jobs at
 * once and judges them one after the other; the others wait in a bounded queue. A job that passes its deadline gets its
 * worker killed and replaced; one whose worker died by itself is tried once more on a fresh worker; those behind it go
 * back to the queue. If the spawner dies another one is started. */
#ifndef SERVER_VERIFY_POOL_H
#define SERVER_VERIFY_POOL_H

#include "server/loop.h"
#include "verifiers/spawner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verify_pool;
struct verify_worker;

/* Lives in its owner's object. The owner fills the first part; `done` is called exactly once, on the loop thread, never
 * from inside verify_submit(), unless the job is cancelled. */
struct verify_job {
    const char *frame; /* of verify_request_build(), header included; must live until done */
    size_t frame_bytes;
    int64_t timeout_us; /* from the moment a worker has nothing else before it */
    void (*done)(struct verify_job *job);

    /* the result: a reply, or a failure */
    char *reply; /* the frame's JSON; the owner frees it. NULL with a failure */
    size_t reply_bytes;
    const char *failure_code; /* verifier_timeout, verifier_crashed, verifier_unavailable; static text, NULL if there is
                                 a reply */
    const char *failure_message;
    int attempts;

    /* private */
    struct verify_job *next;
    struct verify_job **link;
    struct verify_worker *worker;
};

struct verify_pool_limits {
    size_t text_workers; /* at least 1 */
    size_t queue_limit;  /* jobs waiting for a worker; those that have one do not count */
};

/* Takes the spawner over (stops it at the end). Starts the workers at once. */
struct verify_pool *verify_pool_create(struct loop *loop, const struct spawner *spawner,
                                       const struct verify_pool_limits *limits);
/* Jobs that are still there are dropped without `done`. */
void verify_pool_destroy(struct verify_pool *pool);

bool verify_pool_has_room(const struct verify_pool *pool);
bool verify_submit(struct verify_pool *pool,
                   struct verify_job *job); /* false: the queue is full, the job is untouched */
/* Forgets the job: no `done`. One that a worker has costs that worker. Fine after done. */
void verify_cancel_job(struct verify_pool *pool, struct verify_job *job);

struct verify_pool_counts {
    size_t workers_alive;
    size_t workers_busy;
    size_t queued;
    uint64_t jobs_done;
    uint64_t timeouts;
    uint64_t crashes;
    uint64_t workers_started;
    uint64_t spawners_started;
};
void verify_pool_count(const struct verify_pool *pool, struct verify_pool_counts *ret_counts);

#endif
