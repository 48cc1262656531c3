/* live: a batch that is not finished. Loop thread only.
 *
 * It is made when its request is on record, and destroyed when it has ended without observers and without work under
 * way. All that happens to it is posted as an event; step.c works events off in one place, after the callback that
 * posted them has returned, so that no callback runs inside another. */
#ifndef SERVER_BATCHES_LIVE_H
#define SERVER_BATCHES_LIVE_H

#include "client/pool/pool.h"
#include "server/base/ids.h"
#include "server/base/json_write.h"
#include "server/batches/batch.h"
#include "server/batches/batches.h"
#include "server/runtime/loop.h"
#include "server/spec/batch.h"

#include <uthash.h>

struct flight;
struct gather;
struct live_observer;
struct unstored;

struct live_batch {
    struct batches *batches;
    char id[ID_BYTES];
    char request_id[REQUEST_ID_BYTES]; /* that created it; "": not known */
    struct batch_spec *spec;
    struct batch batch;
    struct run_state *run;
    int64_t policy_revision;  /* of the batch */
    int64_t sampled_revision; /* part of the seeds: policy_revision, or where an update in mode abort moved the batch */
    bool moved;               /* true once an update moved it */
    bool was_current;         /* policy_revision was the run's when it was admitted */
    int64_t incarnation;
    int64_t admitted_us;
    size_t done_before; /* rollouts that were on record when it was read back */
    int64_t admitted_utc_us;
    int64_t deadline_utc_us;
    struct flight *flights;      /* [rollout] */
    struct gather **gathers;     /* [group]; members that wait for their siblings (gather_private.h). NULL: none has */
    double *rewards;             /* [rollout]; NAN: none */
    double *metrics;             /* [rollout]; of the refill, raw; NULL: there is none. NAN: none */
    struct engine **failed_at;   /* [rollout]; the engine of the last failed attempt, held */
    int64_t *group_revisions;    /* [group]; at its first dispatch, -1 before */
    uint32_t **group_prompt_ids; /* [group]; what the engine made of the prompt, NULL: not known */
    size_t *group_prompt_id_counts;
    uint64_t *group_prefixes; /* [group]; a hash of its prompt, 0: not computed yet */
    size_t scored;            /* known when it is closed */
    size_t groups_ready;      /* all members stored */
    struct live_observer *observers;
    bool answered_async; /* a request was answered with 202: hang-ups do not cancel it */
    bool has_key;
    struct unstored *unstored; /* a score that leaves no trace; NULL: it is on record */
    size_t jobs;               /* that workers and the store have of it */
    size_t reserved_bytes;
    size_t program_places; /* of those for programs (reservation_private.h) */
    struct live_batch *previous;
    struct live_batch *next;
    UT_hash_handle hh;

    /* step.c */
    struct batch_event *events; /* posted, not worked off yet */
    size_t event_count;
    size_t event_capacity;
    struct actions actions; /* of the event that is being worked off */
    bool is_posted;         /* in the list of batches->posted, or being worked off */
    struct live_batch *posted_next;
    struct loop_timer timer;

    /* queues.c, dispatch.c */
    struct pool_queue *queue;    /* where it waits for engines; NULL: it needs none */
    struct retry_budget retries; /* what may be repeated for it */
    bool in_queue;
    struct live_batch *ring_previous;
    struct live_batch *ring_next;
    const char *short_of; /* what its next sample found used up, when an engine had a place; NULL: nothing */
};

struct live_batch *batches_find(struct batches *batches, struct text id); /* NULL: none, or one that leaves no trace */
/* Lets the dispatcher look soon: a rollout was queued, or a place became free. */
void batches_wake(struct batches *batches);

/* Takes the spec. The machine is initialised but not started: restore what is on record first. */
struct live_batch *live_create(struct batches *batches, struct batch_spec *spec, const char *id,
                               int64_t deadline_utc_us);
void live_start(struct live_batch *live);
/* Copies the event; it is worked off soon, behind those that were posted before. */
void live_post(struct live_batch *live, const struct batch_event *event);
/* Drops one reason to keep the batch: step.c checks whether it is done. */
void live_look(struct live_batch *live);
/* A worker or the store has one thing less of it. */
void live_leave(struct live_batch *live);
/* The request of one rollout. */
const struct group_spec *live_group(const struct live_batch *live, uint32_t rollout);
/* The completion that the request brought, or NULL. */
const struct completion_spec *live_given(const struct live_batch *live, uint32_t rollout);
int64_t live_sample_index(const struct live_batch *live, uint32_t rollout);
/* The current settings of sampling. For a completion sampled elsewhere: those of the request, or 0. */
uint64_t live_seed(const struct live_batch *live, uint32_t rollout);
/* For step.c: it has ended, and nothing keeps it. */
bool live_is_done(const struct live_batch *live);
void live_destroy(struct live_batch *live);

/* progress.c. Members of an open object: state, counts, reason for waiting. */
void live_write_running(struct json_write *json, const struct live_batch *live);
void live_write_pending(struct json_write *json, const struct live_batch *live);

#endif
