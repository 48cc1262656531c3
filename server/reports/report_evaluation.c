/* Evaluations: pass@k, maj@k and best@k of the groups of evaluation batches, by revision. */
#include "server/reports/report_private.h"

#include "server/base/cleanup.h"
#include "server/spec/pass_at.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SOLVED_FROM 1.0

/* The batches of one evaluation, and a value of each of their groups. */
struct working {
    struct report *report;
    const struct report_batch *batches;
    size_t batch_count, group_room;
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
    for (size_t i = 0; i < working->batch_count; i++)
        json_object_foreach (working->batches[i].ks, name, value)
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

static int read_batch(struct working *working, const struct report_batch *batch)
{
    struct call *call = working->report->call;
    char id[ID_BYTES];

    for (int64_t index = 0; index < batch->group_count; index++) {
        _cleanup_(store_group_finish) struct store_group group = {0};
        if (call->abandoned)
            return -1;
        id_of_group(batch->id, index, id);
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
    evaluation->batches = (int64_t)working->batch_count;
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

static int evaluate(struct report *report, const struct report_batch *batches, size_t count,
                    struct report_evaluation *evaluation)
{
    struct working working = {.report = report,
                              .batches = batches,
                              .batch_count = count,
                              .spec = {.verifier = text_of(batches->decider), .threshold = SOLVED_FROM}};
    int result = 0;

    *evaluation = (struct report_evaluation){
        .incarnation = batches->incarnation, .revision = batches->revision, .decider = text_of(batches->decider)};
    for (size_t i = 0; i < count; i++)
        working.group_room += (size_t)batches[i].group_count;
    find_ks(&working);
    if (!make_room(&working))
        result = report_refuse_memory(report);
    working.tally = pass_tally_create(&working.spec, working.group_room);
    for (size_t i = 0; result == 0 && i < count; i++)
        result = read_batch(&working, &batches[i]);
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

/* By revision, incarnation and decider: what stands together is one evaluation. */
static int compare_batches(const void *left, const void *right)
{
    const struct report_batch *a = left;
    const struct report_batch *b = right;

    if (a->revision != b->revision)
        return a->revision < b->revision ? -1 : 1;
    if (a->incarnation != b->incarnation)
        return a->incarnation < b->incarnation ? -1 : 1;
    return strcmp(a->decider ? a->decider : "", b->decider ? b->decider : "");
}

static size_t keep_surviving(struct report *report)
{
    size_t kept = 0;
    int64_t rollouts = 0;

    for (size_t i = 0; i < report->evaluation_batch_count; i++) {
        struct report_batch batch = report->evaluations[i];
        if (!report_survives(report, batch.incarnation, batch.revision, STORE_EVAL))
            continue;
        rollouts += batch.rollout_count;
        report->evaluations[i] = report->evaluations[kept];
        report->evaluations[kept++] = batch;
    }
    report->evaluated_too_many = rollouts > REPORT_EVALUATED_MAX;
    return report->evaluated_too_many ? 0 : kept;
}

int report_read_evaluations(struct report *report)
{
    size_t count = keep_surviving(report);

    report->evaluated = calloc(count + 1, sizeof *report->evaluated);
    if (!report->evaluated)
        return report_refuse_memory(report);
    if (count > 0)
        qsort(report->evaluations, count, sizeof *report->evaluations, compare_batches);
    for (size_t at = 0, next; at < count; at = next) {
        for (next = at + 1; next < count; next++)
            if (compare_batches(&report->evaluations[at], &report->evaluations[next]) != 0)
                break;
        if (evaluate(report, &report->evaluations[at], next - at, &report->evaluated[report->evaluated_count]) < 0)
            return -1;
        report->evaluated_count++;
    }
    return 0;
}
