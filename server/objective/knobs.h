/* knobs: every choice that a trainer's arithmetic makes, explicit, with its presets.
 *
 * The values of a knob stand in tables: a list below names every value of a choice, in the order of its enum; the table
 * in knobs.c has a row for each knob, which says which kinds use it. The transport reads and writes objectives by these
 * rows alone. Formula and source of each value stand where it is computed. Pure, any thread. */
#ifndef OBJECTIVE_KNOBS_H
#define OBJECTIVE_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define OBJECTIVE_ESTIMATORS(ROW) \
    ROW(GRPO, "grpo") ROW(REWARD, "reward") ROW(RLOO, "rloo") ROW(LOO, "loo_mean_loo_std") ROW(MAXRL, "maxrl") \
    ROW(PASSK, "grpo_passk") ROW(OPO, "opo") ROW(GPG, "gpg") ROW(REMAX, "remax") ROW(REWARD_TO_GO, "reward_to_go") \
    ROW(RPP, "reinforce_plus_plus") ROW(RPP_BASELINE, "reinforce_plus_plus_baseline") \
    ROW(RPP_BASELINE_SEQUENCE, "reinforce_plus_plus_baseline_sequence") ROW(GDPO, "gdpo") \
    ROW(NORMALIZATION, "normalization") ROW(PROCESS, "process") ROW(EMA_BASELINE, "ema_baseline") \
    ROW(OPTIMAL_TOKEN_BASELINE, "optimal_token_baseline")

#define OBJECTIVE_SHAPERS(ROW) \
    ROW(SOFT_OVERLONG, "dapo_soft_overlong") ROW(STOP_PROPERLY, "stop_properly") \
    ROW(LINEAR_LENGTH, "linear_length_penalty") ROW(LINEAR_MAP, "linear_map") \
    ROW(BIAS_SCALE_CLIP, "bias_scale_clip") ROW(REWARD_CLIP, "reward_clip") ROW(NO_EOS_ZERO, "no_eos_zero") \
    ROW(COSINE, "cosine") ROW(REPETITION, "repetition")

#define OBJECTIVE_FILTERS(ROW) \
    ROW(NONE, "none") ROW(NONZERO_VARIANCE, "nonzero_variance") ROW(RANGE, "range") ROW(MEAN_INTERVAL, "mean_interval")

#define OBJECTIVE_KLS(ROW) \
    ROW(K1, "k1") ROW(ABS, "abs") ROW(K2, "k2") ROW(K3, "k3") ROW(K1_PLUS, "k1_plus") ROW(K3_PLUS, "k3_plus") \
    ROW(LOW_VAR, "low_var") /* short for k3 with log_clamp 20, value_clamp 10 */

#define OBJECTIVE_IMPORTANCES(ROW) \
    ROW(NONE, "none") ROW(TOKEN, "token") ROW(TOKEN_TRUNCATE, "token_truncate") ROW(TOKEN_MASK, "token_mask") \
    ROW(SEQUENCE_TRUNCATE, "sequence_truncate") ROW(SEQUENCE_MASK, "sequence_mask") \
    ROW(SEQ_MASK_TIS, "seq_mask_tis") ROW(OUTLIER_TOKEN, "outlier_token") ROW(TV_MASK, "tv_mask") \
    ROW(SEQ_MULT_PROB_ERROR, "seq_mult_prob_error") ROW(ROLLOUT_RS, "rollout_rs")

#define OBJECTIVE_RS_OPTIONS(ROW) \
    ROW(TOKEN_K1, "token_k1") ROW(TOKEN_K2, "token_k2") ROW(TOKEN_K3, "token_k3") \
    ROW(SEQ_SUM_K1, "seq_sum_k1") ROW(SEQ_SUM_K2, "seq_sum_k2") ROW(SEQ_SUM_K3, "seq_sum_k3") \
    ROW(SEQ_MEAN_K1, "seq_mean_k1") ROW(SEQ_MEAN_K2, "seq_mean_k2") ROW(SEQ_MEAN_K3, "seq_mean_k3") \
    ROW(SEQ_MAX_K2, "seq_max_k2") ROW(SEQ_MAX_K3, "seq_max_k3")

#define OBJECTIVE_SELECTIONS(ROW) \
    ROW(NONE, "none") ROW(TOP_ENTROPY, "top_entropy_quantile") ROW(OFF_POLICY, "off_policy_sequence_mask") \
    ROW(M2PO, "m2po") ROW(CLIP_COV, "clip_cov") ROW(KL_COV, "kl_cov")

#define OBJECTIVE_MODES(ROW) \
    ROW(SEQ_MEAN_TOKEN_MEAN, "seq_mean_token_mean") ROW(TOKEN_MEAN, "token_mean") ROW(TOKEN_SUM, "token_sum") \
    ROW(SEQ_MEAN_TOKEN_SUM, "seq_mean_token_sum") ROW(SEQ_MEAN_TOKEN_SUM_NORM, "seq_mean_token_sum_norm") \
    ROW(SEQ_SUM_TOKEN_SUM_NORM, "seq_sum_token_sum_norm") ROW(PROMPT_MEAN, "prompt_mean") \
    ROW(ROLLOUT_MEAN, "rollout_mean") ROW(CONSTANT, "constant") \
    ROW(GROUP_MEAN, "group_mean_seq_mean_token_mean")

#define OBJECTIVE_SCALES(ROW) ROW(GROUP, "group") ROW(BATCH, "batch") ROW(NONE, "none") /* also of `mean` */
#define OBJECTIVE_SINGLETONS(ROW) ROW(ZERO, "zero") ROW(RAW, "raw")
#define OBJECTIVE_MISSINGS(ROW) ROW(NULL, "null") ROW(SKIP, "skip")
#define OBJECTIVE_FORMS(ROW) ROW(PLUS_EPS, "rsqrt_var_plus_eps") ROW(MAX_EPS, "rsqrt_max")
#define OBJECTIVE_FILTER_ONS(ROW) ROW(RAW, "raw") ROW(SHAPED, "shaped")
#define OBJECTIVE_ANCHORS(ROW) ROW(OLD, "old") ROW(ROLLOUT, "rollout")
#define OBJECTIVE_TV_FORMS(ROW) ROW(RATIO, "ratio") ROW(LOGP, "logp")
#define OBJECTIVE_ZERO_ADVS(ROW) ROW(KEEP, "keep") ROW(LOW, "low")
#define OBJECTIVE_KL_PLACES(ROW) ROW(LOSS, "loss") ROW(REWARD, "reward")
#define OBJECTIVE_KL_RATIOS(ROW) ROW(NONE, "none") ROW(MULTIPLY, "multiply") ROW(DETACHED, "detached")
#define OBJECTIVE_REDUCTIONS(ROW) ROW(SUM, "sum") ROW(MEAN, "mean")
#define OBJECTIVE_IS_DENOMINATORS(ROW) ROW(ORIGINAL, "original") ROW(KEPT, "kept")
#define OBJECTIVE_MASKED_SEQS(ROW) ROW(COUNT, "count") ROW(EXCLUDE, "exclude")

#define OBJECTIVE_ESTIMATOR_ROW(symbol, name) OBJECTIVE_ESTIMATOR_##symbol,
#define OBJECTIVE_SHAPER_ROW(symbol, name) OBJECTIVE_SHAPER_##symbol,
#define OBJECTIVE_FILTER_ROW(symbol, name) OBJECTIVE_FILTER_##symbol,
#define OBJECTIVE_KL_ROW(symbol, name) OBJECTIVE_KL_##symbol,
#define OBJECTIVE_IMPORTANCE_ROW(symbol, name) OBJECTIVE_IMPORTANCE_##symbol,
#define OBJECTIVE_RS_ROW(symbol, name) OBJECTIVE_RS_##symbol,
#define OBJECTIVE_SELECTION_ROW(symbol, name) OBJECTIVE_SELECTION_##symbol,
#define OBJECTIVE_MODE_ROW(symbol, name) OBJECTIVE_MODE_##symbol,
#define OBJECTIVE_SCALE_ROW(symbol, name) OBJECTIVE_SCALE_##symbol,
#define OBJECTIVE_SINGLETON_ROW(symbol, name) OBJECTIVE_SINGLETON_##symbol,
#define OBJECTIVE_MISSING_ROW(symbol, name) OBJECTIVE_MISSING_##symbol,
#define OBJECTIVE_FORM_ROW(symbol, name) OBJECTIVE_FORM_##symbol,
#define OBJECTIVE_FILTER_ON_ROW(symbol, name) OBJECTIVE_FILTER_ON_##symbol,
#define OBJECTIVE_ANCHOR_ROW(symbol, name) OBJECTIVE_ANCHOR_##symbol,
#define OBJECTIVE_TV_FORM_ROW(symbol, name) OBJECTIVE_TV_FORM_##symbol,
#define OBJECTIVE_ZERO_ADV_ROW(symbol, name) OBJECTIVE_ZERO_ADV_##symbol,
#define OBJECTIVE_KL_IN_ROW(symbol, name) OBJECTIVE_KL_IN_##symbol,
#define OBJECTIVE_KL_RATIO_ROW(symbol, name) OBJECTIVE_KL_RATIO_##symbol,
#define OBJECTIVE_REDUCTION_ROW(symbol, name) OBJECTIVE_REDUCTION_##symbol,
#define OBJECTIVE_IS_DENOMINATOR_ROW(symbol, name) OBJECTIVE_IS_DENOMINATOR_##symbol,
#define OBJECTIVE_MASKED_SEQ_ROW(symbol, name) OBJECTIVE_MASKED_SEQ_##symbol,
enum { OBJECTIVE_ESTIMATORS(OBJECTIVE_ESTIMATOR_ROW) OBJECTIVE_ESTIMATOR_COUNT };
enum { OBJECTIVE_SHAPERS(OBJECTIVE_SHAPER_ROW) OBJECTIVE_SHAPER_COUNT };
enum { OBJECTIVE_FILTERS(OBJECTIVE_FILTER_ROW) OBJECTIVE_FILTER_COUNT };
#define LOSS(symbol, ...) OBJECTIVE_LOSS_##symbol,
enum {
#include "server/objective/losses.def"
    OBJECTIVE_LOSS_COUNT
};
#undef LOSS
enum { OBJECTIVE_KLS(OBJECTIVE_KL_ROW) OBJECTIVE_KL_COUNT };
enum { OBJECTIVE_IMPORTANCES(OBJECTIVE_IMPORTANCE_ROW) OBJECTIVE_IMPORTANCE_COUNT };
enum { OBJECTIVE_RS_OPTIONS(OBJECTIVE_RS_ROW) OBJECTIVE_RS_COUNT };
enum { OBJECTIVE_SELECTIONS(OBJECTIVE_SELECTION_ROW) OBJECTIVE_SELECTION_COUNT };
enum { OBJECTIVE_MODES(OBJECTIVE_MODE_ROW) OBJECTIVE_MODE_COUNT };
enum { OBJECTIVE_SCALES(OBJECTIVE_SCALE_ROW) };
enum { OBJECTIVE_SINGLETONS(OBJECTIVE_SINGLETON_ROW) };
enum { OBJECTIVE_MISSINGS(OBJECTIVE_MISSING_ROW) };
enum { OBJECTIVE_FORMS(OBJECTIVE_FORM_ROW) };
enum { OBJECTIVE_FILTER_ONS(OBJECTIVE_FILTER_ON_ROW) };
enum { OBJECTIVE_ANCHORS(OBJECTIVE_ANCHOR_ROW) };
enum { OBJECTIVE_TV_FORMS(OBJECTIVE_TV_FORM_ROW) };
enum { OBJECTIVE_ZERO_ADVS(OBJECTIVE_ZERO_ADV_ROW) };
enum { OBJECTIVE_KL_PLACES(OBJECTIVE_KL_IN_ROW) };
enum { OBJECTIVE_KL_RATIOS(OBJECTIVE_KL_RATIO_ROW) };
enum { OBJECTIVE_REDUCTIONS(OBJECTIVE_REDUCTION_ROW) };
enum { OBJECTIVE_IS_DENOMINATORS(OBJECTIVE_IS_DENOMINATOR_ROW) };
enum { OBJECTIVE_MASKED_SEQS(OBJECTIVE_MASKED_SEQ_ROW) };
/* clang-format on */

/* The kinds of losses as texts, in the order of their enum; UTF-8, static. */
struct objective_loss_text {
    const char *name;
    const char *value;
    const char *derivative; /* by the token's log-probability */
    const char *source;
};
extern const struct objective_loss_text objective_loss_texts[OBJECTIVE_LOSS_COUNT];

#define OBJECTIVE_SHAPING_MAX 16
#define OBJECTIVE_IMPORTANCE_MAX 8

struct objective_shaper {
    int kind;
    double max_len, buffer, factor;
    bool capped;
    double coef;
    double w_out, w_in, w_turns;
    double source[2], target[2]; /* low, high */
    double bias, scale, clip;
    double lo, hi;
    double min_correct, max_correct, min_wrong, max_wrong;
    int ngram;
    double max_penalty;
};

/* One number, or two as the text "lo_hi". */
struct objective_bounds {
    double number; /* NAN if there are two, or none */
    double low, high;
};

struct objective_correction {
    int method;
    double lo, hi, log_clamp;
    int reduction;
    int option;
    struct objective_bounds threshold;
    bool batch_normalise;
    int denominator;
};

/* Every knob. A number that may be null, or that has no default, is NAN then. Choices are values of the enums above;
 * a choice without a default is -1. */
struct objective_knobs {
    const char *preset; /* full name of the preset it began with; static */
    struct {
        int estimator;
        int ddof; /* 0 or 1 */
        double eps;
        int scale, singleton, missing;
        int mean; /* enum of scales */
        bool leave_one_out, normalize_batch, guard_nonpositive_mean, norm;
        double f_norm, gamma;
        double outcome_coef; /* process */
        int form;
        double eps_group, eps_batch;
        double decay, initial;
        double clip_low, clip_high;
        double teacher_coef;
    } advantage;
    struct objective_shaper shaping[OBJECTIVE_SHAPING_MAX];
    size_t shaping_count;
    struct {
        bool truncated;
    } mask;
    struct {
        int rule;
        double tol, lo, hi;
        int on;
    } filter;
    struct {
        int kind;
        double eps_low, eps_high;
        double dual_c, delta, log_clamp;
        bool accept_delta_below_clip;
        double lo, hi;           /* cispo */
        double log_max;          /* gspo */
        double tau_pos, tau_neg; /* sapo */
        double k_pos, lambda_pos, k_neg, lambda_neg;
        double d_low, d_high, c, kl_tau;
        int form, zero_adv;
        double threshold; /* ipo */
        double beta;      /* dro */
        double decay, clip_range, safety;
        bool clip_high_only;
        double tau; /* real */
        double positive_nll;
        int anchor;
    } loss;
    double beta;
    struct {
        int estimator;
        int in;
        double log_clamp, value_clamp;
        int ratio;
        bool skip_zero_variance;
    } kl;
    struct objective_correction importance[OBJECTIVE_IMPORTANCE_MAX];
    size_t importance_count; /* 0: none; none of them has the method `none` */
    struct {
        int method;
        double rho, delta, threshold;
        double ratio, lb, ub;
        int64_t seed;
        double frac, ppo_kl_coef;
    } selection;
    struct {
        int mode;
        int masked_seq;
        double max_len, denominator;
    } aggregation;
};

/* --- the table --- */

enum objective_knob_type {
    KNOB_NUMBER,  /* double */
    KNOB_INTEGER, /* int */
    KNOB_SEED,    /* int64_t, 0 to 2^63-1 */
    KNOB_BOOLEAN, /* bool */
    KNOB_CHOICE,  /* int */
    KNOB_PAIR,    /* double[2]: [low, high] */
    KNOB_BOUNDS,  /* struct objective_bounds: a number, or the text "lo_hi" */
};
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
    size_t offset; /* in the section's item: struct objective_knobs, or the struct of a list's items */
    double minimum, maximum;
    const char *const *choices; /* names, NULL-terminated */
    uint32_t used_by;           /* bit i: kind i of the section's selector uses it */
};

/* THE table of knobs, in the order of the echo: the knobs of a section stand together, its selector first. */
extern const struct objective_knob objective_knobs_table[];
extern const size_t objective_knobs_count;

/* Sections in the order of the echo. A list's items are structs of their own, from `offset` on. */
struct objective_section {
    const char *name;
    bool is_list;
    bool may_be_object; /* one object stands for a list of one; a list of none is echoed as an object with `none` */
    size_t offset, item_bytes, count_offset, maximum;
};
extern const struct objective_section objective_sections[];
extern const size_t objective_sections_count;
const struct objective_section *objective_section_find(const char *name); /* NULL: none */

/* Where the knobs of the section's item `index` are; index 0 for a section that is no list. */
void *objective_section_item(struct objective_knobs *knobs, const struct objective_section *section, size_t index);
/* A new item of a list with every default; its kind is to be set. */
void objective_item_init(const struct objective_section *section, void *item);

/* The kind that the item's selector names now (0 where a section has none), and whether it uses the knob. */
bool objective_knob_is_used(const void *item, const struct objective_knob *knob);

/* Call after a selector was read and before the other knobs of its item: if the kind is another than before, the knobs
 * whose default depends on the kind take it, and a kind that is short for another brings its knobs along. */
void objective_kind_chosen(void *item, const struct objective_knob *selector, int previous_kind);

/* --- presets --- */

struct objective_preset {
    const char *name;                                /* as echoed: "trl@1.16" */
    const char *summary;                             /* one sentence, with its source */
    void (*fill)(struct objective_knobs *ret_knobs); /* objective_preset_fill() */
};
/* Of several versions of one trainer the newest comes first. */
extern const struct objective_preset objective_presets[];
extern const size_t objective_presets_count;
#define OBJECTIVE_DEFAULT_PRESET "grpo"

void objective_preset_fill(const struct objective_preset *preset, struct objective_knobs *ret_knobs);
/* name: length_bytes of text, with its version or without (then the newest). False if there is no such preset. */
bool objective_preset_find(const char *name, size_t length_bytes, struct objective_knobs *ret_knobs);

/* Calls `found` with the path of each knob that is not the preset's ("loss.eps_high", "shaping"). */
void objective_overrides(const struct objective_knobs *knobs, void (*found)(void *arg, const char *path), void *arg);

/* --- what no single row can say --- */

struct objective_contradiction {
    char path[64]; /* "loss.delta" */
    char message[200];
};
/* Call when all knobs are read. Finds required knobs that are absent, bounds that contradict each other, terms that
 * exclude each other; then a kind that is short for another takes its name. 0, or -1. */
int objective_settle(struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction);

/* The path of the first knob whose value depends on all sequences of an optimiser step, so that it has no meaning in a
 * part of it; NULL: none. advantages_given: the advantage rule is not run. */
const char *objective_needs_whole_request(const struct objective_knobs *knobs, bool advantages_given);
/* The same of the advantage rule alone: advantages exist only when every group of the batch is there. */
bool objective_needs_whole_batch(const struct objective_knobs *knobs);
/* The weight of a token depends on the other members of its group (or of its rollout). */
bool objective_needs_whole_groups(const struct objective_knobs *knobs);
/* The terms of a rollout at ratio 1 depend on the other members of its group. */
bool objective_terms_need_group(const struct objective_knobs *knobs);
/* `advantage` is one number for each token. */
bool objective_is_per_token(const struct objective_knobs *knobs);
/* Both give the same advantage to the same recorded rewards: advantage, shaping, KL in the reward. */
bool objective_same_advantage_rule(const struct objective_knobs *left, const struct objective_knobs *right);

/* --- a sampled batch: ratio 1, no policy but the engine's yet --- */

enum objective_left_out {
    OBJECTIVE_LEFT_OUT_KL = 1,
    OBJECTIVE_LEFT_OUT_IMPORTANCE = 2,
    OBJECTIVE_LEFT_OUT_SELECTION = 4,
    OBJECTIVE_LEFT_OUT_TEACHER = 8,
    OBJECTIVE_LEFT_OUT_POSITIVE_NLL = 16,
};
/* The knobs for the batch's own loss: what needs inputs that do not exist at sampling time is switched off. Returns
 * what was. */
unsigned objective_at_sampling(const struct objective_knobs *knobs, struct objective_knobs *ret_knobs);
/* Refuses what cannot be left out, because no advantage would remain: a KL in the reward, estimators whose inputs no
 * batch has. 0, or -1 with the knob and the reason. */
int objective_check_sampling(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction);
/* The loss at ratio 1 depends on the log-probabilities themselves. */
bool objective_loss_reads_logprobs(const struct objective_knobs *knobs);

#endif
