/* Prints the bits of exp, expm1, log and of a whole evaluation over many inputs, folded into one number. */
#include "server/objective/math.h"
#include "server/objective/objective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 4096, SEQUENCES = 8 };

static uint64_t state = 42, folded = 1469598103934665603u;
static double logprobs[SEQUENCES][TOKENS], old[SEQUENCES][TOKENS], reference[SEQUENCES][TOKENS];
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

static void fold_evaluation(void)
{
    struct objective_knobs knobs;
    struct objective_sequence sequences[SEQUENCES] = {0};
    struct objective_group groups[2];
    struct objective_result result;
    struct objective_error error;

    objective_preset_find("grpo", 4, &knobs);
    knobs.beta = 0.04;
    for (size_t i = 0; i < SEQUENCES; i++) {
        for (size_t t = 0; t < TOKENS; t++) {
            old[i][t] = -3 * next_random();
            logprobs[i][t] = old[i][t] + next_random() - 0.5;
            reference[i][t] = old[i][t] + next_random() - 0.5;
        }
        sequences[i] = (struct objective_sequence){.group = i % 2,
                                                   .reward = next_random(),
                                                   .judged = true,
                                                   .tokens = TOKENS,
                                                   .logprobs.f64 = logprobs[i],
                                                   .old_logprobs.f64 = old[i],
                                                   .ref_logprobs.f64 = reference[i],
                                                   .contributions = contributions[i],
                                                   .dloss_dlogp = slopes[i]};
    }
    if (objective_evaluate(&(struct objective_request){.knobs = &knobs,
                                                       .sequences = sequences,
                                                       .sequence_count = SEQUENCES,
                                                       .groups = groups,
                                                       .group_count = 2},
                           &result, &error) < 0)
        return;
    fold(result.loss);
    fold(result.metrics.approx_kl_k3);
    for (size_t i = 0; i < SEQUENCES; i++)
        for (size_t t = 0; t < TOKENS; t++) {
            fold(contributions[i][t]);
            fold(slopes[i][t]);
        }
}

int main(void)
{
    fold_functions();
    fold_evaluation();
    printf("%016" PRIx64 "\n", folded);
    return 0;
}
