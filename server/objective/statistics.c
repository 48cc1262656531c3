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

static void describe(struct objective_group *group, int ddof)
{
    const struct objective_statistics *statistics = &group->statistics;

    group->judged = statistics->count;
    group->mean = statistics->mean;
    group->minimum = statistics->count ? statistics->minimum : NAN;
    group->maximum = statistics->count ? statistics->maximum : NAN;
    group->std = statistics_deviation(statistics, ddof);
    group->zero_variance = statistics->count > 0 && statistics_constant(statistics);
}

/* Members of a group may stand anywhere in the request, so each pass goes over all of them. */
int objective_group_statistics(const struct objective_request *request, struct objective_error *ret_error)
{
    struct objective_group *groups = request->groups;

    for (size_t g = 0; g < request->group_count; g++)
        groups[g] = (struct objective_group){0};
    for (size_t i = 0; i < request->sequence_count; i++) {
        const struct objective_sequence *sequence = &request->sequences[i];
        groups[sequence->group].members++;
        groups[sequence->group].correct += sequence->reward > 0;
        if (!isnan(sequence->reward))
            statistics_first(&groups[sequence->group].statistics, sequence->reward);
    }
    for (size_t g = 0; g < request->group_count; g++)
        statistics_turn(&groups[g].statistics);
    for (size_t i = 0; i < request->sequence_count; i++) {
        const struct objective_sequence *sequence = &request->sequences[i];
        const struct objective_statistics *statistics = &groups[sequence->group].statistics;
        if (!isnan(sequence->reward) && !isfinite(statistics->mean))
            return objective_fail(ret_error, OBJECTIVE_ERROR_NON_FINITE, i, SIZE_MAX, "reward",
                                  "the sum of the rewards of its group is beyond double");
        if (!isnan(sequence->reward))
            statistics_second(&groups[sequence->group].statistics, sequence->reward);
    }
    for (size_t g = 0; g < request->group_count; g++)
        describe(&groups[g], request->knobs->advantage.ddof);
    return 0;
}
