/* reservation: a place in the verifiers' queue, a place in the store's queue, and bytes of the budget. A rollout takes
 * them before it is sent, so that it never stands still later. Loop thread only. */
#ifndef SERVER_BATCHES_RESERVATION_PRIVATE_H
#define SERVER_BATCHES_RESERVATION_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

struct batches;

struct reservation {
    bool place; /* in the later queues; false: nothing is held */
    bool row;   /* its operation's place in the store's queue: the row takes it over */
    size_t bytes;
};

enum reserved { RESERVED, NO_PLACE, NO_BYTES };

/* bytes 0: they were counted before. */
enum reserved reservation_take(struct batches *batches, size_t bytes, struct reservation *ret_reservation);
/* No effect on one that holds nothing. */
void reservation_release(struct batches *batches, struct reservation *reservation);

#endif
