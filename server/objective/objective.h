/* objective: from rewards and log-probabilities to advantages, token losses, their gradient and the scalar loss.
 *
 * Pure: arrays in, arrays out. No JSON, no I/O, no clock, no lock; any thread. All arithmetic in double, summed in a
 * fixed order (kernels_private.h), with its own exp/expm1/log (math.h), so that the same request gives the same bits on every
 * compiler and processor. A masked token, a sequence without a reward, a sequence that is not trainable and a group
 * that the filter dropped never enter the arithmetic of the loss; what a selection or a correction rejects is set to 0,
 * not multiplied by it.
 *
 * Order: rewards -> shaping -> KL in the reward -> filter -> advantage -> clip of the advantage -> teacher term ->
 * token loss -> selection -> times importance (policy term only) -> + beta * KL -> aggregation. (KNOBS: "Order".)
 * Words: n = trainable tokens of a sequence; T tokens, N sequences, P groups of the request or of `totals`. */
#ifndef OBJECTIVE_OBJECTIVE_H
#define OBJECTIVE_OBJECTIVE_H

#include "server/objective/knobs.h"
#include "server/objective/math.h"

/* Raised when the same rewards and knobs give other advantages. A batch on record keeps its advantages and this number.
 * Version 1 treats rewards as equal if they differ by rounding alone. */
#define OBJECTIVE_ARITHMETIC_VERSION 1

/* --- rewards and advantages --- */

/* R = sum of weight * score; 0 where the sum is nothing but the rounding of its terms. A null score (NAN) with weight
 * other than 0 makes R null (NAN) by OBJECTIVE_MISSING_NULL, or counts as 0 by OBJECTIVE_MISSING_SKIP (then R is null
 * only if every score is). n = 0 gives NAN. */
double objective_combine_rewards(size_t n, const double *scores, const double *weights, int missing);

struct objective_statistics { /* the room's own: sums of the two passes */
    size_t count;
    struct precise_sum sum, drift; /* drift: the rounding error of the mean, over `unit` */
    double size;                   /* sum of |value| */
    double minimum, maximum;
    double mean, unit, squares;
};

struct objective_group {
    size_t members;                                /* all sequences that name it */
    size_t rewarded;                               /* rollouts with a reward: all statistics are over these */
    size_t correct;                                /* those with a raw reward above 0 */
    double mean, minimum, maximum;                 /* of the raw rewards */
    double std;                                    /* by `ddof`; NAN where rewarded <= ddof */
    bool zero_variance;                            /* rewarded > 0 and all rewards, after shaping, are equal */
    bool dropped;                                  /* by `filter` */
    struct objective_statistics raw, shaped, seen; /* `seen`: shaped minus KL, what the estimator works on */
    bool counted;                                  /* a sequence of it is in the denominators */
    double tokens;                                 /* trainable, of the request */
};

/* --- evaluation --- */

/* One number for each token, in either precision; both NULL = absent. */
struct objective_values {
    const double *f64;
    const float *f32;
};

enum objective_finish { OBJECTIVE_FINISH_UNKNOWN, OBJECTIVE_FINISH_LENGTH, OBJECTIVE_FINISH_OTHER };

struct objective_step {
    size_t end; /* index after the step's last token */
    double reward;
};

struct objective_sequence {
    /* in */
    size_t group;        /* below group_count */
    size_t rollout;      /* below rollout_count of the request: its sequences have one reward, which counts once */
    size_t agent;        /* below agent_count, for ema_baseline */
    size_t slice;        /* below slice_count */
    double reward;       /* NAN: none. Needed by estimators, and for the reward metrics if there is one */
    bool rewarded;       /* false: no reward and no given advantage: no part in statistics, loss, denominators */
    bool untrainable;    /* its reward counts in the statistics of its group, its tokens nowhere */
    bool counted_only;   /* its tokens are in every count, its loss is not computed */
    size_t tokens;       /* 0 is as good as all masked */
    const uint8_t *mask; /* 0/1 per token; NULL: all 1 */
    struct objective_values logprobs;         /* absent: ratio 1 */
    struct objective_values old_logprobs;     /* absent: ratio 1 */
    struct objective_values ref_logprobs;     /* needed if beta > 0 */
    struct objective_values rollout_logprobs; /* needed by importance, two selections, rollout_is, anchor rollout */
    struct objective_values teacher_logprobs; /* teacher_coef */
    struct objective_values entropy;          /* top_entropy_quantile */
    struct objective_values sum_pi_squared;   /* optimal_token_baseline */
    struct objective_values token_rewards;    /* remax, reward_to_go, reinforce_plus_plus: instead of the reward */
    const struct objective_step *steps;       /* process; in order of their ends */
    size_t step_count;
    bool has_outcome;     /* process with outcome_coef: */
    double outcome;       /* the reward beside those of the steps; finite */
    double greedy_reward; /* remax; NAN: none */
    const double *scores; /* gdpo: one for each name of the request, NAN = none */
    const double *weights_of_scores;
    const uint32_t *completion_ids; /* repetition */
    size_t completion_id_count;
    enum objective_finish finish_reason;
    int64_t length;               /* for length metrics and shaping; usually = tokens */
    int64_t prompt_tokens, turns; /* linear_length_penalty; negative: not said */

    double advantage; /* in if advantages_given, else out; after the clip; NAN if not rewarded. Of a rule per token that
                       * of the first trainable token, 0 if there is none */
    const double *token_advantages; /* instead: one per token (advantages_given only) */

    /* out: each NULL (not wanted) or room for `tokens` values, which are all written */
    double *advantages;    /* what the loss takes: after clip and teacher term */
    double *surrogates;    /* minus the policy term */
    double *contributions; /* weight * (policy term + beta * kl); they sum to the loss */
    double *dloss_dlogp;   /* derivative of the scalar loss by this token's log-probability */
    double *ratios;        /* INFINITY where it is beyond double and cannot enter the loss */
    double *weights;       /* of the aggregation */
    double *kl;
    double *importance; /* weight of the off-policy correction; 0 where it rejects */
    int8_t *clipped;    /* 0; 1 upper bound, -1 lower bound, 2 dual_c acts */
    uint8_t *selected;  /* 1: the policy term is counted */

    /* out */
    double shaped_reward; /* after shaping; NAN if there is no reward. In if shaped_given */
    double loss;          /* sum of its contributions */
    bool kept;            /* false: dropped by `filter`, or by a rule of importance or selection over whole sequences */
    size_t trainable_tokens;
};

/* The denominators of an optimiser step. NAN: not given. */
struct objective_totals {
    double tokens, sequences, groups;
    double rollouts; /* rollout_mean; NAN: as `sequences` */
};

/* Sums and counts over the trainable tokens; what a report adds up over parts. Means are sum / count. */
struct objective_sums {
    uint64_t tokens, sequences;
    uint64_t clip_low, clip_high, outside_band;
    uint64_t ratio_overflows; /* ratios beyond double: then ratio_sum and ratio_max are INFINITY */
    double ratio_sum, ratio_max;
    double k1_sum; /* -x, x = logprob - old */
    double k3_sum; /* e^x - 1 - x */
    uint64_t kl_tokens;
    double kl_sum;
    uint64_t gap_tokens;
    double gap_sum; /* |old - rollout|, or |logprob - rollout| */
};

/* Stored sums of a call for the sequences of one slice: over their trainable tokens, with the count of these. A
 * sum that is not known is NAN, of 0 tokens. */
enum objective_slice_mean {
    OBJECTIVE_SLICE_KL,          /* to the reference, by kl.estimator; also where it is in no loss */
    OBJECTIVE_SLICE_KL_POLICY,   /* k3, old to now: e^x - 1 - x, x = logprob - old */
    OBJECTIVE_SLICE_KL_ENGINE,   /* k3, rollout to old (rollout_against_logprobs: to logprobs) */
    OBJECTIVE_SLICE_ENTROPY,     /* -rollout */
    OBJECTIVE_SLICE_LOGPROB_GAP, /* |old - rollout|, likewise */
    OBJECTIVE_SLICE_MEANS
};
struct objective_slice {
    uint64_t sequences, tokens; /* with a reward; trainable */
    uint64_t clip_low, clip_high;
    double loss; /* of its sequences; NAN: none has a reward */
    struct {
        double sum;
        uint64_t tokens;
    } means[OBJECTIVE_SLICE_MEANS];
};

/* One number of `metrics`. NAN = null. */
struct objective_metrics {
    double ratio_mean, ratio_max, ratio_outside_band;
    double clip_low_fraction, clip_high_fraction, clip_fraction;
    double approx_kl_k1, approx_kl_k3, kl;
    double reward_mean, reward_std; /* raw rewards, sample deviation */
    double frac_reward_zero_std, frac_groups_zero_std;
    uint64_t zero_variance_groups;
    double mean_length, min_length, max_length, truncated_fraction;
    double mean_terminated_length, min_terminated_length, max_terminated_length;
    bool has_rollout;
    struct {
        double kl, k3_kl, training_log_ppl, rollout_log_ppl, log_ppl_diff, ppl_ratio;
        double chi2_token, chi2_seq, is_mean, is_max, is_min, ess, logprob_gap;
    } rollout;
};

enum objective_note {
    OBJECTIVE_NOTE_SINGLETON = 1,      /* a group had one member with a reward */
    OBJECTIVE_NOTE_ALL_MASKED = 2,     /* sequences have rewards, but no token is trainable: the loss is 0 */
    OBJECTIVE_NOTE_NOTHING_SCORED = 4, /* the loss is NAN */
    OBJECTIVE_NOTE_RATIO_OVERFLOW = 8, /* a ratio beyond double, where it could not enter the loss */
    OBJECTIVE_NOTE_FILTERED = 16,      /* `filter` dropped groups */
};

struct objective_result {
    double loss, policy_loss, kl_loss; /* NAN if nothing was scored */
    struct objective_totals totals;    /* as used: given or counted */
    struct objective_totals counted;   /* of this request */
    struct objective_sums sums;
    struct objective_metrics metrics;
    unsigned notes;
};

enum objective_error_code {
    OBJECTIVE_ERROR_NON_FINITE,    /* an input at a trainable token, or a term that is beyond double */
    OBJECTIVE_ERROR_MISSING_INPUT, /* an array (or a total) that the knobs need */
    OBJECTIVE_ERROR_TOTALS,        /* a total smaller than this part's own count */
    OBJECTIVE_ERROR_INVALID,       /* an input that the knobs cannot use */
    OBJECTIVE_ERROR_MEMORY,
    OBJECTIVE_ERROR_REFUSED, /* by before_sequence, which knows why */
};

struct objective_error {
    enum objective_error_code code;
    size_t sequence;   /* SIZE_MAX: none */
    size_t token;      /* SIZE_MAX: none */
    const char *field; /* "logprobs", "reward", "tokens" (of totals) */
    const char *message;
};

struct objective_request {
    const struct objective_knobs *knobs; /* settled */
    struct objective_sequence *sequences;
    size_t sequence_count;
    struct objective_group *groups; /* room for group_count; out, or in if groups_given */
    size_t group_count;
    size_t rollout_count;           /* 0: every sequence is its own */
    size_t score_count;             /* names of gdpo's scores */
    size_t agent_count;             /* 0: none */
    double *baselines;              /* ema_baseline: out, one for each agent (one at least); NULL: not wanted */
    struct objective_slice *slices; /* room for slice_count, zeroed; out; NULL: not wanted */
    size_t slice_count;
    bool groups_given;     /* by objective_advantages() over all members; the request may hold a part of them. Only with
                        * advantages_given */
    bool advantages_given; /* the estimator is not run; rewards feed the metrics, the filter and positive_nll */
    bool rollout_against_logprobs; /* metrics.rollout compares with logprobs, whatever old_logprobs are there: they were
                                    * taken from the rollout's own */
    bool shaped_given;             /* shaped_reward is known; only with advantages_given, where shaping is not run */
    const struct objective_totals *totals; /* NULL: count in the request */
    /* Right before a sequence's tokens are gone through (a -1 ends it all, with OBJECTIVE_ERROR_REFUSED), and as soon
     * as all its outputs are there: its arrays are in the cache then. NULL: nobody asks. */
    int (*before_sequence)(void *context, size_t index);
    void (*after_sequence)(void *context, size_t index);
    void *context;
};

/* Everything. 0, or -1 with ret_error. Linear in the tokens, except selections that sort; allocates once a request,
 * never in a loop over tokens. */
int objective_evaluate(const struct objective_request *request, struct objective_result *ret_result,
                       struct objective_error *ret_error);

/* The first token that is not masked and whose value is no number, infinite, or above `most` (DBL_MAX: any finite one
 * will do); sequence->tokens if there is none. Linear; absent values have none. */
size_t objective_find_outside(const struct objective_sequence *sequence, struct objective_values values, double most);

/* Doubles to the nearest floats. False: one is infinite, since no float holds it. The arrays do not overlap. */
bool objective_narrow(size_t n, const double *values, float *ret_values);

/* Only what comes before the loss: shaped_reward, advantage, advantages, kept of every sequence, and the groups. Of the
 * arrays it needs what the advantage rule needs. totals are not looked at. */
int objective_advantages(const struct objective_request *request, struct objective_error *ret_error);

/* mean over groups of 1 - C(n-c, k) / C(n, k), n members with a reward, c of them with one > 0; NAN where a group has
 * fewer than k members or there is none. Source: Chen et al., arXiv 2107.03374, section 2.1. */
double objective_pass_at_k(const struct objective_request *request, uint64_t k);

/* --- a sampled batch: ratio 1, no reference policy yet --- */

/* The rollouts of one group of a closed batch: their terms at ratio 1, by the batch's knobs and its stored totals
 * (which must hold every count the mode uses). Sequences: all members of the group with their recorded raw and shaped
 * reward and advantage (rewarded: it has one), tokens and mask; arrays where objective_loss_reads_logprobs(). Those whose
 * terms are wanted have outputs. Over the batch the contributions sum to the loss that objective_evaluate() gave at the
 * closing, to a few ulps. 0, or -1. */
int objective_sampled_terms(const struct objective_knobs *knobs, const struct objective_totals *totals, size_t n,
                            struct objective_sequence *members, struct objective_result *ret_result);

#endif
