#include "server/objective/kernels_private.h"

/* OBJECTIVE_WIDEST: how many bytes of lanes at most; a test compares them. */
#ifndef OBJECTIVE_WIDEST
#define OBJECTIVE_WIDEST 64
#endif

const struct objective_kernels *objective_kernels(void)
{
#if defined(__x86_64__)
    if (OBJECTIVE_WIDEST >= 64 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return &objective_kernels_avx512;
    if (OBJECTIVE_WIDEST >= 32 && __builtin_cpu_supports("avx2"))
        return &objective_kernels_avx2;
#endif
    return &objective_kernels_plain;
}

double lane_sum_value(const struct lane_sum *sum)
{
    double value = 0;

    for (int lane = 0; lane < OBJECTIVE_LANES; lane++)
        value += sum->sum[lane];
    return value;
}

void lane_exact_sum_add_to(const struct lane_exact_sum *lanes, struct precise_sum *sum)
{
    for (int lane = 0; lane < OBJECTIVE_LANES; lane++) {
        precise_sum_add(sum, lanes->sum[lane]);
        sum->lost += lanes->lost[lane];
    }
}

void lane_powers(const struct objective_kernels *kernels, size_t n, double *x, double *ret_powers,
                 struct lane_ratio_sums *sums)
{
    struct lane_ratio_sums own = {0};

    if (kernels->powers(n, x, ret_powers, sums))
        return;
    for (size_t k = 0; k < n; k++) {
        ret_powers[k] = objective_exp(x[k]);
        own.x.sum[k % OBJECTIVE_LANES] += x[k];
        own.k3.sum[k % OBJECTIVE_LANES] += objective_k3(x[k]);
    }
    for (int lane = 0; lane < OBJECTIVE_LANES; lane++) {
        sums->x.sum[lane] += own.x.sum[lane];
        sums->k3.sum[lane] += own.k3.sum[lane];
    }
}

void lane_k3(const struct objective_kernels *kernels, size_t n, double *distance, double *ret_kl, double *ret_slope)
{
    if (kernels->k3(n, distance, ret_kl, ret_slope))
        return;
    for (size_t k = 0; k < n; k++) {
        ret_kl[k] = objective_k3(-distance[k]);
        ret_slope[k] = -objective_expm1(-distance[k]);
    }
}
