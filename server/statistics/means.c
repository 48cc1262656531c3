/* Means in two passes: the mean, then the deviations from it. */
#include "server/statistics/statistics.h"

#include <math.h>

/* A power of two near the largest |value|, by which dividing is exact and after which no square overflows. */
static double unit_of(size_t n, const double *values)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        if (fabs(values[i]) > largest) /* false for NAN */
            largest = fabs(values[i]);
    return largest > 0 && isfinite(largest) ? ldexp(1, ilogb(largest)) : 1;
}

/* Over unit. */
static double mean_of(size_t n, const double *values, double unit, size_t *ret_count)
{
    struct precise_sum sum = {0};
    double minimum = INFINITY;
    double maximum = -INFINITY;

    *ret_count = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            continue;
        precise_sum_add(&sum, values[i] / unit);
        minimum = fmin(minimum, values[i]);
        maximum = fmax(maximum, values[i]);
        ++*ret_count;
    }
    if (minimum == maximum) /* without the rounding of a division by n */
        return minimum / unit;
    return *ret_count ? precise_sum_mean(&sum, (double)*ret_count) : NAN;
}

/* A unit is below its largest value, so a mean of such may be too. */
static double of_unit(double value, double unit)
{
    double whole = value * unit;
    return isfinite(whole) ? whole : NAN;
}

static void add_to_tasks(size_t n, const double *values, const uint32_t *tasks, size_t task_count, double unit,
                         double mean, struct task_scratch *scratch)
{
    for (size_t t = 0; t < task_count; t++)
        scratch[t] = (struct task_scratch){0};
    for (size_t i = 0; i < n; i++) {
        if (isnan(values[i]))
            continue;
        scratch[tasks[i]].count++;
        precise_sum_add(&scratch[tasks[i]].sum, values[i] / unit - mean);
    }
}

struct clustered_mean clustered_mean(size_t n, const double *values, const uint32_t *tasks, size_t task_count,
                                     struct task_scratch *scratch)
{
    struct clustered_mean result = {.mean = NAN, .se = NAN};
    struct precise_sum squares = {0};
    double unit = unit_of(n, values);
    double mean = mean_of(n, values, unit, &result.count);

    if (result.count == 0)
        return result;
    add_to_tasks(n, values, tasks, task_count, unit, mean, scratch);
    for (size_t t = 0; t < task_count; t++) {
        double own = precise_sum_value(&scratch[t].sum);
        result.tasks += scratch[t].count > 0;
        precise_sum_add(&squares, own * own);
    }
    result.mean = of_unit(mean, unit);
    if (result.tasks >= 2)
        result.se = of_unit(sqrt(precise_sum_value(&squares)) / (double)result.count, unit);
    return result;
}

/* The excess of a task's values over n times the mean. */
static double excess_of(const struct task_scratch *task, double mean)
{
    struct precise_sum excess = task->sum;

    precise_sum_add(&excess, -(double)task->count * mean);
    return precise_sum_value(&excess);
}

static double error_of_sums(size_t tasks, const struct task_scratch *sums, double mean, size_t count)
{
    struct precise_sum squares = {0};
    double largest = 0;

    for (size_t t = 0; t < tasks; t++)
        if (sums[t].count > 0)
            largest = fmax(largest, fabs(excess_of(&sums[t], mean)));
    double unit = unit_of(1, &largest);
    for (size_t t = 0; t < tasks; t++) {
        double own = sums[t].count > 0 ? excess_of(&sums[t], mean) / unit : 0;
        precise_sum_add(&squares, own * own);
    }
    return of_unit(sqrt(precise_sum_value(&squares)) / (double)count, unit);
}

struct clustered_mean clustered_mean_of_sums(size_t tasks, const struct task_scratch *sums, double minimum,
                                             double maximum)
{
    struct clustered_mean result = {.mean = NAN, .se = NAN};
    struct precise_sum total = {0};
    bool equal = minimum == maximum;

    for (size_t t = 0; t < tasks; t++) {
        result.count += sums[t].count;
        result.tasks += sums[t].count > 0;
        precise_sum_add(&total, sums[t].sum.sum);
        precise_sum_add(&total, sums[t].sum.lost);
    }
    if (result.count == 0)
        return result;
    result.mean = equal ? minimum : of_unit(precise_sum_mean(&total, (double)result.count), 1);
    if (result.tasks >= 2 && !isnan(result.mean))
        result.se = equal ? 0 : error_of_sums(tasks, sums, result.mean, result.count);
    return result;
}

void task_means(size_t n, const double *values, const uint32_t *tasks, size_t task_count, struct task_scratch *scratch,
                double *ret_means)
{
    double unit = unit_of(n, values);

    add_to_tasks(n, values, tasks, task_count, unit, 0, scratch);
    for (size_t t = 0; t < task_count; t++)
        ret_means[t] =
            scratch[t].count ? of_unit(precise_sum_mean(&scratch[t].sum, (double)scratch[t].count), unit) : NAN;
}

struct paired_difference paired_difference(size_t tasks, const double *left, const double *right)
{
    struct paired_difference result = {.mean = NAN, .se = NAN};
    struct precise_sum sum = {0};
    struct precise_sum squares = {0};
    double unit_left = unit_of(tasks, left);
    double unit_right = unit_of(tasks, right);
    double unit = unit_left > unit_right ? unit_left : unit_right;

    for (size_t t = 0; t < tasks; t++) {
        double difference = right[t] / unit - left[t] / unit;
        if (isnan(difference))
            continue;
        precise_sum_add(&sum, difference);
        result.tasks++;
    }
    if (result.tasks == 0)
        return result;
    double mean = precise_sum_mean(&sum, (double)result.tasks);
    for (size_t t = 0; t < tasks; t++) {
        double deviation = right[t] / unit - left[t] / unit - mean;
        if (!isnan(deviation))
            precise_sum_add(&squares, deviation * deviation);
    }
    result.mean = of_unit(mean, unit);
    if (result.tasks >= 2)
        result.se = of_unit(sqrt(precise_sum_value(&squares)) / (double)result.tasks, unit);
    return result;
}

/* --- correlation --- */

/* One side of the pairs: its values where both sides have one. */
struct side {
    const double *values;
    const double *others;
    size_t count;
    double unit; /* near the largest deviation */
    double mean;
    double minimum, maximum;
};

static bool is_pair(const struct side *side, size_t i)
{
    return !isnan(side->values[i]) && !isnan(side->others[i]);
}

static struct side side_of(size_t n, const double *values, const double *others)
{
    struct side side = {.values = values, .others = others, .minimum = INFINITY, .maximum = -INFINITY};
    struct precise_sum sum = {0};

    for (size_t i = 0; i < n; i++) {
        if (!is_pair(&side, i))
            continue;
        side.minimum = fmin(side.minimum, values[i]);
        side.maximum = fmax(side.maximum, values[i]);
        side.count++;
    }
    if (side.count < 2 || values_are_equal(side.minimum, side.maximum))
        return side;
    side.unit = ldexp(1, ilogb(fmax(fabs(side.minimum), fabs(side.maximum))));
    for (size_t i = 0; i < n; i++)
        if (is_pair(&side, i))
            precise_sum_add(&sum, values[i] / side.unit);
    side.mean = precise_sum_value(&sum) / (double)side.count;
    return side;
}

static double deviation_of(const struct side *side, size_t i)
{
    return side->values[i] / side->unit - side->mean;
}

double correlation(size_t n, const double *x, const double *y)
{
    struct side left = side_of(n, x, y);
    struct side right = side_of(n, y, x);
    struct precise_sum products = {0};
    struct precise_sum squares_left = {0};
    struct precise_sum squares_right = {0};

    if (left.unit == 0 || right.unit == 0) /* too few, or constant */
        return NAN;
    for (size_t i = 0; i < n; i++) {
        if (!is_pair(&left, i))
            continue;
        double a = deviation_of(&left, i);
        double b = deviation_of(&right, i);
        precise_sum_add(&products, a * b);
        precise_sum_add(&squares_left, a * a);
        precise_sum_add(&squares_right, b * b);
    }
    double size = sqrt(precise_sum_value(&squares_left) * precise_sum_value(&squares_right));
    double r = precise_sum_value(&products) / size;
    return fmin(1, fmax(-1, r));
}
