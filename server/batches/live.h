/* live: batches that are not finished, and what is done for them. The effects to batch.h's decisions. Loop thread only.
 *
 * A live batch is made when its request is on record and goes when it has ended and nobody observes it. A flight
 * is one rollout on its way: from its dispatch (or from the moment it must be stored without one) to the row on disk;
 * it owns whatever the engine and the verifiers said, so memory is proportional to what is in flight. */
#ifndef SERVER_BATCHES_LIVE_H
#define SERVER_BATCHES_LIVE_H

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/base/ids.h"
#include "server/base/json_write.h"
#include "server/batches/batch.h"
#include "server/batches/weight_update.h"
#include "server/record/read_again.h"
#include "server/record/store_desk.h"
#include "server/record/store_health.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/spec/batch.h"
#include "server/store/store.h"
#include "server/verify/pool.h"

#include <uthash.h>

/* What the service knows about a run while it has batches of it. */
struct run_state {
    char *name;
    int64_t revision;             /* the current one; -1: none declared */
    int64_t incarnation;          /* how often the trainer went back */
    size_t batches;               /* live ones; without any it is forgotten */
    struct weight_update *update; /* stops its dispatch; NULL: none is open */
    int64_t resumed_us;           /* when the last one ended */
    UT_hash_handle hh;
};

struct batches;
struct live_observer;
struct unstored;

struct live_batch {
    struct batches *batches;
    char id[ID_BYTES];
    char request_id[REQUEST_ID_BYTES]; /* that created it; "": not known */
    struct batch_spec *spec;
    struct batch batch;
    struct actions actions; /* of the step that is being carried out */
    bool stepping;
    struct run_state *run;
    struct pool_queue *queue;    /* where it waits for engines; NULL: it needs none */
    struct retry_budget retries; /* what may be repeated for it */
    int64_t policy_revision;     /* of the batch */
    int64_t sampled_revision; /* part of the seeds: the batch's, or the one that an update in mode abort moved it to */
    bool moved;               /* that is so */
    bool was_current;         /* policy_revision was the run's when it was admitted */
    int64_t incarnation;
    int64_t admitted_us;
    int64_t admitted_utc_us;
    int64_t deadline_utc_us;
    struct flight **flights;     /* [rollout]; NULL: nothing under way */
    double *rewards;             /* [rollout]; NAN: none */
    struct engine **failed_at;   /* [rollout]; the engine of the last failed attempt, held */
    int64_t *group_revisions;    /* [group]; at its first dispatch, -1 before */
    uint32_t **group_prompt_ids; /* [group]; what the engine made of the prompt, NULL: not known */
    size_t *group_prompt_id_counts;
    uint64_t *group_prefixes; /* [group]; a hash of its prompt, 0: not computed yet */
    size_t scored;            /* known when it is closed */
    size_t groups_ready;      /* all members stored */
    struct loop_timer timer;
    struct live_observer *observers;
    bool answered_async; /* somebody was told 202: hang-ups do not cancel it */
    bool has_key;
    struct unstored *unstored; /* a score that leaves no trace; NULL: it is on record */
    bool in_dispatch;          /* in the dispatcher's ring */
    const char *short_of;      /* what its next sample found used up, when an engine had a place; NULL: nothing */
    size_t jobs;               /* workers and the store have something of it */
    size_t reserved_bytes;
    struct live_batch *previous;
    struct live_batch *next;
    struct live_batch *ring_previous; /* the dispatcher's */
    struct live_batch *ring_next;
    UT_hash_handle hh;
};

enum flight_stage { FLIGHT_SAMPLING, FLIGHT_PARSING, FLIGHT_VERIFYING, FLIGHT_JUDGING, FLIGHT_STORING };

struct flight {
    struct job job; /* first: parsing, judging */
    struct live_batch *live;
    uint32_t rollout;
    enum flight_stage stage;
    bool detached;   /* a worker has it, but the batch has gone on without it */
    bool dispatched; /* holds a place, a reserved row and bytes */
    size_t reserved_bytes;

    struct engine *engine;
    struct transfer *transfer;
    struct sample_request request;
    char request_id[ID_BYTES + 64];
    char *model; /* the engine's, as it was when this was sent: a probe may find another */
    char cache_salt[64];
    struct exchange exchange;
    struct engine_call call;
    struct engine_reply reply;
    struct buffer reply_body;
    bool unsent;      /* no connection was taken for it */
    unsigned resends; /* requests beyond the one that the machine counted */
    char reply_type[96];
    char reply_retry_after[64];
    enum exchange_outcome outcome;
    struct sample sample;
    bool has_sample;
    const struct completion_spec *given; /* instead of a sample: it came with the request. NULL: it did not */
    struct sample_error error;           /* message "" if there was none */

    struct verify_job verify;
    char rollout_id[ID_BYTES]; /* for who looks into what a verifier did */
    struct buffer frame;
    bool frame_too_large;
    struct verdict_set verdicts;
    bool has_verdicts;
    struct reward reward;
    struct buffer verdicts_json;
    struct buffer rewards_json;
    struct buffer heldout_json;
    struct buffer segments_json;

    int64_t revision; /* of its group */
    int64_t seed_revision;
    int64_t end_revision; /* when the sample was complete, as is the next */
    int64_t end_incarnation;
    int64_t mixed_revision; /* of an update that was open then, in mode straddle; -1: none */
    int64_t incarnation;    /* the run's at dispatch, as is the next */
    int64_t run_revision;
    int64_t dispatched_us;
    int64_t allowed_us; /* what was left of its time then */
    int64_t engine_us;
    int64_t verify_began_us;
    int64_t verify_us;

    struct store_op op;
    struct store_rollout row;
    char group_id[ID_BYTES];
    struct flight *backlog_next;
};

/* Batches that wait for the engines of one named pool: a pool that is full or down does not hold up another's. */
struct pool_queue {
    struct named_pool *pool;
    struct live_batch *ring;     /* the next to be asked */
    const struct run_state *run; /* whose weights the pool has now */
};

struct engines;
struct memory_trim;
struct settings;

/* What the room uses of the service; all of it outlives the batches. */
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
};

struct batches {
    struct batches_options uses;
    bool resumed; /* unfinished batches were read back: new ones may come */
    struct live_batch *by_id;
    struct live_batch *first;
    size_t count;
    struct run_state *runs;
    struct weight_update *updates; /* weight_update.c */

    /* dispatch.c */
    struct pool_queue **queues; /* one for each named pool of which there were batches */
    size_t queue_count;
    struct live_batch *given_ring; /* those whose completions came with the request */
    size_t turn;                   /* whose it is, if several want the next place: 0 the given, then the queues */
    struct loop_timer dispatch_timer;
    bool dispatching;

    /* admission: places in the later queues, bytes of the budget */
    size_t places;
    size_t places_max;
    int64_t bytes;
    int64_t flight_bytes; /* those of them that flights hold */
    int64_t bytes_max;
    size_t creations; /* batches that the store is about to create */

    /* live_store.c: rows that found the store's queue full */
    struct flight *backlog_first;
    struct flight **backlog_last;
    struct loop_timer backlog_timer;
    struct unread_batch *unread;
    struct store_health health;
    size_t without_scored; /* batches in a row that ended without a scored rollout */
};

/* live.c */
struct batches *batches_create(const struct batches_options *options);
void batches_destroy(struct batches *batches);
struct live_batch *batches_find(struct batches *batches, struct text id);
/* What the trainer declared, as far as anything here depends on it: a run with live batches, and any run as long as
 * unfinished batches are still being read back. */
void batches_declared(struct batches *batches, const struct store_declare_policy *declared);
/* Everything unfinished is back: runs without a batch are forgotten. */
void batches_resumed(struct batches *batches);
/* Takes the spec. The machine is initialised but not started: restore what is on record first. */
struct live_batch *live_create(struct batches *batches, struct batch_spec *spec, const char *id,
                               int64_t deadline_utc_us);
void live_start(struct live_batch *live);
/* One event, and everything that follows of it. */
void live_event(struct live_batch *live, const struct batch_event *event);
void live_destroy_if_done(struct live_batch *live);
/* Memory for a batch, or for a flight, out of the budget. */
bool batches_take_bytes(struct batches *batches, size_t bytes);
void batches_give_bytes(struct batches *batches, size_t bytes);
bool batches_take_flight_bytes(struct batches *batches, size_t bytes);
void batches_give_flight_bytes(struct batches *batches, size_t bytes);

/* flight.c */
struct flight *flight_create(struct live_batch *live, uint32_t rollout);
void flight_dispatch(struct flight *flight, struct engine *engine);
/* An attempt that failed before anything was sent. */
void flight_fail(struct flight *flight, const struct sample_error *error);
void flight_stop_sampling(struct flight *flight);
void flight_destroy(struct flight *flight);
/* To a worker: it holds a place already. */
void flight_submit(struct flight *flight, void (*run)(struct job *job, struct store_reader *reader),
                   void (*done)(struct job *job));
const struct group_spec *flight_group(const struct flight *flight);
uint64_t flight_seed(const struct flight *flight);
int64_t flight_sample_index(const struct flight *flight);

/* flight_verify.c */
void flight_verify(struct flight *flight);
void flight_stop_verifying(struct flight *flight);
/* A completion that came with the request: to the verifiers. */
void flight_take_given(struct flight *flight);

/* live_store.c */
void live_store_rollout(struct live_batch *live, uint32_t rollout);
void live_close_group(struct live_batch *live, uint32_t group);
void live_close_batch(struct live_batch *live);
/* For a job that reads the record to close the batch: what becomes of it while it cannot be read. */
struct read_again live_read_again(struct live_batch *live);
enum store_batch_state live_end_state(const struct live_batch *live); /* how it ends, or has ended */
void batches_pump_backlog(struct batches *batches);
/* An unfinished batch whose request this version cannot read: its deadline ends it. */
void batches_add_unread(struct batches *batches, const char *batch_id, int64_t deadline_utc_us);
void batches_forget_unread(struct batches *batches);
/* Loop thread: operations that the writer has finished. */
void store_ops_finished(struct batches *batches, struct store_op *list);

/* dispatch.c */
struct pool_queue *dispatch_queue(struct batches *batches, struct text pool); /* made if need be */
void dispatch_finish(struct batches *batches);
void dispatch_add(struct live_batch *live);
void dispatch_remove(struct live_batch *live);
/* True while another run has the pool. */
bool live_waits_for_pool(const struct live_batch *live);
void dispatch(struct batches *batches);

/* live_show.c. Members of an open object: state, counts, what it waits for. */
void live_write_running(struct json_write *json, const struct live_batch *live);
void live_write_pending(struct json_write *json, const struct live_batch *live);

/* batches/closing.c: totals, loss, summary of a batch whose groups are closed, from the record. */
struct close_job {
    struct job job;
    struct read_again again;
    struct live_batch *live;
    const struct batch_spec *spec;
    char batch_id[ID_BYTES];
    enum store_status status;
    double loss;
    struct objective_totals totals;
    size_t scored;
    struct buffer notes;
    struct buffer summary;
    struct store_errand errand;
};
void close_compute(struct job *job, struct store_reader *reader);

#endif
