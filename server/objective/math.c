#include "server/objective/math.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "the bits are promised for arithmetic in plain double");

#define EXP_OVERFLOW 709.782712893383973096
#define EXP_UNDERFLOW (-745.133219101941108420)
#define INVERSE_LN2 1.4426950408889634074
/* The upper part has 21 trailing zero bits, so k * LN2_HIGH is exact for every exponent k. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define SQRT_HALF 0.70710678118654752440
#define EXPM1_NEAR 0.7

static inline double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double two_to(int exponent) /* -1022..1023 */
{
    return from_bits((uint64_t)(1023 + exponent) << 52);
}

/* x * 2^k in two steps, so that the end of the range is met by one rounding. */
static double scale(double x, int k)
{
    if (k > 1023)
        return x * two_to(1023) * two_to(k - 1023);
    if (k < -1022)
        return x * two_to(k + 1000) * two_to(-1000);
    return x * two_to(k);
}

/* 1.5 * 2^52: adding it pushes the fraction out of the mantissa, whose low bits then are the nearest integer. */
#define PUSH 6755399441055744.0

/* (e^r - 1 - r) / r^2 = sum of r^k / (k+2)!; the rest after r^15 is below 1e-18 for |r| < 0.7. Written out, since a
 * loop inside the loop over a block would keep that from becoming vectors. */
static inline __attribute__((always_inline)) double exp_tail(double r)
{
    double sum = 1.0 / 355687428096000;
    sum = sum * r + 1.0 / 20922789888000;
    sum = sum * r + 1.0 / 1307674368000;
    sum = sum * r + 1.0 / 87178291200;
    sum = sum * r + 1.0 / 6227020800;
    sum = sum * r + 1.0 / 479001600;
    sum = sum * r + 1.0 / 39916800;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    return sum * r + 1.0 / 2;
}

/* e^x = 2^k * (1 + high + low), |high + low| < 0.35. Returns k + PUSH. */
static inline __attribute__((always_inline)) double reduce(double x, double *ret_high, double *ret_low)
{
    double pushed = x * INVERSE_LN2 + PUSH;
    double k = pushed - PUSH;
    double coarse = x - k * LN2_HIGH;
    double fine = k * LN2_LOW;
    double r = coarse - fine;
    *ret_high = r;
    *ret_low = ((coarse - r) - fine) + r * r * exp_tail(r);
    return pushed;
}

static inline __attribute__((always_inline)) double join(double high, double low) /* 1 + high + low */
{
    double one = 1 + high;
    double lost = high - (one - 1);
    return one + (lost + low);
}

double objective_exp(double x)
{
    double high;
    double low;

    if (isnan(x))
        return x;
    if (x > EXP_OVERFLOW)
        return INFINITY;
    if (x < EXP_UNDERFLOW)
        return 0;
    int k = (int)(reduce(x, &high, &low) - PUSH);
    return scale(join(high, low), k);
}

/* x + x^2/2 with the square of the upper half of x, which is exact, and the rest by the series. |x| < 0.7. */
static inline __attribute__((always_inline)) double expm1_near_zero(double x)
{
    double upper = (float)x;
    double half = 0.5 * upper * upper;
    double rest = 0.5 * (x - upper) * (x + upper) + x * x * (exp_tail(x) - 0.5);
    double sum = x + half;
    return sum + ((half - (sum - x)) + rest);
}

double objective_expm1(double x)
{
    double high;
    double low;

    if (isnan(x))
        return x;
    if (x > 60) /* there the 1 is far below the last bit */
        return objective_exp(x);
    if (x < -60)
        return -1;
    if (fabs(x) < EXPM1_NEAR)
        return expm1_near_zero(x);
    int k = (int)(reduce(x, &high, &low) - PUSH);
    double power = two_to(k);
    double base = power - 1;
    double lift = power * high;
    double sum = base + lift;
    double lost = fabs(base) > fabs(lift) ? (base - sum) + lift : (lift - sum) + base;
    return sum + (lost + power * low + ((power - base) - 1));
}

/* --- blocks --- */

/* For |x| below this the result and 2^k are normal numbers. */
#define EXP_PLAIN 708.0

OBJECTIVE_CLONES
static uint64_t exp_plain(size_t n, const double *restrict x, double *restrict ret_y)
{
    uint64_t far = 0;

    for (size_t i = 0; i < n; i++) {
        double high;
        double low;
        double pushed = reduce(x[i], &high, &low);
        ret_y[i] = join(high, low) * from_bits((to_bits(pushed) + 1023) << 52);
        far |= objective_is_far(x[i], EXP_PLAIN);
    }
    return far >> 63;
}

void objective_exps(size_t n, const double *x, double *ret_y)
{
    if (!exp_plain(n, x, ret_y))
        return;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) < EXP_PLAIN))
            ret_y[i] = objective_exp(x[i]);
}

OBJECTIVE_CLONES
static uint64_t expm1_plain(size_t n, const double *restrict x, double *restrict ret_y)
{
    uint64_t far = 0;

    for (size_t i = 0; i < n; i++) {
        ret_y[i] = expm1_near_zero(x[i]);
        far |= objective_is_far(x[i], EXPM1_NEAR);
    }
    return far >> 63;
}

void objective_expm1s(size_t n, const double *x, double *ret_y)
{
    if (!expm1_plain(n, x, ret_y))
        return;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) < EXPM1_NEAR))
            ret_y[i] = objective_expm1(x[i]);
}

double objective_log(double x)
{
    if (isnan(x) || x < 0)
        return NAN;
    if (x == 0)
        return -INFINITY;
    if (isinf(x))
        return x;
    int k = 0;
    if (x < DBL_MIN) {
        x *= two_to(54);
        k = -54;
    }
    uint64_t bits = to_bits(x);
    k += (int)(bits >> 52) - 1022;
    double m = from_bits((bits & 0x000fffffffffffffULL) | 0x3fe0000000000000ULL); /* 0.5..1 */
    if (m < SQRT_HALF) {
        m *= 2;
        k--;
    }
    /* ln(1+f) = 2 atanh(s) with s = f / (2+f), arranged so that f, which is exact, is added last. */
    double f = m - 1;
    double s = f / (2 + f);
    double square = s * s;
    double series = 0;
    for (int odd = 23; odd >= 3; odd -= 2)
        series = series * square + 2.0 / odd;
    series *= square;
    double half = 0.5 * f * f;
    return k * LN2_HIGH - ((half - (s * (half + series) + k * LN2_LOW)) - f);
}

/* Taylor's series on 0..pi/4 of what the quarter in hand is the cosine or the sine of. */
double objective_cos_pi(double x)
{
    const double pi = 3.14159265358979323846;
    bool back = x > 0.5;
    double share = back ? 1 - x : x; /* 0..0.5: exact, by Sterbenz */
    bool use_sine = share > 0.25;
    double angle = pi * (use_sine ? 0.5 - share : share);
    double square = angle * angle;
    double sum = 0;

    for (int k = 9; k >= 1; k--) {
        double n = 2 * k + use_sine;
        sum = -square / (n * (n - 1)) * (1 + sum);
    }
    double value = use_sine ? angle * (1 + sum) : 1 + sum;
    return back ? -value : value;
}

double objective_power_of_two(double x)
{
    uint64_t exponent = to_bits(x) >> 52 & 0x7ff;
    if (exponent < 2)
        exponent = 2;
    if (exponent > 2044)
        exponent = 2044;
    return from_bits(exponent << 52);
}
