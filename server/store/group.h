/* group: the rollouts of one prompt in a batch. Their advantages are set once, when it is closed. */
#ifndef STORE_GROUP_H
#define STORE_GROUP_H

#include "server/store/rollout.h"

struct store_new_group;

struct store_advantages {
    const struct store_advantage *runs; /* NULL: one number for all its tokens */
    size_t count;
};

/* Sets the advantages, once. A group for leases is then ready, or failed if no member has a reward. STATE_CONFLICT: a member has no row yet. EXISTS: closed before. */
struct store_close_group {
    const char *group_id;
    size_t n;                              /* the group's */
    const double *advantage;               /* [n], by sample_index - first_sample_index; NAN: null. NULL: all null */
    const double *shaped_reward;           /* likewise */
    const struct store_advantages *tokens; /* likewise, of those with an advantage for each token. NULL: none has */
    double reward_mean;                    /* NAN if and only if no member has a reward */
    double reward_std;
    bool zero_variance;
    bool drop; /* it counts for nothing: `advantage` is all null, and a group for leases is never delivered */
    /* NULL: none. The batch's next group, from the reserve, in the same transaction; its index is draw_index. */
    const struct store_new_group *draw;
    int64_t draw_index;
    /* out */
    bool is_ready; /* for a lease */
};

struct store_group {
    char id[ID_BYTES];
    char batch_id[ID_BYTES];
    int64_t index; /* in its batch */
    struct text task;
    int64_t draw;
    int64_t first_sample_index;
    int64_t n;
    enum store_group_state state;
    double reward_mean; /* NAN: null */
    double reward_std;
    bool zero_variance;
    bool dropped;         /* replaced from the reserve, or left out */
    bool drawn;           /* from the reserve */
    int64_t closed_at_us; /* -1: running */
    struct text sampling; /* the overrides */
    struct text verifiers;
    struct text metadata;
    struct text tags;      /* canonical JSON (tags.h); TEXT_NONE: none */
    struct text prompt;    /* JSON, read only with STORE_WITH_TASK and with one group */
    struct text reference; /* likewise */
    struct text set;       /* of the task that it was made of; TEXT_NONE: the request brought all of it */
    struct text split;
    const uint32_t *prompt_ids; /* NULL: not known (yet), or read without arrays */
    size_t prompt_id_count;
    struct store_rollout *rollouts; /* by sample_index; members without a row are missing */
    size_t rollout_count;
    bool more; /* rollouts behind those that were read */
    struct store_memory *memory;
};
/* with: enum store_with flags, for the rollouts; STORE_WITH_ARRAYS also for prompt_ids. */
enum store_status store_read_group(struct store_reader *reader, struct text group_id, unsigned with,
                                   struct store_group *ret_group);
/* The same with the rollouts from a sample_index on, until bytes_max are read; one at least. `more`: there are others.
 */
enum store_status store_read_group_from(struct store_reader *reader, struct text group_id, unsigned with,
                                        int64_t sample_index, size_t bytes_max, struct store_group *ret_group);
void store_group_finish(struct store_group *group);

struct store_groups {
    struct store_group *groups; /* without rollouts, and each without memory of its own */
    size_t count;
    struct store_memory *memory;
};
/* A page of a batch's groups, from an index on. NOT_FOUND: no such batch; beyond its end: OK, count 0. */
enum store_status store_read_groups(struct store_reader *reader, struct text batch_id, int64_t from_index, size_t limit,
                                    unsigned with, struct store_groups *ret_groups);
void store_groups_finish(struct store_groups *groups);

#endif
