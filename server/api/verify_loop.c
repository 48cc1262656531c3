/* Joins POST /v1/verify (api/verify.c, which knows no HTTP) to its request. */
#include "server/api/verify_loop.h"

static void answered(void *arg)
{
    request_answer(arg);
}

/* True: the call may end now. False: `answered` is still to come. */
static bool hung_up(struct request *request, void *arg)
{
    (void)arg;
    return verify_cancel(request_call(request));
}

void verify_on_loop(void *owner, struct request *request)
{
    struct server *server = owner;
    if (!request_hold_parsed(request, verify_bytes(request_call(request))))
        return;
    request_on_hangup(request, hung_up, NULL);
    verify_run(&server->verify, request_call(request), answered, request);
}
