/* row: the record of one rollout, and its way to the disk. Loop thread only.
 *
 * A row that the store cannot take now is written again until it is on disk. */
#ifndef SERVER_BATCHES_ROW_PRIVATE_H
#define SERVER_BATCHES_ROW_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/ids.h"
#include "server/store/store.h"

struct batches;
struct live_batch;

struct row {
    struct live_batch *live;
    uint32_t rollout;
    void (*stored)(struct live_batch *live, uint32_t rollout);
    struct store_op op;
    struct store_rollout values; /* its texts are the attempt's, the verification's and the spec's */
    char group_id[ID_BYTES];
    struct buffer segments_json;
    struct row *backlog_next;
};

/* From the rollout's attempt and verification, as far as there are any. `stored` is called once, when it is on disk: it
 * destroys the row. */
struct row *row_create(struct live_batch *live, uint32_t rollout,
                       void (*stored)(struct live_batch *live, uint32_t rollout));
void row_store(struct row *row);   /* the store has it until `stored`, which may come before this returns */
void row_destroy(struct row *row); /* NULL is fine */
/* Sends rows that found the store's queue full, as many as it takes now. */
void rows_pump_backlog(struct batches *batches);

#endif
