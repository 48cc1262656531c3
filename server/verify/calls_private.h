/* Shared by the files of the calls: what is asked and what came back (verify/asking.c), the queues of pools and the calls
 * on their way (verify/calls.c). */
#ifndef SERVER_VERIFY_CALLS_PRIVATE_H
#define SERVER_VERIFY_CALLS_PRIVATE_H

#include "server/base/ids.h"
#include "server/verify/calls.h"
#include "server/verify/pool.h"

struct verify_calls {
    struct verify_calls_uses uses;
    struct verify_pool *text;
    struct pool *externals; /* a named pool for each that has a URL */
    struct call_pool *pools;
    struct asking *first;
    size_t waiting, in_flight;
};

/* A named pool, as long as a call is for it. */
struct call_pool {
    struct verify_calls *calls;
    struct call_pool *next;
    struct pool *pool;
    struct named_pool *named;
    struct call_queue *queues;
    struct loop_timer look;
    uint64_t sent;             /* counts calls */
    int64_t failing_us;        /* since when none of its calls has succeeded; 0: the last one did */
    struct sample_error error; /* of the last one that did not */
};

/* One run's calls to it, those of the spare lane by themselves. */
struct call_queue {
    struct call_pool *pool;
    struct call_queue *next;
    char *run;  /* NULL: none */
    bool spare; /* of jobs that nobody waits for (VERIFY_SPARE) */
    struct asked_call *first;
    struct asked_call **last;
    size_t calls; /* all that are not over */
    size_t waiting, in_flight;
    uint64_t sent; /* the number of its last call */
    struct retry_budget retries;
};

enum call_state { CALL_WAITS, CALL_AWAY, CALL_PAUSES, CALL_OVER };

struct asked_call {
    struct asked_verdict *verdict;
    size_t number; /* among those of its verdict */
    char *path;
    char *body;
    size_t body_bytes;
    bool wants_model;

    enum call_state state;
    struct asked_call *next; /* of those that wait */
    struct asked_call **link;
    struct loop_timer again;
    unsigned attempts;
    int64_t since_us;      /* since when it waits */
    struct engine *engine; /* the one that has it, or had it last; held */
    struct transfer *transfer;
    struct buffer sent; /* its body with a model; empty: as it is */
    int64_t sent_us, allowed_us;

    int status;                        /* of the reply; 0: there is none */
    struct buffer reply;               /* its body */
    char engine_name[POOL_NAME_BYTES]; /* "": it was sent to none */
    char model[PROBE_NAME_BYTES];
    char version[64];
    struct sample_error error; /* of the last failure; message "": none */
};

/* One verdict's calls. */
struct asked_verdict {
    struct asking *asking;
    size_t verifier; /* its place in the list */
    struct call_queue *queue;
    struct asked_call *calls;
    size_t count, left;
    int64_t began_us; /* 0: none is sent yet */
    struct loop_timer deadline;
};

struct asking {
    struct job job; /* first: reads the worker's reply, writes the frame with replies */
    struct verify_calls *calls;
    struct asking *next;
    struct asking **link;
    struct verify_job *verify; /* NULL: cancelled while a worker has it */
    bool on_worker;
    struct loop_timer again; /* the workers' queue was full */
    struct verifier_list *list;
    uint64_t asks;
    char *reply; /* the job's, while a worker reads it */
    size_t reply_bytes;
    char name[ID_BYTES + 16]; /* for the server's log */
    struct asked_verdict *verdicts;
    size_t count, left;
    int64_t began_us; /* of its first call; 0: none is sent yet */
    struct buffer frame;
};

/* verify/asking.c */
void asking_begin(void *arg, struct verify_job *job);
void asking_cancel(struct verify_job *job);
void asking_verdict_over(struct asking *asking);    /* the last call of a verdict is over */
void asking_forget_all(struct verify_calls *calls); /* their transfers and jobs are gone */
int64_t call_timeout_us(const struct verifier_spec *spec);

/* verify/calls.c */
/* Puts the calls of a verdict into the queue of its pool; they are sent soon. */
void calls_enter(struct asked_verdict *verdict);
/* Takes back what is not over: nothing more comes of it. */
void calls_withdraw(struct asked_verdict *verdict);

#endif
