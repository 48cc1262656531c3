/* verify_pool: the text workers, their sockets and the deadlines of their jobs. Loop thread only.
 *
 * One job is one completion with all its verifiers, one frame there and one back. A worker is given a few small jobs at
 * once and judges them one after the other; the others wait in a bounded queue. A job that passes its deadline gets its
 * worker killed and replaced; one whose worker died by itself is tried once more on another worker. After that the
 * verdict of the verifier that was judging is lost, and the job is judged again without it. Jobs behind it go back to the
 * queue. A worker that has served many jobs is replaced when it is idle. If the spawner dies another one is started.
 *
 * A worker judges for one run and never for another one: whatever a text of one policy may have done to its process,
 * the verdicts of another policy come from a fresh one. Jobs without a run count as one run. Idle workers stay, a few
 * more than may be busy at once; when a place is needed for another run, the one that was idle longest makes room.
 *
 * Workers are shared fairly: the next one that is free goes to the run that has fewest of them, and among those to the
 * one that used least of their time. So a run whose jobs all hang holds up another one for its share alone. */
#ifndef SERVER_VERIFY_POOL_H
#define SERVER_VERIFY_POOL_H

#include "server/runtime/loop.h"
#include "verifiers/verifier.h"
#include "verifiers/worker/spawner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verify_flow;
struct verify_pool;
struct verify_worker;
struct verifier_list;

/* Each run has a queue of its own in each lane, so that a small request does not wait behind the queue of a large one. */
enum verify_lane {
    VERIFY_SMALL, /* of a small request */
    VERIFY_BULK,  /* of batches, scores and large requests */
    VERIFY_LANES
};

/* Lives in its owner's object. The owner fills the first part; `done` is called exactly once, on the loop thread, never
 * from inside verify_submit(), unless the job is cancelled. */
struct verify_job {
    char *frame; /* of verify_request_build(), header included; must live until done. The pool changes its header */
    size_t frame_bytes;
    const struct verifier_list *list; /* whose frame it is; for the observer */
    size_t verifier_count;
    int64_t timeout_us;     /* from the moment a worker has nothing else before it, and again after a lost verdict */
    const char *run;        /* whose worker judges it; NULL: none */
    const char *rollout;    /* where it belongs; for the observer */
    const char *request_id; /* that began it; for the log, NULL: not known */
    enum verify_lane lane;
    void (*done)(struct verify_job *job);

    /* the result: a reply, or a failure */
    char *reply; /* the frame's JSON; the owner frees it. NULL with a failure */
    size_t reply_bytes;
    const char *failure_code; /* verifier_timeout, verifier_crashed, verifier_unavailable; static text, NULL if there is
                                 a reply */
    const char *failure_message;
    uint64_t crashed; /* a bit for each verifier that has no verdict for that reason, beside a reply or a failure */
    uint64_t timed_out;
    int attempts;

    /* private */
    struct verify_job *next;
    struct verify_job **link;
    struct verify_flow *flow;
    struct verify_worker *worker;
};

struct verify_pool_limits {
    size_t text_workers; /* busy at once; at least 1 */
    size_t queue_limit;  /* jobs waiting for a worker; those that have one do not count */
};

#define VERIFIER_CRASHED "verifier_crashed"
#define VERIFIER_CRASHED_MESSAGE "the text worker ended twice while this was judged"
#define VERIFIER_TIMEOUT "verifier_timeout"
#define VERIFIER_TIMEOUT_MESSAGE "the time limit was over while this was judged; the text worker was killed"

/* Observer of job results. Called on the loop thread; must not submit or cancel. */
struct verify_observer {
    void *arg;
    /* A verdict is lost: index of the verifier, or -1: of all, because none was judging. The frame is still there. */
    void (*lost)(void *arg, const struct verify_job *job, int index, bool timed_out);
    void (*judged)(void *arg, const struct verify_job *job); /* just before its `done` */
};

/* Takes the spawner over (stops it at the end). Starts the workers at once. */
struct verify_pool *verify_pool_create(struct loop *loop, const struct spawner *spawner,
                                       const struct verify_pool_limits *limits);
/* Jobs that are still there are dropped without `done`. */
void verify_pool_destroy(struct verify_pool *pool);
void verify_pool_observe(struct verify_pool *pool, const struct verify_observer *observer);

/* No worker is there yet, and it does not look as if none would ever be. */
bool verify_pool_is_starting(const struct verify_pool *pool);

bool verify_pool_has_room(const struct verify_pool *pool);
bool verify_submit(struct verify_pool *pool,
                   struct verify_job *job); /* false: the queue is full, the job is untouched */
/* Forgets the job: no `done`. One that a worker has costs that worker. Fine after done. */
void verify_cancel_job(struct verify_pool *pool, struct verify_job *job);

struct verify_pool_counts {
    size_t workers_alive;
    size_t workers_at_once; /* of those that live, how many may be busy */
    size_t workers_busy;
    size_t queued;
    uint64_t jobs_done;
    uint64_t timeouts;
    uint64_t crashes;
    uint64_t workers_started;
    uint64_t workers_retired; /* those that had served enough, or made room for another run */
    uint64_t spawners_started;
};
void verify_pool_count(const struct verify_pool *pool, struct verify_pool_counts *ret_counts);

#endif
