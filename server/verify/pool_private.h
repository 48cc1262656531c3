/* Shared by the files of the verify pool: the queue and the outcomes of jobs (verify/pool.c), their assignment
 * (verify/assign.c), and the places for workers with what goes through their sockets (verify/worker.c). */
#ifndef SERVER_VERIFY_POOL_PRIVATE_H
#define SERVER_VERIFY_POOL_PRIVATE_H

#include "server/base/buffer.h"
#include "server/verify/pool.h"
#include "verifiers/worker/worker.h"

#define VERIFY_READ_BYTES 65536
#define VERIFY_WINDOW 8 /* jobs that a worker has at once: each wait for the next one costs more than judging it */
#define VERIFY_LOOK_AHEAD 256   /* jobs of the queue that are looked at for those of one run */
#define VERIFY_SPARES 8         /* places beside those that work at once: so many more runs keep their processes */
#define VERIFY_SERVED_MAX 20000 /* jobs of one worker: whatever its libraries keep ends with it */

enum worker_state { WORKER_NONE, WORKER_ASKED, WORKER_IDLE, WORKER_BUSY };

/* A place for a worker; the process in it changes. */
struct verify_worker {
    struct verify_pool *pool;
    enum worker_state state;
    uint32_t id;
    int fd;
    struct loop_source *source;
    const struct worker_page *page;         /* what the process says that it is at; NULL: unknown */
    struct verify_job *jobs[VERIFY_WINDOW]; /* in the order of their frames; the first is being judged */
    size_t job_count;
    size_t sending;      /* the first of them whose frame is not sent, */
    size_t sent_bytes;   /* and how much of that is */
    bool waits_for_room; /* in the socket */
    struct buffer reply; /* header included */
    uint64_t served;
    bool bound; /* it has judged for a run, and judges for no other one */
    char *run;  /* which; NULL: what belongs to none */
    uint64_t last_given;
    struct loop_timer deadline;
};

struct verify_pool {
    struct loop *loop;
    struct spawner spawner;
    struct loop_source *spawner_source;
    struct loop_timer retry;
    unsigned failures; /* starts that failed since one worker served a job */
    bool wants_means;  /* the last one failed for want of descriptors, processes or memory */
    uint32_t next_id;
    uint64_t given; /* counts what was given to workers */
    size_t at_once; /* workers that may be busy */
    size_t queue_limit;
    size_t queued;
    struct verify_queue {
        struct verify_job *first;
        struct verify_job **last;
    } queues[VERIFY_LANES];
    size_t turn; /* the lane that comes next, if it has any */
    struct verify_pool_counts counts;
    struct verify_observer observer; /* functions NULL: none */
    size_t worker_count;             /* places */
    struct verify_worker workers[];
};

/* verify/pool.c */
struct verify_job *verify_queue_first(const struct verify_pool *pool); /* the next one; NULL: none */
void verify_queue_unlink(struct verify_pool *pool, struct verify_job *job);
void verify_queue_prepend(struct verify_pool *pool, struct verify_job *job);
void verify_assign_jobs(struct verify_pool *pool);
void verify_end_job(struct verify_pool *pool, struct verify_job *job);
/* Its worker died: once more, or the verdict at which it did so is lost. index: verify_worker_judging(). */
void verify_give_back(struct verify_pool *pool, struct verify_job *job, int index);
void verify_lose_verdict(struct verify_pool *pool, struct verify_job *job, int index, bool timed_out);
void verify_retry_later(struct verify_pool *pool);

/* verify/assign.c */
void verify_make_missing(struct verify_pool *pool); /* as many as may be busy */
size_t verify_busy(const struct verify_pool *pool);
bool verify_same_run(const char *left, const char *right);

/* verify/worker.c */
void verify_worker_ask(struct verify_worker *worker);
struct verify_job *verify_worker_vacate(struct verify_worker *worker);
int verify_worker_judging(const struct verify_worker *worker);
void verify_worker_crashed(struct verify_worker *worker);
/* The job is in the queue; others of its run go along. The worker is idle, and bound to that run or to none. */
void verify_worker_start_jobs(struct verify_worker *worker, struct verify_job *job);
void verify_worker_retire(struct verify_worker *worker);
int verify_worker_read_some(struct verify_worker *worker);
int verify_worker_take_replies(struct verify_worker *worker);
void verify_worker_ready(void *arg, uint32_t events);

#endif
