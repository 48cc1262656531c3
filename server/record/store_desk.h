/* store_desk: operations that must come on record, even if the store's queue is full, or its disk full, for long.
 * Loop thread. A request that waits for one operation, and may hang up, is in api/store_wait.h. */
#ifndef SERVER_RECORD_STORE_DESK_H
#define SERVER_RECORD_STORE_DESK_H

#include "server/runtime/loop.h"
#include "server/store/store.h"

#define STORE_RETRY_US 250000 /* between two attempts */

/* Lives beside the data of its operation, until `done` has come and store_desk_send_again() said false. Its
 * user sets the first three members; the timer begins as zeroes. */
struct store_errand {
    struct store_op op;
    struct loop *loop;
    struct store *store;
    struct loop_timer timer;
};

/* Now, or as soon as the queue has room. */
void store_desk_send(struct store_errand *errand);
/* From the operation's `done`. True: the store could not write for now, and the same operation is sent again. */
bool store_desk_send_again(struct store_errand *errand);
/* It is not sent again. Not while the store has the operation. */
void store_desk_drop(struct store_errand *errand);

#endif
