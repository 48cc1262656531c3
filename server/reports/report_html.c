/* A report as a page of HTML: pages/report.html, with a section for each {{name}}. Nothing in it runs, and nothing is
 * fetched: its style is allowed by hash. */
#include "server/reports/report_private.h"
#include "server/reports/report_text_private.h"

#include "schema/embedded.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct embedded_file report_pages[];

#define PAGE_BYTES_MAX ((size_t)256 << 20)

static void put(struct buffer *out, const char *text)
{
    buffer_append_string(out, text);
}

/* A text from outside: isolated, so that its direction changes nothing around it. */
static void put_outside(struct buffer *out, struct text text)
{
    put(out, "<bdi>");
    html_text(out, text);
    put(out, "</bdi>");
}

static void put_time(struct buffer *out, int64_t utc_us)
{
    char text[RFC3339_BYTES];

    clock_format_rfc3339(utc_us, text);
    put(out, text);
}

/* --- head --- */

static void write_run(const struct report *report, struct buffer *out)
{
    html_text(out, report->run);
}

static void write_about(const struct report *report, struct buffer *out)
{
    put(out, "Report of ");
    put_time(out, report->generated_at_us);
    buffer_append_format(out, " by rolloutd " ROLLOUTD_VERSION);
    if (report->from >= 0)
        buffer_append_format(out, ", from revision %" PRId64, report->from);
    if (report->to >= 0)
        buffer_append_format(out, ", to revision %" PRId64, report->to);
    for (size_t i = 0; i < report->tag_count; i++) {
        put(out, ", only groups whose tag ");
        put_outside(out, report->tags[i].name);
        put(out, " is ");
        put_outside(out, report->tags[i].value);
    }
    buffer_append_format(out, ". %zu requests, SHA-256 <code>%s</code>", report->request_count, report->inputs_sha256);
}

static void write_tile(struct buffer *out, const char *value, struct text name)
{
    buffer_append_format(out, "<li><b>%s</b><span>", value);
    html_text(out, name);
    put(out, "</span></li>\n");
}

static void write_tiles(const struct report *report, struct buffer *out)
{
    const struct report_row *totals = report->rows;
    char text[REPORT_CELL_BYTES];

    put(out, "<ul class=\"tiles\">\n");
    report_mean(totals->numbers.reward.mean, totals->numbers.reward.se, text);
    write_tile(out, text, TEXT_LITERAL("mean reward"));
    for (size_t i = 0; i < totals->heldout_count && i < 3; i++) {
        report_mean(totals->heldout[i].mean, totals->heldout[i].se, text);
        write_tile(out, text, totals->heldout[i].verifier);
    }
    snprintf(text, sizeof text, "%zu", report->row_count - 1);
    write_tile(out, text, TEXT_LITERAL("revisions"));
    snprintf(text, sizeof text, "%" PRId64, totals->numbers.n);
    write_tile(out, text, TEXT_LITERAL("training rollouts"));
    snprintf(text, sizeof text, "%" PRId64, totals->numbers.failed);
    write_tile(out, text, TEXT_LITERAL("failed"));
    report_number((double)report->counts.spent_tokens, text);
    write_tile(out, text, TEXT_LITERAL("tokens spent, all rollouts"));
    put(out, "</ul>\n");
}

/* --- notes, alarms and limitations --- */

static void write_said(struct buffer *out, const char *name, struct text text)
{
    if (!text.data)
        return;
    buffer_append_format(out, "<dt>%s</dt><dd>", name);
    put_outside(out, text);
    put(out, "</dd>\n");
}

static void write_notes(const struct report *report, struct buffer *out)
{
    if (report->notes.count == 0)
        put(out,
            "<p class=\"none\">No notes are on record: <code>PUT /v1/runs/{run}/notes</code> takes a prediction, a "
            "result, an explanation and a limitation.</p>\n");
    for (size_t i = 0; i < report->notes.count; i++) {
        const struct store_note *note = &report->notes.notes[i];
        put(out, "<dl class=\"note\">\n<dd class=\"soft\">");
        put_time(out, note->at_us);
        put(out, "</dd>\n");
        write_said(out, "Prediction", note->prediction);
        write_said(out, "Result", note->result);
        write_said(out, "Explanation", note->explanation);
        write_said(out, "Limitation", note->limitation);
        put(out, "</dl>\n");
    }
}

static void write_code(struct buffer *out, struct text text)
{
    put(out, "<code>");
    html_text(out, text);
    put(out, "</code>");
}

static void write_alarms(const struct report *report, struct buffer *out)
{
    static const struct report_alarm_form form = {"<li><b>", "</b>", "</li>\n", put_outside, write_code};

    if (report->alarm_count == 0) {
        put(out, "<p class=\"none\">None is raised by the newest revisions.</p>\n");
        return;
    }
    put(out, "<ul class=\"limits\">\n");
    report_write_alarms(report, &form, out);
    put(out, "</ul>\n");
}

static void write_limitations(const struct report *report, struct buffer *out)
{
    if (report->limit_count == 0) {
        put(out, "<p class=\"none\">No limitation was found.</p>\n");
        return;
    }
    put(out, "<ul class=\"limits\">\n");
    for (size_t i = 0; i < report->limit_count; i++)
        buffer_append_format(out, "<li><b>%" PRId64 "</b> %s <code>%s</code></li>\n", report->limits[i].count,
                             report->limits[i].message, report->limits[i].code);
    put(out, "</ul>\n");
}

/* --- tables --- */

static void begin_table(struct buffer *out, const char *label)
{
    buffer_append_format(
        out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table>\n<thead><tr>", label);
}

static void end_table(struct buffer *out)
{
    put(out, "</tbody>\n</table>\n</div>\n");
}

static void write_heldout(const struct report *report, const struct report_row *row, struct buffer *out)
{
    char text[REPORT_CELL_BYTES];

    for (size_t i = 0; i < report->rows->heldout_count; i++) {
        const struct report_heldout *heldout = report_find_heldout(row, report->rows->heldout[i].verifier);
        report_mean(heldout ? heldout->mean : NAN, heldout ? heldout->se : NAN, text);
        buffer_append_format(out, "<td>%s</td>", text);
    }
}

static void write_row(const struct report *report, const struct report_row *row, struct buffer *out)
{
    char text[REPORT_CELL_BYTES];

    put(out, "<tr>");
    for (size_t c = 0; report_columns[c].title; c++) {
        report_columns[c].write(row, text);
        buffer_append_format(out, c == 0 ? "<th scope=\"row\">%s</th>" : "<td>%s</td>", text);
        if (report_columns[c].heldout_next)
            write_heldout(report, row, out);
    }
    put(out, "</tr>\n");
}

static void write_heldout_titles(const struct report *report, struct buffer *out)
{
    for (size_t i = 0; i < report->rows->heldout_count; i++) {
        put(out, "<th scope=\"col\">");
        put_outside(out, report->rows->heldout[i].verifier);
        put(out, "</th>");
    }
}

/* rows[0]: the totals, which come last. */
static void write_table(const struct report *report, const struct report_row *rows, size_t count, struct buffer *out)
{
    begin_table(out, "Numbers by revision");
    for (size_t c = 0; report_columns[c].title; c++) {
        buffer_append_format(out, "<th scope=\"col\">%s</th>", report_columns[c].title);
        if (report_columns[c].heldout_next)
            write_heldout_titles(report, out);
    }
    put(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 1; i < count; i++)
        write_row(report, &rows[i], out);
    write_row(report, rows, out);
    end_table(out);
}

static void write_revisions(const struct report *report, struct buffer *out)
{
    write_table(report, report->rows, report->row_count, out);
}

static void write_estimate(struct buffer *out, struct clustered_mean mean)
{
    char text[REPORT_CELL_BYTES];

    report_mean(mean.mean, mean.se, text);
    buffer_append_format(out, "<td>%s</td>", text);
}

static void write_evaluation(const struct report_evaluation *evaluation, struct buffer *out)
{
    char threshold[REPORT_CELL_BYTES];

    report_threshold(evaluation->threshold, threshold);
    for (size_t i = 0; i < evaluation->estimate_count; i++) {
        const struct report_estimate *estimate = &evaluation->estimates[i];
        buffer_append_format(out, "<tr><th scope=\"row\">%" PRId64 "</th><td class=\"text\">", evaluation->revision);
        put_outside(out, evaluation->decider.data ? evaluation->decider : TEXT_LITERAL("the reward"));
        put(out, threshold);
        put(out, "</td><td class=\"text\">");
        put_outside(out, evaluation->set.data ? evaluation->set : TEXT_LITERAL("–"));
        buffer_append_format(out, "</td><td>%" PRId64 "</td><td>%" PRId64 "</td>", evaluation->groups, estimate->k);
        write_estimate(out, estimate->pass);
        write_estimate(out, estimate->majority);
        write_estimate(out, estimate->best);
        put(out, "</tr>\n");
    }
}

/* False, with nothing written: there are none. */
static bool write_evaluations_of(const struct report *report, int64_t slice, struct buffer *out)
{
    static const char *const titles[] = {"groups", "k", "pass@k", "maj@k", "best@k"};
    size_t count;
    const struct report_evaluation *evaluations = report_evaluations_of(report, slice, &count);

    if (count == 0)
        return false;
    begin_table(out, "Evaluations by revision");
    put(out, "<th scope=\"col\">revision</th><th scope=\"col\" class=\"text\">correct by</th><th scope=\"col\" "
             "class=\"text\">task set</th>");
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        buffer_append_format(out, "<th scope=\"col\">%s</th>", titles[i]);
    put(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < count; i++)
        write_evaluation(&evaluations[i], out);
    end_table(out);
    return true;
}

static void write_evaluations(const struct report *report, struct buffer *out)
{
    if (!write_evaluations_of(report, REPORT_WHOLE, out))
        put(out, "<p class=\"none\">No evaluation is on record.</p>\n");
}

/* --- the slices --- */

static void write_slice(const struct report *report, const struct report_slice *slice, struct buffer *out)
{
    put(out, "<h3>");
    put_outside(out, slice->value.data ? slice->value : TEXT_LITERAL("groups without this tag"));
    put(out, "</h3>\n");
    if (slice->rows->numbers.n > 0)
        write_table(report, slice->rows, slice->row_count, out);
    write_evaluations_of(report, slice->number, out);
}

static void write_slices(const struct report *report, struct buffer *out)
{
    if (!report->split.data)
        return;
    put(out, "<section aria-labelledby=\"split\"><h2 id=\"split\">By the tag ");
    put_outside(out, report->split);
    put(out, "</h2>\n");
    for (size_t i = 0; i < report->slice_count; i++)
        write_slice(report, &report->slices[i], out);
    put(out, "</section>\n");
}

static void write_failures(const struct report *report, struct buffer *out)
{
    const struct cell_numbers *totals = &report->rows->numbers;

    if (totals->failure_count == 0) {
        put(out, "<p class=\"none\">No training rollout failed.</p>\n");
        return;
    }
    begin_table(out, "Failures by code");
    put(out,
        "<th scope=\"col\" class=\"text\">code</th><th scope=\"col\">training rollouts</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < totals->failure_count; i++) {
        put(out, "<tr><td class=\"text\">");
        put_outside(out, totals->failures[i].code);
        buffer_append_format(out, "</td><td>%" PRId64 "</td></tr>\n", totals->failures[i].count);
    }
    end_table(out);
}

/* --- configuration --- */

static void write_settings(struct buffer *out, const char *title, const struct report_settings *settings)
{
    for (uint32_t i = 0; i < settings->texts.count; i++) {
        buffer_append_format(out,
                             "<details><summary>%s: %" PRId64 " batches, the first <code>%s</code></summary>\n<pre>",
                             title, settings->rows[i].batches, settings->rows[i].first_batch);
        html_text(out, names_key(&settings->texts, i));
        put(out, "</pre>\n</details>\n");
    }
}

static void put_text_cell(struct buffer *out, const char *text)
{
    put(out, "<td class=\"text\">");
    put_outside(out, text_of(text ? text : "–"));
    put(out, "</td>");
}

static void write_engines(const struct report *report, struct buffer *out)
{
    static const char *const titles[] = {"engine", "model", "version", "tokenizer"};

    if (report->engines.keys.count == 0) {
        put(out, "<p class=\"none\">No training rollout names an engine.</p>\n");
        return;
    }
    begin_table(out, "Engines");
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        buffer_append_format(out, "<th scope=\"col\" class=\"text\">%s</th>", titles[i]);
    put(out, "<th scope=\"col\">training rollouts</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < report->engines.keys.count; i++) {
        const struct report_engine *engine = &report->engines.rows[i];
        put(out, "<tr>");
        put_text_cell(out, engine->engine);
        put_text_cell(out, engine->model);
        put_text_cell(out, engine->version);
        put_text_cell(out, engine->tokenizer);
        buffer_append_format(out, "<td>%" PRId64 "</td></tr>\n", engine->rollouts);
    }
    end_table(out);
}

static void write_configuration(const struct report *report, struct buffer *out)
{
    write_engines(report, out);
    if (report->manifest.given.data) {
        put(out, "<details><summary>Manifest</summary>\n<pre>");
        html_text(out, report->manifest.given);
        put(out, "</pre>\n</details>\n");
    }
    write_settings(out, "Objective", &report->objectives);
    write_settings(out, "Sampling", &report->samplings);
    write_settings(out, "Verifiers", &report->verifiers);
}

/* --- the page --- */

static const struct {
    const char *name;
    void (*write)(const struct report *report, struct buffer *out);
} sections[] = {
    {"run", write_run},
    {"about", write_about},
    {"tiles", write_tiles},
    {"notes", write_notes},
    {"alarms", write_alarms},
    {"limitations", write_limitations},
    {"figures", report_write_figures},
    {"evaluations", write_evaluations},
    {"revisions", write_revisions},
    {"slices", write_slices},
    {"failures", write_failures},
    {"configuration", write_configuration},
};

static void write_section(const struct report *report, struct text name, struct buffer *out)
{
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (text_equals(name, sections[i].name))
            sections[i].write(report, out);
}

static void fill_page(const struct report *report, const char *page, struct buffer *out)
{
    for (const char *open; (open = strstr(page, "{{")); page += 2) {
        const char *name = open + 2;
        buffer_append(out, page, (size_t)(open - page));
        page = strstr(name, "}}");
        write_section(report, (struct text){name, (size_t)(page - name)}, out);
    }
    put(out, page);
}

/* A style that is not this one is none of ours. */
static void write_policy(const char *page, char ret_policy[REPLY_POLICY_BYTES])
{
    const char *style = strstr(page, "<style>") + strlen("<style>");
    uint8_t digest[SHA256_BYTES];
    _cleanup_buffer_ struct buffer hash = {0};

    buffer_init(&hash, SHA256_HEX_BYTES);
    sha256_of(style, (size_t)(strstr(style, "</style>") - style), digest);
    base64_encode(digest, sizeof digest, &hash);
    snprintf(ret_policy, REPLY_POLICY_BYTES, "default-src 'none'; style-src 'sha256-%.*s'; sandbox",
             (int)hash.length_bytes, hash.data);
}

void report_write_html(const struct report *report)
{
    struct reply *reply = &report->call->reply;

    fill_page(report, report_pages[0].data, &reply->body);
    write_policy(report_pages[0].data, reply->policy);
    call_answer_bytes(report->call, 200, "text/html; charset=utf-8");
}
