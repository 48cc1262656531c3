/* Evaluations in parts: each part has one revision, one decider with its threshold, one task set, and one slice or the whole. */
#include "server/reports/report_private.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_GROUPS 200

/* --- groups by their set --- */

static struct report_part *add_part(struct report *report, const struct report_batch *batch, uint32_t set,
                                    int64_t slice)
{
    if (!report_make_room(&report->parts, report->part_count, &report->part_room, sizeof *report->parts))
        return NULL;
    struct report_part *part = &report->parts[report->part_count++];
    *part = (struct report_part){.batch = batch, .set = set, .slice = slice};
    return part;
}

/* first: of the batch's parts. */
static struct report_part *find_part(struct report *report, size_t first, const struct report_batch *batch,
                                     uint32_t set, int64_t slice)
{
    for (size_t i = first; i < report->part_count; i++)
        if (report->parts[i].set == set && report->parts[i].slice == slice)
            return &report->parts[i];
    return add_part(report, batch, set, slice);
}

static int add_group(struct report *report, struct report_part *part, int64_t index)
{
    if (!part || !report_make_room(&part->groups, part->group_count, &part->group_room, sizeof *part->groups))
        return report_refuse_memory(report);
    part->groups[part->group_count++] = index;
    return 0;
}

static int take_group(struct report *report, size_t first, const struct report_batch *batch,
                      const struct store_group *group)
{
    uint32_t set = group->set.data ? names_number(&report->sets, group->set) : NAMES_NONE;
    int64_t slice;

    if (!store_tags_are(group->tags, report->tags, report->tag_count))
        return 0;
    if (group->set.data && set == NAMES_NONE)
        return report_refuse_memory(report);
    if (report_find_slice(report, group->tags, &slice) < 0 ||
        add_group(report, find_part(report, first, batch, set, REPORT_WHOLE), group->index) < 0)
        return -1;
    return slice == REPORT_WHOLE ? 0 : add_group(report, find_part(report, first, batch, set, slice), group->index);
}

static int split(struct report *report, const struct report_batch *batch)
{
    size_t first = report->part_count;
    struct call *call = report->call;

    for (int64_t index = 0; index < batch->group_count; index += PAGE_GROUPS) {
        _cleanup_(store_groups_finish) struct store_groups page = {0};
        if (call->abandoned)
            return -1;
        if (store_read_groups(call->reader, text_of(batch->id), index, PAGE_GROUPS, 0, &page) != STORE_OK)
            return call_refuse_unreadable(call);
        for (size_t i = 0; i < page.count; i++)
            if (take_group(report, first, batch, &page.groups[i]) < 0)
                return -1;
    }
    return 0;
}

/* --- parts of one evaluation --- */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int report_compare_parts(const void *left, const void *right)
{
    const struct report_part *a = left;
    const struct report_part *b = right;
    const char *deciders[] = {a->batch->decider ? a->batch->decider : "", b->batch->decider ? b->batch->decider : ""};
    int differences[] = {
        compare_numbers(a->slice, b->slice), compare_numbers(a->batch->revision, b->batch->revision),
        compare_numbers(a->batch->incarnation, b->batch->incarnation), strcmp(deciders[0], deciders[1]),
        (a->batch->threshold > b->batch->threshold) - (a->batch->threshold < b->batch->threshold),
        /* as they appeared, none first */
        compare_numbers(a->set == NAMES_NONE ? -1 : (int64_t)a->set, b->set == NAMES_NONE ? -1 : (int64_t)b->set)};

    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
        if (differences[i] != 0)
            return differences[i];
    return 0;
}

static bool are_too_many(const struct report *report)
{
    int64_t rollouts = 0;

    for (size_t i = 0; i < report->evaluation_batch_count; i++)
        if (report_survives(report, report->evaluations[i].incarnation, report->evaluations[i].revision, STORE_EVAL))
            rollouts += report->evaluations[i].rollout_count;
    return rollouts > REPORT_EVALUATED_MAX;
}

int report_split_evaluations(struct report *report)
{
    report->evaluated_too_many = are_too_many(report);
    for (size_t i = 0; i < report->evaluation_batch_count && !report->evaluated_too_many; i++) {
        const struct report_batch *batch = &report->evaluations[i];
        if (report_survives(report, batch->incarnation, batch->revision, STORE_EVAL) && split(report, batch) < 0)
            return -1;
    }
    if (report->part_count > 0)
        qsort(report->parts, report->part_count, sizeof *report->parts, report_compare_parts);
    return 0;
}

void report_parts_finish(struct report *report)
{
    for (size_t i = 0; i < report->part_count; i++)
        free(report->parts[i].groups);
    free(report->parts);
    names_finish(&report->sets);
}
