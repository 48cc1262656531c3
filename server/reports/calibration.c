#include "server/reports/calibration_private.h"

#include "server/base/cleanup.h"
#include "server/base/json_write.h"
#include "server/settings/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const calibration_key_names[] = {
    [CALIBRATION_BY_REVISION] = "revision", [CALIBRATION_BY_REASON] = "reason", NULL};

/* --- order: rows of one key side by side --- */

static int compare_revisions(const void *left, const void *right)
{
    const struct calibration_row *a = left;
    const struct calibration_row *b = right;

    return (a->revision > b->revision) - (a->revision < b->revision);
}

static int compare_reasons(const void *left, const void *right, void *names)
{
    struct text a = names_key(names, ((const struct calibration_row *)left)->reason);
    struct text b = names_key(names, ((const struct calibration_row *)right)->reason);
    size_t shorter = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;

    return order ? order : (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

static void sort(struct calibration *calibration, int by)
{
    if (calibration->count == 0)
        return;
    if (by == CALIBRATION_BY_REVISION)
        qsort(calibration->rows, calibration->count, sizeof *calibration->rows, compare_revisions);
    if (by == CALIBRATION_BY_REASON)
        qsort_r(calibration->rows, calibration->count, sizeof *calibration->rows, compare_reasons,
                &calibration->reasons);
}

static bool has_same_key(const struct calibration_row *a, const struct calibration_row *b, int by)
{
    if (by == CALIBRATION_BY_REVISION)
        return a->revision == b->revision;
    return by != CALIBRATION_BY_REASON || a->reason == b->reason;
}

/* --- reply --- */

static void write_key(struct json_write *json, const struct calibration *calibration, const struct calibration_row *row,
                      int by)
{
    json_key(json, "key");
    json_object_begin(json);
    if (by == CALIBRATION_BY_REVISION)
        json_put_int(json, "revision", row->revision);
    if (by == CALIBRATION_BY_REASON) {
        struct text reason = names_key(&calibration->reasons, row->reason);
        json_put_text(json, "reason", reason.length_bytes ? reason : TEXT_NONE);
    }
    json_object_end(json);
}

static void write_counts(struct json_write *json, const struct calibration_counts *counts)
{
    static const char *const names[CALIBRATION_CELLS] = {[TRUE_POSITIVE] = "true_positive",
                                                         [FALSE_POSITIVE] = "false_positive",
                                                         [FALSE_NEGATIVE] = "false_negative",
                                                         [TRUE_NEGATIVE] = "true_negative",
                                                         [UNSCORED] = "unscored"};
    json_put_int(json, "n", calibration_labels(counts));
    for (size_t cell = 0; cell < CALIBRATION_CELLS; cell++)
        json_put_int(json, names[cell], counts->cells[cell]);
    json_put_double(json, "precision", calibration_precision(counts));
    json_put_double(json, "recall", calibration_recall(counts));
}

/* row: NULL: of no label. */
static void write_item(struct json_write *json, const struct calibration *calibration,
                       const struct calibration_row *row, int by, const struct calibration_counts *counts)
{
    json_object_begin(json);
    write_key(json, calibration, row, by);
    write_counts(json, counts);
    json_object_end(json);
}

/* An item for each key; without one there is one item, of no label, too. Adds up in *total. */
static void write_items(struct json_write *json, const struct calibration *calibration, int by,
                        struct calibration_counts *total)
{
    json_key(json, "items");
    json_array_begin(json);
    for (size_t at = 0; at < calibration->count;) {
        const struct calibration_row *first = &calibration->rows[at];
        struct calibration_counts counts = {{0}};
        for (; at < calibration->count && has_same_key(first, &calibration->rows[at], by); at++)
            counts.cells[calibration->rows[at].cell]++;
        write_item(json, calibration, first, by, &counts);
        for (size_t cell = 0; cell < CALIBRATION_CELLS; cell++)
            total->cells[cell] += counts.cells[cell];
    }
    if (calibration->count == 0 && by == CALIBRATION_WHOLE)
        write_item(json, calibration, NULL, by, total);
    json_array_end(json);
}

static void write_alarm(struct json_write *json, struct text verifier, const char *measure, double value,
                        double threshold)
{
    if (isnan(value) || value >= threshold)
        return;
    json_object_begin(json);
    json_put_text(json, "verifier", verifier);
    json_put_string(json, "measure", measure);
    json_put_double(json, "value", value);
    json_put_double(json, "threshold", threshold);
    json_object_end(json);
}

static void write_alarms(struct json_write *json, const struct calibration_query *query,
                         const struct calibration_counts *counts, const struct settings *settings)
{
    json_key(json, "alarms");
    json_array_begin(json);
    if (calibration_labels(counts) >= CALIBRATION_ALARM_LABELS) {
        write_alarm(json, query->verifier, "precision", calibration_precision(counts),
                    settings->calibration_precision_min);
        write_alarm(json, query->verifier, "recall", calibration_recall(counts), settings->calibration_recall_min);
    }
    json_array_end(json);
}

static void answer(struct call *call, const struct calibration_query *query, struct calibration *calibration)
{
    struct calibration_counts total = {{0}};
    struct json_write json;

    sort(calibration, query->by);
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_text(&json, "run", query->run);
    json_put_text(&json, "verifier", query->verifier);
    write_items(&json, calibration, query->by, &total);
    write_alarms(&json, query, &total, call->settings);
    json_object_end(&json);
    call_answer_json(call, 200);
}

void calibration_answer(struct call *call, const struct calibration_query *query)
{
    struct calibration calibration = {0};
    enum store_status status = STORE_UNAVAILABLE;

    if (call->reader)
        status = calibration_read(call->reader, query, &calibration);
    if (status == STORE_NOT_FOUND)
        call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name");
    else if (status != STORE_OK)
        call_refuse_unreadable(call);
    else if (calibration.too_many)
        call_refuse(call, ERR_TOO_MANY_ROLLOUTS, "run", "at most %d labels are counted; name a revision",
                    CALIBRATION_LABELS_MAX);
    else
        answer(call, query, &calibration);
    calibration_finish(&calibration);
}
