/* sum: sums of doubles that rounding does not spoil. Pure, any thread. */
#ifndef BASE_SUM_H
#define BASE_SUM_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Neumaier's sum: the error of n additions stays near that of one. Zero-initialised. The rounding error of an addition comes from Knuth's
 * two-sum, which needs no comparison of sizes. */
struct precise_sum {
    double sum;
    double lost;
};

static inline void precise_sum_add(struct precise_sum *sum, double value)
{
    double after = sum->sum + value;
    double taken = after - sum->sum;
    sum->lost += (sum->sum - (after - taken)) + (value - taken);
    sum->sum = after;
}

static inline double precise_sum_value(const struct precise_sum *sum)
{
    return sum->sum + sum->lost;
}

/* The sum by count > 0, nearer than the division of a rounded sum: the mean of equal values is their value. */
static inline double precise_sum_mean(const struct precise_sum *sum, double count)
{
    double mean = precise_sum_value(sum) / count;
    double rest = fma(-mean, count, sum->sum) + sum->lost;
    return mean + rest / count;
}

/* The one rule of equality: largest - smallest <= 1e-12 * the largest |value|. Rounding is no difference. */
static inline bool values_are_equal(double minimum, double maximum)
{
    double size = fabs(minimum) > fabs(maximum) ? fabs(minimum) : fabs(maximum);
    return isfinite(size) && maximum - minimum <= 1e-12 * size;
}

/* 0 where a sum is nothing but the rounding of its terms; size: the sum of |term|, beyond double: the sum itself. */
static inline double sum_or_nothing(double sum, double size)
{
    double rounding = size <= DBL_MAX ? 0x1p-50 * size : 0;
    return sum <= rounding && sum >= -rounding ? 0 : sum;
}

#endif
