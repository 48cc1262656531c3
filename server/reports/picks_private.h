/* picks: the rollouts of a report, found page by page, in the order in which their groups are read. */
#ifndef SERVER_REPORTS_PICKS_PRIVATE_H
#define SERVER_REPORTS_PICKS_PRIVATE_H

#include "server/base/ids.h"
#include "server/store/rollout_filter.h"

#include <stddef.h>
#include <stdint.h>

struct call;

struct pick {
    char batch_id[ID_BYTES];
    int64_t group_index, sample_index;
    int64_t revision, incarnation;
};

struct picks {
    struct pick *rows; /* by batch, group and sample_index */
    size_t count, room;
    bool too_many; /* there are more than `most`; the rows are of no use */
};

/* The rollouts that fit the filter, which has a purpose. Without an incarnation those of the surviving line: no later incarnation
 * has rollouts of their revision. Worker thread, with its reader in the call. 0; -1 with the call refused, or given up by its
 * client. picks_finish() is needed either way. */
int picks_find(struct call *call, const struct store_rollout_filter *filter, size_t most, struct picks *ret_picks);
void picks_finish(struct picks *picks);

/* The first row of another batch than that of `at`; of another group. */
size_t picks_next_batch(const struct picks *picks, size_t at);
size_t picks_next_group(const struct picks *picks, size_t at);

#endif
