/* POST /v1/verify and GET /v1/verifiers.
 *
 * Verify has three steps: verify_parse() on a worker reads and checks everything and builds the frames;
 * verify_on_loop() sends them through the pool, a bounded number at once, under one deadline; a worker then renders.
 * Nothing is stored. */
#ifndef SERVER_API_VERIFY_H
#define SERVER_API_VERIFY_H

#include "server/http/call.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/verify/pool.h"

struct request;

/* What the requests share. */
struct verify_context {
    struct loop *loop;
    struct workers *workers;
    struct verify_pool *pool;
    int64_t item_timeout_us; /* of one item, from the moment a worker has it */
};

/* GET /v1/verifiers. Any thread. */
void list_verifiers(struct call *call);

/* Worker thread. Either refuses (call->reply.status != 0) or leaves call->parsed for verify_on_loop(). */
void verify_parse(struct call *call);

/* Loop thread, verify_run.c. */
void verify_on_loop(void *owner, struct request *client);

#endif
