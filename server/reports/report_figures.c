/* The figures of a report. */
#include "server/reports/plot_private.h"
#include "server/reports/report_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of one figure; the totals are in none. */
struct figure {
    const struct report *report;
    struct plot plot;
    size_t n;
    int64_t *revisions; /* [n] */
    double *numbers[2 * PLOT_SERIES_MAX];
    size_t number_count;
    bool failed;
};

typedef double row_number(const struct report_row *row, struct text name);

static void begin(const struct report *report, const char *id, const char *title, struct figure *ret_figure)
{
    *ret_figure = (struct figure){.report = report,
                                  .n = report->row_count - 1,
                                  .plot = {.id = id, .title = title, .x_name = "revision", .from_zero = true}};
    ret_figure->revisions = calloc(ret_figure->n + 1, sizeof(int64_t));
    ret_figure->failed = !ret_figure->revisions;
    for (size_t i = 0; i < ret_figure->n && !ret_figure->failed; i++)
        ret_figure->revisions[i] = report->rows[i + 1].revision;
}

static double *column(struct figure *figure, row_number *of, struct text name)
{
    double *values = calloc(figure->n + 1, sizeof *values);

    if (!values) {
        figure->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < figure->n; i++)
        values[i] = of(&figure->report->rows[i + 1], name);
    figure->numbers[figure->number_count++] = values;
    return values;
}

/* `errors`: NULL: there are none. */
static void add(struct figure *figure, enum plot_kind kind, struct text title, row_number *of, row_number *errors,
                struct text name)
{
    if (figure->failed || figure->plot.count == PLOT_SERIES_MAX)
        return;
    double *y = column(figure, of, name);
    double *se = errors && !figure->failed ? column(figure, errors, name) : NULL;
    figure->plot.series[figure->plot.count++] = (struct plot_series){
        .name = title, .kind = kind, .n = figure->failed ? 0 : figure->n, .x = figure->revisions, .y = y, .errors = se};
}

static void end(struct figure *figure, struct buffer *out)
{
    if (figure->failed)
        out->failed = true;
    else
        plot_write(&figure->plot, out);
    for (size_t i = 0; i < figure->number_count; i++)
        free(figure->numbers[i]);
    free(figure->revisions);
}

/* --- numbers of a row --- */

static double reward_mean(const struct report_row *row, struct text name)
{
    (void)name;
    return row->numbers.reward.mean;
}

static double reward_se(const struct report_row *row, struct text name)
{
    (void)name;
    return row->numbers.reward.se;
}

static double heldout_mean(const struct report_row *row, struct text name)
{
    const struct report_heldout *heldout = report_find_heldout(row, name);
    return heldout ? heldout->mean : NAN;
}

static double heldout_se(const struct report_row *row, struct text name)
{
    const struct report_heldout *heldout = report_find_heldout(row, name);
    return heldout ? heldout->se : NAN;
}

static double objective_mean(const struct report_row *row, struct text name)
{
    for (size_t k = 0; k < STORE_OBJECTIVE_MEANS; k++)
        if (text_equals(name, store_objective_mean_names[k]))
            return row->numbers.objective[k];
    return NAN;
}

static double clip_fraction(const struct report_row *row, struct text name)
{
    (void)name;
    return row->numbers.clip_fraction;
}

static double loss(const struct report_row *row, struct text name)
{
    (void)name;
    return row->numbers.loss;
}

static double trainer_number(const struct report_row *row, struct text name)
{
    const json_t *number = json_object_getn(row->trainer, name.data, name.length_bytes);
    return json_is_number(number) ? json_number_value(number) : NAN;
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static double zero_variance_share(const struct report_row *row, struct text name)
{
    (void)name;
    return share(row->numbers.zero_variance_groups, row->numbers.judged_groups);
}

static double truncated_share(const struct report_row *row, struct text name)
{
    (void)name;
    return share(row->numbers.truncated, row->numbers.judged);
}

static double tokens_mean(const struct report_row *row, struct text name)
{
    (void)name;
    return row->numbers.tokens.mean;
}

static double tokens_se(const struct report_row *row, struct text name)
{
    (void)name;
    return row->numbers.tokens.se;
}

static int64_t failures_of(const struct report_row *row, struct text code)
{
    for (size_t i = 0; i < row->numbers.failure_count; i++)
        if (text_same(row->numbers.failures[i].code, code))
            return row->numbers.failures[i].count;
    return 0;
}

static double failure_count(const struct report_row *row, struct text code)
{
    return (double)failures_of(row, code);
}

/* --- figures --- */

static void write_reward(const struct report *report, struct buffer *out)
{
    struct figure figure;

    begin(report, "reward", "Reward", &figure);
    figure.plot.from_zero = false;
    add(&figure, PLOT_LINE, TEXT_LITERAL("mean reward"), reward_mean, reward_se, TEXT_NONE);
    end(&figure, out);
}

/* pass@1 of each evaluation, beside the held-out scores of training rollouts. */
static void add_evaluations(struct figure *figure)
{
    const struct report *report = figure->report;
    size_t n;
    const struct report_evaluation *evaluations = report_evaluations_of(report, REPORT_WHOLE, &n);
    double *values = calloc(2 * n + 1, sizeof *values);
    struct plot_series *series = &figure->plot.series[figure->plot.count];

    if (n == 0 || !values || figure->plot.count == PLOT_SERIES_MAX) {
        free(values);
        return;
    }
    figure->numbers[figure->number_count++] = values;
    *series = (struct plot_series){
        .name = TEXT_LITERAL("pass@1 of evaluations"), .kind = PLOT_MARKS, .n = n, .y = values, .errors = values + n};
    int64_t *x = calloc(n, sizeof *x);
    figure->numbers[figure->number_count++] = (double *)(void *)x;
    for (size_t i = 0; x && i < n; i++) {
        x[i] = evaluations[i].revision;
        values[i] = evaluations[i].estimates[0].pass.mean;
        values[n + i] = evaluations[i].estimates[0].pass.se;
    }
    series->x = x;
    figure->plot.count += x != NULL;
}

static void write_heldout(const struct report *report, struct buffer *out)
{
    struct figure figure;

    begin(report, "heldout", "Held-out correctness", &figure);
    for (size_t i = 0; i < report->rows->heldout_count && i < PLOT_SERIES_MAX - 1; i++) {
        struct text verifier = report->rows->heldout[i].verifier;
        add(&figure, PLOT_LINE, verifier, heldout_mean, heldout_se, verifier);
    }
    add_evaluations(&figure);
    end(&figure, out);
}

static void write_kl(const struct report *report, struct buffer *out)
{
    static const char *const names[] = {"kl", "kl_policy", "kl_engine"};
    static const char *const titles[] = {"to the reference (kl)", "old to new policy (kl_policy)",
                                         "engine to old policy (kl_engine)"};
    struct figure figure;

    begin(report, "kl", "KL divergence", &figure);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add(&figure, PLOT_LINE, text_of(titles[i]), objective_mean, NULL, text_of(names[i]));
    add(&figure, PLOT_LINE, TEXT_LITERAL("kl, said by the trainer"), trainer_number, NULL, TEXT_LITERAL("kl"));
    end(&figure, out);
}

static void write_clip(const struct report *report, struct buffer *out)
{
    struct figure figure;

    begin(report, "clip", "Clip fraction", &figure);
    figure.plot.is_share = true;
    add(&figure, PLOT_LINE, TEXT_LITERAL("tokens held by a bound"), clip_fraction, NULL, TEXT_NONE);
    add(&figure, PLOT_LINE, TEXT_LITERAL("clip_fraction, said by the trainer"), trainer_number, NULL,
        TEXT_LITERAL("clip_fraction"));
    end(&figure, out);
}

static void write_loss(const struct report *report, struct buffer *out)
{
    struct figure figure;

    begin(report, "loss", "Loss", &figure);
    add(&figure, PLOT_LINE, TEXT_LITERAL("of optimizer steps at epoch 0"), loss, NULL, TEXT_NONE);
    add(&figure, PLOT_LINE, TEXT_LITERAL("loss, said by the trainer"), trainer_number, NULL, TEXT_LITERAL("loss"));
    end(&figure, out);
}

static void write_shares(const struct report *report, struct buffer *out)
{
    struct figure figure;

    begin(report, "shares", "Zero variance and truncation", &figure);
    figure.plot.is_share = true;
    add(&figure, PLOT_LINE, TEXT_LITERAL("groups of zero variance"), zero_variance_share, NULL, TEXT_NONE);
    add(&figure, PLOT_LINE, TEXT_LITERAL("truncated completions"), truncated_share, NULL, TEXT_NONE);
    end(&figure, out);
}

static void write_lengths(const struct report *report, struct buffer *out)
{
    struct figure figure;

    begin(report, "lengths", "Length of completions", &figure);
    add(&figure, PLOT_LINE, TEXT_LITERAL("mean tokens"), tokens_mean, tokens_se, TEXT_NONE);
    end(&figure, out);
}

static void write_failures(const struct report *report, struct buffer *out)
{
    const struct cell_numbers *totals = &report->rows->numbers;
    struct figure figure;

    begin(report, "failed", "Failures by code", &figure);
    for (size_t i = 0; i < totals->failure_count && i < PLOT_SERIES_MAX; i++)
        add(&figure, PLOT_BARS, totals->failures[i].code, failure_count, NULL, totals->failures[i].code);
    end(&figure, out);
}

void report_write_figures(const struct report *report, struct buffer *out)
{
    write_reward(report, out);
    write_heldout(report, out);
    write_kl(report, out);
    write_clip(report, out);
    write_loss(report, out);
    write_shares(report, out);
    write_lengths(report, out);
    write_failures(report, out);
}
