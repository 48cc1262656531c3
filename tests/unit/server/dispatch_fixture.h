/* Live batches in a made-up world: clock, timers, workers, transport, text workers and store are this file's. Real are
 * the pool, the adapters and server/batches/ itself, without closing. One world at a time. */
#ifndef TESTS_SERVER_DISPATCH_FIXTURE_H
#define TESTS_SERVER_DISPATCH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/batches/live.h"

#define SENT_MAX 64
#define ROWS_MAX 64

/* One request for a sample. */
struct sent {
    char engine[64]; /* its URL */
    char request_id[128];
    void (*done)(void *arg, struct transfer_reply *reply);
    void *arg;
    bool over; /* answered, failed or cancelled */
    bool cancelled;
};

/* The record of a rollout. */
struct recorded {
    int64_t sample_index;
    enum store_rollout_state state;
    char failure[64]; /* "": none */
    char engine[64];  /* its name; "": none */
    int64_t attempts;
    bool has_text;
};

struct world {
    int64_t now_us;
    struct batches *batches;
    struct pool *pool;
    struct sent sent[SENT_MAX];
    size_t sent_count;
    struct recorded rows[ROWS_MAX];
    size_t row_count;
    bool workers_stand; /* jobs wait until this is false */
    bool store_stands;  /* likewise for rows */
    bool no_room;       /* the transport has none */
    size_t reserved;    /* places in the store's queue */
    size_t asked;       /* jobs that the text workers have */
    size_t ended;       /* batches that were closed */
};
extern struct world world;

/* Every engine is up. verify_queue: places in the later queues. */
void world_begin(const struct pool_engine *engines, size_t count, int64_t verify_queue);
/* Everything must have been given back. */
void world_end(void);

struct plan {
    const char *run;     /* NULL: "r" */
    const char *pool;    /* NULL: the default one */
    const char *model;   /* NULL: any */
    int64_t rollouts;    /* of one group */
    bool verified;       /* by a verifier */
    bool given;          /* the completions come with the request */
    int64_t deadline_us; /* from now; 0: 100 s */
};
/* Created and started, not settled. */
struct live_batch *world_batch(const struct plan *plan);

/* Timers that are due, jobs and rows, until nothing is left to do at this time. */
void world_settle(void);
void world_advance(int64_t us); /* and settles at each timer's time */

size_t sent_open(void); /* requests that engines work on */
size_t sent_to(const char *url);
void sent_answer(size_t index); /* with a sample */
void sent_refuse(size_t index, int status);
void text_workers_answer(void);                      /* all that they have */
const struct recorded *row_of(int64_t sample_index); /* NULL: not on record */

#endif
