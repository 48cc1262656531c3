#include "server/batches/flight_private.h"

#include "server/base/cleanup.h"
#include "server/batches/attempt_private.h"
#include "server/batches/gather_private.h"
#include "server/batches/live.h"
#include "server/batches/placement_private.h"
#include "server/batches/row_private.h"
#include "server/batches/verification_private.h"

void flight_take_given(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    flight->verification = verification_create(live, rollout);
    verification_prepare(flight->verification);
}

/* Where the sample's tokens end, for the steps of its verdicts. */
static void take_ends(struct live_batch *live, struct flight *flight)
{
    const struct attempt *attempt = flight->attempt;
    const struct sample *sample = &attempt->sample;
    struct placement *placement = NULL;

    if (!attempt->request.wants_token_ends)
        return;
    if (!sample->token_ends && attempt->engine)
        placement = placement_create(&(struct placement_sample){.transport = live->batches->uses.transport,
                                                                .engine = attempt->engine,
                                                                .model = attempt->request.model,
                                                                .text = sample->text,
                                                                .ids = sample->ids,
                                                                .id_count = sample->id_count});
    verification_take_ends(flight->verification, sample->token_ends, sample->id_count, placement);
}

void flight_verify(struct live_batch *live, uint32_t rollout)
{
    struct flight *flight = &live->flights[rollout];
    if (!flight->verification) {
        flight->verification = verification_create(live, rollout);
        verification_take_frame(flight->verification, &flight->attempt->frame, flight->attempt->frame_too_large);
        verification_take_member(flight->verification, &flight->attempt->member);
        take_ends(live, flight);
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
