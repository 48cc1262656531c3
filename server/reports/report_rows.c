/* Numbers by revision: the cells, objective calls and the trainer's own numbers. */
#include "server/reports/report_private.h"
#include "server/reports/stats_private.h"

#include "server/base/cleanup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_ROWS 1000

bool report_survives(const struct report *report, int64_t incarnation, int64_t revision, enum store_purpose purpose)
{
    return lines_have(&report->lines, incarnation, revision, purpose);
}

/* --- objective calls --- */

static bool is_of_report(const struct report *report, int64_t incarnation, int64_t revision)
{
    return revision >= 0 && revision >= report->from && (report->to < 0 || revision <= report->to) &&
           report_survives(report, incarnation, revision, STORE_TRAIN);
}

/* KL that was kept, by its optimizer step. The newest revision of a step's samples stands for the step's. */
struct kept_kl {
    struct names steps;
    int64_t *newest; /* [steps.count] */
    size_t step_room;
    struct {
        uint32_t step;
        int64_t revision;
    } * sums;
    size_t count, room;
};

static int keep_kl(struct report *report, struct kept_kl *kept, const struct store_objective_sum *sum)
{
    const int64_t key[] = {sum->incarnation, sum->optimizer_step};
    size_t known = kept->steps.count;
    uint32_t step;

    if (sum->slice.means[STORE_OBJECTIVE_KL].tokens == 0)
        return 0;
    step = names_number(&kept->steps, (struct text){(const char *)key, sizeof key});
    if (step == NAMES_NONE || !report_make_room(&kept->newest, step, &kept->step_room, sizeof *kept->newest) ||
        !report_make_room(&kept->sums, kept->count, &kept->room, sizeof *kept->sums))
        return report_refuse_memory(report);
    if (step == known || sum->slice.revision > kept->newest[step])
        kept->newest[step] = sum->slice.revision;
    kept->sums[kept->count].step = step;
    kept->sums[kept->count++].revision = sum->slice.revision;
    return 0;
}

static void kept_kl_finish(struct kept_kl *kept)
{
    names_finish(&kept->steps);
    free(kept->newest);
    free(kept->sums);
}

static int take_sum(struct report *report, struct kept_kl *kept, const struct store_objective_sum *sum)
{
    const struct store_objective_slice *slice = &sum->slice;

    if (!is_of_report(report, slice->incarnation, slice->revision))
        return 0;
    cells_add_objective(report->cells,
                        report_cell(report, REPORT_WHOLE, slice->revision, slice->incarnation, TEXT_NONE), sum);
    cells_add_objective(report->cells, report_cell(report, REPORT_WHOLE, REPORT_ANY, REPORT_ANY, TEXT_NONE), sum);
    return keep_kl(report, kept, sum);
}

static int read_objective(struct report *report)
{
    _cleanup_(kept_kl_finish) struct kept_kl kept = {0};
    char cursor[64] = "";

    do {
        _cleanup_(store_objective_sums_finish) struct store_objective_sums page = {0};
        if (report->call->abandoned)
            return -1;
        if (store_list_objective_sums(report->call->reader, report->run, -1, -1,
                                      cursor[0] ? text_of(cursor) : TEXT_NONE, PAGE_ROWS, &page) != STORE_OK)
            return call_refuse_unreadable(report->call);
        for (size_t i = 0; i < page.count; i++)
            if (take_sum(report, &kept, &page.sums[i]) < 0)
                return -1;
        memcpy(cursor, page.next, sizeof cursor);
    } while (cursor[0]);
    for (size_t i = 0; i < kept.count; i++)
        report->counts.old_kl += kept.sums[i].revision < kept.newest[kept.sums[i].step];
    return 0;
}

/* --- rows --- */

static int64_t number_of(const struct cell_part *part)
{
    return part->kind == CELL_NUMBER ? part->number : -1;
}

/* Cells come in the order of their keys: the whole, then slice by slice; a row's own one, then one for each held-out
 * verifier. */
static void take_cell(struct report *report, size_t cell, size_t *heldout_count)
{
    struct cell_key key;
    struct cell_numbers numbers;

    cells_key(report->cells, cell, &key);
    cells_numbers(report->cells, cell, &numbers);
    if (key.parts[3].kind == CELL_NULL) {
        int64_t slice = number_of(&key.parts[0]);
        report->rows[report->row_count++] = (struct report_row){.slice = slice,
                                                                .revision = number_of(&key.parts[1]),
                                                                .incarnation = number_of(&key.parts[2]),
                                                                .batches = slice == REPORT_WHOLE ? 0 : -1,
                                                                .tasks = (int64_t)cells_tasks(report->cells, cell),
                                                                .numbers = numbers,
                                                                .heldout = report->heldout + *heldout_count};
        return;
    }
    if (report->row_count == 0)
        return;
    report->heldout[(*heldout_count)++] =
        (struct report_heldout){key.parts[3].text, (int64_t)numbers.score.count, numbers.score.mean, numbers.score.se};
    report->rows[report->row_count - 1].heldout_count++;
}

static int take_cells(struct report *report)
{
    size_t count;
    size_t heldout_count = 0;

    for (int64_t slice = REPORT_WHOLE; slice < (int64_t)report->values.count; slice++)
        report_cell(report, slice, REPORT_ANY, REPORT_ANY, TEXT_NONE); /* there is always a row of totals */
    if (cells_close(report->cells) < 0)
        return report_refuse_memory(report);
    count = cells_count(report->cells);
    report->rows = calloc(count + 1, sizeof *report->rows);
    report->heldout = calloc(count + 1, sizeof *report->heldout);
    if (!report->rows || !report->heldout)
        return report_refuse_memory(report);
    for (size_t cell = 0; cell < count; cell++)
        take_cell(report, cell, &heldout_count);
    count = report->row_count;
    for (report->row_count = 0; report->row_count < count; report->row_count++)
        if (report->rows[report->row_count].slice != REPORT_WHOLE)
            break;
    return report_take_slices(report, report->rows + report->row_count, count - report->row_count);
}

static int compare_row(const void *key, const void *row)
{
    const struct report_row *a = key;
    const struct report_row *b = row;

    if (a->revision != b->revision)
        return a->revision < b->revision ? -1 : 1;
    return (a->incarnation > b->incarnation) - (a->incarnation < b->incarnation);
}

static struct report_row *find_row(const struct report *report, int64_t incarnation, int64_t revision)
{
    const struct report_row key = {.incarnation = incarnation, .revision = revision};

    return bsearch(&key, report->rows, report->row_count, sizeof key, compare_row);
}

static void count_batches(struct report *report)
{
    for (size_t i = 0; i < report->training_count; i++) {
        const struct report_batch *batch = &report->training[i];
        struct report_row *row = find_row(report, batch->incarnation, batch->revision);
        if (!report_survives(report, batch->incarnation, batch->revision, STORE_TRAIN))
            continue;
        report->rows[0].batches++;
        if (row)
            row->batches++;
    }
}

/* --- the trainer's own numbers --- */

/* {name: [sum, count]} until finish_trainer() makes means of them. */
static void add_trainer_number(json_t *sums, const char *name, double value)
{
    json_t *pair = json_object_get(sums, name);

    if (!pair) {
        pair = json_pack("[f,i]", 0.0, 0);
        json_object_set_new(sums, name, pair);
    }
    json_array_set_new(pair, 0, json_real(json_number_value(json_array_get(pair, 0)) + value));
    json_array_set_new(pair, 1, json_integer(json_integer_value(json_array_get(pair, 1)) + 1));
}

static void take_metric(struct report *report, const struct store_trainer_metric *metric)
{
    struct report_row *row = find_row(report, metric->incarnation, metric->revision);
    json_auto_t *numbers = json_loadb(metric->numbers.data, metric->numbers.length_bytes, JSON_ALLOW_NUL, NULL);
    const char *name;
    json_t *value;

    if (!row || row == report->rows)
        return;
    if (!row->trainer)
        row->trainer = json_object();
    json_object_foreach (numbers, name, value)
        if (json_is_number(value))
            add_trainer_number(row->trainer, name, json_number_value(value));
}

static void finish_trainer(struct report *report)
{
    for (size_t i = 0; i < report->row_count; i++) {
        const char *name;
        json_t *pair;
        void *next;
        json_object_foreach_safe(report->rows[i].trainer, next, name, pair)
        {
            double mean = json_number_value(json_array_get(pair, 0)) / json_number_value(json_array_get(pair, 1));
            json_object_set_new(report->rows[i].trainer, name, isfinite(mean) ? json_real(mean) : json_null());
        }
    }
}

static int read_trainer(struct report *report)
{
    char cursor[64] = "";

    do {
        _cleanup_(store_trainer_metrics_finish) struct store_trainer_metrics page = {0};
        if (report->call->abandoned)
            return -1;
        if (store_list_metrics(report->call->reader, report->run, -1, cursor[0] ? text_of(cursor) : TEXT_NONE,
                               PAGE_ROWS, &page) != STORE_OK)
            return call_refuse_unreadable(report->call);
        for (size_t i = 0; i < page.count; i++)
            take_metric(report, &page.metrics[i]);
        memcpy(cursor, page.next, sizeof cursor);
    } while (cursor[0]);
    finish_trainer(report);
    return 0;
}

int report_read_lines(struct report *report)
{
    return store_read_lines(report->call->reader, report->run, &report->lines) == STORE_OK
               ? 0
               : call_refuse_unreadable(report->call);
}

/* Optimizer steps are over groups of any tags: where tags are chosen, their numbers are not. */
int report_read_rows(struct report *report)
{
    report->cells = cells_create();
    if (!report->cells)
        return report_refuse_memory(report);
    if (report_read_rollouts(report) < 0 || (report->tag_count == 0 && read_objective(report) < 0) ||
        take_cells(report) < 0)
        return -1;
    count_batches(report);
    return report->tag_count == 0 ? read_trainer(report) : 0;
}
