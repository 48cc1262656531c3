/* verification: the verdicts on one completion, sampled here or brought by the request. Loop thread, except what its job
 * does on a worker. */
#ifndef SERVER_BATCHES_VERIFICATION_PRIVATE_H
#define SERVER_BATCHES_VERIFICATION_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/ids.h"
#include "server/runtime/workers.h"
#include "server/spec/batch.h"
#include "server/verify/pool.h"

struct live_batch;
struct placement;

struct verification {
    struct job job; /* first: prepare, read the verdicts */
    struct live_batch *live;
    uint32_t rollout;
    bool on_worker;
    bool asked;    /* the text workers have it */
    bool detached; /* a worker has it, but the batch no longer waits for it */

    const struct completion_spec *given; /* NULL: it was sampled here */
    struct verify_job verify;
    char rollout_id[ID_BYTES]; /* named in the incidents of verifiers */
    struct buffer frame;
    bool frame_too_large;
    struct buffer member;        /* of its group, where one judges all of it; gather.c */
    bool gathers;                /* it waits for its siblings */
    struct verdict_record *told; /* [verifier]; what came of that; NULL: nothing was asked */
    struct verdict_set verdicts;
    uint32_t *token_ends; /* of a sample whose steps are graded: by the engine's reply; NULL: not known */
    size_t token_count;
    struct placement *placement; /* then; NULL: nobody is asked */
    bool is_placing;
    bool has_verdicts;
    struct reward reward;
    struct buffer verdicts_json;
    struct buffer rewards_json;
    struct buffer heldout_json;

    int64_t taken_us; /* when it began */
    int64_t asked_us;
    int64_t verify_us;
};

struct verification *verification_create(struct live_batch *live, uint32_t rollout);
/* For a sample: the frame was built with the parsing. Leaves *frame empty. */
void verification_take_frame(struct verification *verification, struct buffer *frame, bool too_large);
/* The same of what a verifier of the whole group is told of it. */
void verification_take_member(struct verification *verification, struct buffer *member);
/* Likewise, where steps are graded: the ends of its tokens are copied, or the placement is taken, which asks for them. */
void verification_take_ends(struct verification *verification, const uint32_t *token_ends, size_t token_count,
                            struct placement *placement);
/* The frame of one completion of a rollout. ids: NULL: none. 0, or -1: it is too large. ret_member is filled where a
 * verifier judges the whole group. Worker. */
int verification_build_frame(const struct live_batch *live, uint32_t rollout, struct text completion,
                             const uint32_t *ids, size_t id_count, struct buffer *out, struct buffer *ret_member);
/* For a completion of the request: builds the frame. EVENT_SAMPLED, or EVENT_SAMPLE_FAILED if the request brought a
 * failure. */
void verification_prepare(struct verification *verification);
/* To the text workers: EVENT_VERIFIED or EVENT_VERIFY_FAILED. */
void verification_ask(struct verification *verification);
/* Takes it, at once or when its worker has ended. */
void verification_stop(struct verification *verification);
void verification_destroy(struct verification *verification); /* NULL is fine */

#endif
