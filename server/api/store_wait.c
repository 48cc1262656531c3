#include "server/api/store_wait.h"

#include "server/http/http.h"

static bool hung_up(struct request *request, void *arg)
{
    (void)request;
    ((struct store_wait *)arg)->request = NULL;
    return true;
}

bool store_wait_submit(struct store_wait *wait, struct store *store, struct request *request)
{
    wait->op.context = wait;
    wait->request = request;
    if (store_submit(store, &wait->op)) {
        request_on_hangup(request, hung_up, wait);
        return true;
    }
    wait->request = NULL;
    request_on_hangup(request, NULL, NULL);
    request_refuse(request, ERR_QUEUE_FULL, NULL, "the store's queue is full; try again");
    return false;
}

void store_wait_refuse(const struct store_wait *wait, const char *consequence)
{
    if (!wait->request)
        return;
    if (wait->op.status == STORE_IDEMPOTENCY_CONFLICT)
        request_refuse(wait->request, ERR_IDEMPOTENCY_CONFLICT, "Idempotency-Key",
                       "this key was used with another body");
    else if (wait->op.status == STORE_RUN_IS_DELETED)
        request_refuse(wait->request, ERR_STATE_CONFLICT, "run",
                       "the run is being deleted; its name is free when GET /v1/runs/{run} is 404");
    else if (wait->op.status == STORE_DISK_FULL)
        request_refuse(wait->request, ERR_DISK_FULL, NULL, "the disk is full%s", consequence);
    else
        request_refuse(wait->request, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be written%s", consequence);
}
