/* A report as Markdown: a heading for each part, tables of pipes. */
#include "server/reports/report_private.h"
#include "server/reports/report_text_private.h"

#include "server/base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(struct buffer *out, const char *text)
{
    buffer_append_string(out, text);
}

static void put_time(struct buffer *out, int64_t utc_us)
{
    char text[RFC3339_BYTES];

    clock_format_rfc3339(utc_us, text);
    put(out, text);
}

/* --- notes, alarms and limitations --- */

static void write_said(struct buffer *out, const char *name, struct text text)
{
    if (!text.data)
        return;
    buffer_append_format(out, "- **%s:** ", name);
    markdown_text(out, text);
    put(out, "\n");
}

static void write_notes(const struct report *report, struct buffer *out)
{
    put(out, "\n## Notes\n");
    for (size_t i = 0; i < report->notes.count; i++) {
        const struct store_note *note = &report->notes.notes[i];
        put(out, "\n");
        put_time(out, note->at_us);
        put(out, "\n\n");
        write_said(out, "Prediction", note->prediction);
        write_said(out, "Result", note->result);
        write_said(out, "Explanation", note->explanation);
        write_said(out, "Limitation", note->limitation);
    }
    if (report->notes.count == 0)
        put(out, "\nNo notes are on record.\n");
}

static void write_code(struct buffer *out, struct text text)
{
    put(out, "`");
    buffer_append(out, text.data, text.length_bytes);
    put(out, "`");
}

static void write_alarms(const struct report *report, struct buffer *out)
{
    static const struct report_alarm_form form = {"- **", "**", "\n", markdown_text, write_code};

    put(out, "\n## Alarms\n\n");
    report_write_alarms(report, &form, out);
    if (report->alarm_count == 0)
        put(out, "None is raised by the newest revisions.\n");
}

static void write_limitations(const struct report *report, struct buffer *out)
{
    put(out, "\n## Limitations\n\n");
    for (size_t i = 0; i < report->limit_count; i++)
        buffer_append_format(out, "- **%" PRId64 "** %s (`%s`)\n", report->limits[i].count, report->limits[i].message,
                             report->limits[i].code);
    if (report->limit_count == 0)
        put(out, "No limitation was found.\n");
}

/* --- tables --- */

static void write_rule(struct buffer *out, size_t columns)
{
    put(out, "\n|");
    for (size_t i = 0; i < columns; i++)
        put(out, "---|");
    put(out, "\n");
}

static void write_heldout(const struct report *report, const struct report_row *row, struct buffer *out)
{
    char text[REPORT_CELL_BYTES];

    for (size_t i = 0; i < report->rows->heldout_count; i++) {
        const struct report_heldout *heldout = report_find_heldout(row, report->rows->heldout[i].verifier);
        report_mean(heldout ? heldout->mean : NAN, heldout ? heldout->se : NAN, text);
        buffer_append_format(out, " %s |", text);
    }
}

static void write_row(const struct report *report, const struct report_row *row, struct buffer *out)
{
    char text[REPORT_CELL_BYTES];

    put(out, "|");
    for (size_t c = 0; report_columns[c].title; c++) {
        report_columns[c].write(row, text);
        buffer_append_format(out, " %s |", text);
        if (report_columns[c].heldout_next)
            write_heldout(report, row, out);
    }
    put(out, "\n");
}

static void write_heldout_titles(const struct report *report, struct buffer *out)
{
    for (size_t i = 0; i < report->rows->heldout_count; i++) {
        put(out, " ");
        markdown_text(out, report->rows->heldout[i].verifier);
        put(out, " |");
    }
}

/* rows[0]: the totals, which come last. */
static void write_table(const struct report *report, const struct report_row *rows, size_t count, struct buffer *out)
{
    size_t columns = report->rows->heldout_count;

    put(out, "\n|");
    for (size_t c = 0; report_columns[c].title; c++, columns++) {
        buffer_append_format(out, " %s |", report_columns[c].title);
        if (report_columns[c].heldout_next)
            write_heldout_titles(report, out);
    }
    write_rule(out, columns);
    for (size_t i = 1; i < count; i++)
        write_row(report, &rows[i], out);
    write_row(report, rows, out);
}

static void write_revisions(const struct report *report, struct buffer *out)
{
    put(out, "\n## By revision\n\nTraining rollouts; errors are clustered by task.\n");
    write_table(report, report->rows, report->row_count, out);
}

static void write_estimate(struct buffer *out, struct clustered_mean mean)
{
    char text[REPORT_CELL_BYTES];

    report_mean(mean.mean, mean.se, text);
    buffer_append_format(out, " %s |", text);
}

static void write_evaluation(const struct report_evaluation *evaluation, struct buffer *out)
{
    char threshold[REPORT_CELL_BYTES];

    report_threshold(evaluation->threshold, threshold);
    for (size_t i = 0; i < evaluation->estimate_count; i++) {
        const struct report_estimate *estimate = &evaluation->estimates[i];
        buffer_append_format(out, "| %" PRId64 " | ", evaluation->revision);
        markdown_text(out, evaluation->decider.data ? evaluation->decider : TEXT_LITERAL("the reward"));
        put(out, threshold);
        put(out, " | ");
        markdown_text(out, evaluation->set.data ? evaluation->set : TEXT_LITERAL("–"));
        buffer_append_format(out, " | %" PRId64 " | %" PRId64 " |", evaluation->groups, estimate->k);
        write_estimate(out, estimate->pass);
        write_estimate(out, estimate->majority);
        write_estimate(out, estimate->best);
        put(out, "\n");
    }
}

static void write_evaluations_of(const struct report *report, int64_t slice, const char *title, struct buffer *out)
{
    size_t count;
    const struct report_evaluation *evaluations = report_evaluations_of(report, slice, &count);

    if (count == 0)
        return;
    put(out, title);
    put(out, "\n| revision | correct by | task set | groups | k | pass@k | maj@k | best@k |");
    write_rule(out, 8);
    for (size_t i = 0; i < count; i++)
        write_evaluation(&evaluations[i], out);
}

static void write_evaluations(const struct report *report, struct buffer *out)
{
    write_evaluations_of(report, REPORT_WHOLE, "\n## Evaluations\n", out);
}

/* --- the slices --- */

static void write_slice(const struct report *report, const struct report_slice *slice, struct buffer *out)
{
    put(out, "\n### ");
    markdown_text(out, slice->value.data ? slice->value : TEXT_LITERAL("groups without this tag"));
    put(out, "\n");
    if (slice->rows->numbers.n > 0)
        write_table(report, slice->rows, slice->row_count, out);
    write_evaluations_of(report, slice->number, "", out);
}

static void write_slices(const struct report *report, struct buffer *out)
{
    if (!report->split.data)
        return;
    put(out, "\n## By the tag ");
    markdown_text(out, report->split);
    put(out, "\n");
    for (size_t i = 0; i < report->slice_count; i++)
        write_slice(report, &report->slices[i], out);
}

static void write_failures(const struct report *report, struct buffer *out)
{
    const struct cell_numbers *totals = &report->rows->numbers;

    if (totals->failure_count == 0)
        return;
    put(out, "\n## Failures\n\n| code | training rollouts |");
    write_rule(out, 2);
    for (size_t i = 0; i < totals->failure_count; i++) {
        put(out, "| ");
        markdown_text(out, totals->failures[i].code);
        buffer_append_format(out, " | %" PRId64 " |\n", totals->failures[i].count);
    }
}

/* --- configuration --- */

/* The text is one line of JSON: only a run of backticks as long as the fence would end it. */
static void write_fence(struct buffer *out, struct text text)
{
    size_t longest = 2;
    size_t run = 0;

    for (size_t i = 0; i < text.length_bytes; i++) {
        run = text.data[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        put(out, "`");
}

static void write_json(struct buffer *out, struct text text)
{
    write_fence(out, text);
    put(out, "json\n");
    buffer_append(out, text.data, text.length_bytes);
    put(out, "\n");
    write_fence(out, text);
    put(out, "\n");
}

static void write_settings(struct buffer *out, const char *title, const struct report_settings *settings)
{
    for (uint32_t i = 0; i < settings->texts.count; i++) {
        struct text text = names_key(&settings->texts, i);
        buffer_append_format(out, "\n%s: %" PRId64 " batches, the first `%s`\n\n", title, settings->rows[i].batches,
                             settings->rows[i].first_batch);
        write_json(out, text);
    }
}

static void write_configuration(const struct report *report, struct buffer *out)
{
    put(out, "\n## Configuration\n");
    for (size_t i = 0; i < report->engines.keys.count; i++) {
        const struct report_engine *engine = &report->engines.rows[i];
        const char *const texts[] = {engine->engine, engine->model, engine->version, engine->tokenizer};
        put(out, i ? "- engine" : "\n- engine");
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            put(out, k ? ", " : " ");
            markdown_text(out, text_of(texts[k] ? texts[k] : "–"));
        }
        buffer_append_format(out, ": %" PRId64 " rollouts\n", engine->rollouts);
    }
    if (report->manifest.given.data) {
        put(out, "\nManifest\n\n");
        write_json(out, report->manifest.given);
    }
    write_settings(out, "Objective", &report->objectives);
    write_settings(out, "Sampling", &report->samplings);
    write_settings(out, "Verifiers", &report->verifiers);
}

static void write_head(const struct report *report, struct buffer *out)
{
    put(out, "# Run ");
    markdown_text(out, report->run);
    put(out, "\n\nReport of ");
    put_time(out, report->generated_at_us);
    put(out, " by rolloutd " ROLLOUTD_VERSION);
    if (report->from >= 0)
        buffer_append_format(out, ", from revision %" PRId64, report->from);
    if (report->to >= 0)
        buffer_append_format(out, ", to revision %" PRId64, report->to);
    for (size_t i = 0; i < report->tag_count; i++) {
        put(out, ", only groups whose tag ");
        markdown_text(out, report->tags[i].name);
        put(out, " is ");
        markdown_text(out, report->tags[i].value);
    }
    buffer_append_format(out, ". %zu requests, SHA-256 `%s`.\n", report->request_count, report->inputs_sha256);
}

void report_write_markdown(const struct report *report)
{
    struct buffer *out = &report->call->reply.body;

    write_head(report, out);
    write_notes(report, out);
    write_alarms(report, out);
    write_limitations(report, out);
    write_revisions(report, out);
    write_evaluations(report, out);
    write_slices(report, out);
    write_failures(report, out);
    write_configuration(report, out);
    call_answer_bytes(report->call, 200, "text/markdown; charset=utf-8");
}
