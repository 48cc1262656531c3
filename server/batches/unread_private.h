/* unread: unfinished batches whose requests this version cannot read. Their deadlines end them. Loop thread only. */
#ifndef SERVER_BATCHES_UNREAD_PRIVATE_H
#define SERVER_BATCHES_UNREAD_PRIVATE_H

#include <stdint.h>

struct batches;

void unread_add(struct batches *batches, const char *batch_id, int64_t deadline_utc_us);
void unread_finish(struct batches *batches);

#endif
