/* Shared by the files of the verify pool: the outcomes of jobs and the spawner (verify/pool.c), the queues of runs
 * (verify/flow.c), the assignment of jobs (verify/assign.c), and the places for workers with what goes through their
 * sockets (verify/worker.c). */
#ifndef SERVER_VERIFY_POOL_PRIVATE_H
#define SERVER_VERIFY_POOL_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/clock.h"
#include "server/verify/pool.h"
#include "server/verify/sandbox.h"
#include "verifiers/worker/worker.h"

#define VERIFY_READ_BYTES 65536
#define VERIFY_ATTEMPTS_MAX 2          /* workers that a job may cost before a verdict is lost */
#define VERIFY_WINDOW 8                /* jobs that a worker has at once at most */
#define VERIFY_REST_US (60 * US_PER_S) /* without a job, of a kind that is not kept */
#define VERIFY_TURN_US                                                                                                 \
    (20 * US_PER_MS)            /* of workers' time: a run that is ahead by less keeps its worker, because another
                                           one needs a fresh one */
#define VERIFY_SERVED_MAX 20000 /* jobs of one worker: whatever its libraries keep ends with it */

/* The differences between kinds of workers. */
struct verify_kind {
    const char *cannot_start; /* for the log */
    const char *none_lives;
    size_t window; /* jobs that one has at once: each wait for the next one costs more than grading a text */
    size_t spares; /* places beside those that work at once: so many more runs keep their processes */
    size_t reply_limit_bytes;
    bool are_kept;            /* some are made before they are needed */
    const char *failure_code; /* of jobs that wait while none stays alive */
    const char *failure_message;
};
extern const struct verify_kind verify_kinds[WORKER_KINDS];

enum worker_state { WORKER_NONE, WORKER_ASKED, WORKER_IDLE, WORKER_BUSY, WORKER_STATES };

/* One run in one lane: what of it waits, in its order, and its workers. It lives as long as it has a job in the pool or
 * a worker. */
struct verify_flow {
    struct verify_pool *pool;
    struct verify_flow *next;
    char *run; /* NULL: what belongs to none */
    enum verify_lane lane;
    struct verify_job *first;
    struct verify_job **last;
    size_t queued;
    size_t jobs;                   /* queued, and with a worker */
    size_t workers[WORKER_STATES]; /* by state; they grade for no other flow */
    int64_t used_us;               /* of workers; one that has not been here has used as much as any other one */
    bool is_passed_over;           /* in this assignment: there is no worker for it */
};

/* A place for a worker; the process in it changes. */
struct verify_worker {
    struct verify_pool *pool;
    enum worker_state state;
    uint32_t id;
    int fd;
    struct loop_source *source;
    const struct worker_page *page;         /* what the process says that it is at; NULL: unknown */
    struct verify_job *jobs[VERIFY_WINDOW]; /* in the order of their frames; the first is being graded */
    size_t job_count;
    size_t sending;      /* the first of them whose frame is not sent, */
    size_t sent_bytes;   /* and how much of that is */
    bool waits_for_room; /* in the socket */
    struct buffer reply; /* header included */
    uint64_t served;
    struct verify_flow *flow; /* whose it is; NULL: it has graded nothing */
    int64_t began_us;         /* when it was given what it grades */
    uint64_t last_given;
    struct loop_timer deadline;
};

struct verify_pool {
    enum worker_kind kind;
    struct verify_pool *next;    /* that grades what this one does not; NULL: none */
    struct verify_caller caller; /* functions NULL: no call can be made */
    struct sandbox_settings sandbox;
    struct sandbox_report probed;
    bool is_probed;
    char refusal[SANDBOX_REFUSAL_BYTES]; /* "": none */
    struct loop_timer refuse;
    struct loop_timer again; /* the next trial, while programs do not run */
    int64_t again_us;        /* the pause before it; 0: none was needed */
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
    struct verify_flow *flows;
    struct verify_pool_counts counts;
    struct verify_observer observer; /* functions NULL: none */
    size_t worker_count;             /* places */
    struct verify_worker workers[];
};

/* verify/flow.c */
void verify_flow_enter(struct verify_pool *pool, struct verify_job *job); /* found or made; the job is not queued yet */
void verify_flow_leave(struct verify_flow *flow);                         /* a job of it is no longer in the pool */
void verify_queue_append(struct verify_pool *pool, struct verify_job *job);
void verify_queue_prepend(struct verify_pool *pool, struct verify_job *job);
void verify_queue_unlink(struct verify_pool *pool, struct verify_job *job);
/* The flow whose turn it is: with something queued that no worker is being made for, and not passed over. NULL: none. */
struct verify_flow *verify_flow_next(const struct verify_pool *pool);
void verify_flow_bind(struct verify_flow *flow, struct verify_worker *worker); /* that has none */
void verify_flow_unbind(struct verify_worker *worker);
void verify_worker_become(struct verify_worker *worker, enum worker_state state);
void verify_flows_destroy(struct verify_pool *pool);

/* verify/pool.c */
static inline int verify_part_of(const struct verify_pool *pool, const struct verify_job *job)
{
    return job->answering && pool->kind == WORKER_TEXT ? VERIFY_ANSWERS : (int)pool->kind;
}

static inline struct verify_part *verify_part_in(const struct verify_pool *pool, struct verify_job *job)
{
    return &job->parts[verify_part_of(pool, job)];
}
void verify_fail_queued(struct verify_pool *pool, const char *code, const char *message);
/* The pool's share of it is graded, or has failed: it goes to the next pool, or it is done. */
void verify_end_job(struct verify_pool *pool, struct verify_job *job);
/* Its worker died: once more, or the verdict at which it did so is lost. index: verify_worker_grading(). */
void verify_give_back(struct verify_pool *pool, struct verify_job *job, int index);
void verify_lose_verdict(struct verify_pool *pool, struct verify_job *job, int index, bool timed_out);
/* Its worker says that it has no memory for it: no other one has more. */
void verify_outgrow(struct verify_pool *pool, struct verify_job *job, int index);
void verify_retry_later(struct verify_pool *pool);

/* verify/trial.c: what the machine offers to programs */
bool verify_trial_is_due(const struct verify_pool *pool); /* nothing is assigned before it is over */
void verify_trial_begin(struct verify_pool *pool);
void verify_trial_end(struct verify_pool *pool, const struct sandbox_report *probed);
/* Fails what waits, soon: `done` is never called from inside verify_submit(). */
void verify_refuse_soon(struct verify_pool *pool);

/* verify/assign.c */
void verify_assign_jobs(struct verify_pool *pool);
void verify_make_missing(struct verify_pool *pool); /* as many as may be busy, of a kind that is kept */
size_t verify_busy(const struct verify_pool *pool);

/* verify/worker.c */
/* Has a process made for the empty place: for one flow, or (NULL) for the first that needs it. */
void verify_worker_ask(struct verify_worker *worker, struct verify_flow *flow);
struct verify_job *verify_worker_vacate(struct verify_worker *worker);
int verify_worker_grading(const struct verify_worker *worker);
bool verify_worker_lost_slot(const struct verify_worker *worker); /* says the worker */
void verify_worker_rest(struct verify_worker *worker);
void verify_worker_crashed(struct verify_worker *worker);
/* The first job of the flow, and others behind it. The worker is idle, and the flow's or nobody's. */
void verify_worker_start_jobs(struct verify_worker *worker, struct verify_flow *flow);
void verify_worker_retire(struct verify_worker *worker);
int verify_worker_read_some(struct verify_worker *worker);
int verify_worker_take_replies(struct verify_worker *worker);
void verify_worker_ready(void *arg, uint32_t events);

#endif
