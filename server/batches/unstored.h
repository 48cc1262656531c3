/* unstored: a score that leaves no trace ("store": false). Its rows live in memory until they are rendered, and go with
 * the live batch. Its one waiter is the POST itself: its id is known to no other client. Loop thread unless
 * marked worker. */
#ifndef SERVER_BATCHES_UNSTORED_H
#define SERVER_BATCHES_UNSTORED_H

#include "server/batches/live.h"

struct close_job;
struct verification;

#define UNSTORED_REPLY_MAX_BYTES ((size_t)1 << 30)

/* Worker: writes the whole reply to a score that has been computed. groups: [batch->group_count], with their rollouts.
 * arrays: enum json_arrays. */
typedef void unstored_renderer(const struct store_batch *batch, const struct store_group *groups, int arrays,
                               struct buffer *reply);
/* arrays: handed to `render`, as the request wants them. */
struct unstored *unstored_create(const struct batch_spec *spec, unstored_renderer *render, int arrays);
void unstored_destroy(struct unstored *unstored, size_t rollout_count); /* NULL is fine */
/* Approximate memory of its rows. */
size_t unstored_bytes(const struct batch_spec *spec);

/* Copies the row and takes what it points to; the texts of the request stay with the spec. verification: whose texts the
 * row has; NULL: none. */
void unstored_keep_rollout(struct live_batch *live, uint32_t index, const struct store_rollout *values,
                           struct verification *verification);
void unstored_close_group(struct live_batch *live, uint32_t index, const struct store_close_group *close);

/* Worker: the rows as the record would give them. Nothing to finish. */
void unstored_members(const struct live_batch *live, struct store_members *ret_members);
const struct store_rollout *unstored_rollouts(const struct live_batch *live); /* [rollout_count] */
/* Worker: has the reply written, once the batch has been computed. */
void unstored_render(const struct live_batch *live, const struct close_job *close);

/* After the end; once. The caller finishes it. */
struct buffer unstored_take_reply(struct live_batch *live);

#endif
