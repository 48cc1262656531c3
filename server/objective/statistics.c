#include "server/objective/terms.h"

#include <math.h>

void statistics_first(struct objective_statistics *statistics, double value)
{
    if (statistics->count == 0 || value < statistics->minimum)
        statistics->minimum = value;
    if (statistics->count == 0 || value > statistics->maximum)
        statistics->maximum = value;
    statistics->sum += value;
    statistics->count++;
}

void statistics_turn(struct objective_statistics *statistics)
{
    if (statistics->count == 0) {
        statistics->mean = NAN;
        return;
    }
    double range = statistics->maximum - statistics->minimum;
    statistics->mean = range == 0 ? statistics->minimum : statistics->sum / (double)statistics->count;
    /* Squares of ordinary numbers stay as they are: only far from 1 would they leave double. */
    bool ordinary = range == 0 || !isfinite(range) || (range > 1e-140 && range < 1e140);
    statistics->unit = ordinary ? 1 : objective_power_of_two(range);
}

void statistics_second(struct objective_statistics *statistics, double value)
{
    double deviation = (value - statistics->mean) / statistics->unit;
    statistics->squares += deviation * deviation;
    statistics->drift += deviation;
}

bool statistics_constant(const struct objective_statistics *statistics)
{
    return statistics->count == 0 || statistics->maximum == statistics->minimum;
}

double statistics_deviation(const struct objective_statistics *statistics, int ddof)
{
    if (statistics->count == 0 || statistics->count <= (size_t)ddof)
        return NAN;
    if (statistics_constant(statistics))
        return 0;
    double n = (double)statistics->count;
    /* The drift is what rounding left of the mean: Chan, Golub and LeVeque's corrected two-pass formula. */
    double squares = statistics->squares - statistics->drift * statistics->drift / n;
    return sqrt(squares / (n - ddof)) * statistics->unit;
}
