/* Pairs whose order changed, by sorting: of the pairs that differ at both times, a merge sort counts those that are the
 * other way round; the others that changed are ties at one time alone. */
#include "server/statistics/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(double left, double right)
{
    return (left > right) - (left < right);
}

static int by_before(const void *left, const void *right)
{
    const struct order_scratch *a = left;
    const struct order_scratch *b = right;
    return compare(a->before, b->before);
}

static int by_after(const void *left, const void *right)
{
    const struct order_scratch *a = left;
    const struct order_scratch *b = right;
    return compare(a->after, b->after);
}

static int by_places(const void *left, const void *right)
{
    const struct order_scratch *a = left;
    const struct order_scratch *b = right;
    if (a->place_before != b->place_before)
        return a->place_before < b->place_before ? -1 : 1;
    return (a->place_after > b->place_after) - (a->place_after < b->place_after);
}

static void place(size_t n, struct order_scratch *members)
{
    uint32_t number = 0;

    qsort(members, n, sizeof *members, by_before);
    for (size_t i = 0; i < n; i++) {
        number += i > 0 && !values_are_equal(members[i - 1].before, members[i].before);
        members[i].place_before = number;
    }
    number = 0;
    qsort(members, n, sizeof *members, by_after);
    for (size_t i = 0; i < n; i++) {
        number += i > 0 && !values_are_equal(members[i - 1].after, members[i].after);
        members[i].place_after = number;
    }
}

/* Sorts by place_after; the number of pairs that were in the other order. */
static size_t merge_sort(size_t n, struct order_scratch *members, struct order_scratch *room)
{
    size_t half = n / 2;
    size_t swaps;
    size_t left = 0;
    size_t right = half;

    if (n < 2)
        return 0;
    swaps = merge_sort(half, members, room) + merge_sort(n - half, members + half, room);
    for (size_t i = 0; i < n; i++) {
        bool from_right = left == half || (right < n && members[right].place_after < members[left].place_after);
        swaps += from_right ? half - left : 0;
        room[i] = from_right ? members[right++] : members[left++];
    }
    memcpy(members, room, n * sizeof *members);
    return swaps;
}

size_t order_changes(size_t n, const double *before, const double *after, struct order_scratch *scratch)
{
    size_t count = 0;
    size_t tied_before = 0;
    size_t tied_after = 0;
    size_t tied_both = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(before[i]) && !isnan(after[i]))
            scratch[count++] = (struct order_scratch){.before = before[i], .after = after[i]};
    place(count, scratch);
    qsort(scratch, count, sizeof *scratch, by_places);
    for (size_t i = 0, first = 0, first_both = 0; i < count; i++) {
        if (scratch[i].place_before != scratch[first].place_before)
            first = i;
        if (by_places(&scratch[i], &scratch[first_both]) != 0)
            first_both = i;
        tied_before += i - first;
        tied_both += i - first_both;
    }
    size_t swaps = merge_sort(count, scratch, scratch + n);
    for (size_t i = 0, first = 0; i < count; i++) {
        if (scratch[i].place_after != scratch[first].place_after)
            first = i;
        tied_after += i - first;
    }
    return swaps + (tied_before - tied_both) + (tied_after - tied_both);
}
