/* The loops of every width, against a plain reading of their promise. Widths that the processor lacks are left out. */
#include "server/objective/kernels_private.h"
#include "tests/unit/objective/fixture.h"

#include <float.h>
#include <string.h>

enum { MOST = 40, ROOM = 48 };

struct width {
    const struct objective_kernels *kernels;
    bool here;
};

static size_t find_widths(struct width ret_widths[3])
{
    size_t count = 0;

    ret_widths[count++] = (struct width){&objective_kernels_plain, true};
#if defined(__x86_64__)
    ret_widths[count++] = (struct width){&objective_kernels_avx2, __builtin_cpu_supports("avx2")};
    ret_widths[count++] = (struct width){&objective_kernels_avx512,
                                         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")};
#endif
    return count;
}

/* For each width and each length, with the seed of the draw. */
static void for_each(void (*check)(const struct objective_kernels *kernels, size_t n, uint64_t *seed))
{
    struct width widths[3];
    size_t count = find_widths(widths);

    for (size_t w = 0; w < count; w++) {
        uint64_t seed = 11;
        for (size_t n = 1; widths[w].here && n <= MOST; n++)
            check(widths[w].kernels, n, &seed);
    }
}

static void draw(size_t n, double span, uint64_t *seed, double *ret_values)
{
    for (size_t k = 0; k < ROOM; k++)
        ret_values[k] = k < n ? (scene_random(seed) - 0.5) * span : NAN; /* what is behind is not looked at */
}

static void check_differences(const struct objective_kernels *kernels, size_t n, uint64_t *seed)
{
    float from[MOST] = {0}, what[MOST] = {0};
    double wide_from[ROOM], wide_what[ROOM], difference[ROOM];

    for (size_t k = 0; k < n; k++) {
        from[k] = (float)scene_random(seed);
        what[k] = (float)scene_random(seed);
    }
    assert_true(kernels->subtract_floats(n, from, what, wide_from, wide_what, difference));
    for (size_t k = 0; k < n; k++) {
        assert_exactly(difference[k], (double)from[k] - (double)what[k]);
        assert_exactly(wide_from[k], (double)from[k]);
    }
    for (size_t k = 0; k < n; k++) {
        const float right = from[k];
        from[k] = k % 2 ? NAN : -INFINITY;
        assert_false(kernels->subtract_floats(n, from, what, wide_from, wide_what, difference));
        assert_false(kernels->subtract(n, wide_from, wide_what, difference));
        from[k] = right;
    }
}

static void test_one_number_that_is_none_is_seen_at_any_place(void **state)
{
    (void)state;
    for_each(check_differences);
}

static void check_powers(const struct objective_kernels *kernels, size_t n, uint64_t *seed)
{
    struct lane_ratio_sums sums = {0};
    double x[ROOM], powers[ROOM], sum = 0, k3 = 0;

    draw(n, 3, seed, x);
    assert_true(kernels->powers(n, x, powers, &sums));
    for (size_t k = 0; k < n; k++) {
        assert_exactly(powers[k], objective_exp(x[k]));
        sum += x[k];
        k3 += objective_k3(x[k]);
    }
    assert_near(lane_sum_value(&sums.x), sum, 1e-14);
    assert_near(lane_sum_value(&sums.k3), k3, 1e-14);
    x[n - 1] = n % 3 == 0 ? NAN : n % 3 == 1 ? 709 : -INFINITY;
    assert_false(kernels->powers(n, x, powers, &sums));
    assert_near(lane_sum_value(&sums.x), sum, 1e-14);
    lane_powers(kernels, n, x, powers, &sums);
    for (size_t k = 0; k < n; k++)
        if (!isnan(x[k]))
            assert_exactly(powers[k], objective_exp(x[k]));
}

static void test_powers_and_their_sums_leave_out_what_is_behind_and_see_what_is_far(void **state)
{
    (void)state;
    for_each(check_powers);
}

static void check_k3(const struct objective_kernels *kernels, size_t n, uint64_t *seed)
{
    double distance[ROOM], kl[ROOM], slope[ROOM];

    draw(n, 3, seed, distance);
    assert_true(kernels->k3(n, distance, kl, slope));
    for (size_t k = 0; k < n; k++) {
        assert_exactly(kl[k], objective_k3(-distance[k]));
        assert_exactly(slope[k], -objective_expm1(-distance[k]));
    }
    distance[n / 2] = -710;
    assert_false(kernels->k3(n, distance, kl, slope));
    lane_k3(kernels, n, distance, kl, slope);
    assert_exactly(kl[n / 2], INFINITY);
}

static void test_k3_is_that_of_single_numbers(void **state)
{
    (void)state;
    for_each(check_k3);
}

static void check_clip(const struct objective_kernels *kernels, size_t n, uint64_t *seed)
{
    const struct lane_clip bounds = {0.8, 1.2, INFINITY, INFINITY};
    double ratio[ROOM], advantage[ROOM], live[ROOM];
    double value[2][ROOM], slope[2][ROOM], side[2][ROOM];
    double a = scene_random(seed) - 0.5;

    for (size_t k = 0; k < ROOM; k++) {
        ratio[k] = 2 * scene_random(seed);
        advantage[k] = a;
        live[k] = 1;
    }
    ratio[0] = 0.8;
    ratio[n - 1] = n % 2 ? 1.2 : 0.7;
    kernels->clip(n, &bounds, a, ratio, value[0], slope[0], side[0]);
    kernels->clip_any(n, &bounds, advantage, live, ratio, value[1], slope[1], side[1]);
    for (size_t k = 0; k < n; k++) {
        double held = ratio[k] < 0.8 ? 0.8 : ratio[k] > 1.2 ? 1.2 : ratio[k];
        bool is_held = held * a < ratio[k] * a;
        for (int form = 0; form < 2; form++) {
            assert_exactly(value[form][k], -(is_held ? held : ratio[k]) * a);
            assert_exactly(slope[form][k], is_held ? 0 : -ratio[k] * a);
            assert_exactly(side[form][k], is_held ? (a > 0) - (a < 0) : 0);
        }
    }
}

static void test_both_forms_of_the_clip_agree_with_its_formula(void **state)
{
    (void)state;
    for_each(check_clip);
}

static void check_settle(const struct objective_kernels *kernels, size_t n, uint64_t *seed)
{
    struct lane_exact_sum policy = {0}, kl_sum = {0};
    struct precise_sum sum = {0};
    double value[ROOM], slope[ROOM], kl[ROOM], kl_slope[ROOM];
    double contributions[ROOM + 1], slopes[ROOM + 1], want = 0;

    draw(n, 1, seed, value);
    draw(n, 1, seed, slope);
    draw(n, 1, seed, kl);
    draw(n, 1, seed, kl_slope);
    struct lane_terms terms = {0.25, 0.5, value, slope, kl, kl_slope, contributions, slopes};
    contributions[n] = slopes[n] = 7;
    assert_true(kernels->settle(n, &terms, &policy, &kl_sum));
    for (size_t k = 0; k < n; k++) {
        assert_exactly(contributions[k], 0.25 * value[k] + 0.25 * (0.5 * kl[k]));
        assert_exactly(slopes[k], 0.25 * slope[k] + 0.25 * (0.5 * kl_slope[k]));
        want += 0.25 * value[k];
    }
    assert_exactly(contributions[n], 7);
    assert_exactly(slopes[n], 7);
    lane_exact_sum_add_to(&policy, &sum);
    assert_near(precise_sum_value(&sum), want, 1e-15);
    slope[n / 2] = INFINITY;
    assert_false(kernels->settle(n, &terms, &policy, &kl_sum));
    slope[n / 2] = 0;
    kl[n - 1] = NAN;
    assert_false(kernels->settle(n, &terms, &policy, &kl_sum));
}

static void test_terms_are_weighed_written_exactly_and_summed_up(void **state)
{
    (void)state;
    for_each(check_settle);
}

static void check_meter(const struct objective_kernels *kernels, size_t n, uint64_t *seed)
{
    struct lane_shown_sums sums = {0};
    double ratio[ROOM], side[ROOM], most = 0, outside = 0, above = 0, below = 0, sum = 0;

    for (size_t k = 0; k < ROOM; k++) {
        ratio[k] = k < n ? 2 * scene_random(seed) : 9;
        side[k] = k < n ? (int)(scene_random(seed) * 4) - 1 : 1;
    }
    for (size_t k = 0; k < n; k++) {
        sum += ratio[k];
        most = fmax(most, ratio[k]);
        outside += ratio[k] < 0.8 || ratio[k] > 1.2;
        above += side[k] == 1;
        below += side[k] == -1;
    }
    kernels->meter(n, 0.8, 1.2, ratio, side, &sums);
    assert_near(lane_sum_value(&sums.ratio), sum, 1e-13);
    assert_exactly(sums.most, most);
    assert_exactly(sums.outside, outside);
    assert_exactly(sums.above, above);
    assert_exactly(sums.below, below);
}

static void test_metrics_count_the_tokens_of_a_block_and_no_more(void **state)
{
    (void)state;
    for_each(check_meter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_number_that_is_none_is_seen_at_any_place),
        cmocka_unit_test(test_powers_and_their_sums_leave_out_what_is_behind_and_see_what_is_far),
        cmocka_unit_test(test_k3_is_that_of_single_numbers),
        cmocka_unit_test(test_both_forms_of_the_clip_agree_with_its_formula),
        cmocka_unit_test(test_terms_are_weighed_written_exactly_and_summed_up),
        cmocka_unit_test(test_metrics_count_the_tokens_of_a_block_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
