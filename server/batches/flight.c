#include "server/batches/flight_private.h"

#include "server/base/cleanup.h"
#include "server/batches/attempt_private.h"
#include "server/batches/gather_private.h"
#include "server/batches/live.h"
#include "server/batches/row_private.h"
#include "server/batches/verification_private.h"

void flight_take_given(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    flight->verification = verification_create(live, rollout);
    verification_prepare(flight->verification);
}

void flight_verify(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    if (!flight->verification) {
        flight->verification = verification_create(live, rollout);
        verification_take_frame(flight->verification, &flight->attempt->frame, flight->attempt->frame_too_large);
        verification_take_member(flight->verification, &flight->attempt->member);
    }
    if (verifier_list_has_group(live_group(live, rollout)->verifiers))
        gather_join(live, rollout);
    else
        verification_ask(flight->verification);
}

void flight_stop_sampling(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    if (flight->attempt)
        attempt_stop(TAKE_PTR(flight->attempt), &flight->reserved);
    if (flight->verification)
        verification_stop(TAKE_PTR(flight->verification));
    reservation_release(live->batches, &flight->reserved);
}

void flight_stop_verifying(struct live_batch *live, uint32_t rollout)
{
    if (live->flights[rollout].verification->gathers)
        gather_leave(live, rollout);
    verification_stop(TAKE_PTR(live->flights[rollout].verification));
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
    verification_destroy(TAKE_PTR(flight->verification));
    attempt_destroy(TAKE_PTR(flight->attempt));
    reservation_release(live->batches, &flight->reserved);
}
