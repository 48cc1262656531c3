/* objective: from rewards and log-probabilities to advantages, token losses, their gradient and the scalar loss.
 *
 * Pure: arrays in, arrays out. No JSON, no I/O, no clock, no lock; any thread. All arithmetic in double, summed in the
 * order of the request, with its own exp/expm1/log (math.h), so that the same request gives the same bits on every
 * compiler and processor. A masked token, a sequence without a reward and a sequence that is not trainable never enter
 * the arithmetic.
 *
 * Order: reward -> advantage -> clip of the advantage -> token loss -> + beta * KL -> aggregation. (KNOBS: "Order".)
 * Words: n = trainable tokens of a sequence; T tokens, N sequences, P groups of the request or of `totals`.
 *
 * What a knob may be stands in tables: the lists below name every value of the contract. Those under BUILT have a row
 * in the function table of their file (advantage.c, loss.c, kl.c, aggregation.c); those under LATER are known and
 * refused. */
#ifndef OBJECTIVE_OBJECTIVE_H
#define OBJECTIVE_OBJECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- knobs --- */

/* clang-format off */
#define OBJECTIVE_ESTIMATORS(BUILT, LATER) \
    BUILT(GRPO, "grpo") \
    BUILT(REWARD, "reward") \
    LATER("rloo") LATER("loo_mean_loo_std") LATER("maxrl") LATER("grpo_passk") LATER("opo") LATER("gpg") \
    LATER("remax") LATER("reward_to_go") LATER("reinforce_plus_plus") LATER("reinforce_plus_plus_baseline") \
    LATER("reinforce_plus_plus_baseline_sequence") LATER("gdpo") LATER("normalization") LATER("process") \
    LATER("ema_baseline") LATER("optimal_token_baseline")

#define OBJECTIVE_LOSSES(BUILT, LATER) \
    BUILT(PPO_CLIP, "ppo_clip") \
    BUILT(DUAL_CLIP, "dual_clip") /* short for ppo_clip with dual_c 3 */ \
    BUILT(TWO_SIDED, "two_sided") /* short for ppo_clip with delta */ \
    BUILT(IMPORTANCE_SAMPLING, "importance_sampling") \
    LATER("gpg") LATER("cispo") LATER("gspo") LATER("gspo_token") LATER("sapo") LATER("gmpo") LATER("vespo") \
    LATER("luspo") LATER("dppo_tv") LATER("dppo_kl") LATER("ipo") LATER("dro") LATER("rollout_is") LATER("fipo") \
    LATER("real")

#define OBJECTIVE_KLS(BUILT, LATER)                                                                                    \
    BUILT(K1, "k1")                                                                                                    \
    BUILT(ABS, "abs")                                                                                                  \
    BUILT(K2, "k2")                                                                                                    \
    BUILT(K3, "k3")                                                                                                    \
    BUILT(K1_PLUS, "k1_plus")                                                                                          \
    BUILT(K3_PLUS, "k3_plus")                                                                                          \
    BUILT(LOW_VAR, "low_var") /* short for k3 with log_clamp 20, value_clamp 10 */

#define OBJECTIVE_MODES(BUILT, LATER)                                                                                  \
    BUILT(SEQ_MEAN_TOKEN_MEAN, "seq_mean_token_mean")                                                                  \
    BUILT(TOKEN_MEAN, "token_mean")                                                                                    \
    BUILT(TOKEN_SUM, "token_sum")                                                                                      \
    BUILT(SEQ_MEAN_TOKEN_SUM, "seq_mean_token_sum")                                                                    \
    BUILT(SEQ_MEAN_TOKEN_SUM_NORM, "seq_mean_token_sum_norm")                                                          \
    BUILT(SEQ_SUM_TOKEN_SUM_NORM, "seq_sum_token_sum_norm")                                                            \
    BUILT(CONSTANT, "constant")                                                                                        \
    LATER("prompt_mean") LATER("rollout_mean") LATER("group_mean_seq_mean_token_mean")

#define OBJECTIVE_SCALES(BUILT, LATER) BUILT(GROUP, "group") BUILT(BATCH, "batch") BUILT(NONE, "none")
#define OBJECTIVE_SINGLETONS(BUILT, LATER) BUILT(ZERO, "zero") BUILT(RAW, "raw")
#define OBJECTIVE_MISSINGS(BUILT, LATER) BUILT(NULL, "null") BUILT(SKIP, "skip")
#define OBJECTIVE_MASKED_SEQS(BUILT, LATER) BUILT(COUNT, "count") BUILT(EXCLUDE, "exclude")
#define OBJECTIVE_KL_PLACES(BUILT, LATER) BUILT(LOSS, "loss") LATER("reward")
#define OBJECTIVE_KL_RATIOS(BUILT, LATER) BUILT(NONE, "none") BUILT(MULTIPLY, "multiply") BUILT(DETACHED, "detached")
#define OBJECTIVE_ANCHORS(BUILT, LATER) BUILT(OLD, "old") LATER("rollout")
#define OBJECTIVE_FILTERS(BUILT, LATER)                                                                                \
    BUILT(NONE, "none") LATER("nonzero_variance") LATER("range") LATER("mean_interval")
#define OBJECTIVE_IMPORTANCES(BUILT, LATER) \
    BUILT(NONE, "none") \
    LATER("token") LATER("token_truncate") LATER("token_mask") LATER("sequence_truncate") LATER("sequence_mask") \
    LATER("seq_mask_tis") LATER("outlier_token") LATER("tv_mask") LATER("seq_mult_prob_error") LATER("rollout_rs")
#define OBJECTIVE_SELECTIONS(BUILT, LATER)                                                                             \
    BUILT(NONE, "none")                                                                                                \
    LATER("top_entropy_quantile") LATER("off_policy_sequence_mask") LATER("m2po") LATER("clip_cov") LATER("kl_cov")
/* clang-format on */

#define OBJECTIVE_NO_ROW(name)
#define OBJECTIVE_ENUM(prefix, LIST, ROW) enum { LIST(ROW, OBJECTIVE_NO_ROW) prefix##_BUILT }
#define OBJECTIVE_ESTIMATOR_ROW(symbol, name) OBJECTIVE_ESTIMATOR_##symbol,
#define OBJECTIVE_LOSS_ROW(symbol, name) OBJECTIVE_LOSS_##symbol,
#define OBJECTIVE_KL_ROW(symbol, name) OBJECTIVE_KL_##symbol,
#define OBJECTIVE_MODE_ROW(symbol, name) OBJECTIVE_MODE_##symbol,
#define OBJECTIVE_SCALE_ROW(symbol, name) OBJECTIVE_SCALE_##symbol,
#define OBJECTIVE_SINGLETON_ROW(symbol, name) OBJECTIVE_SINGLETON_##symbol,
#define OBJECTIVE_MISSING_ROW(symbol, name) OBJECTIVE_MISSING_##symbol,
#define OBJECTIVE_MASKED_SEQ_ROW(symbol, name) OBJECTIVE_MASKED_SEQ_##symbol,
#define OBJECTIVE_KL_RATIO_ROW(symbol, name) OBJECTIVE_KL_RATIO_##symbol,
OBJECTIVE_ENUM(OBJECTIVE_ESTIMATOR, OBJECTIVE_ESTIMATORS, OBJECTIVE_ESTIMATOR_ROW);
OBJECTIVE_ENUM(OBJECTIVE_LOSS, OBJECTIVE_LOSSES, OBJECTIVE_LOSS_ROW);
OBJECTIVE_ENUM(OBJECTIVE_KL, OBJECTIVE_KLS, OBJECTIVE_KL_ROW);
OBJECTIVE_ENUM(OBJECTIVE_MODE, OBJECTIVE_MODES, OBJECTIVE_MODE_ROW);
OBJECTIVE_ENUM(OBJECTIVE_SCALE, OBJECTIVE_SCALES, OBJECTIVE_SCALE_ROW);
OBJECTIVE_ENUM(OBJECTIVE_SINGLETON, OBJECTIVE_SINGLETONS, OBJECTIVE_SINGLETON_ROW);
OBJECTIVE_ENUM(OBJECTIVE_MISSING, OBJECTIVE_MISSINGS, OBJECTIVE_MISSING_ROW);
OBJECTIVE_ENUM(OBJECTIVE_MASKED_SEQ, OBJECTIVE_MASKED_SEQS, OBJECTIVE_MASKED_SEQ_ROW);
OBJECTIVE_ENUM(OBJECTIVE_KL_RATIO, OBJECTIVE_KL_RATIOS, OBJECTIVE_KL_RATIO_ROW);

/* Every knob, explicit. A number that may be null is NAN then. Choices are indices of the lists above. */
struct objective_knobs {
    const char *preset; /* full name of the preset it began with; static */
    struct {
        int estimator;
        int ddof; /* 0 or 1 */
        double eps;
        int scale;
        int singleton;
        int missing;
        double clip_low, clip_high;
    } advantage;
    struct {
        bool truncated;
    } mask;
    struct {
        int rule;
    } filter;
    struct {
        int kind;
        double eps_low, eps_high;
        double dual_c, delta, log_clamp;
        int anchor;
        bool accept_delta_below_clip;
    } loss;
    double beta;
    struct {
        int estimator;
        int in;
        double log_clamp, value_clamp;
        int ratio;
    } kl;
    struct {
        int method;
    } importance;
    struct {
        int method;
    } selection;
    struct {
        int mode;
        int masked_seq;
        double max_len, denominator;
    } aggregation;
};

/* A value that a knob may name: names[0..built) work, the rest of the NULL-terminated list is known and not built. */
struct objective_choices {
    const char *const *names;
    size_t built;
};

enum objective_knob_type { KNOB_NUMBER, KNOB_INTEGER, KNOB_BOOLEAN, KNOB_CHOICE };
enum {
    KNOB_NULLABLE = 1,      /* null stands for "off" */
    KNOB_REQUIRED = 2,      /* has no default: must be given where its kind uses it */
    KNOB_SELECTOR = 4,      /* names the kind of its section; first knob of the section */
    KNOB_ABOVE_MINIMUM = 8, /* the minimum itself is not allowed */
};

struct objective_knob {
    const char *section; /* "" for the top level */
    const char *name;
    enum objective_knob_type type;
    unsigned flags;
    size_t offset; /* in struct objective_knobs: double, int or bool */
    double minimum, maximum;
    const struct objective_choices *choices;
    uint32_t used_by; /* bit i: kind i of the section's selector uses it */
};

/* THE table of knobs, in the order of the echo: the knobs of a section stand together, its selector first. */
extern const struct objective_knob objective_knobs_table[];
extern const size_t objective_knobs_count;

/* Sections whose only accepted value is the empty list or the default so far, and knobs of KNOBS that no built kind
 * uses: true if `section`.`name` stands in the contract but is not built. */
bool objective_knob_is_known(const char *section, const char *name);

/* The kind that the section's selector names now (0 where a section has none), and whether it uses the knob. */
bool objective_knob_is_used(const struct objective_knobs *knobs, const struct objective_knob *knob);

struct objective_preset {
    const char *name;    /* as echoed */
    const char *summary; /* one sentence, with its source */
    void (*fill)(struct objective_knobs *ret_knobs);
};
extern const struct objective_preset objective_presets[];
extern const size_t objective_presets_count;
#define OBJECTIVE_DEFAULT_PRESET "grpo"

/* name: length_bytes of text. False if there is no such preset. */
bool objective_preset_find(const char *name, size_t length_bytes, struct objective_knobs *ret_knobs);

/* Sets the knobs that a kind which is short for another brings with it: call after the selector was read, before the
 * other knobs. */
void objective_expand_short_kinds(struct objective_knobs *knobs, const struct objective_knob *selector);

struct objective_contradiction {
    char path[48]; /* "loss.delta" */
    char message[160];
};
/* Call when all knobs are read. Finds what no single knob can say: required ones that are absent, bounds that
 * contradict each other; then a kind that is short for another takes its name. 0, or -1. */
int objective_settle(struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction);

/* True if the advantages of a group depend on other groups (scale batch): they exist only when the whole batch is
 * closed. */
bool objective_needs_whole_batch(const struct objective_knobs *knobs);
/* True if both give the same advantage to the same rewards. */
bool objective_same_advantage_rule(const struct objective_knobs *left, const struct objective_knobs *right);

/* --- rewards and advantages --- */

/* R = sum of weight * score. A null score (NAN) with weight other than 0 makes R null (NAN) by OBJECTIVE_MISSING_NULL,
 * or counts as 0 by OBJECTIVE_MISSING_SKIP (then R is null only if every score is). n = 0 gives NAN. */
double objective_combine_rewards(size_t n, const double *scores, const double *weights, int missing);

struct objective_statistics { /* the room's own: sums of the two passes */
    size_t count;
    double sum, minimum, maximum;
    double mean, unit, squares, drift;
};

struct objective_group {
    size_t members; /* all sequences that name it */
    size_t judged;  /* those with a reward: all statistics are over these */
    double mean, minimum, maximum;
    double std;         /* by `ddof`; NAN where judged <= ddof */
    bool zero_variance; /* judged > 0 and maximum == minimum */
    struct objective_statistics statistics;
    size_t correct; /* members with a reward above 0 */
    bool counted;   /* a sequence of it is in the denominators */
};

/* The advantages of one whole group at its closing. rewards[n]: NAN = not judged, gets NAN. ret_advantages may be NULL
 * (statistics only) or the same array as rewards. Not for rules over the whole batch: those give NAN until
 * objective_evaluate(). ret_group is filled always. 0; -1 without memory, or where a mean or a deviation overflows
 * (ret_advantages all NAN). */
int objective_group_advantages(const struct objective_knobs *knobs, size_t n, const double *rewards,
                               double *ret_advantages, struct objective_group *ret_group);

/* --- evaluation --- */

/* One number for each token, in either precision; both NULL = absent. */
struct objective_values {
    const double *f64;
    const float *f32;
};

enum objective_finish { OBJECTIVE_FINISH_UNKNOWN, OBJECTIVE_FINISH_LENGTH, OBJECTIVE_FINISH_OTHER };

struct objective_sequence {
    /* in */
    size_t group;        /* below group_count */
    double reward;       /* NAN: none. Needed by estimators, and for the reward metrics if there is one */
    bool judged;         /* false: no part in any statistic, loss or denominator; advantage NAN, arrays 0 */
    bool untrainable;    /* its reward counts in the statistics of its group, its tokens nowhere */
    size_t tokens;       /* 0 is as good as all masked */
    const uint8_t *mask; /* 0/1 per token; NULL: all 1 */
    struct objective_values logprobs;         /* absent: ratio 1 */
    struct objective_values old_logprobs;     /* absent: ratio 1 */
    struct objective_values ref_logprobs;     /* needed if beta > 0 */
    struct objective_values rollout_logprobs; /* only for metrics so far */
    enum objective_finish finish_reason;
    int64_t length; /* for length metrics; usually = tokens */

    double advantage;               /* in if advantages_given, else out; after the clip; NAN if not judged */
    const double *token_advantages; /* instead: one per token (advantages_given only) */

    /* out: each NULL (not wanted) or room for `tokens` values, which are all written */
    double *surrogates;    /* minus the policy term */
    double *contributions; /* weight * (policy term + beta * kl); they sum to the loss */
    double *dloss_dlogp;   /* derivative of the scalar loss by this token's log-probability */
    double *ratios;        /* INFINITY where it is beyond double and cannot enter the loss */
    double *weights;
    double *kl;
    int8_t *clipped;   /* 0; 1 upper bound, -1 lower bound, 2 dual_c acts */
    uint8_t *selected; /* 1: the policy term is counted */

    /* out */
    double loss; /* sum of its contributions */
    size_t trainable_tokens;
};

/* The denominators of an optimiser step. NAN: not given. */
struct objective_totals {
    double tokens, sequences, groups;
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
    double gap_sum; /* |old - rollout| */
};

/* One number of `metrics`. NAN = null. */
struct objective_metrics {
    double ratio_mean, ratio_max, ratio_outside_band;
    double clip_low_fraction, clip_high_fraction, clip_fraction;
    double approx_kl_k1, approx_kl_k3, kl;
    double reward_mean, reward_std; /* sample deviation */
    double frac_reward_zero_std, frac_groups_zero_std;
    uint64_t zero_variance_groups;
    double mean_length, min_length, max_length, truncated_fraction;
    double mean_terminated_length, min_terminated_length, max_terminated_length;
    bool has_rollout;
    struct {
        double kl, k3_kl, training_log_ppl, rollout_log_ppl, log_ppl_diff, ppl_ratio;
        double chi2_token, chi2_seq, is_mean, is_max, is_min, ess;
    } rollout;
};

enum objective_note {
    OBJECTIVE_NOTE_SINGLETON = 1,      /* a group had one judged member */
    OBJECTIVE_NOTE_ALL_MASKED = 2,     /* sequences were judged, but no token is trainable: the loss is 0 */
    OBJECTIVE_NOTE_NOTHING_SCORED = 4, /* the loss is NAN */
    OBJECTIVE_NOTE_RATIO_OVERFLOW = 8, /* a ratio beyond double, where it could not enter the loss */
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
    bool groups_given;     /* by objective_group_advantages() over all members; the request may hold a part of them.
                            * Only with advantages_given */
    bool advantages_given; /* the estimator is not run; rewards feed the metrics only */
    const struct objective_totals *totals; /* NULL: count in the request */
};

/* 0, or -1 with ret_error. Linear in the tokens; no allocation. */
int objective_evaluate(const struct objective_request *request, struct objective_result *ret_result,
                       struct objective_error *ret_error);

/* mean over groups of 1 - C(n-c, k) / C(n, k), n judged members, c of them with reward > 0; NAN where a group has fewer
 * than k members or there is none. Source: Chen et al., arXiv 2107.03374, section 2.1. */
double objective_pass_at_k(const struct objective_request *request, uint64_t k);

/* --- a sampled batch: ratio 1, no reference policy yet --- */

enum { OBJECTIVE_LEFT_OUT_KL = 1 };
/* The knobs for the batch's own loss: what needs inputs that do not exist at sampling time is switched off. Returns
 * what was. */
unsigned objective_at_sampling(const struct objective_knobs *knobs, struct objective_knobs *ret_knobs);

/* One rollout of a closed batch: its terms at ratio 1, by the batch's knobs and its stored totals (which must hold
 * every count the mode uses). Over the batch the contributions sum to the loss that objective_evaluate() gave at the
 * closing, to a few ulps. logprobs: every loss that is built reads the ratio alone, which is 1, so they may be absent.
 * mask NULL: all 1. surrogates, contributions: tokens long, or NULL. 0, or -1 (a missing input). */
int objective_rollout_terms(const struct objective_knobs *knobs, const struct objective_totals *totals,
                            double advantage, size_t tokens, const uint8_t *mask, struct objective_values logprobs,
                            enum objective_finish finish_reason, double *surrogates, double *contributions);

#endif
