/* Prints the bits of exp, expm1, log and of whole evaluations by every loss and estimator, folded into one number. */
#include "server/objective/math.h"
#include "server/objective/objective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 700, SEQUENCES = 8 };

static uint64_t state = 42, folded = 1469598103934665603u;
static double logprobs[SEQUENCES][TOKENS], old[SEQUENCES][TOKENS], reference[SEQUENCES][TOKENS];
static double rollout[SEQUENCES][TOKENS], rewards[SEQUENCES];
static float logprobs_float[SEQUENCES][TOKENS], old_float[SEQUENCES][TOKENS];
static uint8_t mask[TOKENS];
static double contributions[SEQUENCES][TOKENS], slopes[SEQUENCES][TOKENS];

static double next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void fold(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    folded = (folded ^ bits) * 1099511628211u;
}

static void fold_functions(void)
{
    for (int i = 0; i < 200000; i++) {
        double x = (next_random() - 0.5) * (i & 1 ? 1400 : 3);
        fold(objective_exp(x));
        fold(objective_expm1(x));
        fold(objective_log(x < 0 ? -x : x));
    }
}

/* In blocks, of any length: most of them ordinary, some with a number that is far or none. */
static void fold_blocks(void)
{
    double x[TOKENS], y[TOKENS];

    for (size_t n = 0; n < TOKENS; n += 1 + n / 8) {
        for (size_t k = 0; k < n; k++)
            x[k] = (next_random() - 0.5) * (n % 3 == 0 ? 1600 : 4);
        objective_exps(n, x, y);
        for (size_t k = 0; k < n; k++)
            fold(y[k]);
        for (size_t k = 0; k < n; k++)
            fold(objective_expm1(x[k]));
    }
}

static void make_inputs(void)
{
    for (size_t t = 0; t < TOKENS; t++)
        mask[t] = next_random() < 0.7;
    for (size_t i = 0; i < SEQUENCES; i++) {
        rewards[i] = next_random();
        for (size_t t = 0; t < TOKENS; t++) {
            old[i][t] = -3 * next_random();
            logprobs[i][t] = old[i][t] + next_random() - 0.5;
            reference[i][t] = old[i][t] + next_random() - 0.5;
            rollout[i][t] = old[i][t] + 0.2 * next_random() - 0.1;
            logprobs_float[i][t] = (float)logprobs[i][t];
            old_float[i][t] = (float)old[i][t];
        }
    }
}

/* Ragged; every second in float, every third with a mask. */
static void fill_sequences(struct objective_sequence *sequences)
{
    for (size_t i = 0; i < SEQUENCES; i++) {
        sequences[i] = (struct objective_sequence){.group = i % 2,
                                                   .reward = rewards[i],
                                                   .rewarded = true,
                                                   .tokens = TOKENS - 53 * i,
                                                   .mask = i % 3 == 2 ? mask : NULL,
                                                   .logprobs.f64 = logprobs[i],
                                                   .old_logprobs.f64 = old[i],
                                                   .ref_logprobs.f64 = reference[i],
                                                   .rollout_logprobs.f64 = rollout[i],
                                                   .sum_pi_squared.f64 = reference[i],
                                                   .greedy_reward = 0.5,
                                                   .length = TOKENS,
                                                   .contributions = contributions[i],
                                                   .dloss_dlogp = slopes[i]};
        if (i % 2) {
            sequences[i].logprobs = (struct objective_values){.f32 = logprobs_float[i]};
            sequences[i].old_logprobs = (struct objective_values){.f32 = old_float[i]};
        }
    }
}

static void fold_metrics(const struct objective_result *result)
{
    const double numbers[] = {
        result->loss,
        result->policy_loss,
        result->kl_loss,
        result->metrics.ratio_mean,
        result->metrics.ratio_max,
        result->metrics.ratio_outside_band,
        result->metrics.clip_fraction,
        result->metrics.approx_kl_k1,
        result->metrics.approx_kl_k3,
        result->metrics.kl,
        result->metrics.rollout.kl,
        result->metrics.rollout.k3_kl,
        result->metrics.rollout.ess,
        result->metrics.rollout.chi2_token,
    };

    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
        fold(numbers[k]);
}

static void fold_evaluation(const struct objective_knobs *knobs)
{
    struct objective_sequence sequences[SEQUENCES];
    struct objective_group groups[2];
    struct objective_result result;
    struct objective_error error;

    fill_sequences(sequences);
    if (objective_evaluate(&(struct objective_request){.knobs = knobs,
                                                       .sequences = sequences,
                                                       .sequence_count = SEQUENCES,
                                                       .groups = groups,
                                                       .group_count = 2},
                           &result, &error) < 0) {
        fold(-1);
        return;
    }
    fold_metrics(&result);
    for (size_t i = 0; i < SEQUENCES; i++)
        for (size_t t = 0; t < sequences[i].tokens; t++) {
            fold(contributions[i][t]);
            fold(slopes[i][t]);
        }
}

static void fold_losses(void)
{
    struct objective_knobs knobs;

    for (int kind = 0; kind < OBJECTIVE_LOSS_COUNT; kind++) {
        objective_preset_find("grpo", 4, &knobs);
        knobs.loss.kind = kind;
        knobs.loss.hi = 1.3;
        knobs.loss.beta = 0.1;
        knobs.beta = 0.04;
        knobs.shaping_count = 1;
        objective_item_init(objective_section_find("shaping"), &knobs.shaping[0]);
        knobs.shaping[0].kind = OBJECTIVE_SHAPER_COSINE;
        knobs.shaping[0].max_len = TOKENS + kind;
        knobs.importance_count = kind != OBJECTIVE_LOSS_REAL;
        objective_item_init(objective_section_find("importance"), &knobs.importance[0]);
        knobs.importance[0].method = OBJECTIVE_IMPORTANCE_TOKEN_TRUNCATE;
        knobs.importance[0].hi = 1.05;
        fold_evaluation(&knobs);
    }
}

static void fold_estimators(void)
{
    struct objective_knobs knobs;

    for (int estimator = 0; estimator < OBJECTIVE_ESTIMATOR_COUNT; estimator++) {
        objective_preset_find("grpo", 4, &knobs);
        knobs.advantage.estimator = estimator;
        knobs.advantage.gamma = 0.99;
        knobs.selection.method = OBJECTIVE_SELECTION_M2PO;
        knobs.selection.threshold = 0.001;
        fold_evaluation(&knobs);
    }
}

int main(void)
{
    fold_functions();
    fold_blocks();
    make_inputs();
    fold_losses();
    fold_estimators();
    printf("%016" PRIx64 "\n", folded);
    return 0;
}
