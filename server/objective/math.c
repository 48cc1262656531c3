#include "server/objective/math.h"

#define LANES_BYTES 16
#include "server/objective/kernels_private.h"
#include "server/objective/lanes_exp_private.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* 16: the processor calculates in halves, too (AVX512-FP16); doubles are as ever. */
_Static_assert(FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16, "the bits are promised for arithmetic in plain double");

#define EXP_OVERFLOW 709.782712893383973096
#define EXP_UNDERFLOW (-745.133219101941108420)
#define SQRT_HALF 0.70710678118654752440

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

/* The functions of objective_kernels for one number: a block has the bits of its numbers one by one. */
static struct lanes_power power_of(double x)
{
    return lanes_complete(lanes_split(lanes_of(x)));
}

/* Where 2^k or e^x is no normal number. */
static double exp_far(double x)
{
    struct lanes_power power = power_of(x);
    int k = (int)((x * EXP_INVERSE_LN2 + EXP_PUSH) - EXP_PUSH);

    power.scale = lanes_of(1);
    return scale(lanes_exp(power)[0], k);
}

double objective_exp(double x)
{
    if (isnan(x))
        return x;
    if (x > EXP_OVERFLOW)
        return INFINITY;
    if (x < EXP_UNDERFLOW)
        return 0;
    return fabs(x) < EXP_PLAIN ? lanes_exp(power_of(x))[0] : exp_far(x);
}

double objective_expm1(double x)
{
    if (isnan(x))
        return x;
    if (fabs(x) < EXP_PLAIN)
        return lanes_expm1(power_of(x))[0];
    return x > 0 ? objective_exp(x) : -1; /* there the 1 is far below the last bit */
}

double objective_k3(double x)
{
    if (fabs(x) < EXP_PLAIN)
        return lanes_k3(power_of(x), lanes_of(x))[0];
    return objective_expm1(x) - x;
}

/* The whole steps of a kernel, then the rest in one with zeros behind it. */
static bool in_steps(bool (*kernel)(size_t n, const double *x, double *ret_y), size_t n, const double *x, double *ret_y)
{
    double last_x[OBJECTIVE_LANES] = {0};
    double last_y[OBJECTIVE_LANES];
    size_t whole = n - n % OBJECTIVE_LANES;
    bool plain = kernel(whole, x, ret_y);

    if (whole == n)
        return plain;
    memcpy(last_x, x + whole, (n - whole) * sizeof last_x[0]);
    plain &= kernel(OBJECTIVE_LANES, last_x, last_y);
    memcpy(ret_y + whole, last_y, (n - whole) * sizeof last_y[0]);
    return plain;
}

void objective_exps(size_t n, const double *x, double *ret_y)
{
    if (in_steps(objective_kernels()->exps, n, x, ret_y))
        return;
    for (size_t i = 0; i < n; i++)
        ret_y[i] = objective_exp(x[i]);
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
