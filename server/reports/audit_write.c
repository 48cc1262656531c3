/* The reply of an audit. */
#include "server/reports/audit_private.h"

#include "server/base/json_write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct scratch {
    struct task_scratch *tasks;
    size_t task_count;
};

static void write_mean(struct json_write *json, const char *name, const char *se_name, struct clustered_mean mean)
{
    json_put_double(json, name, mean.mean);
    json_put_double(json, se_name, mean.se);
}

static void write_row(struct json_write *json, const struct audit *audit, const struct audit_row *row,
                      const struct scratch *scratch)
{
    size_t n = audit->member_count;
    struct clustered_mean reward = clustered_mean(n, row->rewards, audit->task_of, scratch->task_count, scratch->tasks);
    struct clustered_mean truth = clustered_mean(n, audit->truths, audit->task_of, scratch->task_count, scratch->tasks);

    json_object_begin(json);
    json_put_double(json, "weight", isnan(row->weight) ? audit->recorded_weight : row->weight);
    json_put_int(json, "scored", (int64_t)reward.count);
    write_mean(json, "reward_mean", "reward_se", reward);
    write_mean(json, "truth_mean", "truth_se", truth);
    json_key(json, "promoted");
    json_array_begin(json);
    if (row->listed)
        json_raw(json, buffer_text(&row->promoted));
    json_array_end(json);
    json_put_int(json, "promoted_wrong", (int64_t)row->promoted_wrong);
    json_put_int(json, "demoted_right", (int64_t)row->demoted_right);
    json_put_int(json, "rank_changes", (int64_t)row->rank_changes);
    json_put_double(json, "correlation", correlation(n, row->rewards, audit->truths));
    json_object_end(json);
}

static void write_notes(struct json_write *json, const struct audit *audit)
{
    char text[160];

    json_key(json, "notes");
    json_array_begin(json);
    if (audit->running_groups > 0) {
        snprintf(text, sizeof text, "%zu groups are still running: they are left out", audit->running_groups);
        json_write_string(json, text);
    }
    if (audit->contradicted > 0) {
        snprintf(text, sizeof text, "the recorded rewards of %zu rollouts are not what their scores and weights give",
                 audit->contradicted);
        json_write_string(json, text);
    }
    if (audit->history_too_long) {
        snprintf(text, sizeof text, "a divergence was not looked for: the run has more than %d rollouts",
                 AUDIT_HISTORY_MAX);
        json_write_string(json, text);
    }
    json_array_end(json);
}

static void write_rows(struct json_write *json, const struct audit *audit, const struct scratch *scratch)
{
    json_key(json, "recorded");
    write_row(json, audit, &audit->rows[0], scratch);
    json_key(json, "sweep");
    json_array_begin(json);
    for (size_t r = 1; r < audit->row_count; r++)
        write_row(json, audit, &audit->rows[r], scratch);
    json_array_end(json);
}

static int64_t count_of(size_t n, const double *values)
{
    int64_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += !isnan(values[i]);
    return count;
}

/* Half a list is no JSON. */
static bool lists_are_whole(const struct audit *audit)
{
    for (size_t r = 0; r < audit->row_count; r++)
        if (audit->rows[r].promoted.failed)
            return false;
    return true;
}

void audit_write(struct audit *audit)
{
    struct scratch scratch = {.task_count = json_object_size(audit->tasks)};
    struct json_write json;

    if (lists_are_whole(audit))
        scratch.tasks = calloc(scratch.task_count + 1, sizeof *scratch.tasks);
    if (!scratch.tasks) {
        audit_refuse_memory(audit);
        return;
    }
    json_write_init(&json, &audit->call->reply.body);
    json_object_begin(&json);
    json_put_text(&json, "verifier", audit->verifier);
    json_put_text(&json, "truth", audit->fields.truth);
    json_put_double(&json, "threshold", audit->fields.threshold);
    json_put_int(&json, "groups", (int64_t)audit->group_count);
    json_put_int(&json, "n", (int64_t)audit->member_count);
    json_put_int(&json, "truth_scored", count_of(audit->member_count, audit->truths));
    write_rows(&json, audit, &scratch);
    json_put_raw(&json, "divergence", audit->divergence.length_bytes ? buffer_text(&audit->divergence) : TEXT_NONE);
    write_notes(&json, audit);
    json_object_end(&json);
    free(scratch.tasks);
    call_answer_json(audit->call, 200);
}
