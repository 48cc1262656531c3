/* POST /v1/verify and GET /v1/verifiers.
 *
 * Verify has three steps: verify_parse() on a worker reads and checks everything and builds the frames; verify_run() on
 * the loop sends them through the pool, a bounded number at once, under one deadline; a worker then renders. Nothing is
 * stored. */
#ifndef SERVER_API_VERIFY_H
#define SERVER_API_VERIFY_H

#include "server/http/call.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/verify/pool.h"

struct verify_context {
    struct loop *loop;
    struct workers *workers;
    struct verify_pool *pool;
    int64_t item_timeout_us; /* of one item, from the moment a worker has it */
    int64_t
        deadline_us; /* of the whole request, from verify_run() on; 0: 30 s and the items' timeouts over the workers */
    size_t concurrency; /* items of one request in the pool at once; 0: 64 */
};

/* GET /v1/verifiers. Any thread. */
void list_verifiers(struct call *call);

/* Worker thread. Either refuses (call->reply.status != 0) or leaves call->parsed for verify_run(). */
void verify_parse(struct call *call);

/* What the parsed request takes until it is answered, verdicts included. */
size_t verify_bytes(const struct call *call);

/* Loop thread. `answered` is called once on the loop thread when call->reply is filled, never from inside verify_run();
 * the call and the context must live until then or until verify_cancel(). */
void verify_run(struct verify_context *context, struct call *call, void (*answered)(void *arg), void *arg);

/* Loop thread: the client is gone. `answered` is not called any more. True: the call may be finished now. False: a
 * worker is rendering it; `answered` will be called after all, and only then the call may be finished. */
bool verify_cancel(struct call *call);

#endif
