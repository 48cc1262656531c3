/* batches: shared by all batches that are not finished. Made at the start by the top, which hands over the parts of the
 * service that the room uses. Loop thread only. */
#ifndef SERVER_BATCHES_BATCHES_H
#define SERVER_BATCHES_BATCHES_H

#include "server/record/store_health.h"
#include "server/runtime/loop.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engines;
struct expiry;
struct live_batch;
struct memory_trim;
struct pool;
struct pool_queue;
struct resume_job;
struct row;
struct run_state;
struct settings;
struct transport;
struct unread_batch;
struct verify_pool;
struct weight_update;
struct workers;

/* All of it outlives the batches. */
struct batches_options {
    const struct settings *settings;
    struct loop *loop;
    struct store *store;
    struct workers *workers;
    struct transport *transport;
    struct pool *pool;
    struct engines *engines;
    struct verify_pool *verify_pool;
    struct memory_trim *trim;
    /* The end of a batch is on record; may be NULL. */
    void (*batch_ended)(void *arg, const struct live_batch *live);
    void *batch_ended_arg;
};

struct batches {
    struct batches_options uses;
    bool resumed;                /* unfinished batches were read back: new ones may come */
    struct resume_job *resuming; /* resume.c; NULL: nothing is being read back */

    /* live.c */
    struct live_batch *by_id;
    struct live_batch *first;
    size_t count;

    /* step.c */
    void (*step)(void *arg);   /* works off the members below */
    struct live_batch *posted; /* batches that events were posted to, in the order of the first one */
    struct live_batch **posted_last;
    bool awake; /* the dispatcher has to look */
    bool stepping;
    struct loop_timer step_timer;

    struct run_state *runs;        /* runs.c */
    struct weight_update *updates; /* private to weight_update.c */
    struct expiry *expiries;       /* likewise; ends of updates that are not on record yet */

    /* queues.c, dispatch.c */
    struct pool_queue **queues; /* one for each named pool of which there were batches */
    size_t queue_count;
    struct live_batch *given_ring; /* those whose completions came with the request */
    size_t turn;                   /* the source of the next place among several: 0 the given, then the queues */
    struct loop_timer dispatch_timer;

    /* places in the later queues, bytes of the budget (budget.c) */
    size_t places;
    size_t places_max;
    size_t program_places; /* those of rollouts whose verifiers run programs */
    size_t program_places_max;
    int64_t bytes;
    int64_t flight_bytes; /* those of them that flights hold */
    int64_t bytes_max;
    size_t creations; /* batches that the store is about to create */

    /* row.c: rows that found the store's queue full */
    struct row *backlog_first;
    struct row **backlog_last;
    struct loop_timer backlog_timer;

    struct unread_batch *unread; /* unread.c */
    struct store_health health;
    size_t without_scored; /* batches in a row that ended without a scored rollout */
};

struct batches *batches_create(const struct batches_options *options);
void batches_destroy(struct batches *batches); /* NULL is fine. After the last batch */
/* Operations that the writer has finished. */
void store_ops_finished(struct batches *batches, struct store_op *list);

#endif
