/* verify_pool: workers of one kind, their sockets and the deadlines of their jobs. Loop thread only.
 *
 * One job is one completion with all its verifiers, one frame there and one back. Verifiers that run programs are asked
 * of the code workers, all others of the text workers: a job with both goes through one pool after the other, each
 * leaves out what is not its own, and what happens in one spoils no verdict of the other. Verifiers that have to ask a
 * server first say so in their reply: the calls are made (calls.h), and the text workers grade what came back. A worker is given a few small jobs at
 * once and grades them one after the other; the others wait in a bounded queue. A job that passes its deadline gets its
 * worker killed and replaced; one whose worker died by itself is tried once more on another worker. After that the
 * verdict of the verifier that was grading is lost, and the job is graded again without it. Jobs behind it go back to the
 * queue. A worker that has served many jobs is replaced when it is idle. If the spawner dies another one is started.
 *
 * A worker grades for one run and never for another one: whatever a text of one policy may have done to its process,
 * the verdicts of another policy come from a fresh one. Jobs without a run count as one run. Idle workers stay, a few
 * more than may be busy at once; when a place is needed for another run, the one that was idle longest makes room.
 *
 * Workers are shared fairly: the next one that is free goes to the run that has fewest of them, and among those to the
 * one that used least of their time. So a run whose jobs all hang holds up another one for its share alone. Jobs of the
 * spare lane come behind all others: a worker has one of them at a time, and one worker of several is never theirs. */
#ifndef SERVER_VERIFY_POOL_H
#define SERVER_VERIFY_POOL_H

#include "server/runtime/loop.h"
#include "verifiers/verifier.h"
#include "verifiers/worker/spawner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct asking;
/* Names of runs as jobs have them: NULL is one of its own. */
static inline bool is_same_run(const char *left, const char *right)
{
    return left == right || (left && right && strcmp(left, right) == 0);
}

struct verify_flow;
struct verify_pool;
struct verify_worker;
struct verifier_list;

/* Each run has a queue of its own in each lane, so that a small request does not wait behind the queue of a large one. */
enum verify_lane {
    VERIFY_SMALL, /* of a small request */
    VERIFY_BULK,  /* of batches, scores and large requests */
    VERIFY_SPARE, /* of the record, judged once more: what nobody waits for */
    VERIFY_LANES
};

/* A part: the verdicts of one kind of workers; the last one: those of text workers on the replies to calls. */
#define VERIFY_ANSWERS WORKER_KINDS
#define VERIFY_PARTS (WORKER_KINDS + 1)

struct verify_part {
    int64_t timeout_us; /* given: from the moment a worker has nothing else before it, and again after a lost verdict */

    char *reply; /* the frame's JSON, null for each verifier that was left out. NULL with a failure */
    size_t reply_bytes;
    const char *failure_code; /* verifier_timeout, verifier_crashed, verifier_unavailable, sandbox_unavailable; static
                                 text, NULL if there is a reply, or nothing to ask */
    const char *failure_message; /* lives as long as the pool */
    uint64_t crashed; /* a bit for each verifier that has no verdict for that reason, beside a reply or a failure */
    uint64_t timed_out;
    uint64_t outgrown; /* likewise: with its reference it took more memory than a worker has */
    int attempts;
};

/* Lives in its owner's object. The owner fills the first part and the timeouts; `done` is called exactly once, on the
 * loop thread, never from inside verify_submit(), unless the job is cancelled. */
struct verify_job {
    char *frame; /* of verify_request_build(), header included; must live until done. The pool changes its header */
    size_t frame_bytes;
    const struct verifier_list *list; /* whose frame it is; for the observer */
    size_t verifier_count;
    uint64_t programs;                 /* a bit for each verifier that runs programs */
    uint64_t asks;                     /* a bit for each that may have to ask a server */
    uint64_t elsewhere;                /* a bit for each that grades the whole group, and is not asked here */
    bool of_group;                     /* it is the job on the whole group */
    const struct verdict_record *told; /* [verifier]: what those said; NULL: nothing */
    const char *run;                   /* whose worker grades it; NULL: none */
    const char *rollout;               /* where it belongs; for the observer */
    const char *request_id;            /* that began it; for the log, NULL: not known */
    enum verify_lane lane;
    void (*done)(struct verify_job *job);

    struct verify_part parts[VERIFY_PARTS]; /* what came of it; verify_job_finish() */
    uint64_t asked;                         /* a bit for each whose calls were made: its verdict is in the last part */
    int64_t calls_us;                       /* from the first call sent to the last reply; 0: none was sent */

    /* private */
    struct verify_job *next;
    struct verify_job **link;
    struct verify_flow *flow;
    struct verify_worker *worker;
    struct asking *asking; /* its calls, while they are made */
    bool answering;        /* they were: the replies are graded */
    char *answers_frame;   /* its frame then */
};

/* The bits of the verifiers whose verdicts are in this part. Of a job without verifiers none are. */
static inline uint64_t verify_job_share(const struct verify_job *job, int part)
{
    uint64_t all = job->verifier_count < 64 ? (UINT64_C(1) << job->verifier_count) - 1 : UINT64_MAX;

    if (part == VERIFY_ANSWERS)
        return all & job->asked;
    return all & (part == WORKER_CODE ? job->programs : ~(job->programs | job->asked | job->elsewhere));
}

/* Sets up the job for its list: count, programs and timeouts. text_timeout_us is of the text workers; programs have the limits
 * of their verifiers. The list must live until done. */
void verify_job_ask(struct verify_job *job, const struct verifier_list *list, int64_t text_timeout_us);
/* Every verdict failed before any worker saw it. Static texts. */
void verify_job_fail(struct verify_job *job, const char *code, const char *message);
void verify_job_finish(struct verify_job *job); /* frees the replies */

struct verify_pool_limits {
    enum worker_kind kind;
    size_t at_once;                  /* busy workers; at least 1 */
    size_t queue_limit;              /* jobs waiting for a worker; those that have one do not count */
    struct sandbox_settings sandbox; /* of WORKER_CODE; its level is found by the pool */
};

#define VERIFIER_CRASHED "verifier_crashed"
#define VERIFIER_CRASHED_MESSAGE "the worker ended twice while this was judged"
#define VERIFIER_TIMEOUT "verifier_timeout"
#define VERIFIER_TIMEOUT_MESSAGE "the time limit was over while this was judged; the worker was killed"

#define VERIFIER_OUTGROWN "reference_unreadable"
#define VERIFIER_OUTGROWN_MESSAGE "the reference, with what is made of it, takes more memory than a worker has"

/* Observer of job results. Called on the loop thread; must not submit or cancel. */
struct verify_observer {
    void *arg;
    /* A verdict is lost: index of the verifier, or -1: of all, because none was judging. The frame is still there. */
    void (*lost)(void *arg, const struct verify_job *job, int index, bool timed_out);
    void (*graded)(void *arg, const struct verify_job *job); /* by all that were asked; just before its `done` */
};

/* Takes the spawner over (stops it at the end); {0, -1}: starts one in the background. Text workers are made at once.
 * Code workers are made when a job needs one, after a trial of what the machine offers (sandbox/probe.h). Where that is
 * below the least level, or no slot can be made, their verdicts fail with sandbox_unavailable. */
struct verify_pool *verify_pool_create(struct loop *loop, const struct spawner *spawner,
                                       const struct verify_pool_limits *limits);
/* Jobs that are still there are dropped without `done`. */
void verify_pool_destroy(struct verify_pool *pool);
void verify_pool_observe(struct verify_pool *pool, const struct verify_observer *observer);

/* Verifiers that the one does not run are left to the other. Jobs are submitted to the first and cancelled with it. */
void verify_pool_join(struct verify_pool *text, struct verify_pool *code);

/* The maker of calls (calls.h): takes a job whose text workers have answered, or forgets one that it has. */
struct verify_caller {
    void *arg;
    void (*make)(void *arg, struct verify_job *job);
    void (*cancel)(struct verify_job *job);
};
/* From now on; without one no verdict that needs a call is given. Of the first pool, when it is joined. */
void verify_pool_call_by(struct verify_pool *text, const struct verify_caller *caller);
/* Its calls were made, and its frame has the replies: they are judged. It holds a place, so there is always room. */
void verify_pool_grade_replies(struct verify_pool *text, struct verify_job *job);
/* None of its calls could be made: it is done. */
void verify_pool_end_asking(struct verify_pool *text, struct verify_job *job);

struct json_write;
/* Of code workers: "sandbox": {"level","min_level","programs_run","why"}; level and programs_run are null until the
 * trial is over, why says what to change if programs do not run. */
void verify_pool_write_sandbox(struct json_write *json, const struct verify_pool *pool);
/* Code workers: if programs do not run, the machine is tried again now. It is now and then in any case. */
void verify_pool_try_again(struct verify_pool *pool);
enum sandbox_level verify_pool_level(const struct verify_pool *pool); /* SANDBOX_LEVEL_NONE until the trial is over */

/* No worker is there yet, and it does not look as if none would ever be. */
bool verify_pool_is_starting(const struct verify_pool *pool);

bool verify_pool_has_room(const struct verify_pool *pool);
/* False: a queue that it needs is full, the job is untouched. */
bool verify_submit(struct verify_pool *pool, struct verify_job *job);
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

/* One run in one lane: what it has here. */
struct verify_share {
    const char *run; /* NULL: what belongs to none */
    size_t queued;
    size_t busy; /* workers */
    int64_t used_us;
};
/* Those that have a job: the place of each is from 0 on. False: there is none at this place. */
bool verify_pool_share(const struct verify_pool *pool, size_t place, struct verify_share *ret_share);

#endif
