/* share: one rank's part of a lease. Each rank asks for its own, and all of them together have the whole lease once.
 *
 * Pure: no clock, no dice, so that ranks that ask at different times agree. Any thread. */
#ifndef SERVER_RENDER_SHARE_H
#define SERVER_RENDER_SHARE_H

#include <stddef.h>
#include <stdint.h>

#define SHARE_RANKS_MAX 65536

/* GROUPS: whole groups, as many for each rank. ROLLOUTS, TOKENS: groups are split, so that each rank has as many judged
 * rollouts, or as many tokens of judged completions. */
enum share_by { SHARE_BY_GROUPS, SHARE_BY_ROLLOUTS, SHARE_BY_TOKENS };
struct lease_share {
    int64_t rank;  /* 0 to ranks - 1 */
    int64_t ranks; /* 1 to SHARE_RANKS_MAX; 0: no share, the whole lease */
    enum share_by by;
};

/* The heaviest item first, each goes to the rank that has least so far, the lowest of equals; items of equal weight keep
 * their order. So two ranks differ by no more than the heaviest item. weight[count]: each >= 0, their sum within 63 bits.
 * ret_rank[count]: 0 to ranks - 1. */
void share_out(size_t count, const int64_t *weight, int64_t ranks, int64_t *ret_rank);

#endif
