/* delivery: when the record is asked for leases. Loop thread only.
 *
 * The record decides which groups a lease gets (store/delivery.h). A request that may wait is tried at once, and again
 * when as many groups of its run have become ready as it lacked: groups of live batches are observed, and those that a
 * lease gives back are said here. Leases expire by a timer. */
#ifndef SERVER_DELIVERY_DELIVERY_H
#define SERVER_DELIVERY_DELIVERY_H

#include "server/runtime/loop.h"
#include "server/store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batches;
struct live_batch;
struct waiting_run;
struct workers;

struct delivery_options {
    struct loop *loop;
    struct store *store;
    struct workers *workers;
    struct batches *batches;
};

struct delivery *delivery_create(const struct delivery_options *options);
void delivery_destroy(struct delivery *delivery); /* NULL is fine. Nobody waits any more */
/* Once the unfinished batches are back: observes them, and ends what has expired while the service was down. */
void delivery_begin(struct delivery *delivery);

/* A batch that was just made: its groups are for leases, or it is left alone. */
void delivery_observe(struct delivery *delivery, struct live_batch *live);
/* Groups of a run became ready without a batch that closed them: they were released. */
void delivery_given_back(struct delivery *delivery, struct text run, size_t groups);
/* A lease is open until then. */
void delivery_expires(struct delivery *delivery, int64_t expires_at_us);
/* Gives back what a lease holds: nobody was told of it. */
void delivery_release(struct delivery *delivery, struct text run, const char *lease_id);

/* A request for a lease. Lives inside its owner's struct from delivery_ask() until `done`. */
struct lease_request {
    struct store_op op;                          /* STORE_TAKE_LEASE, filled in except `partly`, done and context */
    int64_t until_us;                            /* of the loop's clock; the past: what is ready now */
    bool exact;                                  /* all groups or none, also at the end of the wait */
    void (*done)(struct lease_request *request); /* op.status OK and not taken: nothing was ready */

    /* waiting.c */
    struct delivery *delivery;
    struct waiting_run *run; /* NULL: it does not wait */
    struct lease_request *previous;
    struct lease_request *next;
    struct loop_timer timer;
    int64_t short_by; /* groups that it lacks; nothing to be tried while above 0 */
    bool busy;        /* the store has it */
    bool left;        /* its client has gone; `done` is still to come */
};

/* False: the store's queue is full, and there is nothing to wait for. */
bool delivery_ask(struct delivery *delivery, struct lease_request *request);
/* Its client has gone. True: it is the caller's again. False: the store has it, and `done` comes. */
bool delivery_leave(struct lease_request *request);
/* METRIC_GROUPS from the record, soon, and METRIC_LEASE_REQUESTS. */
void delivery_set_gauges(struct delivery *delivery);
/* Requests that wait now. */
size_t delivery_waiting(const struct delivery *delivery, struct text run); /* TEXT_NONE: of all runs */

#endif
