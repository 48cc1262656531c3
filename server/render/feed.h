/* feed: a batch as NDJSON while it runs. One line {"group":{…}} for each group when it is closed, in order of closing,
 * and a last line
 * {"batch":{…}}; a reader that saw no last line was cut off.
 *
 * The loop thread says which groups are closed; a worker renders them from the record only when the client has taken
 * what came before, so a slow reader costs the memory of one part. */
#ifndef SERVER_RENDER_FEED_H
#define SERVER_RENDER_FEED_H

#include "server/http/call.h"

#include <stddef.h>
#include <stdint.h>

struct feed;

/* The stream belongs to the reply, and with it the feed. groups: how many the batch has. */
struct feed *feed_create(const char *batch_id, size_t groups, int arrays);
struct stream *feed_stream(struct feed *feed);

/* Loop thread. After each of them the request must be woken (request_stream_wake). */
void feed_group_closed(struct feed *feed, uint32_t group);
void feed_ended(struct feed *feed); /* the batch is terminal and on disk: the last line may come */
void feed_cut(struct feed *feed);   /* the service ends first: no last line */

/* Worker: a batch of the record, whole: ended, or the groups that are closed so far. Fills the reply, or refuses. */
void feed_answer_ended(struct call *call);

#endif
