/* rollup: sums over the rollouts of closed groups, by incarnation, revision, purpose and task.
 *
 * A group enters the roll-ups in the transaction that closes it or that ends its batch. The roll-ups of a run with
 * older batches are incomplete. */
#ifndef STORE_ROLLUP_H
#define STORE_ROLLUP_H

#include "server/base/sum.h"
#include "server/store/rollout.h"

struct store_rollup {
    int64_t incarnation;
    int64_t revision;
    enum store_purpose purpose;
    struct text task; /* read only; until the next one is visited */
    int64_t n, scored, failed, cancelled;
    int64_t groups, judged_groups, zero_variance_groups; /* without those with members in another roll-up */
    int64_t judged;                                      /* have a reward */
    struct precise_sum reward;
    double reward_min, reward_max; /* NAN: none is judged */
    int64_t judged_tokens, tokens, tokens_max;
    int64_t truncated; /* of the judged */
    int64_t straddles, duplicates;
    int64_t decided, solved; /* have a deciding score (deciding_score.h); it is 1 or above */
    int64_t engine_us;
    int64_t ended, staleness; /* whose run's revision at the end is known; sum of that minus their own */
};

/* A group with members in several roll-ups: in one of them. */
struct store_rollup_group {
    int64_t group_seq;
    int64_t incarnation;
    int64_t revision;
    enum store_purpose purpose;
    struct text task;
    int64_t rewarded; /* -1: its batch ended before it was closed */
    bool zero_variance;
};

/* Scores of one held-out verifier. */
struct store_rollup_score {
    int64_t incarnation;
    int64_t revision;
    enum store_purpose purpose;
    struct text task;
    struct text verifier;
    int64_t scored; /* of its verdicts */
    double sum;
};

#define STORE_ROLLUP_COUNTS(COUNT)                                                                                     \
    COUNT(FAILURE, "failure")                                                                                          \
    COUNT(SEED_NOT_HONOURED, "seed_not_honoured")                                                                      \
    COUNT(PROCESSED_LOGPROBS, "processed_logprobs")                                                                    \
    COUNT(ENGINE, "engine")
enum store_rollup_count_kind {
#define STORE_ROLLUP_COUNT_KIND(name, word) STORE_ROLLUP_##name,
    STORE_ROLLUP_COUNTS(STORE_ROLLUP_COUNT_KIND)
#undef STORE_ROLLUP_COUNT_KIND
};
extern const char *const store_rollup_count_names[];

/* Rollouts with something in common. */
struct store_rollup_count {
    int64_t incarnation;
    int64_t revision;
    enum store_purpose purpose;
    enum store_rollup_count_kind kind;
    struct text name;                                           /* a code of a failure, an engine */
    struct text engine_model, engine_version, tokenizer_sha256; /* of an engine; TEXT_NONE: not said */
    int64_t n;
};

struct store_rollup_filter {
    int64_t incarnation;                /* -1: any */
    int64_t revision_min, revision_max; /* -1: open */
    int purpose;                        /* enum store_purpose, -1: any */
};

/* Called for each row, one after the other; false ends the visit. Texts live until they return. */
struct store_rollup_visitor {
    void *arg;
    bool (*rollup)(void *arg, const struct store_rollup *rollup);
    bool (*group)(void *arg, const struct store_rollup_group *group);
    bool (*rollout)(void *arg, const struct store_rollout *rollout);  /* of a group that is in no roll-up yet */
    bool (*score)(void *arg, const struct store_rollup_score *score); /* these two may be NULL: not wanted */
    bool (*count)(void *arg, const struct store_rollup_count *count);
};

/* Whether the roll-ups cover all batches of a run. NOT_FOUND: no such run. */
enum store_status store_rollups_are_whole(struct store_reader *reader, struct text run, bool *ret_whole);
/* Every roll-up of the run that fits, every group that is split, every rollout of a running group (with its verdicts):
 * together each rollout once, from one snapshot. In no order. */
enum store_status store_visit_rollups(struct store_reader *reader, struct text run,
                                      const struct store_rollup_filter *filter,
                                      const struct store_rollup_visitor *visitor);

#endif
