/* judgement: what the verifiers say of one completion, sampled here or brought by the request. Loop thread, except what
 * its job does on a worker. */
#ifndef SERVER_BATCHES_JUDGEMENT_H
#define SERVER_BATCHES_JUDGEMENT_H

#include "server/base/buffer.h"
#include "server/base/ids.h"
#include "server/runtime/workers.h"
#include "server/spec/batch.h"
#include "server/verify/pool.h"

struct live_batch;

struct judgement {
    struct job job; /* first: preparing, judging */
    struct live_batch *live;
    uint32_t rollout;
    bool on_worker;
    bool asked;    /* the text workers have it */
    bool detached; /* a worker has it, but the batch has gone on without it */

    const struct completion_spec *given; /* NULL: it was sampled here */
    struct verify_job verify;
    char rollout_id[ID_BYTES]; /* named in the incidents of verifiers */
    struct buffer frame;
    bool frame_too_large;
    struct verdict_set verdicts;
    bool has_verdicts;
    struct reward reward;
    struct buffer verdicts_json;
    struct buffer rewards_json;
    struct buffer heldout_json;

    int64_t taken_us; /* when it began */
    int64_t asked_us;
    int64_t verify_us;
};

struct judgement *judgement_create(struct live_batch *live, uint32_t rollout);
/* Of a sample: the frame was built where it was parsed. Leaves *frame empty. */
void judgement_take_frame(struct judgement *judgement, struct buffer *frame, bool too_large);
/* Of a completion that came with the request: builds the frame. EVENT_SAMPLED, or EVENT_SAMPLE_FAILED if the request
 * said so. */
void judgement_prepare(struct judgement *judgement);
/* To the text workers: EVENT_JUDGED or EVENT_VERIFY_FAILED. */
void judgement_ask(struct judgement *judgement);
/* Takes it, at once or when its worker has ended. */
void judgement_stop(struct judgement *judgement);
void judgement_destroy(struct judgement *judgement); /* NULL is fine */

#endif
