/* unstored: the answer to a score that leaves no trace (batches/unstored.h): rendered as the record would be. */
#ifndef SERVER_API_UNSTORED_H
#define SERVER_API_UNSTORED_H

#include "server/batches/unstored.h"

struct request;

/* Worker: an unstored_renderer. */
void unstored_write_reply(const struct store_batch *batch, const struct store_group *groups, int arrays,
                          struct buffer *reply);
/* Loop: the batch has ended. */
void unstored_answer(struct live_batch *live, struct request *request);

#endif
