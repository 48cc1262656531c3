/* The columns of the tables in HTML and Markdown. */
#include "server/reports/report_private.h"
#include "server/reports/report_text_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void report_mean(double mean, double se, char ret_text[REPORT_CELL_BYTES])
{
    char mean_text[REPORT_NUMBER_BYTES];

    report_number(mean, mean_text);
    if (isnan(se))
        snprintf(ret_text, REPORT_CELL_BYTES, "%s", mean_text);
    else
        snprintf(ret_text, REPORT_CELL_BYTES, "%s ± %.2g", mean_text, se);
}

void report_threshold(double threshold, char ret_text[REPORT_CELL_BYTES])
{
    char number[REPORT_NUMBER_BYTES];

    report_number(threshold, number);
    ret_text[0] = '\0';
    if (threshold != 1)
        snprintf(ret_text, REPORT_CELL_BYTES, ", from %s", number);
}

const struct report_heldout *report_find_heldout(const struct report_row *row, struct text verifier)
{
    for (size_t i = 0; i < row->heldout_count; i++)
        if (text_same(row->heldout[i].verifier, verifier))
            return &row->heldout[i];
    return NULL;
}

static void write_count(int64_t count, char *text)
{
    snprintf(text, REPORT_CELL_BYTES, "%" PRId64, count);
}

static void write_share(int64_t part, int64_t whole, char *text)
{
    report_percent(whole > 0 ? (double)part / (double)whole : NAN, text);
}

static void revision(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    if (row->revision < 0)
        snprintf(text, REPORT_CELL_BYTES, "all");
    else if (row->incarnation > 0)
        snprintf(text, REPORT_CELL_BYTES, "%" PRId64 " (incarnation %" PRId64 ")", row->revision, row->incarnation);
    else
        write_count(row->revision, text);
}

static void groups(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    write_count(row->numbers.groups, text);
}

static void rollouts(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    write_count(row->numbers.n, text);
}

static void failed(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    write_count(row->numbers.failed, text);
}

static void reward(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_mean(row->numbers.reward.mean, row->numbers.reward.se, text);
}

static void zero_variance(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    write_share(row->numbers.zero_variance_groups, row->numbers.judged_groups, text);
}

static void tokens(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_mean(row->numbers.tokens.mean, row->numbers.tokens.se, text);
}

static void truncated(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    write_share(row->numbers.truncated, row->numbers.judged, text);
}

static void kl(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_number(row->numbers.objective[STORE_OBJECTIVE_KL], text);
}

static void kl_policy(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_number(row->numbers.objective[STORE_OBJECTIVE_KL_POLICY], text);
}

static void kl_engine(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_number(row->numbers.objective[STORE_OBJECTIVE_KL_ENGINE], text);
}

static void entropy(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_number(row->numbers.objective[STORE_OBJECTIVE_ENTROPY], text);
}

static void clip(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_percent(row->numbers.clip_fraction, text);
}

static void loss(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_number(row->numbers.loss, text);
}

static void staleness(const struct report_row *row, char text[REPORT_CELL_BYTES])
{
    report_number(row->numbers.staleness, text);
}

const struct report_column report_columns[] = {
    {"revision", revision, false},
    {"groups", groups, false},
    {"rollouts", rollouts, false},
    {"failed", failed, false},
    {"reward", reward, true},
    {"zero variance", zero_variance, false},
    {"tokens", tokens, false},
    {"truncated", truncated, false},
    {"kl", kl, false},
    {"kl_policy", kl_policy, false},
    {"kl_engine", kl_engine, false},
    {"entropy", entropy, false},
    {"clipped", clip, false},
    {"loss", loss, false},
    {"staleness", staleness, false},
    {NULL, NULL, false},
};
