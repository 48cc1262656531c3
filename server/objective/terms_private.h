/* terms: shared by the files of this room. A block is a run of trainable tokens, gathered without gaps, so that a
 * masked token cannot touch the arithmetic and a loss is a plain loop over arrays. */
#ifndef OBJECTIVE_TERMS_PRIVATE_H
#define OBJECTIVE_TERMS_PRIVATE_H

#include "server/objective/kernels_private.h"
#include "server/objective/math.h"
#include "server/objective/objective.h"

#include <math.h>

#define OBJECTIVE_BLOCK 256

struct objective_block {
    const struct objective_kernels *kernels;
    size_t count;
    size_t first;                  /* place of its first token among the trainable ones of the sequence */
    bool one_advantage;            /* advantage[] is the same number everywhere */
    bool is_run;                   /* its tokens stand side by side: only token[0] is filled */
    size_t token[OBJECTIVE_BLOCK]; /* where in the sequence; see token_at() */
    double advantage[OBJECTIVE_BLOCK];
    double logprob[OBJECTIVE_BLOCK];
    double old[OBJECTIVE_BLOCK];      /* what the ratio is against: logprob where that is absent */
    double x[OBJECTIVE_BLOCK];        /* logprob - old, clamped */
    double clamped[OBJECTIVE_BLOCK];  /* 0 where log_clamp acts on x, else 1 */
    double ratio[OBJECTIVE_BLOCK];    /* e^x */
    double previous[OBJECTIVE_BLOCK]; /* old_logprobs, where the ratio is against something else */
    double reference[OBJECTIVE_BLOCK];
    double distance[OBJECTIVE_BLOCK];  /* logprob - reference */
    double rollout_x[OBJECTIVE_BLOCK]; /* old - rollout */
    double rollout[OBJECTIVE_BLOCK];
    double weight[OBJECTIVE_BLOCK];   /* of the off-policy correction */
    uint8_t dropped[OBJECTIVE_BLOCK]; /* the policy term is out */
    /* filled by the loss */
    double value[OBJECTIVE_BLOCK];
    double slope[OBJECTIVE_BLOCK];   /* derivative of value by logprob */
    double *shown;                   /* the ratio of the reply: `ratio`, or `whole` */
    double whole[OBJECTIVE_BLOCK];   /* the ratio of the sequence */
    double clipped[OBJECTIVE_BLOCK]; /* as in the reply */
    uint8_t selected[OBJECTIVE_BLOCK];
    /* filled by the KL */
    double kl[OBJECTIVE_BLOCK];
    double kl_slope[OBJECTIVE_BLOCK];
};

static inline size_t token_at(const struct objective_block *block, size_t k)
{
    return block->is_run ? block->token[0] + k : block->token[k];
}

/* The values of its tokens; place[k] for its token k. False: one of them is not finite. */
bool block_read(const struct objective_block *block, struct objective_values values, double *place);
/* sign * values[k] at its token k; never a negative zero. NULL: not wanted. */
void block_put(const struct objective_block *block, double sign, const double *values, double *output);
void block_put_sides(const struct objective_block *block, int8_t *output); /* `clipped` */
void block_put_bytes(const struct objective_block *block, const void *values, void *output);
/* Sets to 0 every output that the blocks of the sequence will not write. */
void clear_outputs(struct objective_sequence *sequence);

/* --- one evaluation --- */

#define NO_SEQUENCE SIZE_MAX

/* State of a sequence beside its outputs. */
struct objective_part {
    size_t first; /* of its tokens in arrays over the whole request */
    double seen;  /* the reward of its rollout as the estimator sees it; NAN: none */
    size_t head;  /* the first sequence of its rollout */
    size_t next;  /* the next one; NO_SEQUENCE: none */
    double weight;
    bool live; /* its tokens enter the loss: with a reward, trainable, not truncated, group kept */
};

/* Why the policy term of a token is out. */
enum {
    DROPPED_BY_SELECTION = 1,
    DROPPED_BY_IMPORTANCE = 2,
    DROPPED_FROM_COUNTS = 4, /* importance with denominator `kept` */
    CHOSEN_BY_KL_COV = 8,    /* not dropped: gets the additive term */
};

struct objective_work {
    const struct objective_request *request;
    const struct objective_kernels *kernels;
    const struct objective_knobs *knobs;
    struct objective_result *result; /* NULL: only advantages */
    struct objective_error *error;
    struct objective_part *parts;
    size_t tokens;          /* of all sequences */
    size_t *by_group;       /* sequences in order of their groups; group g has by_group[group_first[g]..] */
    size_t *group_first;    /* [group_count + 1] */
    double *advantages;     /* [tokens]; NULL: one number for each sequence */
    double *reward_kl;      /* [tokens]: beta * kl, where it is in the reward */
    double *weights;        /* [tokens] of the off-policy correction; NULL: none */
    uint8_t *dropped;       /* [tokens], bits of DROPPED_; NULL: none */
    double *spare;          /* [tokens] for rules over all tokens */
    size_t *token_order;    /* [tokens] for rules that sort */
    double positive_tokens; /* positive_nll */
    double *sequence_values, *sequence_slopes; /* [sequence_count]: real */
    void *memory[16 + OBJECTIVE_SHAPING_MAX];
    size_t memory_count;
};
void *work_allocate(struct objective_work *work, size_t count, size_t size_bytes); /* zeroed; NULL: error is set */
int work_init(struct objective_work *work, const struct objective_request *request, struct objective_error *error);
void work_finish(struct objective_work *work);
/* Up to and with the teacher term. */
int work_advantages(struct objective_work *work);

int objective_fail(struct objective_error *ret_error, enum objective_error_code code, size_t sequence, size_t token,
                   const char *field, const char *message); /* -1 */

static inline bool is_present(struct objective_values values)
{
    return values.f64 || values.f32;
}

static inline double value_at(struct objective_values values, size_t token)
{
    return values.f64 ? values.f64[token] : (double)values.f32[token];
}

/* It stands for its rollout in the statistics of rewards. */
static inline bool is_first_of_rollout(const struct objective_work *work, size_t index)
{
    return work->parts[index].head == index;
}

static inline bool is_masked(const struct objective_sequence *sequence, size_t token)
{
    return sequence->mask && !sequence->mask[token];
}

/* Has tokens for the statistics of advantages; `live` says whether they are in the loss. */
static inline bool has_tokens(const struct objective_sequence *sequence)
{
    return sequence->rewarded && !sequence->untrainable;
}

/* Its term is in the loss, as far as masks, filter and counts go. */
static inline bool is_trained(const struct objective_work *work, size_t index, size_t token)
{
    const struct objective_part *part = &work->parts[index];
    return part->live && !is_masked(&work->request->sequences[index], token) &&
           !(work->dropped && work->dropped[part->first + token] & DROPPED_FROM_COUNTS);
}

int work_need(struct objective_work *work, size_t index, struct objective_values values, const char *field,
              const char *why);
/* A trainable token needs a finite number. */
int work_read(struct objective_work *work, size_t index, size_t token, struct objective_values values,
              const char *field, double *ret_value);
/* Old policy: old_logprobs, else logprobs. */
struct objective_values old_values(const struct objective_sequence *sequence);
/* The denominator of the ratio r. */
struct objective_values anchor_values(const struct objective_knobs *knobs, const struct objective_sequence *sequence);
double work_advantage(const struct objective_work *work, size_t index, size_t token);

/* --- rewards, shaping, filter --- */

int work_rewards(struct objective_work *work); /* reward.c: shaped, seen, groups' statistics, kept */
int shape_rewards(struct objective_work *work);
void filter_groups(struct objective_work *work);
int put_kl_into_rewards(struct objective_work *work);

/* --- rollouts.c --- */

int work_link_rollouts(struct objective_work *work); /* head, next */
int check_rollouts(struct objective_work *work);     /* one group, one reward before and after shaping */
void share_seen(struct objective_work *work);        /* every sequence sees the reward of its rollout's first */

/* --- advantages --- */

/* Fills `advantage` of every sequence with a reward, or the array of work. 0, or -1 with the error. */
typedef int objective_estimate(struct objective_work *work);
extern objective_estimate *const objective_estimators[OBJECTIVE_ESTIMATOR_COUNT];
objective_estimate estimate_rloo, estimate_loo, estimate_maxrl, estimate_passk, estimate_opo, estimate_gpg;
objective_estimate estimate_rpp_baseline_sequence, estimate_gdpo, estimate_normalization, estimate_ema_baseline;
objective_estimate estimate_remax, estimate_reward_to_go, estimate_rpp, estimate_rpp_baseline, estimate_process;
objective_estimate estimate_optimal_token_baseline;

/* value / divisor, 0 where the divisor is 0 or no number: a deviation that does not exist scales nothing up. NAN where
 * the divisor is beyond double. */
static inline double divide(double value, double divisor)
{
    if (isinf(divisor))
        return NAN;
    return divisor > 0 ? value / divisor : 0;
}
double std_of_group(const struct objective_work *work, size_t group);
/* R - mean of its group; exactly 0 where all are equal; one member: by `singleton`. */
double centred(const struct objective_work *work, size_t index);

/* --- losses --- */

/* Facts of the whole sequence at hand for a loss; filled by its `prepare`. */
struct objective_whole {
    size_t index;
    double n;
    double log_ratio, ratio; /* of the sequence */
    bool constant;           /* the ratio is held: no derivative */
    double shared;           /* derivative that every token of the sequence gets, importance and selection included */
    double phi_pos, phi_neg; /* vespo */
    const double *factor;    /* [n] of trainable tokens: fipo */
    double value, slope;     /* real: of each token */
};

struct objective_loss {
    void (*terms)(const struct objective_knobs *knobs, const struct objective_whole *whole,
                  struct objective_block *block);
    int (*prepare)(struct objective_work *work, struct objective_whole *whole); /* NULL: nothing to prepare */
    bool has_bounds;                                                            /* eps_low, eps_high */
    bool reads_logprob;    /* at ratio 1 the value depends on the log-probability itself */
    bool reads_rollout;    /* needs rollout_logprobs */
    bool shares_slope;     /* the derivative is the sequence's: importance and selection are in it already */
    bool takes_importance; /* the weights are in the loss: nothing to multiply, nothing rejected */
};
extern const struct objective_loss objective_losses[OBJECTIVE_LOSS_COUNT];
typedef void objective_terms(const struct objective_knobs *knobs, const struct objective_whole *whole,
                             struct objective_block *block);
typedef int objective_prepare(struct objective_work *work, struct objective_whole *whole);
#define LOSS(symbol, name, terms, ...) objective_terms terms;
#include "server/objective/losses.def"
#undef LOSS
objective_prepare gspo_prepare, gmpo_prepare, vespo_prepare, fipo_prepare, real_prepare;
/* real: the groups' sums, once for each evaluation. */
int real_begin(struct objective_work *work);
/* logprob - anchor of a trained token, clamped; 0 where there is no current policy. */
int work_x(struct objective_work *work, size_t index, size_t token, double *ret_x);

/* The same of the next trained tokens of a sequence, from *token on, at most OBJECTIVE_BLOCK: ret_x has room for so
 * many, ret_count 0 is the end. The places among the trained ones advance by multiples of OBJECTIVE_LANES. */
int work_next_xs(struct objective_work *work, size_t index, size_t *token, double *ret_x, size_t *ret_count);

void objective_kl_block(const struct objective_knobs *knobs, struct objective_block *block);

/* --- off-policy correction, selection --- */

int work_importance(struct objective_work *work);
int work_selection(struct objective_work *work);

/* --- aggregation --- */

enum objective_denominators {
    DIVIDES_BY_TOKENS = 1,
    DIVIDES_BY_SEQUENCES = 2,
    DIVIDES_BY_GROUPS = 4,
    DIVIDES_BY_ROLLOUTS = 8,
};
/* Divisors of an aggregation mode, counted over one sequence. */
struct objective_counts {
    double tokens;         /* n */
    double group_tokens;   /* T of its group */
    double group_rewarded; /* members of its group with a reward */
    double rollout_tokens; /* T of its rollout */
};
struct objective_mode {
    double (*weight)(const struct objective_knobs *knobs, const struct objective_totals *totals,
                     const struct objective_counts *counts);
    unsigned divides_by; /* which totals it needs */
};
extern const struct objective_mode objective_modes[OBJECTIVE_MODE_COUNT];
/* Counts, totals, weights of all sequences. */
int work_aggregation(struct objective_work *work);

/* --- statistics --- */

/* left + right, 0 where that is nothing but their rounding. */
double add_rewards(double left, double right);

/* Mean and deviation in two passes, with the squares scaled by a power of two where they would overflow or vanish. */
void statistics_first(struct objective_statistics *statistics, double value);
void statistics_turn(struct objective_statistics *statistics); /* between the passes */
void statistics_second(struct objective_statistics *statistics, double value);
bool statistics_constant(const struct objective_statistics *statistics); /* nothing in it, or all are equal */
double statistics_deviation(const struct objective_statistics *statistics, int ddof); /* NAN where count <= ddof */
double statistics_squares(const struct objective_statistics *statistics); /* of what is centred, over unit * unit */
/* value - mean, centred once more: over all values these add up to 0. Exactly 0 where all are equal. */
double statistics_centred(const struct objective_statistics *statistics, double value);

/* Over the rollouts of the groups that the filter kept; NAN: not in it. */
typedef double reward_of(const struct objective_work *work, size_t index);
struct objective_statistics statistics_of_request(const struct objective_work *work, reward_of *of);
reward_of seen_of;

/* --- metrics --- */

/* Running values: what objective_sums gets at the end, and what it does not keep. */
struct objective_meter {
    struct lane_ratio_sums ratios;
    struct lane_shown_sums shown;
    struct lane_sum kl;
    struct lane_weight_sums weights;
    uint64_t rollout_tokens, rollout_sequences;
    double rollout_k1, rollout_k3;
    double training_ppl, rollout_ppl, ppl_difference, ppl_ratio, chi2_seq;
    /* of the sequence at hand */
    struct lane_ratio_sums sequence_x;
    struct lane_sum sequence_rollout;
    uint64_t sequence_tokens;
};
void meter_block(const struct objective_request *request, struct objective_block *block, bool has_rollout, bool has_kl,
                 struct objective_meter *meter, struct objective_sums *sums);
void meter_sequence(struct objective_meter *meter);

/* slices.c */
struct slice_inputs {
    const double *old; /* old_logprobs of the block; NULL: none */
    bool has_rollout;  /* block->rollout and rollout_x are filled */
    bool has_kl;       /* block->kl is */
};
/* After everything else of the block: it writes over its KL. */
void slice_block(const struct objective_work *work, size_t index, const struct slice_inputs *inputs,
                 struct objective_block *block);
void slices_finish(const struct objective_request *request); /* after the last sequence */

void objective_fill_metrics(const struct objective_work *work, const struct objective_meter *meter);

#endif
