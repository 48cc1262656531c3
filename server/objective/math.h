/* exp, expm1 and log with the same bits on every compiler and processor.
 *
 * glibc picks its implementations by processor (with or without FMA), so two machines may differ in the last bit. These
 * use only IEEE additions, multiplications and divisions in a fixed order (the build forbids contraction). Measured
 * against long double (tests/unit/objective): exp and log err by less than 1 ulp, expm1 by less than 1.25, k3 by less
 * than 4. They assume rounding to nearest. Pure, any thread.
 * Method: lanes_exp.h; log by the series of atanh. */
#ifndef OBJECTIVE_MATH_H
#define OBJECTIVE_MATH_H

#include "server/base/sum.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

double objective_exp(double x);    /* INFINITY above 709.78, 0 below -745.13, NAN of NAN */
double objective_expm1(double x);  /* e^x - 1, exact where x is tiny */
double objective_k3(double x);     /* e^x - 1 - x, to its last places however small x is; NAN of INFINITY */
double objective_log(double x);    /* -INFINITY of 0, NAN below */
double objective_cos_pi(double x); /* cos(pi x), 0 <= x <= 1; within 2e-16 */

/* ret_y[i] = e^x[i]: the same bits as one by one, in vectors. x and ret_y do not overlap. */
void objective_exps(size_t n, const double *x, double *ret_y);

/* On a loop without branches: compiled for AVX2 too, the processor chooses when the program starts. No FMA, so the bits
 * are the same. Not with a sanitizer, which is not there yet when the choice is made. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OBJECTIVE_NO_CLONES
#endif
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) && !defined(OBJECTIVE_NO_CLONES) &&             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OBJECTIVE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define OBJECTIVE_CLONES
#endif

/* The power of two with the exponent of |x|, within what its reciprocal can hold: dividing by it is exact. x finite,
 * not 0. */
double objective_power_of_two(double x);

/* The top bit is set where |x| >= limit or x is NAN. In whole numbers, since SSE2 does not keep comparisons of doubles:
 * a loop over it stays a loop of vectors. */
static inline uint64_t objective_is_far(double x, double limit)
{
    uint64_t bits, limit_bits;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&limit_bits, &limit, sizeof limit_bits);
    return limit_bits - 1 - (bits & (UINT64_MAX >> 1));
}

#endif
