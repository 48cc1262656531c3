#include "server/batches/reservation_private.h"

#include "server/batches/batches.h"
#include "server/batches/budget.h"
#include "server/batches/live.h"
#include "server/verify/spec.h"

/* It may be with its verifiers for long: they run programs, or ask servers. */
static bool is_slow(struct live_batch *live, uint32_t rollout)
{
    const struct verifier_list *list = live_group(live, rollout)->verifiers;

    return verifier_list_runs_programs(list) || verifier_list_asks(list);
}

/* A batch may hold as many places for programs as are free: the first one at most half of them, so that others find some
 * however slow its programs are. */
static bool has_share(const struct batches *batches, const struct live_batch *live)
{
    return live->program_places + batches->program_places < batches->program_places_max;
}

enum reserved reservation_take(struct live_batch *live, uint32_t rollout, size_t bytes,
                               struct reservation *ret_reservation)
{
    struct batches *batches = live->batches;
    bool program = is_slow(live, rollout);

    if (program && !has_share(batches, live))
        return NO_SHARE;
    if (!program && batches->places >= batches->places_max)
        return NO_PLACE;
    if (bytes > 0 && !batches_take_flight_bytes(batches, bytes))
        return NO_BYTES;
    if (!store_reserve(batches->uses.store, 1)) {
        batches_give_flight_bytes(batches, bytes);
        return NO_PLACE;
    }
    *(program ? &batches->program_places : &batches->places) += 1;
    live->program_places += program;
    *ret_reservation =
        (struct reservation){.place = true, .programs_of = program ? live : NULL, .row = true, .bytes = bytes};
    return RESERVED;
}

static void change_places(struct batches *batches, const struct reservation *reservation, bool more)
{
    struct live_batch *live = reservation->programs_of;
    size_t change = more ? 1 : (size_t)-1;

    *(live ? &batches->program_places : &batches->places) += change;
    if (live)
        live->program_places += change;
}

void reservation_lend(struct batches *batches, struct reservation *reservation)
{
    if (!reservation->place || reservation->lent)
        return;
    reservation->lent = true;
    change_places(batches, reservation, false);
    batches_wake(batches);
}

void reservation_take_back(struct batches *batches, struct reservation *reservation)
{
    if (!reservation->lent)
        return;
    reservation->lent = false;
    change_places(batches, reservation, true);
}

void reservation_release(struct batches *batches, struct reservation *reservation)
{
    if (!reservation->place)
        return;
    if (!reservation->lent)
        change_places(batches, reservation, false);
    batches_give_flight_bytes(batches, reservation->bytes);
    if (reservation->row)
        store_release(batches->uses.store, 1);
    *reservation = (struct reservation){0};
    batches_wake(batches);
}
