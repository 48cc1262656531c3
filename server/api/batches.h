/* /v1/batches and /v1/score: creating, waiting, cancelling. Listing and paging are in api/records.h. */
#ifndef SERVER_API_BATCHES_H
#define SERVER_API_BATCHES_H

#include "server/api/server.h"
#include "server/http/http.h"

/* Worker: the batch that call->subject names, streamed from the record; 404 if there is none. Honours ?arrays= and the
 * request's `return`. */
void answer_batch(struct call *call);

/* Worker: call->body is a score that a route made of its own request, and call->answer_batch makes that route's reply. The
 * loop part is create_batch(). */
void batches_read_score(struct call *call);

/* Worker, api/batch_tensors.c: the same as a file of tensors; JSON while it runs, and for a refusal. */
void batch_tensors_answer(struct call *call, struct text batch_id);

#endif
