/* flight: one rollout on its way, from its dispatch (or from the moment it must be stored without one) to the row on
 * disk. It owns whatever the engine and the verifiers said, so memory is proportional to what is in flight. Loop thread
 * only. */
#ifndef SERVER_BATCHES_FLIGHT_H
#define SERVER_BATCHES_FLIGHT_H

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/batches/live.h"
#include "server/runtime/workers.h"
#include "server/verify/pool.h"

struct flight {
    struct job job; /* first: parsing, judging */
    struct live_batch *live;
    uint32_t rollout;
    bool on_worker;
    bool detached;   /* a worker has it, but the batch has gone on without it */
    bool dispatched; /* holds a place, a reserved row and bytes */
    size_t reserved_bytes;

    struct engine *engine;
    bool at_engine; /* one of its places is taken */
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

#endif
