#ifndef SERVER_DELIVERY_DELIVERY_PRIVATE_H
#define SERVER_DELIVERY_DELIVERY_PRIVATE_H

#include "server/delivery/delivery.h"
#include "server/record/store_desk.h"
#include "server/runtime/workers.h"

#include <uthash.h>

/* A run for whose groups requests wait, in the order in which they came. */
struct waiting_run {
    char *name;
    struct lease_request *first;
    struct lease_request *last;
    size_t count;
    struct lease_request *trying; /* tried again now, alone: each group wakes one request, not all */
    UT_hash_handle hh;
};

struct delivery {
    struct delivery_options uses;
    struct waiting_run *runs;
    size_t waiting;

    /* counts.c */
    struct job count_job;
    struct store_delivery_counts counts;
    bool counting; /* a worker has the job */
    bool counted;  /* it could read */

    /* expiry.c */
    struct loop_timer timer;
    int64_t next_us; /* UTC: when the earliest open lease ends, as far as is known; NEVER_US: none */
    struct store_errand expiry;
    bool expiring; /* the store has the errand */
};

/* waiting.c: so many groups have become ready; of all runs any number. */
void waiting_wake(struct delivery *delivery, struct text run_name, size_t groups);
void waiting_wake_all(struct delivery *delivery);
/* expiry.c */
void expiry_look(struct delivery *delivery);
void expiry_finish(struct delivery *delivery);

#endif
