/* reservation: a place in the queue of the verifiers that it needs (text workers, or slots for programs), a place in the store's queue, and bytes of the budget. A rollout takes
 * them before it is sent, so that it never stands still later. Loop thread only. */
#ifndef SERVER_BATCHES_RESERVATION_PRIVATE_H
#define SERVER_BATCHES_RESERVATION_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batches;
struct live_batch;

struct reservation {
    bool place;                     /* in the later queues; false: nothing is held */
    bool lent;                      /* others may have it now */
    struct live_batch *programs_of; /* whose place for programs it is; NULL: one of the text workers */
    bool row;                       /* its operation's place in the store's queue: the row takes it over */
    size_t bytes;
};

/* NO_SHARE: of the places for programs the batch has its share; another batch may find one. */
enum reserved { RESERVED, NO_PLACE, NO_SHARE, NO_BYTES };

/* bytes 0: they were counted before. */
enum reserved reservation_take(struct live_batch *live, uint32_t rollout, size_t bytes,
                               struct reservation *ret_reservation);
/* Its place is free for others while the rollout waits for something else than a queue; then it has one again, also if
 * that is one too many. No effect on one that holds nothing. */
void reservation_lend(struct batches *batches, struct reservation *reservation);
void reservation_take_back(struct batches *batches, struct reservation *reservation);
/* No effect on one that holds nothing. */
void reservation_release(struct batches *batches, struct reservation *reservation);

#endif
