/* The loop part of POST /v1/objective: a call that is kept is answered when its sums are on disk. */
#include "server/api/objective.h"

#include "server/api/server.h"
#include "server/http/http.h"
#include "server/objective_call/tensors.h"

static void objective_recorded(struct store_op *op)
{
    struct objective_kept *kept = op->context;
    struct request *request = kept->wait.request;

    if (request && (op->status == STORE_OK || op->status == STORE_EXISTS)) {
        objective_answer(request_call(request));
        request_answer(request);
    } else {
        store_wait_refuse(&kept->wait, "");
    }
    objective_kept_destroy(kept);
}

/* The operation outlives the request if the client hangs up, so the call gives it away. */
void record_objective(void *owner, struct request *request)
{
    struct server *server = owner;
    struct objective_kept *kept = TAKE_PTR(request_call(request)->parsed);

    kept->wait.op.done = objective_recorded;
    if (!store_wait_submit(&kept->wait, server->store, request))
        objective_kept_destroy(kept);
}
