#include "server/delivery/delivery_private.h"

#include "server/base/clock.h"
#include "server/batches/live.h"
#include "server/batches/observer.h"
#include "server/batches/runs.h"

#include <stdio.h>

/* --- groups of live batches ----------------------------------------------------------------------------- */

struct watch {
    struct live_observer observer; /* first */
    struct delivery *delivery;
};

static void group_closed(struct live_observer *observer, uint32_t group)
{
    (void)group;
    waiting_wake(((struct watch *)observer)->delivery, text_of(observer->live->run->name), 1);
}

static void held_up(struct live_observer *observer, enum live_trouble trouble)
{
    (void)observer;
    (void)trouble;
}

static void ended(struct live_observer *observer)
{
    free(observer);
}

static const struct live_observer_calls calls = {
    .group_closed = group_closed, .held_up = held_up, .ended = ended, .service_ends = ended};

void delivery_observe(struct delivery *delivery, struct live_batch *live)
{
    if (live->spec->deliver != (int)STORE_LEASE)
        return;
    struct watch *watch = xcalloc(1, sizeof(*watch));
    watch->delivery = delivery;
    live_observe(live, &watch->observer, &calls);
}

/* --- what comes back ------------------------------------------------------------------------------------- */

void delivery_given_back(struct delivery *delivery, struct text run, size_t groups)
{
    if (groups > 0)
        waiting_wake(delivery, run, groups);
}

/* A release that nobody asked for. */
struct give_back {
    struct store_errand errand; /* first */
    struct delivery *delivery;
    char *run;
    char lease_id[ID_BYTES];
};

static void given_back(struct store_op *op)
{
    struct give_back *give_back = op->context;
    if (store_desk_send_again(&give_back->errand))
        return;
    if (op->status == STORE_OK)
        delivery_given_back(give_back->delivery, text_of(give_back->run), (size_t)op->release_lease.released);
    free(give_back->run);
    free(give_back);
}

void delivery_release(struct delivery *delivery, struct text run, const char *lease_id)
{
    struct give_back *give_back = xcalloc(1, sizeof(*give_back));
    give_back->delivery = delivery;
    give_back->run = xstrndup(run.data, run.length_bytes);
    snprintf(give_back->lease_id, sizeof(give_back->lease_id), "%s", lease_id);
    give_back->errand = (struct store_errand){.loop = delivery->uses.loop, .store = delivery->uses.store};
    give_back->errand.op = (struct store_op){.kind = STORE_RELEASE_LEASE, .done = given_back, .context = give_back};
    give_back->errand.op.release_lease.of =
        (struct store_lease_choice){.run = text_of(give_back->run), .lease = text_of(give_back->lease_id)};
    store_desk_send(&give_back->errand);
}

/* --- life ------------------------------------------------------------------------------------------------- */

struct delivery *delivery_create(const struct delivery_options *options)
{
    struct delivery *delivery = xcalloc(1, sizeof(*delivery));
    delivery->uses = *options;
    delivery->next_us = NEVER_US;
    return delivery;
}

void delivery_begin(struct delivery *delivery)
{
    for (struct live_batch *live = delivery->uses.batches->first; live; live = live->next)
        delivery_observe(delivery, live);
    delivery_expires(delivery, clock_utc_us());
}

void delivery_destroy(struct delivery *delivery)
{
    if (!delivery)
        return;
    expiry_finish(delivery);
    free(delivery);
}
