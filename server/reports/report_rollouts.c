/* Rollouts into the cells of a report: from the roll-ups if they cover the run and no tag is asked for, else a page at a
 * time. */
#include "server/reports/report_private.h"

#include "server/base/cleanup.h"
#include "server/reports/cells_record_private.h"

#include <math.h>
#include <string.h>

#define PAGE_ROWS 1000
#define PAGE_BYTES ((size_t)4 << 20)
#define ROWS_BETWEEN_QUESTIONS 4096

/* --- one rollout --- */

size_t report_cell(const struct report *report, int64_t slice, int64_t revision, int64_t incarnation,
                   struct text verifier)
{
    const struct cell_key key = {
        .count = 4,
        .parts = {cell_number(slice), cell_number(revision), cell_number(incarnation), cell_text(verifier)}};

    return cells_find(report->cells, &key);
}

/* To the row of its revision and to the totals. */
static void add_to_rows(const struct report *report, int64_t slice, const struct store_rollout *rollout,
                        struct text verifier, const struct cell_rollout *values)
{
    int64_t revision = rollout->policy_revision;

    cells_add(report->cells, report_cell(report, slice, revision, rollout->incarnation, verifier), values);
    cells_add(report->cells, report_cell(report, slice, REPORT_ANY, REPORT_ANY, verifier), values);
}

static void add_heldout(const struct report *report, int64_t slice, const struct store_rollout *rollout,
                        struct cell_rollout values)
{
    struct text text = rollout->heldout;
    json_auto_t *heldout = text.data ? json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    const char *name;
    json_t *entry;

    json_object_foreach (heldout, name, entry) {
        const json_t *score = json_object_get(entry, "score");
        values.score = json_is_number(score) ? json_number_value(score) : NAN;
        add_to_rows(report, slice, rollout, text_of(name), &values);
    }
}

static int add_training(struct report *report, const struct store_rollout *rollout)
{
    const struct text engine[] = {rollout->engine, rollout->engine_model, rollout->engine_version,
                                  rollout->tokenizer_sha256};
    struct cell_rollout values = cell_of_record(rollout);
    int64_t slices[] = {REPORT_WHOLE, REPORT_WHOLE};

    if (report_find_slice(report, rollout->tags, &slices[1]) < 0)
        return -1;
    report->counts.seeds_not_honoured += rollout->seed_honoured == STORE_KNOWN_NO;
    report->counts.processed_logprobs += rollout->logprobs_mode == STORE_LOGPROBS_PROCESSED;
    for (size_t i = 0; i < (slices[1] == REPORT_WHOLE ? 1 : 2); i++) {
        add_to_rows(report, slices[i], rollout, TEXT_NONE, &values);
        add_heldout(report, slices[i], rollout, values);
    }
    return report_engines_add(&report->engines, engine, 1) < 0 ? report_refuse_memory(report) : 0;
}

static int count_task(struct report *report, enum store_purpose purpose, struct text task)
{
    struct names *tasks = purpose == STORE_TRAIN ? &report->training_tasks : &report->heldout_tasks;

    return names_number(tasks, task) == NAMES_NONE ? report_refuse_memory(report) : 0;
}

static int add_rollout(struct report *report, const struct store_rollout *rollout)
{
    report->counts.spent_rollouts++;
    report->counts.spent_tokens += rollout->completion_tokens;
    if (!report_survives(report, rollout->incarnation, rollout->policy_revision, rollout->purpose))
        return 0;
    if (count_task(report, rollout->purpose, rollout->task) < 0)
        return -1;
    return rollout->purpose == STORE_TRAIN ? add_training(report, rollout) : 0;
}

/* --- roll-ups --- */

struct visiting {
    struct report *report;
    size_t rows;
    int result; /* -1: refused, or its client has hung up */
};

static bool go_on(struct visiting *visiting)
{
    if (visiting->rows++ % ROWS_BETWEEN_QUESTIONS == 0 && visiting->report->call->abandoned)
        visiting->result = -1;
    return visiting->result == 0;
}

static bool take_rollup(void *arg, const struct store_rollup *rollup)
{
    struct visiting *visiting = arg;
    struct report *report = visiting->report;
    struct cell_sums sums = cell_sums_of_rollup(rollup);

    report->counts.spent_rollouts += rollup->n;
    report->counts.spent_tokens += rollup->tokens;
    if (!report_survives(report, rollup->incarnation, rollup->revision, rollup->purpose))
        return go_on(visiting);
    visiting->result = count_task(report, rollup->purpose, rollup->task);
    if (visiting->result == 0 && rollup->purpose == STORE_TRAIN) {
        cells_add_sums(report->cells,
                       report_cell(report, REPORT_WHOLE, rollup->revision, rollup->incarnation, TEXT_NONE),
                       rollup->task, &sums);
        cells_add_sums(report->cells, report_cell(report, REPORT_WHOLE, REPORT_ANY, REPORT_ANY, TEXT_NONE),
                       rollup->task, &sums);
    }
    return go_on(visiting);
}

static bool is_of_training(const struct visiting *visiting, enum store_purpose purpose, int64_t incarnation,
                           int64_t revision)
{
    return purpose == STORE_TRAIN && report_survives(visiting->report, incarnation, revision, purpose);
}

/* No id of a group is as short as its number. */
static bool take_group(void *arg, const struct store_rollup_group *group)
{
    struct visiting *visiting = arg;
    const struct report *report = visiting->report;
    struct text name = {(const char *)&group->group_seq, sizeof group->group_seq};
    enum cell_group state = group->rewarded < 0    ? CELL_GROUP_RUNNING
                            : group->rewarded == 0 ? CELL_GROUP_UNJUDGED
                            : group->zero_variance ? CELL_GROUP_ZERO_VARIANCE
                                                   : CELL_GROUP_VARIED;

    if (is_of_training(visiting, group->purpose, group->incarnation, group->revision)) {
        cells_add_group(report->cells,
                        report_cell(report, REPORT_WHOLE, group->revision, group->incarnation, TEXT_NONE), name, state);
        cells_add_group(report->cells, report_cell(report, REPORT_WHOLE, REPORT_ANY, REPORT_ANY, TEXT_NONE), name,
                        state);
    }
    return go_on(visiting);
}

static bool take_score(void *arg, const struct store_rollup_score *score)
{
    struct visiting *visiting = arg;
    const struct report *report = visiting->report;
    struct cell_sums sums = {.score = {.count = (size_t)score->scored},
                             .reward_min = NAN,
                             .reward_max = NAN,
                             .score_min = -INFINITY, /* not kept */
                             .score_max = INFINITY};

    precise_sum_add(&sums.score.sum, score->sum);
    if (is_of_training(visiting, score->purpose, score->incarnation, score->revision)) {
        cells_add_sums(report->cells,
                       report_cell(report, REPORT_WHOLE, score->revision, score->incarnation, score->verifier),
                       score->task, &sums);
        cells_add_sums(report->cells, report_cell(report, REPORT_WHOLE, REPORT_ANY, REPORT_ANY, score->verifier),
                       score->task, &sums);
    }
    return go_on(visiting);
}

static int add_count(struct report *report, const struct store_rollup_count *count)
{
    const struct text engine[] = {count->name, count->engine_model, count->engine_version, count->tokenizer_sha256};

    switch (count->kind) {
    case STORE_ROLLUP_FAILURE:
        cells_add_failures(report->cells,
                           report_cell(report, REPORT_WHOLE, count->revision, count->incarnation, TEXT_NONE),
                           count->name, count->n);
        cells_add_failures(report->cells, report_cell(report, REPORT_WHOLE, REPORT_ANY, REPORT_ANY, TEXT_NONE),
                           count->name, count->n);
        return 0;
    case STORE_ROLLUP_SEED_NOT_HONOURED:
        report->counts.seeds_not_honoured += count->n;
        return 0;
    case STORE_ROLLUP_PROCESSED_LOGPROBS:
        report->counts.processed_logprobs += count->n;
        return 0;
    case STORE_ROLLUP_ENGINE:
        return report_engines_add(&report->engines, engine, count->n) < 0 ? report_refuse_memory(report) : 0;
    }
    return 0;
}

static bool take_count(void *arg, const struct store_rollup_count *count)
{
    struct visiting *visiting = arg;

    if (is_of_training(visiting, count->purpose, count->incarnation, count->revision))
        visiting->result = add_count(visiting->report, count);
    return go_on(visiting);
}

static bool take_rollout(void *arg, const struct store_rollout *rollout)
{
    struct visiting *visiting = arg;

    visiting->result = add_rollout(visiting->report, rollout);
    return go_on(visiting);
}

static int visit_rollups(struct report *report)
{
    const struct store_rollup_filter filter = {
        .incarnation = -1, .revision_min = report->from, .revision_max = report->to, .purpose = -1};
    struct visiting visiting = {.report = report};
    const struct store_rollup_visitor visitor = {.arg = &visiting,
                                                 .rollup = take_rollup,
                                                 .group = take_group,
                                                 .rollout = take_rollout,
                                                 .score = take_score,
                                                 .count = take_count};

    if (store_visit_rollups(report->call->reader, report->run, &filter, &visitor) != STORE_OK)
        return call_refuse_unreadable(report->call);
    return visiting.result;
}

/* --- a page at a time --- */

static int scan_rollouts(struct report *report)
{
    static const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = PAGE_ROWS, .bytes = PAGE_BYTES};
    struct store_rollout_filter filter;
    char cursor[64] = "";

    store_rollout_filter_init(&filter);
    filter.run = report->run;
    filter.revision_min = report->from;
    filter.revision_max = report->to;
    memcpy(filter.tags, report->tags, sizeof filter.tags);
    filter.tag_count = report->tag_count;
    do {
        _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
        if (report->call->abandoned)
            return -1;
        if (store_list_rollouts(report->call->reader, &filter, cursor[0] ? text_of(cursor) : TEXT_NONE, &limits,
                                STORE_WITH_VERDICTS, &page) != STORE_OK)
            return call_refuse_unreadable(report->call);
        for (size_t i = 0; i < page.count; i++)
            if (add_rollout(report, &page.rollouts[i]) < 0)
                return -1;
        memcpy(cursor, page.next, sizeof cursor);
    } while (cursor[0]);
    return 0;
}

/* Roll-ups know no tags. */
int report_read_rollouts(struct report *report)
{
    bool whole = false;

    if (report->tag_count > 0 || report->split.data)
        return scan_rollouts(report);
    if (store_rollups_are_whole(report->call->reader, report->run, &whole) != STORE_OK)
        return call_refuse_unreadable(report->call);
    return whole ? visit_rollups(report) : scan_rollouts(report);
}
