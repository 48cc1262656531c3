#include "server/objective/terms_private.h"

#include "server/base/sum.h"

#include <math.h>

static double larger(double left, double right)
{
    return left > right ? left : right;
}

double add_rewards(double left, double right)
{
    return sum_or_nothing(left + right, fabs(left) + fabs(right));
}

void statistics_first(struct objective_statistics *statistics, double value)
{
    if (statistics->count == 0 || value < statistics->minimum)
        statistics->minimum = value;
    if (statistics->count == 0 || value > statistics->maximum)
        statistics->maximum = value;
    precise_sum_add(&statistics->sum, value);
    statistics->size += fabs(value);
    statistics->count++;
}

/* Squares of ordinary numbers stay as they are: only far from 1 would they leave double. */
static double unit_of(const struct objective_statistics *statistics)
{
    double range = statistics->maximum - statistics->minimum;
    double size = isfinite(range) ? range : larger(fabs(statistics->minimum), fabs(statistics->maximum));
    bool ordinary = statistics_constant(statistics) || !isfinite(size) || (size > 1e-140 && size < 1e140);
    return ordinary ? 1 : objective_power_of_two(size);
}

void statistics_turn(struct objective_statistics *statistics)
{
    double n = (double)statistics->count;

    if (statistics->count == 0)
        statistics->mean = NAN;
    else if (statistics->minimum == statistics->maximum)
        statistics->mean = statistics->minimum;
    else
        statistics->mean = sum_or_nothing(precise_sum_value(&statistics->sum), statistics->size) / n;
    statistics->unit = unit_of(statistics);
}

static double deviation_of(const struct objective_statistics *statistics, double value)
{
    return value / statistics->unit - statistics->mean / statistics->unit;
}

void statistics_second(struct objective_statistics *statistics, double value)
{
    double deviation = deviation_of(statistics, value);
    statistics->squares += deviation * deviation;
    precise_sum_add(&statistics->drift, deviation);
}

bool statistics_constant(const struct objective_statistics *statistics)
{
    return statistics->count == 0 || values_are_equal(statistics->minimum, statistics->maximum);
}

double statistics_centred(const struct objective_statistics *statistics, double value)
{
    if (statistics_constant(statistics))
        return 0;
    double rest = precise_sum_value(&statistics->drift) / (double)statistics->count;
    return (deviation_of(statistics, value) - rest) * statistics->unit;
}

double statistics_squares(const struct objective_statistics *statistics)
{
    double drift = precise_sum_value(&statistics->drift);
    /* Chan, Golub and LeVeque's corrected two-pass formula. */
    return larger(statistics->squares - drift * drift / (double)statistics->count, 0);
}

double statistics_deviation(const struct objective_statistics *statistics, int ddof)
{
    if (statistics->count == 0 || statistics->count <= (size_t)ddof)
        return NAN;
    if (statistics_constant(statistics))
        return 0;
    return sqrt(statistics_squares(statistics) / ((double)statistics->count - ddof)) * statistics->unit;
}

struct objective_statistics statistics_of_request(const struct objective_work *work, reward_of *of)
{
    struct objective_statistics all = {0};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < work->request->sequence_count; i++) {
            double value = of(work, i);
            if (isnan(value) || !is_first_of_rollout(work, i) || !work->request->sequences[i].kept)
                continue;
            if (pass == 0)
                statistics_first(&all, value);
            else
                statistics_second(&all, value);
        }
        if (pass == 0)
            statistics_turn(&all);
    }
    return all;
}
