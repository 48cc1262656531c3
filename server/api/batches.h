/* /v1/batches and /v1/score: creating, waiting, cancelling. Listing and paging are in api/records.h. */
#ifndef SERVER_API_BATCHES_H
#define SERVER_API_BATCHES_H

#include "server/api/server.h"
#include "server/http/http.h"

void parse_batch(struct call *call);                     /* worker: POST */
void parse_score(struct call *call);                     /* worker: POST /v1/score */
void create_batch(void *owner, struct request *request); /* loop: POST of either */
void get_batch(void *owner, struct request *request);    /* loop */
void cancel_batch(void *owner, struct request *request); /* loop */

/* Worker: the batch that call->subject names, streamed from the record; 404 if there is none. Honours ?arrays= and the
 * request's `return`. */
void answer_batch(struct call *call);

#endif
