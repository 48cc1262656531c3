/* e^x, e^x - 1 and e^x - 1 - x of lanes, by one reduction: the arithmetic of every exponential of this room.
 *
 * x = k ln 2 + r, |r| <= ln 2 / 2, by Cody and Waite's two parts of ln 2; e^r = 1 + r + r^2 tail(r), tail a polynomial
 * through the Chebyshev nodes of +-0.34658 with the constant term 1/2 (relative error 1.4e-17). Then e^x = 2^k (1 + r +
 * low). 2^k - 1 + 2^k r is added with what that addition loses, so that e^x - 1 - x keeps its relative precision down
 * to the smallest x. For |x| < EXP_PLAIN; beyond it math.c knows what to do. Pure. */
#ifndef OBJECTIVE_LANES_EXP_PRIVATE_H
#define OBJECTIVE_LANES_EXP_PRIVATE_H

#include "server/objective/lanes_private.h"

/* Below this e^x and 2^k are normal numbers. */
#define EXP_PLAIN 708.0

#define EXP_INVERSE_LN2 1.4426950408889634074
/* The upper part has 21 trailing zero bits, so k * LN2_HIGH is exact for every exponent k. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
/* 1.5 * 2^52: adding it pushes the fraction out of the mantissa, whose low bits then are the nearest integer. */
#define EXP_PUSH 6755399441055744.0

struct lanes_power {
    lanes high, low; /* e^x = scale * (1 + high + low) */
    lanes scale;     /* 2^k */
};

/* tail(r) = (e^r - 1 - r) / r^2: in pairs, then in fours, so that little has to wait for what came before. */
LANES_INLINE lanes lanes_exp_tail(lanes r, lanes square)
{
    lanes fourth = square * square;
    lanes a = 0x1.5555555555556p-3 * r + 0.5;
    lanes b = 0x1.11111111109b4p-7 * r + 0x1.5555555555555p-5;
    lanes c = 0x1.a01a01a7c327ap-13 * r + 0x1.6c16c16c167e2p-10;
    lanes d = 0x1.71de0db21e27fp-19 * r + 0x1.a01a01a47a78fp-16;
    lanes e = 0x1.af38a0d2d9620p-26 * r + 0x1.27e4e1f6a6779p-22;

    a += b * square;
    c += d * square;
    e += 0x1.1f66da6ee7eeap-29 * square;
    return a + fourth * (c + e * fourth);
}

/* The two halves of the work: a loop does the first for many, then the second, so that neither waits for the other. */
LANES_INLINE struct lanes_power lanes_split(lanes x)
{
    lanes pushed = x * EXP_INVERSE_LN2 + EXP_PUSH;
    lanes k = pushed - EXP_PUSH;
    lanes coarse = x - k * LN2_HIGH;
    lanes fine = k * LN2_LOW;
    lanes r = coarse - fine;

    return (struct lanes_power){
        .high = r,
        .low = (coarse - r) - fine,
        .scale = (lanes)(((lane_bits)pushed + 1023) << 52),
    };
}

LANES_INLINE struct lanes_power lanes_complete(struct lanes_power split)
{
    lanes square = split.high * split.high;

    split.low += square * lanes_exp_tail(split.high, square);
    return split;
}

LANES_INLINE lanes lanes_exp(struct lanes_power power)
{
    return (1 + (power.high + power.low)) * power.scale;
}

/* scale - 1 + scale * high = sum + lost: the first is 0 or the larger one, as Dekker's two-sum wants it. */
LANES_INLINE lanes lanes_lift(struct lanes_power power, lanes *ret_lost)
{
    lanes base = power.scale - 1;
    lanes lift = power.scale * power.high;
    lanes sum = base + lift;

    *ret_lost = (lift - (sum - base)) + power.scale * power.low;
    return sum;
}

LANES_INLINE lanes lanes_expm1(struct lanes_power power)
{
    lanes lost;
    lanes sum = lanes_lift(power, &lost);
    return sum + lost;
}

/* e^x - 1 - x */
LANES_INLINE lanes lanes_k3(struct lanes_power power, lanes x)
{
    lanes lost;
    lanes sum = lanes_lift(power, &lost);
    return (sum - x) + lost;
}

#endif
