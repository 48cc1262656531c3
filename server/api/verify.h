/* POST /v1/verify and GET /v1/verifiers.
 *
 * Verify has three steps: verify_parse() on a worker reads and checks everything and builds the frames, or refuses
 * (call->reply.status != 0); verify_on_loop() sends them through the pool, a bounded number at once, under one deadline; a worker then renders.
 * Nothing is stored. */
#ifndef SERVER_API_VERIFY_H
#define SERVER_API_VERIFY_H

#include "server/http/call.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/verify/pool.h"

/* Shared by the requests. */
struct verify_context {
    struct loop *loop;
    struct workers *workers;
    struct verify_pool *pool;
    int64_t item_timeout_us; /* of one item, from the moment a worker has it */
};

#endif
