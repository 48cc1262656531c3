/* Numbers that look random and are the same in every run: xorshift64* (Vigna, 2016). */
#ifndef TESTS_BASE_RANDOM_H
#define TESTS_BASE_RANDOM_H

#include <stdint.h>

static uint64_t random_state = 0x9E3779B97F4A7C15;

static inline uint64_t random_u64(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545F4914F6CDD1D;
}

static inline uint64_t random_below(uint64_t bound)
{
    return random_u64() % bound;
}

#endif
