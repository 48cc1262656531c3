#include "server/batches/flight.h"

#include "server/base/cleanup.h"
#include "server/batches/attempt.h"
#include "server/batches/judgement.h"
#include "server/batches/live.h"
#include "server/batches/row.h"

void flight_take_given(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    flight->judgement = judgement_create(live, rollout);
    judgement_prepare(flight->judgement);
}

void flight_verify(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    if (!flight->judgement) {
        flight->judgement = judgement_create(live, rollout);
        judgement_take_frame(flight->judgement, &flight->attempt->frame, flight->attempt->frame_too_large);
    }
    judgement_ask(flight->judgement);
}

void flight_stop_sampling(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    if (flight->attempt)
        attempt_stop(TAKE_PTR(flight->attempt), &flight->reserved);
    if (flight->judgement)
        judgement_stop(TAKE_PTR(flight->judgement));
    reservation_release(live->batches, &flight->reserved);
}

void flight_stop_verifying(struct live_batch *live, uint32_t rollout)
{
    judgement_stop(TAKE_PTR(live->flights[rollout].judgement));
}

static void stored(struct live_batch *live, uint32_t rollout)
{
    flight_end(live, rollout);
    live_post(live, &(struct batch_event){.kind = EVENT_STORED, .index = rollout});
}

void flight_store(struct live_batch *live, uint32_t rollout)
{
    live->flights[rollout].row = row_create(live, rollout, stored);
    row_store(live->flights[rollout].row);
}

void flight_end(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    row_destroy(TAKE_PTR(flight->row)); /* first: its texts are the others' */
    judgement_destroy(TAKE_PTR(flight->judgement));
    attempt_destroy(TAKE_PTR(flight->attempt));
    reservation_release(live->batches, &flight->reserved);
}
