/* rollout_filter: the choice and the order of rollouts for lists, exports and reports. */
#ifndef STORE_ROLLOUT_FILTER_H
#define STORE_ROLLOUT_FILTER_H

#include "server/store/rollout.h"
#include "server/store/tags.h"

enum store_rollout_order { STORE_BY_CREATED, STORE_BY_REWARD, STORE_BY_ADVANTAGE, STORE_BY_TOKENS };

/* Only rows that fit every filter that is set. Start from store_rollout_filter_init(). The texts are the caller's. */
struct store_rollout_filter {
    struct text run, task, batch, group, failure, finish_reason; /* TEXT_NONE: any, as of every text */
    struct text engine, engine_revision;
    struct text verifier, verdict, reason;   /* id, word and code of one and the same verdict */
    struct text text;                        /* part of the completion, byte by byte */
    int state;                               /* enum store_rollout_state, -1: any */
    int purpose;                             /* enum store_purpose, -1: any */
    int64_t incarnation;                     /* -1: any */
    int64_t revision_min, revision_max;      /* -1: open */
    double reward_min, reward_max;           /* NAN: open */
    double advantage_min, advantage_max;     /* NAN: open */
    double heldout_min;                      /* one held-out score at least is as high; NAN: any */
    int64_t since_us, until_us;              /* of created_at, [since, until); -1: open */
    int straddles, trainable, seed_honoured; /* 0, 1; -1: any */
    int duplicate;                           /* 0, 1; -1: any. Members of groups that are not closed are neither */
    struct store_tag tags[STORE_TAGS_MAX];   /* of the group: all of them */
    size_t tag_count;
    int order_by; /* enum store_rollout_order; other than created needs run and one revision */
    bool descending;
};
void store_rollout_filter_init(struct store_rollout_filter *filter);

/* A page from the cursor on; TEXT_NONE starts. Rows without a value of `order_by` come last in both directions. Texts
 * that are searched count toward limits->scanned by their length. INVALID_CURSOR: it is of another list. */
enum store_status store_list_rollouts(struct store_reader *reader, const struct store_rollout_filter *filter,
                                      struct text cursor, const struct store_page_limits *limits, unsigned with,
                                      struct store_rollouts *ret_rollouts);
bool store_rollouts_cursor_fits(const struct store_rollout_filter *filter, struct text cursor);

#endif
