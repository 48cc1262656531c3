/* lanes: LANES_BYTES / 8 doubles that go through one operation together.
 *
 * A file says LANES_BYTES (16, 32 or 64), switches the instruction set on by LANES_BEGIN and includes this. Every
 * operation here is the same IEEE operation in each lane, whatever the width, and none is fused: so the bits do not
 * depend on the width. Without x86 the compiler makes of it what the processor has. */
#ifndef OBJECTIVE_LANES_PRIVATE_H
#define OBJECTIVE_LANES_PRIVATE_H

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LANES_WIDTH (LANES_BYTES / 8)
#define LANES_INLINE static inline __attribute__((always_inline, unused))

typedef double lanes __attribute__((vector_size(LANES_BYTES)));
typedef int64_t lane_bits __attribute__((vector_size(LANES_BYTES))); /* of a comparison: all ones or all zeros */

LANES_INLINE lanes lanes_of(double value)
{
    return value - (lanes){0}; /* x - 0 is x, be it -0 */
}

LANES_INLINE lanes lanes_read(const double *values)
{
    lanes read;
    memcpy(&read, values, sizeof read);
    return read;
}

LANES_INLINE void lanes_write(double *ret_values, lanes values)
{
    memcpy(ret_values, &values, sizeof values);
}

LANES_INLINE lanes lanes_keep(lane_bits where, lanes values) /* 0 elsewhere */
{
    return (lanes)(where & (lane_bits)values);
}

LANES_INLINE lanes lanes_pick(lane_bits where, lanes values, lanes others)
{
    return (lanes)((where & (lane_bits)values) | (~where & (lane_bits)others));
}

LANES_INLINE lanes lanes_size(lanes values) /* |x| */
{
    return (lanes)((lane_bits)values & (int64_t)(UINT64_MAX >> 1));
}

/* lanes_less(a, b): the smaller; b where they are equal or one is no number. lanes_more() likewise. */
#if defined(__x86_64__) && LANES_BYTES == 16
#define lanes_less(a, b) ((lanes)_mm_min_pd((__m128d)(a), (__m128d)(b)))
#define lanes_more(a, b) ((lanes)_mm_max_pd((__m128d)(a), (__m128d)(b)))
#define lanes_widen(floats) ((lanes)_mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i_u *)(floats)))))
#elif defined(__x86_64__) && LANES_BYTES == 32
#define lanes_less(a, b) ((lanes)_mm256_min_pd((__m256d)(a), (__m256d)(b)))
#define lanes_more(a, b) ((lanes)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define lanes_widen(floats) ((lanes)_mm256_cvtps_pd(_mm_loadu_ps(floats)))
#elif defined(__x86_64__)
#define lanes_less(a, b) ((lanes)_mm512_min_pd((__m512d)(a), (__m512d)(b)))
#define lanes_more(a, b) ((lanes)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define lanes_widen(floats) ((lanes)_mm512_cvtps_pd(_mm256_loadu_ps(floats)))
#else
#define lanes_less(a, b) lanes_pick((lane_bits)((a) < (b)), (a), (b))
#define lanes_more(a, b) lanes_pick((lane_bits)((a) > (b)), (a), (b))
LANES_INLINE lanes lanes_widen(const float *floats)
{
    lanes wide;
    for (int i = 0; i < LANES_WIDTH; i++)
        wide[i] = (double)floats[i];
    return wide;
}
#endif

#endif
