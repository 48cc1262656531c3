/* exp, expm1 and log with the same bits on every compiler and processor.
 *
 * glibc picks its implementations by processor (with or without FMA), so two machines may differ in the last bit. These
 * use only IEEE additions, multiplications and divisions in a fixed order (the build forbids contraction), and err by
 * less than 1 ulp (tests/unit/objective compares with long double). They assume rounding to nearest. Pure, any thread.
 * Method: reduction by multiples of ln 2 in two parts (Cody and Waite), Taylor series; log by the series of atanh. */
#ifndef OBJECTIVE_MATH_H
#define OBJECTIVE_MATH_H

#include <stddef.h>

double objective_exp(double x);    /* INFINITY above 709.78, 0 below -745.13, NAN of NAN */
double objective_expm1(double x);  /* e^x - 1, exact where x is tiny */
double objective_log(double x);    /* -INFINITY of 0, NAN below */
double objective_cos_pi(double x); /* cos(pi x), 0 <= x <= 1; within 2e-16 */

/* ret_y[i] = e^x[i]; the same numbers one by one and in blocks. */
void objective_exps(size_t n, const double *x, double *ret_y);

/* The power of two with the exponent of |x|, within what its reciprocal can hold: dividing by it is exact. x finite,
 * not 0. */
double objective_power_of_two(double x);

/* Neumaier's sum: the error of n additions stays near that of one. Zero-initialised. */
struct objective_sum {
    double sum;
    double lost;
};

static inline void objective_sum_add(struct objective_sum *sum, double value)
{
    double before = sum->sum;
    double after = before + value;
    double before_size = before < 0 ? -before : before;
    double value_size = value < 0 ? -value : value;
    sum->lost += before_size >= value_size ? (before - after) + value : (value - after) + before;
    sum->sum = after;
}

static inline double objective_sum_value(const struct objective_sum *sum)
{
    return sum->sum + sum->lost;
}

#endif
