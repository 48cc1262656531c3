/* store_health: whether the store can write, from what its operations say. Loop thread.
 *
 * While it cannot write, an attempt is made periodically, so that the service becomes ready again without a request. */
#ifndef SERVER_RECORD_STORE_HEALTH_H
#define SERVER_RECORD_STORE_HEALTH_H

#include "server/runtime/loop.h"
#include "server/store/store.h"

struct store_health {
    struct loop *loop;
    struct store *store;
    bool failing;             /* the last write failed */
    enum store_status status; /* of the last write */
    struct loop_timer timer;
    struct store_op op; /* tries whether it can write */
    bool trying;        /* the store has it */
};

/* loop and store outlive *ret_health. */
void store_health_init(struct loop *loop, struct store *store, struct store_health *ret_health);
void store_health_finish(struct store_health *health);
/* Notes the outcome of a finished operation. */
void store_health_note(struct store_health *health, const struct store_op *op);

/* A failure that ends by itself or by the operator's help: the write is kept and tried again. Any thread. */
bool store_failed_for_now(enum store_status status);

#endif
