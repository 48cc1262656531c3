/* observer: gets the events of a live batch. A batch with observers stays in memory. Loop thread only. */
#ifndef SERVER_BATCHES_OBSERVER_H
#define SERVER_BATCHES_OBSERVER_H

#include "server/store/store.h"

#include <stdint.h>

struct live_batch;
struct live_observer;

/* Reasons why the record of a batch stands still. The batch continues. */
enum live_trouble { LIVE_DISK_FULL, LIVE_NOT_WRITTEN, LIVE_NOT_READ };

/* One table for each kind of observer; every call is there. */
struct live_observer_calls {
    /* The group is on record. */
    void (*group_closed)(struct live_observer *observer, uint32_t group);
    /* Each time that the store fails. The observer may leave. */
    void (*held_up)(struct live_observer *observer, enum live_trouble trouble);
    /* The last call, after the observer was taken off its batch: the batch is terminal and on record. */
    void (*ended)(struct live_observer *observer);
    /* The last call, too: the service ends before the batch does. */
    void (*service_ends)(struct live_observer *observer);
};

/* Lives inside its owner's struct. */
struct live_observer {
    const struct live_observer_calls *calls;
    struct live_batch *live;
    struct live_observer *previous;
    struct live_observer *next;
};

void live_observe(struct live_batch *live, struct live_observer *observer, const struct live_observer_calls *calls);
/* The batch may go with its last observer, soon. */
void live_unobserve(struct live_observer *observer);

void live_tell_group_closed(const struct live_batch *live, uint32_t group);
void live_tell_held_up(const struct live_batch *live, enum live_trouble trouble);
/* The same, from the status of an operation that failed for now. */
void live_tell_not_stored(const struct live_batch *live, enum store_status status);
void live_tell_ended(struct live_batch *live);
void live_tell_service_ends(struct live_batch *live);

#endif
