/* sum: what rounding leaves of a sum. Pure, any thread. */
#ifndef BASE_SUM_H
#define BASE_SUM_H

#include <float.h>

/* 0 where a sum is nothing but the rounding of its terms; size: the sum of |term|, beyond double: the sum itself. */
static inline double sum_or_nothing(double sum, double size)
{
    double rounding = size <= DBL_MAX ? 0x1p-50 * size : 0;
    return sum <= rounding && sum >= -rounding ? 0 : sum;
}

#endif
