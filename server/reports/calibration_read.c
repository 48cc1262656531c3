/* Labels with the verdicts that they are about. */
#include "server/reports/calibration_private.h"

#include "server/base/cleanup.h"
#include "server/reports/stats_private.h"
#include "server/verify/spec.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

struct reading {
    const struct calibration_query *query;
    struct calibration *into;
    struct store_lines lines;
    bool failed; /* for want of memory */
};

static bool counts_here(const struct reading *reading, const struct store_labelled *labelled)
{
    const struct calibration_query *query = reading->query;

    if (labelled->purpose != (enum store_purpose)query->purpose || labelled->revision < query->revision_min ||
        (query->revision_max >= 0 && labelled->revision > query->revision_max))
        return false;
    if (query->incarnation >= 0)
        return labelled->incarnation == query->incarnation;
    return lines_have(&reading->lines, labelled->incarnation, labelled->revision, labelled->purpose);
}

/* A reference, or NULL. */
static json_t *verdict_of(const json_t *verdicts, struct text verifier)
{
    size_t i;
    json_t *verdict;

    json_array_foreach (verdicts, i, verdict) {
        if (text_same(json_text_of(json_object_get(verdict, "id")), verifier))
            return verdict;
    }
    return NULL;
}

static enum calibration_cell cell_of(const json_t *verdict, bool truth)
{
    const json_t *score = json_object_get(verdict, "score");

    if (!json_is_number(score))
        return UNSCORED;
    if (json_number_value(score) >= 1)
        return truth ? TRUE_POSITIVE : FALSE_POSITIVE;
    return truth ? FALSE_NEGATIVE : TRUE_NEGATIVE;
}

static bool add(struct reading *reading, const struct store_labelled *labelled, const json_t *verdict)
{
    struct calibration *into = reading->into;
    struct text reason = json_text_of(json_object_get(verdict, "reason"));
    struct calibration_row row = {.verifier = names_number(&into->verifiers, labelled->verifier),
                                  .reason = names_number(&into->reasons, reason.data ? reason : TEXT_LITERAL("")),
                                  .revision = labelled->revision,
                                  .cell = cell_of(verdict, labelled->truth)};

    reading->failed = row.verifier == NAMES_NONE || row.reason == NAMES_NONE;
    if (reading->failed)
        return false;
    if (into->count == into->room) {
        into->room = into->room ? 2 * into->room : 64;
        into->rows = xrealloc(into->rows, into->room * sizeof *into->rows);
    }
    into->rows[into->count++] = row;
    return true;
}

static bool take(void *arg, const struct store_labelled *labelled)
{
    struct reading *reading = arg;
    struct text text = labelled->verdicts;

    if (!counts_here(reading, labelled))
        return true;
    reading->into->too_many = reading->into->count == CALIBRATION_LABELS_MAX;
    if (reading->into->too_many)
        return false;
    json_auto_t *verdicts = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    return add(reading, labelled, verdict_of(verdicts, labelled->verifier));
}

enum store_status calibration_read(struct store_reader *reader, const struct calibration_query *query,
                                   struct calibration *ret_calibration)
{
    struct reading reading = {.query = query, .into = ret_calibration};
    const struct store_label_visitor visitor = {&reading, take};

    *ret_calibration = (struct calibration){0};
    enum store_status status = store_read_lines(reader, query->run, &reading.lines);
    if (status == STORE_OK)
        status = store_visit_labels(reader, query->run, query->verifier, &visitor);
    store_lines_finish(&reading.lines);
    return reading.failed ? STORE_UNAVAILABLE : status;
}

void calibration_finish(struct calibration *calibration)
{
    names_finish(&calibration->verifiers);
    names_finish(&calibration->reasons);
    free(calibration->rows);
    *calibration = (struct calibration){0};
}

int64_t calibration_labels(const struct calibration_counts *counts)
{
    const int64_t *cells = counts->cells;

    return cells[TRUE_POSITIVE] + cells[FALSE_POSITIVE] + cells[FALSE_NEGATIVE] + cells[TRUE_NEGATIVE];
}

static double share(int64_t part, int64_t rest)
{
    return part + rest > 0 ? (double)part / (double)(part + rest) : (double)NAN;
}

double calibration_precision(const struct calibration_counts *counts)
{
    return share(counts->cells[TRUE_POSITIVE], counts->cells[FALSE_POSITIVE]);
}

double calibration_recall(const struct calibration_counts *counts)
{
    return share(counts->cells[TRUE_POSITIVE], counts->cells[FALSE_NEGATIVE]);
}
