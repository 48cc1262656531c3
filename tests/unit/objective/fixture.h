/* A request built by hand: sequences with short arrays, evaluated with every output wanted. */
#ifndef OBJECTIVE_FIXTURE_H
#define OBJECTIVE_FIXTURE_H

#include "server/objective/objective.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_TOKENS 600
#define MAX_SEQUENCES 16

struct line { /* one sequence: inputs and outputs */
    double logprobs[MAX_TOKENS], old[MAX_TOKENS], reference[MAX_TOKENS], rollout[MAX_TOKENS];
    uint8_t mask[MAX_TOKENS];
    double surrogates[MAX_TOKENS], contributions[MAX_TOKENS], slopes[MAX_TOKENS], ratios[MAX_TOKENS];
    double weights[MAX_TOKENS], kl[MAX_TOKENS], advantages[MAX_TOKENS], given[MAX_TOKENS];
    int8_t clipped[MAX_TOKENS];
    uint8_t selected[MAX_TOKENS];
};

struct scene {
    struct objective_knobs knobs;
    struct objective_sequence sequences[MAX_SEQUENCES];
    struct line lines[MAX_SEQUENCES];
    struct objective_group groups[MAX_SEQUENCES];
    struct objective_request request;
    struct objective_result result;
    struct objective_error error;
};

/* preset grpo, no sequence yet */
struct scene *scene_create(void);
/* A sequence with a reward, of `tokens` tokens at log-probability -1 everywhere (ratio 1), mask all ones. Its index. */
size_t scene_add(struct scene *scene, size_t group, double reward, size_t tokens);
/* With a given advantage and one token of this ratio. */
size_t scene_add_ratio(struct scene *scene, double advantage, double ratio);
/* Settled, with the kind's defaults; what is required gets a value. */
void scene_choose_loss(struct scene *scene, int kind);
int scene_run(struct scene *scene); /* objective_evaluate() */
/* objective_advantages() of one whole group, from rewards alone. rewards[n]: NAN = none, gets NAN. ret_advantages may be
 * NULL (statistics only). A rule over the whole batch gives NAN. ret_group is filled always. 0, or -1. */
int group_advantages(const struct objective_knobs *knobs, size_t n, const double *rewards, double *ret_advantages,
                     struct objective_group *ret_group);
double scene_contributions(const struct scene *scene);

void assert_near(double got, double want, double tolerance);
void assert_exactly(double got, double want);

/* A small generator with a known sequence: 0 <= value < 1. */
double scene_random(uint64_t *state);

#endif
