/* kernels: the loops over a block of tokens that every objective goes through, compiled for each instruction set.
 *
 * kernels_body_private.h is the one text of them; the processor chooses among its copies. All of them give the same bits.
 *
 * Order of sums. Token k of a block belongs to lane k mod OBJECTIVE_LANES, and each lane adds up its tokens in their
 * order: independent of the width of a vector, so a block is as fast as the processor is wide. A block begins at a
 * multiple of OBJECTIVE_LANES among the trainable tokens of its sequence. The lanes are added up by lane number.
 *
 * Arrays of a block have room up to the next multiple of OBJECTIVE_LANES, and what stands there is not looked at; an
 * output of a sequence is written exactly. Pure, any thread. */
#ifndef OBJECTIVE_KERNELS_PRIVATE_H
#define OBJECTIVE_KERNELS_PRIVATE_H

#include "server/objective/math.h"

#include <stdbool.h>
#include <stddef.h>

#define OBJECTIVE_LANES 8

/* Sums by lane; zero-initialised. */
struct lane_sum {
    double sum[OBJECTIVE_LANES];
};
/* With Knuth's two-sum, as struct precise_sum. */
struct lane_exact_sum {
    double sum[OBJECTIVE_LANES], lost[OBJECTIVE_LANES];
};
double lane_sum_value(const struct lane_sum *sum);
void lane_exact_sum_add_to(const struct lane_exact_sum *lanes, struct precise_sum *sum);

/* Sums over x = a log-ratio. */
struct lane_ratio_sums {
    struct lane_sum x, k3; /* k3: e^x - 1 - x */
};

struct lane_shown_sums {
    struct lane_sum ratio;
    double most;                  /* at least 0 */
    double outside, above, below; /* counts: out of the band; clipped 1 and -1 */
};

/* Of the weights of importance, e^x. `least` begins at INFINITY. */
struct lane_weight_sums {
    struct lane_sum weight, square, gap; /* gap: |x| */
    double most, least;
};

/* -min(min(r, delta) A, clip(r) A), for A < 0 at most -dual_c A. */
struct lane_clip {
    double low, high;
    double delta, dual_c; /* INFINITY: none */
};

/* The terms of a block, and where they go. */
struct lane_terms {
    double weight, beta;
    double *value, *slope; /* of the policy; padded */
    double *kl, *kl_slope; /* NULL: there is none */
    double *contributions; /* weight * value + weight * (beta * kl); no term is a negative zero */
    double *slopes;        /* weight * slope + weight * (beta * kl_slope), likewise */
};

struct objective_kernels {
    /* ret_difference[k] = from[k] - what[k]; ret_from, ret_what: the same numbers in double (NULL: not wanted). True if
     * every difference is finite; if not, an input may be no number, or the difference beyond double. */
    bool (*subtract)(size_t n, const double *from, const double *what, double *ret_difference);
    bool (*subtract_floats)(size_t n, const float *from, const float *what, double *ret_from, double *ret_what,
                            double *ret_difference);
    /* ret_powers[k] = e^x[k], and the sums. False: some |x| >= 708, nothing was added, the powers are not valid. */
    bool (*powers)(size_t n, double *x, double *ret_powers, struct lane_ratio_sums *sums);
    /* e^x alone; false likewise. n is a multiple of OBJECTIVE_LANES. */
    bool (*exps)(size_t n, const double *x, double *ret_powers);
    /* e^-d - 1 + d and its derivative 1 - e^-d; false likewise. */
    bool (*k3)(size_t n, double *distance, double *ret_kl, double *ret_slope);
    /* ret_side[k] = 1 above the bound that acts on A > 0, -1 below the one that acts on A < 0, 2 where dual_c acts,
     * else 0. One advantage, not 0, without delta and dual_c; or all that, with one advantage for each token. live[k]:
     * 0 where the ratio is held and has no derivative, else 1. */
    void (*clip)(size_t n, const struct lane_clip *clip, double advantage, const double *ratio, double *ret_value,
                 double *ret_slope, double *ret_side);
    void (*clip_any)(size_t n, const struct lane_clip *clip, const double *advantage, const double *live,
                     const double *ratio, double *ret_value, double *ret_slope, double *ret_side);
    /* values[k] times weight[k], 0 where kept[k] is 0 or it is 0 itself, whatever the weight. NULL: all weights 1, all
     * kept. */
    void (*reweigh)(size_t n, const double *weight, const double *kept, double *values);
    /* The weighed terms go out, those of the policy and of the KL into their sums. False: one may be beyond double. */
    bool (*settle)(size_t n, const struct lane_terms *terms, struct lane_exact_sum *policy, struct lane_exact_sum *kl);
    /* The sum of the values, which are padded. */
    void (*add)(size_t n, double *values, struct lane_sum *sum);
    void (*add_exactly)(size_t n, double *values, struct lane_exact_sum *sum);
    void (*meter)(size_t n, double low, double high, double *shown, double *side, struct lane_shown_sums *sums);
    void (*meter_weights)(size_t n, double *x, double *weights, struct lane_weight_sums *sums);
};

extern const struct objective_kernels objective_kernels_plain, objective_kernels_avx2, objective_kernels_avx512;

const struct objective_kernels *objective_kernels(void);

/* As the kernels of these names, for all numbers: far values are computed one by one, in the same lanes. */
void lane_powers(const struct objective_kernels *kernels, size_t n, double *x, double *ret_powers,
                 struct lane_ratio_sums *sums);
void lane_k3(const struct objective_kernels *kernels, size_t n, double *distance, double *ret_kl, double *ret_slope);

#endif
