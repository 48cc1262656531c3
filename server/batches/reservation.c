#include "server/batches/reservation_private.h"

#include "server/batches/batches.h"
#include "server/batches/budget.h"
#include "server/batches/live.h"

enum reserved reservation_take(struct batches *batches, size_t bytes, struct reservation *ret_reservation)
{
    if (batches->places >= batches->places_max)
        return NO_PLACE;
    if (bytes > 0 && !batches_take_flight_bytes(batches, bytes))
        return NO_BYTES;
    if (!store_reserve(batches->uses.store, 1)) {
        batches_give_flight_bytes(batches, bytes);
        return NO_PLACE;
    }
    batches->places++;
    *ret_reservation = (struct reservation){.place = true, .row = true, .bytes = bytes};
    return RESERVED;
}

void reservation_release(struct batches *batches, struct reservation *reservation)
{
    if (!reservation->place)
        return;
    batches->places--;
    batches_give_flight_bytes(batches, reservation->bytes);
    if (reservation->row)
        store_release(batches->uses.store, 1);
    *reservation = (struct reservation){0};
    batches_wake(batches);
}
