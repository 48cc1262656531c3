/* terms: what the files of this room share. A block is a run of trainable tokens, gathered without gaps, so that a
 * masked token cannot touch the arithmetic and a loss is a plain loop over arrays. */
#ifndef OBJECTIVE_TERMS_H
#define OBJECTIVE_TERMS_H

#include "server/objective/math.h"
#include "server/objective/objective.h"

#define OBJECTIVE_BLOCK 256

struct objective_block {
    size_t count;
    size_t token[OBJECTIVE_BLOCK]; /* where in the sequence */
    double advantage[OBJECTIVE_BLOCK];
    double logprob[OBJECTIVE_BLOCK];
    double x[OBJECTIVE_BLOCK];         /* logprob - old, clamped */
    double clamped[OBJECTIVE_BLOCK];   /* 0 where log_clamp acts on x, else 1 */
    double ratio[OBJECTIVE_BLOCK];     /* e^x */
    double distance[OBJECTIVE_BLOCK];  /* logprob - reference */
    double rollout_x[OBJECTIVE_BLOCK]; /* old - rollout */
    double rollout[OBJECTIVE_BLOCK];
    /* filled by the loss */
    double value[OBJECTIVE_BLOCK];
    double slope[OBJECTIVE_BLOCK]; /* derivative of value by logprob */
    int8_t clipped[OBJECTIVE_BLOCK];
    uint8_t selected[OBJECTIVE_BLOCK];
    /* filled by the KL */
    double kl[OBJECTIVE_BLOCK];
    double kl_slope[OBJECTIVE_BLOCK];
};

/* --- one row for each kind --- */

/* Fills `advantage` of every judged sequence, from rewards and the groups' statistics. 0, or -1 with the error. */
typedef int objective_estimate(const struct objective_request *request, struct objective_error *ret_error);
extern objective_estimate *const objective_estimators[OBJECTIVE_ESTIMATOR_BUILT];

struct objective_loss {
    void (*terms)(const struct objective_knobs *knobs, struct objective_block *block);
    bool has_bounds; /* eps_low, eps_high */
};
extern const struct objective_loss objective_losses[OBJECTIVE_LOSS_BUILT];

typedef void objective_kl_terms(const struct objective_knobs *knobs, struct objective_block *block);
extern objective_kl_terms *const objective_kls[OBJECTIVE_KL_BUILT];
void objective_kl_block(const struct objective_knobs *knobs, struct objective_block *block);

enum objective_denominators { DIVIDES_BY_TOKENS = 1, DIVIDES_BY_SEQUENCES = 2, DIVIDES_BY_GROUPS = 4 };
struct objective_mode {
    double (*weight)(const struct objective_knobs *knobs, const struct objective_totals *totals, double tokens);
    unsigned divides_by; /* which totals it needs */
};
extern const struct objective_mode objective_modes[OBJECTIVE_MODE_BUILT];

/* --- statistics --- */

/* Mean and deviation in two passes, with the squares scaled by a power of two where they would overflow or vanish. */
void statistics_first(struct objective_statistics *statistics, double value);
void statistics_turn(struct objective_statistics *statistics); /* between the passes */
void statistics_second(struct objective_statistics *statistics, double value);
bool statistics_constant(const struct objective_statistics *statistics); /* nothing in it, or maximum == minimum */
double statistics_deviation(const struct objective_statistics *statistics, int ddof); /* NAN where count <= ddof */

/* Fills request->groups from the rewards of the judged sequences. -1: a sum or a deviation is beyond double. */
/* Statistics, estimator (unless advantages are given), clip. */
int objective_advantages(const struct objective_request *request, struct objective_error *ret_error);
int objective_group_statistics(const struct objective_request *request, struct objective_error *ret_error);

/* --- metrics --- */

/* Running values that objective_sums does not keep. */
struct objective_meter {
    uint64_t rollout_tokens, rollout_sequences;
    double rollout_k1, rollout_k3, weight_sum, weight_square_sum, weight_max, weight_min;
    double training_ppl, rollout_ppl, ppl_difference, ppl_ratio, chi2_seq;
    /* of the sequence at hand */
    double sequence_old, sequence_rollout, sequence_x;
    uint64_t sequence_tokens;
};
void meter_block(const struct objective_request *request, const struct objective_block *block, bool has_rollout,
                 bool has_kl, struct objective_meter *meter, struct objective_sums *sums);
void meter_sequence(struct objective_meter *meter);
void objective_fill_metrics(const struct objective_request *request, const struct objective_meter *meter,
                            struct objective_result *result);

int objective_fail(struct objective_error *ret_error, enum objective_error_code code, size_t sequence, size_t token,
                   const char *field, const char *message); /* -1 */

#endif
