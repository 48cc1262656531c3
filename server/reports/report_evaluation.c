/* Evaluations: pass@k, maj@k and best@k of the groups of evaluation batches, by revision and task set. */
#include "server/reports/report_private.h"

#include "server/base/cleanup.h"
#include "server/spec/pass_at.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The parts of one evaluation, and a value of each of their groups. */
struct working {
    struct report *report;
    const struct report_part *parts;
    size_t part_count, group_room;
    struct pass_spec spec;
    struct pass_tally *tally;
    double *best[PASS_AT_MAX]; /* [group_room] */
    uint32_t *tasks;           /* [group_room] */
    struct names task_names;
    size_t groups;
    int64_t judged;
};

/* --- which k --- */

static int compare_ks(const void *left, const void *right)
{
    const int64_t *a = left;
    const int64_t *b = right;

    return (*a > *b) - (*a < *b);
}

static void add_k(struct pass_spec *spec, int64_t k)
{
    for (size_t i = 0; i < spec->count; i++)
        if (spec->k[i] == k)
            return;
    if (k >= 1 && spec->count < PASS_AT_MAX)
        spec->k[spec->count++] = k;
}

/* 1, and those that the batches were asked for. */
static void find_ks(struct working *working)
{
    const char *name;
    json_t *value;

    add_k(&working->spec, 1);
    for (size_t i = 0; i < working->part_count; i++)
        json_object_foreach (working->parts[i].batch->ks, name, value)
            add_k(&working->spec, strtoll(name, NULL, 10));
    qsort(working->spec.k, working->spec.count, sizeof working->spec.k[0], compare_ks);
}

/* --- one group --- */

static int compare_rewards(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

/* The expected largest of k rewards drawn from n without putting back: sum of C(i-1, k-1) / C(n, k) * x_i, x in order
 * from the smallest. NAN: fewer than k. */
static double best_of(const double *rewards, size_t n, size_t k)
{
    double weight = n ? (double)k / (double)n : 0;
    struct precise_sum sum = {0};

    if (n < k)
        return NAN;
    for (size_t i = n; i >= k && i > 0; i--) {
        precise_sum_add(&sum, weight * rewards[i - 1]);
        if (i > 1)
            weight *= (double)(i - k) / (double)(i - 1);
    }
    return precise_sum_value(&sum);
}

static int add_group(struct working *working, const struct store_group *group)
{
    _cleanup_free_ double *rewards = calloc(group->rollout_count + 1, sizeof *rewards);
    uint32_t task = names_number(&working->task_names, group->task);
    size_t n = 0;

    if (!rewards || task == NAMES_NONE)
        return report_refuse_memory(working->report);
    for (size_t i = 0; i < group->rollout_count; i++)
        if (!isnan(group->rollouts[i].reward))
            rewards[n++] = group->rollouts[i].reward;
    qsort(rewards, n, sizeof *rewards, compare_rewards);
    for (size_t i = 0; i < working->spec.count; i++)
        working->best[i][working->groups] = best_of(rewards, n, (size_t)working->spec.k[i]);
    working->judged += (int64_t)n;
    working->tasks[working->groups++] = task;
    pass_tally_add(working->tally, TEXT_LITERAL(""), group->rollouts, group->rollout_count);
    return 0;
}

static int read_part(struct working *working, const struct report_part *part)
{
    struct call *call = working->report->call;
    char id[ID_BYTES];

    for (size_t i = 0; i < part->group_count; i++) {
        _cleanup_(store_group_finish) struct store_group group = {0};
        if (call->abandoned)
            return -1;
        id_of_group(part->batch->id, part->groups[i], id);
        if (store_read_group(call->reader, text_of(id), STORE_WITH_VERDICTS, &group) != STORE_OK)
            return call_refuse_unreadable(call);
        if (group.state == STORE_GROUP_COMPLETE && add_group(working, &group) < 0)
            return -1;
    }
    return 0;
}

/* --- over groups --- */

static struct clustered_mean mean_of(const struct working *working, const double *values, struct task_scratch *scratch)
{
    static const struct clustered_mean none = {.mean = NAN, .se = NAN};

    return values ? clustered_mean(working->groups, values, working->tasks, working->task_names.count, scratch) : none;
}

static int estimate(const struct working *working, struct report_evaluation *evaluation)
{
    _cleanup_free_ struct task_scratch *scratch = calloc(working->task_names.count + 1, sizeof *scratch);

    evaluation->estimates = calloc(working->spec.count + 1, sizeof *evaluation->estimates);
    if (!scratch || !evaluation->estimates)
        return report_refuse_memory(working->report);
    for (size_t i = 0; i < working->spec.count; i++)
        evaluation->estimates[i] =
            (struct report_estimate){.k = working->spec.k[i],
                                     .pass = mean_of(working, pass_tally_passes(working->tally, i), scratch),
                                     .majority = mean_of(working, pass_tally_majorities(working->tally, i), scratch),
                                     .best = mean_of(working, working->best[i], scratch)};
    evaluation->estimate_count = working->spec.count;
    evaluation->batches = (int64_t)working->part_count;
    evaluation->groups = (int64_t)working->groups;
    evaluation->n = working->judged;
    return 0;
}

static bool make_room(struct working *working)
{
    bool made = true;

    working->tasks = calloc(working->group_room + 1, sizeof *working->tasks);
    for (size_t i = 0; i < working->spec.count; i++) {
        working->best[i] = calloc(working->group_room + 1, sizeof(double));
        made = made && working->best[i];
    }
    return made && working->tasks;
}

static int evaluate(struct report *report, const struct report_part *parts, size_t count,
                    struct report_evaluation *evaluation)
{
    const struct report_batch *batch = parts->batch;
    struct working working = {.report = report,
                              .parts = parts,
                              .part_count = count,
                              .spec = {.verifier = text_of(batch->decider), .threshold = batch->threshold}};
    int result = 0;

    *evaluation =
        (struct report_evaluation){.slice = parts->slice,
                                   .incarnation = batch->incarnation,
                                   .revision = batch->revision,
                                   .decider = text_of(batch->decider),
                                   .threshold = batch->threshold,
                                   .set = parts->set == NAMES_NONE ? TEXT_NONE : names_key(&report->sets, parts->set)};
    for (size_t i = 0; i < count; i++)
        working.group_room += parts[i].group_count;
    find_ks(&working);
    if (!make_room(&working))
        result = report_refuse_memory(report);
    working.tally = pass_tally_create(&working.spec, working.group_room);
    for (size_t i = 0; result == 0 && i < count; i++)
        result = read_part(&working, &parts[i]);
    if (result == 0)
        result = estimate(&working, evaluation);
    pass_tally_destroy(working.tally);
    for (size_t i = 0; i < working.spec.count; i++)
        free(working.best[i]);
    free(working.tasks);
    names_finish(&working.task_names);
    return result;
}

/* --- the whole --- */

int report_read_evaluations(struct report *report)
{
    report->evaluated = calloc(report->part_count + 1, sizeof *report->evaluated);
    if (!report->evaluated)
        return report_refuse_memory(report);
    for (size_t at = 0, next; at < report->part_count; at = next) {
        for (next = at + 1; next < report->part_count; next++)
            if (report_compare_parts(&report->parts[at], &report->parts[next]) != 0)
                break;
        if (evaluate(report, &report->parts[at], next - at, &report->evaluated[report->evaluated_count]) < 0)
            return -1;
        report->evaluated_count++;
    }
    return 0;
}

const struct report_evaluation *report_evaluations_of(const struct report *report, int64_t slice, size_t *ret_count)
{
    size_t first = 0;
    size_t end;

    while (first < report->evaluated_count && report->evaluated[first].slice != slice)
        first++;
    for (end = first; end < report->evaluated_count && report->evaluated[end].slice == slice;)
        end++;
    *ret_count = end - first;
    return report->evaluated + first;
}
