/* attempt: one request for one sample at one engine, from its dispatch to a sample or an error. Its end is
 * posted: EVENT_SAMPLED or EVENT_SAMPLE_FAILED. Loop thread only. */
#ifndef SERVER_BATCHES_ATTEMPT_PRIVATE_H
#define SERVER_BATCHES_ATTEMPT_PRIVATE_H

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/base/hash.h"
#include "server/base/ids.h"
#include "server/batches/reservation_private.h"
#include "server/runtime/workers.h"

struct live_batch;

struct attempt {
    struct job job; /* first: parsing */
    struct live_batch *live;
    uint32_t rollout;
    bool on_worker;
    bool detached;               /* a worker has it, but the batch no longer waits for it */
    struct reservation reserved; /* by one that is detached */

    struct engine *engine; /* held; NULL: nothing could be sent */
    bool at_engine;        /* one of its places is taken */
    struct transfer *transfer;
    struct sample_request request;
    char request_id[ID_BYTES + 64];
    char *model;                         /* the engine's, as it was when this was sent: a probe may find another */
    char engine_model[PROBE_NAME_BYTES]; /* likewise, as these: by the probe; "": not known */
    char engine_version[64];
    char tokenizer_sha256[SHA256_HEX_BYTES];
    char cache_salt[64];
    struct exchange exchange;
    struct engine_call call;
    struct engine_reply reply;
    struct buffer reply_body;
    char reply_type[96];
    char reply_retry_after[64];
    bool unsent;      /* no connection was taken for it */
    unsigned resends; /* requests beyond the one that the machine counted */
    enum exchange_outcome outcome;
    struct sample sample;
    struct buffer packed_sample; /* its text as the record keeps it; empty: plain */
    bool has_sample;
    struct sample_error error; /* message "" if there was none */
    struct buffer frame;       /* the sample's, for the verifiers */
    bool frame_too_large;
    struct buffer member; /* likewise, where one judges the whole group */

    uint64_t seed;
    int64_t revision;        /* of its group */
    int64_t incarnation;     /* the run's at dispatch */
    int64_t run_revision;    /* likewise */
    int64_t end_revision;    /* the run's at the end of sampling */
    int64_t end_incarnation; /* likewise */
    int64_t mixed_revision;  /* of an update that was open then, in mode straddle; -1: none */
    int64_t dispatched_us;
    int64_t allowed_us; /* what was left of its time then */
    int64_t engine_us;
};

/* The rollout's attempt from now on; its flight has a reservation, and its machine was told. */
void attempt_send(struct live_batch *live, uint32_t rollout, struct engine *engine);
/* One that failed before anything was sent. */
void attempt_fail(struct live_batch *live, uint32_t rollout, const struct sample_error *error);
/* Takes it. If a worker has it, it keeps the reservation until the worker has ended. */
void attempt_stop(struct attempt *attempt, struct reservation *reserved);
void attempt_destroy(struct attempt *attempt); /* NULL is fine */

#endif
