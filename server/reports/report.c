#include "server/reports/report_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/spec/rollout_query.h"

#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 1000

/* --- parameters --- */

static int read_query(struct report *report)
{
    static const char *const known[] = {"from", "to", "by", "tag.NAME", NULL};
    struct call *call = report->call;

    if (call_check_query(call, known) < 0 || call_query_int(call, "from", 0, INT64_MAX, &report->from) < 0 ||
        call_query_int(call, "to", 0, INT64_MAX, &report->to) < 0 ||
        query_read_tags(call, report->tags, &report->tag_count) < 0 || query_read_split(call, &report->split) < 0)
        return -1;
    if (report->to >= 0 && report->to < report->from)
        return call_refuse(call, ERR_INVALID_FIELD, "to", "it is a revision before from");
    return 0;
}

/* The notes come first: whether there is such a run is known then. */
static int read_notes(struct report *report)
{
    enum store_status status = STORE_UNAVAILABLE;

    if (report->call->reader)
        status = store_list_notes(report->call->reader, report->run, TEXT_NONE, NOTES_MAX, &report->notes);
    if (status == STORE_NOT_FOUND)
        return call_refuse(report->call, ERR_NOT_FOUND, "run", "there is no run of this name");
    return status == STORE_OK ? 0 : call_refuse_unreadable(report->call);
}

/* Those behind the first page, which are only counted: the list has them all. */
static int count_other_notes(struct report *report)
{
    char cursor[sizeof report->notes.next];

    memcpy(cursor, report->notes.next, sizeof cursor);
    while (cursor[0]) {
        _cleanup_(store_notes_finish) struct store_notes page = {0};
        if (report->call->abandoned)
            return -1;
        if (store_list_notes(report->call->reader, report->run, text_of(cursor), NOTES_MAX, &page) != STORE_OK)
            return call_refuse_unreadable(report->call);
        report->notes_left_out += (int64_t)page.count;
        memcpy(cursor, page.next, sizeof cursor);
    }
    return 0;
}

static int read_manifest(struct report *report)
{
    enum store_status status = store_read_manifest(report->call->reader, report->run, &report->manifest);

    return status == STORE_OK ? 0 : call_refuse_unreadable(report->call);
}

static int read_all(struct report *report)
{
    if (read_query(report) < 0 || read_notes(report) < 0 || count_other_notes(report) < 0 ||
        read_manifest(report) < 0 || report_read_batches(report) < 0 || report_read_lines(report) < 0 ||
        report_split_evaluations(report) < 0 || report_read_rows(report) < 0 || report_read_evaluations(report) < 0 ||
        report_find_heldout_tasks(report) < 0 || report_find_alarms(report) < 0)
        return -1;
    report_find_limits(report);
    return 0;
}

/* --- the end --- */

static void finish_settings(struct report_settings *settings)
{
    names_finish(&settings->texts);
    free(settings->rows);
}

static void finish_batches(struct report *report)
{
    struct report_settings *settings[] = {&report->objectives, &report->samplings, &report->verifiers,
                                          &report->together};

    for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
        finish_settings(settings[i]);
    for (size_t i = 0; i < report->evaluation_batch_count; i++) {
        free(report->evaluations[i].decider);
        json_decref(report->evaluations[i].ks);
    }
    free(report->evaluations);
    free(report->training);
    free(report->requests);
}

static void finish(struct report *report)
{
    for (size_t i = 0; i < report->row_count; i++)
        json_decref(report->rows[i].trainer);
    for (size_t i = 0; i < report->evaluated_count; i++)
        free(report->evaluated[i].estimates);
    free(report->rows);
    free(report->slices);
    names_finish(&report->values);
    free(report->heldout);
    free(report->evaluated);
    names_finish(&report->training_tasks);
    names_finish(&report->heldout_tasks);
    report_parts_finish(report);
    report_engines_finish(&report->engines);
    cells_destroy(report->cells);
    store_lines_finish(&report->lines);
    store_notes_finish(&report->notes);
    store_manifest_finish(&report->manifest);
    finish_batches(report);
}

void report_answer(struct call *call)
{
    static void (*const write[])(const struct report *) = {
        [PAGE_JSON] = report_write_json, [PAGE_MARKDOWN] = report_write_markdown, [PAGE_HTML] = report_write_html};
    struct report report = {
        .call = call, .run = call->args[0], .from = -1, .to = -1, .generated_at_us = clock_utc_us()};

    if (read_all(&report) == 0)
        write[call->accept_page](&report);
    finish(&report);
}
