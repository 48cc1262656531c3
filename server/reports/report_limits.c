/* The limitations of a report's numbers, as far as they can be computed. */
#include "server/reports/report_private.h"

#include <stdarg.h>
#include <stdio.h>

/* A limitation, if its count is above 0. */
static _printf_(4, 5) void add(struct report *report, const char *code, int64_t count, const char *format, ...)
{
    struct report_limit *limit = &report->limits[report->limit_count];
    va_list arguments;

    if (count <= 0 || report->limit_count == REPORT_LIMITS_MAX)
        return;
    report->limit_count++;
    limit->code = code;
    limit->count = count;
    va_start(arguments, format);
    vsnprintf(limit->message, sizeof limit->message, format, arguments);
    va_end(arguments);
}

/* Tasks that are evaluated, or of another split, and were trained on, too. */
static int64_t trained_and_heldout(struct report *report)
{
    size_t trained = report->training_tasks.count; /* before it grows */
    int64_t both = 0;

    for (uint32_t i = 0; i < report->heldout_tasks.count; i++)
        both += names_number(&report->training_tasks, names_key(&report->heldout_tasks, i)) < trained;
    return both;
}

struct heldout_visit {
    struct report *report;
    bool failed;
};

static bool take_heldout(void *arg, const struct store_heldout_task *task)
{
    struct heldout_visit *visit = arg;
    struct report *report = visit->report;

    if (task->revision >= report->from && (report->to < 0 || task->revision <= report->to) &&
        report_survives(report, task->incarnation, task->revision, STORE_TRAIN))
        visit->failed = names_number(&report->heldout_tasks, task->task) == NAMES_NONE;
    return !visit->failed && !report->call->abandoned;
}

int report_find_heldout_tasks(struct report *report)
{
    struct heldout_visit visit = {.report = report};

    if (store_visit_heldout_trained(report->call->reader, report->run, take_heldout, &visit) != STORE_OK)
        return call_refuse_unreadable(report->call);
    return visit.failed ? report_refuse_memory(report) : 0;
}

static void limit_rollouts(struct report *report, const struct cell_numbers *totals)
{
    add(report, "unscored", totals->n - totals->judged,
        "training rollouts have no reward: they are in no mean, so the means may be biased");
    add(report, "truncated", totals->truncated,
        "judged completions ended at their largest length: their rewards are those of texts cut off");
    add(report, "straddling", totals->straddles,
        "training rollouts were sampled while weights changed: they are counted at the revision they began with");
    add(report, "seeds_not_honoured", report->counts.seeds_not_honoured,
        "training rollouts were sampled by engines that ignore seeds: they cannot be sampled again");
    add(report, "processed_logprobs", report->counts.processed_logprobs,
        "training rollouts have log-probabilities after temperature and top_p, which are not those of the policy");
}

static void limit_settings(struct report *report)
{
    add(report, "mixed_engines", (int64_t)report->engines.makes.count - 1,
        "models, versions or tokenizers beyond the first sampled training rollouts: differences may be theirs");
    add(report, "mixed_settings", (int64_t)report->together.texts.count - 1,
        "other choices of objective, sampling and verifiers than the first were trained with: see configuration");
    add(report, "kl_of_old_samples", report->counts.old_kl,
        "stored sums of KL are over samples of another revision than their step's");
}

static void limit_evaluation(struct report *report, const struct cell_numbers *totals)
{
    bool has_heldout = report->rows[0].heldout_count > 0 || report->evaluation_batch_count > 0;

    add(report, "heldout_in_training", trained_and_heldout(report),
        "tasks that are evaluated, or of a split other than train, were trained on, too: they are not held out");
    add(report, "no_heldout_metric", has_heldout ? 0 : totals->judged,
        "judged training rollouts, and no verifier is held out and nothing evaluated: a reward that is gamed looks "
        "the same");
    add(report, "few_tasks", report->rows[0].tasks < REPORT_FEW_TASKS ? report->rows[0].tasks : 0,
        "tasks were trained on, fewer than %d: errors that are clustered by task are themselves uncertain",
        REPORT_FEW_TASKS);
    add(report, "evaluation_too_large", report->evaluated_too_many,
        "evaluation holds nothing: more than %d rollouts were evaluated; give from and to", REPORT_EVALUATED_MAX);
    add(report, "notes_left_out", report->notes_left_out,
        "later notes are not in this report: GET /v1/runs/{run}/notes has them");
}

void report_find_limits(struct report *report)
{
    const struct cell_numbers *totals = &report->rows[0].numbers;

    limit_rollouts(report, totals);
    limit_settings(report);
    limit_evaluation(report, totals);
}
