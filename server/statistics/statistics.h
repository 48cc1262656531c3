/* statistics: figures of a report about many numbers: means with errors clustered by task, correlation, differences
 * paired by task, changes of order.
 *
 * Pure: numbers in, numbers out; any thread. Double, in sums that keep what each addition loses, scaled by powers of two
 * where squares would leave double. NAN is no value: it is in no count, and a result over too few values is NAN. Scratch
 * memory is the caller's where it is as large as the input. */
#ifndef STATISTICS_STATISTICS_H
#define STATISTICS_STATISTICS_H

#include "server/base/sum.h"

#include <stddef.h>
#include <stdint.h>

struct task_scratch {
    size_t count;
    struct precise_sum sum;
};

struct clustered_mean {
    size_t count; /* values */
    size_t tasks; /* that have one */
    double mean;  /* NAN: count is 0, or the mean is beyond double */
    double se;    /* NAN: fewer than two tasks */
};

/* se = sqrt(sum over tasks of (sum of its (x - mean))^2) / n: draws of one task are not independent.
 * Source: Miller, arXiv 2411.00640, section 2.2. values[n]; tasks[n]: below task_count; scratch[task_count]. */
struct clustered_mean clustered_mean(size_t n, const double *values, const uint32_t *tasks, size_t task_count,
                                     struct task_scratch *scratch);

/* The same from the sums of each task's values; an entry of count 0 is no task. minimum, maximum: of all values;
 * where they are equal the mean is that value, without rounding (NAN: not known). */
struct clustered_mean clustered_mean_of_sums(size_t tasks, const struct task_scratch *sums, double minimum,
                                             double maximum);

/* Pearson's r over the places where both have a value, -1 to 1. NAN: fewer than two, or all values of x, or of y, are
 * equal (base/sum.h). */
double correlation(size_t n, const double *x, const double *y);

/* The mean of each task: ret_means[task_count], NAN for one without a value. scratch[task_count]. */
void task_means(size_t n, const double *values, const uint32_t *tasks, size_t task_count, struct task_scratch *scratch,
                double *ret_means);

struct paired_difference {
    size_t tasks; /* that have a value in both */
    double mean;  /* of right - left; NAN: there is no such task */
    double se;    /* sqrt(sum of (difference - mean)^2) / tasks; NAN: fewer than two */
};
/* left[tasks], right[tasks]: one value a task. */
struct paired_difference paired_difference(size_t tasks, const double *left, const double *right);

struct order_scratch {
    double before, after;
    uint32_t place_before, place_after; /* equal values have one place */
};
/* Pairs that have both values at both times and another order after than before: <, = or >. Equal is by base/sum.h,
 * among neighbours in order. scratch[2 * n]. O(n log n). Source: Knight, JASA 61 (1966). */
size_t order_changes(size_t n, const double *before, const double *after, struct order_scratch *scratch);

#endif
