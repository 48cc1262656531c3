/* objective_sums: the record of a run's objective calls. */
#ifndef STORE_OBJECTIVE_SUMS_H
#define STORE_OBJECTIVE_SUMS_H

#include "server/store/manifest.h"
#include "server/store/read.h"

#include <stdint.h>

/* Sums over the trainable tokens of those sequences of an objective call whose samples have one revision and engine,
 * and how many tokens they are over: of 0 tokens a sum is NAN. */
enum store_objective_mean {
    STORE_OBJECTIVE_KL,
    STORE_OBJECTIVE_KL_POLICY,
    STORE_OBJECTIVE_KL_ENGINE,
    STORE_OBJECTIVE_ENTROPY,
    STORE_OBJECTIVE_LOGPROB_GAP,
    STORE_OBJECTIVE_MEANS
};
extern const char *const store_objective_mean_names[]; /* "kl" … */
struct store_objective_slice {
    int64_t incarnation; /* of the samples; -1 with the revision: kept before they were told apart */
    int64_t revision;
    struct text engine; /* TEXT_NONE: they name none */
    int64_t sequences;  /* with a reward */
    int64_t tokens;     /* trainable */
    int64_t clip_low;
    int64_t clip_high;
    double loss; /* NAN: null */
    struct {
        double sum;
        int64_t tokens;
    } means[STORE_OBJECTIVE_MEANS];
};

/* Sums and denominators of one objective call; the same part again replaces. NOT_FOUND: no such run.
 * MANIFEST_CONFLICT: its manifest says otherwise. */
struct store_record_objective {
    struct text run;
    int64_t optimizer_step;
    int64_t ppo_epoch;
    int64_t part;
    struct text objective; /* JSON, expanded */
    struct text sums;      /* JSON */
    struct text kl_estimator;
    const struct store_objective_slice *slices;
    size_t slice_count;
    struct store_manifest_guard manifest;
};

/* Stored sums of a run's objective calls, in order of recording: one for each part, revision and
 * engine. */
struct store_objective_sum {
    int64_t incarnation; /* of the run, at the call */
    int64_t optimizer_step;
    int64_t ppo_epoch;
    int64_t part;
    int64_t recorded_at_us;
    struct text kl_estimator;
    struct store_objective_slice slice;
};
struct store_objective_sums {
    struct store_objective_sum *sums;
    size_t count;
    char next[64];
    struct store_memory *memory;
};
/* optimizer_step, ppo_epoch: -1: any. NOT_FOUND: no such run. INVALID_CURSOR: it is of another list. */
enum store_status store_list_objective_sums(struct store_reader *reader, struct text run, int64_t optimizer_step,
                                            int64_t ppo_epoch, struct text cursor, size_t limit,
                                            struct store_objective_sums *ret_sums);
void store_objective_sums_finish(struct store_objective_sums *sums);

/* The engine whose log-probabilities were farthest from the trainer's old ones in the run's newest optimizer step: the
 * mean of their distances over its tokens. NOT_FOUND: nothing was compared. */
struct store_engine_gap {
    char engine[65];
    int64_t revision; /* of its samples, the newest; -1: not known */
    double gap;
};
enum store_status store_read_widest_gap(struct store_reader *reader, struct text run, struct store_engine_gap *ret_gap);

#endif
