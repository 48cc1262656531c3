/* POST /v1/objective and GET /v1/presets.
 *
 * The objective is computed on a worker. A call that is kept (stored form with an optimizer_step) leaves its reply
 * unanswered and an operation for the store in call->parsed: the loop part submits it and answers when it is on disk.
 * All others are answered by the worker. */
#ifndef SERVER_API_OBJECTIVE_H
#define SERVER_API_OBJECTIVE_H

#include "server/api/store_wait.h"
#include "server/base/buffer.h"
#include "server/http/call.h"
#include "server/spec/manifest_hold.h"

/* call->parsed of a call to be kept. The reply's body is in call->reply.body already, its status not. */
struct objective_kept {
    struct store_wait wait; /* first. Its operation is STORE_RECORD_OBJECTIVE, filled; its texts live in here */
    char *run;
    struct manifest_hold hold;
    struct buffer objective_json;
    struct buffer sums_json;
    struct store_objective_slice *slices; /* [slice_count] */
    char **engines;                       /* theirs; NULL: none */
    size_t slice_count;
};
void objective_kept_destroy(void *pointer);

#endif
