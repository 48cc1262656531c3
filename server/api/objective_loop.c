/* The loop part of POST /v1/objective: a call that is kept is answered when its sums are on disk. */
#include "server/api/objective.h"

#include "server/api/server.h"
#include "server/http/http.h"
#include "server/objective_call/tensors.h"

struct keeping {
    struct objective_kept *kept;
    struct request *request; /* NULL: the client hung up */
};

static bool hung_up(struct request *request, void *arg)
{
    (void)request;
    ((struct keeping *)arg)->request = NULL;
    return true;
}

static void objective_recorded(struct store_op *op);

/* The operation outlives the request if the client hangs up, so the call gives it away. */
void record_objective(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct keeping *keeping = xcalloc(1, sizeof *keeping);

    keeping->kept = TAKE_PTR(call->parsed);
    keeping->request = request;
    keeping->kept->op.done = objective_recorded;
    keeping->kept->op.context = keeping;
    if (!store_submit(server->store, &keeping->kept->op)) {
        objective_kept_destroy(keeping->kept);
        free(keeping);
        request_refuse(request, ERR_QUEUE_FULL, NULL, "the store's queue is full; try again");
        return;
    }
    request_on_hangup(request, hung_up, keeping);
}

static void answer(struct request *request, enum store_status status)
{
    switch (status) {
    case STORE_OK:
    case STORE_EXISTS:
        objective_answer(request_call(request));
        request_answer(request);
        break;
    case STORE_DISK_FULL:
        request_refuse(request, ERR_DISK_FULL, NULL, "the disk is full");
        break;
    case STORE_NOT_FOUND:
    case STORE_IDEMPOTENCY_CONFLICT:
    case STORE_REVISION_CONFLICT:
    case STORE_STATE_CONFLICT:
    case STORE_REFUSED:
    case STORE_INVALID_CURSOR:
    case STORE_UNAVAILABLE:
        request_refuse(request, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be written");
        break;
    }
}

static void objective_recorded(struct store_op *op)
{
    struct keeping *keeping = op->context;

    if (keeping->request)
        answer(keeping->request, op->status);
    objective_kept_destroy(keeping->kept);
    free(keeping);
}
