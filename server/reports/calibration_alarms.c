/* Alarms of a verifier that drifted: its newest labels contradict it. */
#include "server/reports/alarms.h"
#include "server/reports/calibration_private.h"

#include "server/base/cleanup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of each verifier, the newest revisions first. */
static int compare(const void *left, const void *right)
{
    const struct calibration_row *a = left;
    const struct calibration_row *b = right;

    if (a->verifier != b->verifier)
        return a->verifier < b->verifier ? -1 : 1;
    return (a->revision < b->revision) - (a->revision > b->revision);
}

/* The newest labelled revisions of one verifier, whole ones, as many as it takes for enough labels. */
struct window {
    struct calibration_counts counts;
    int64_t from_revision, revision;
};

/* Of the rows of one verifier. */
static struct window newest(const struct calibration_row *rows, size_t count)
{
    struct window window = {.revision = rows[0].revision};

    for (size_t i = 0; i < count; i++) {
        bool is_new = i == 0 || rows[i].revision != rows[i - 1].revision;
        if (is_new && calibration_labels(&window.counts) >= CALIBRATION_ALARM_LABELS)
            break;
        window.counts.cells[rows[i].cell]++;
        window.from_revision = rows[i].revision;
    }
    return window;
}

/* Keeps the lowest value of all verifiers. */
static void keep_lowest(struct alarm_finding *finding, struct text verifier, const struct window *window, double value,
                        double threshold)
{
    if (isnan(value) || threshold <= 0 || (finding->state != ALARM_UNKNOWN && value >= finding->value))
        return;
    *finding = (struct alarm_finding){.state = value < threshold ? ALARM_RAISED : ALARM_CLEAR,
                                      .from_revision = window->from_revision,
                                      .revision = window->revision,
                                      .value = value,
                                      .threshold = threshold};
    snprintf(finding->verifier, sizeof finding->verifier, "%.*s", (int)verifier.length_bytes, verifier.data);
}

void alarms_find_by_labels(struct store_reader *reader, struct text run, const struct alarm_limits *limits,
                           struct alarm_finding findings[ALARM_KINDS])
{
    const struct calibration_query query = {
        .run = run, .purpose = STORE_TRAIN, .incarnation = -1, .revision_min = -1, .revision_max = -1};
    struct calibration labels;

    if (calibration_read(reader, &query, &labels) != STORE_OK || labels.too_many)
        labels.count = 0;
    if (labels.count)
        qsort(labels.rows, labels.count, sizeof *labels.rows, compare);
    for (size_t at = 0, end; at < labels.count; at = end) {
        for (end = at + 1; end < labels.count && labels.rows[end].verifier == labels.rows[at].verifier;)
            end++;
        struct window window = newest(&labels.rows[at], end - at);
        struct text verifier = names_key(&labels.verifiers, labels.rows[at].verifier);
        if (calibration_labels(&window.counts) < CALIBRATION_ALARM_LABELS)
            continue;
        keep_lowest(&findings[ALARM_PRECISION], verifier, &window, calibration_precision(&window.counts),
                    limits->precision_min);
        keep_lowest(&findings[ALARM_RECALL], verifier, &window, calibration_recall(&window.counts), limits->recall_min);
    }
    calibration_finish(&labels);
}
