#include "server/objective/math.h"
#include "tests/unit/objective/fixture.h"

#include <float.h>

enum { INPUTS = 2000000 };

/* Distance in units of the last place of the true value. */
static double ulps(double got, long double want)
{
    double rounded = fabs((double)want);
    double unit = nextafter(rounded, INFINITY) - rounded;
    return (double)(fabsl((long double)got - want) / (long double)unit);
}

static void test_exp_errs_by_less_than_one_ulp(void **state)
{
    uint64_t seed = 1;
    double worst = 0;
    (void)state;

    for (int i = 0; i < INPUTS; i++) {
        double x = (scene_random(&seed) - 0.5) * (i & 1 ? 1416 : 4);
        worst = fmax(worst, ulps(objective_exp(x), expl((long double)x)));
    }
    assert_true(worst < 1);
}

/* Every step of 2^-19 where log-ratios live, and every end of the reduction's intervals. */
static void test_exp_errs_by_less_than_one_ulp_on_a_dense_grid(void **state)
{
    double worst = 0;
    (void)state;

    for (int i = -(2 << 19); i <= 2 << 19; i++) {
        double x = ldexp(i, -19);
        worst = fmax(worst, ulps(objective_exp(x), expl((long double)x)));
    }
    for (int k = -1021; k < 1023; k++)
        for (int i = -50; i < 50; i++) {
            double x = (k + 0.5) * 0.69314718055994530942 * (1 + i * DBL_EPSILON);
            worst = fmax(worst, ulps(objective_exp(x), expl((long double)x)));
        }
    assert_true(worst < 1);
}

static double any_size(uint64_t *seed, int i, double span)
{
    double x = (scene_random(seed) - 0.5) * (i & 1 ? span : 4);
    return i % 4 == 2 ? ldexp(x, -(int)(scene_random(seed) * 80)) : x;
}

static void test_expm1_errs_by_less_than_one_and_a_quarter_ulp(void **state)
{
    uint64_t seed = 2;
    double worst = 0;
    (void)state;

    for (int i = 0; i < INPUTS; i++) {
        double x = any_size(&seed, i, 1416);
        worst = fmax(worst, ulps(objective_expm1(x), expm1l((long double)x)));
    }
    assert_true(worst < 1.25);
}

/* e^x - 1 - x by its series where the difference of long doubles would lose too much. */
static long double true_k3(long double x)
{
    long double sum = 0;

    if (fabsl(x) > 1)
        return expm1l(x) - x;
    for (int n = 30; n >= 3; n--)
        sum = (sum + 1) * x / n;
    return (sum + 1) * x * x / 2;
}

/* The loss of expm1(x) - x would be as much as 1 / x. */
static void test_k3_errs_by_less_than_four_ulps_however_small_x_is(void **state)
{
    uint64_t seed = 5;
    double worst = 0;
    (void)state;

    for (int i = 0; i < INPUTS; i++) {
        double x = any_size(&seed, i, 1416);
        worst = fmax(worst, ulps(objective_k3(x), true_k3((long double)x)));
    }
    assert_true(worst < 4);
}

static void test_log_errs_by_less_than_one_ulp(void **state)
{
    uint64_t seed = 3;
    double worst = 0;
    (void)state;

    for (int i = 0; i < INPUTS; i++) {
        double x = i & 1 ? exp((scene_random(&seed) - 0.5) * 1480) : 0.5 + scene_random(&seed);
        if (x > 0 && isfinite(x))
            worst = fmax(worst, ulps(objective_log(x), logl((long double)x)));
    }
    assert_true(worst < 1);
}

static void test_the_ends_of_the_range(void **state)
{
    (void)state;
    assert_exactly(objective_exp(0), 1);
    assert_exactly(objective_exp(710), INFINITY);
    assert_exactly(objective_exp(INFINITY), INFINITY);
    assert_exactly(objective_exp(-746), 0);
    assert_exactly(objective_exp(-INFINITY), 0);
    assert_true(isnan(objective_exp(NAN)));
    assert_exactly(objective_exp(-745.1), 4.9406564584124654e-324);
    assert_exactly(objective_expm1(0), 0);
    assert_exactly(objective_expm1(INFINITY), INFINITY);
    assert_exactly(objective_expm1(-INFINITY), -1);
    assert_exactly(objective_expm1(1e-300), 1e-300);
    assert_true(isnan(objective_expm1(NAN)));
    assert_exactly(objective_log(1), 0);
    assert_exactly(objective_log(0), -INFINITY);
    assert_exactly(objective_log(INFINITY), INFINITY);
    assert_true(isnan(objective_log(-1)));
}

/* Any pattern of bits, and numbers of every size near where the branches change. */
static double any_double(uint64_t *seed, int kind)
{
    uint64_t bits = (uint64_t)(scene_random(seed) * 4294967296.0) << 32 | (uint64_t)(scene_random(seed) * 4294967296.0);
    double value;

    if (kind == 1)
        return (scene_random(seed) - 0.5) * 1500;
    if (kind == 2)
        return (scene_random(seed) - 0.5) * 1.5;
    if (kind == 3) /* 2^-44 to 2^11 */
        bits = (bits & 0x800fffffffffffffULL) | (uint64_t)(979 + (int)(scene_random(seed) * 55)) << 52;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_same_double(double one, double other)
{
    return memcmp(&one, &other, sizeof one) == 0;
}

static void test_a_block_gives_the_bits_of_one_by_one(void **state)
{
    enum { BLOCK = 251 }; /* no multiple of a vector's length */
    double x[BLOCK], powers[BLOCK];
    uint64_t seed = 4;
    (void)state;

    for (int i = 0; i < INPUTS / BLOCK; i++) {
        for (int k = 0; k < BLOCK; k++)
            x[k] = any_double(&seed, i % 5 == 4 ? k % 4 : i % 5);
        objective_exps(BLOCK, x, powers);
        for (int k = 0; k < BLOCK; k++)
            if (!is_same_double(powers[k], objective_exp(x[k])))
                fail_msg("at %a", x[k]);
    }
}

static void test_a_power_of_two_keeps_the_exponent(void **state)
{
    (void)state;
    assert_exactly(objective_power_of_two(1), 1);
    assert_exactly(objective_power_of_two(-1.9), 1);
    assert_exactly(objective_power_of_two(1000), 512);
    assert_true(isfinite(1 / objective_power_of_two(5e-324)));
    assert_true(1 / objective_power_of_two(DBL_MAX) > 0);
}

static void test_the_compensated_sum_keeps_what_a_plain_one_loses(void **state)
{
    struct precise_sum sum = {0};
    (void)state;

    precise_sum_add(&sum, 1);
    precise_sum_add(&sum, 1e100);
    precise_sum_add(&sum, 1);
    precise_sum_add(&sum, -1e100);
    assert_exactly(precise_sum_value(&sum), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_errs_by_less_than_one_ulp),
        cmocka_unit_test(test_exp_errs_by_less_than_one_ulp_on_a_dense_grid),
        cmocka_unit_test(test_expm1_errs_by_less_than_one_and_a_quarter_ulp),
        cmocka_unit_test(test_k3_errs_by_less_than_four_ulps_however_small_x_is),
        cmocka_unit_test(test_log_errs_by_less_than_one_ulp),
        cmocka_unit_test(test_the_ends_of_the_range),
        cmocka_unit_test(test_a_block_gives_the_bits_of_one_by_one),
        cmocka_unit_test(test_a_power_of_two_keeps_the_exponent),
        cmocka_unit_test(test_the_compensated_sum_keeps_what_a_plain_one_loses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
