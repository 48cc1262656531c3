/* store_wait: a request that waits until its operation is on record. Loop thread.
 *
 * The operation continues if the client hangs up; then nobody is answered. */
#ifndef SERVER_API_STORE_WAIT_H
#define SERVER_API_STORE_WAIT_H

#include "server/store/store.h"

struct request;

/* The first member of what the caller owns until `done`. */
struct store_wait {
    struct store_op op;      /* filled by the caller, `done` too; its context is this struct */
    struct request *request; /* NULL: the client hung up */
};

/* Sends the operation for `request`. False: the queue is full, the request was refused and wait->request is NULL; the
 * caller destroys. It may be sent again from its `done`. */
bool store_wait_submit(struct store_wait *wait, struct store *store, struct request *request);
/* Refuses the request, if it still waits, by an operation's status other than OK and EXISTS. `consequence` ends the
 * sentence of a write that failed: "" or ": this request created nothing". */
void store_wait_refuse(const struct store_wait *wait, const char *consequence);

#endif
