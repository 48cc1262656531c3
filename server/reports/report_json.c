/* A report as JSON. */
#include "server/reports/report_private.h"

#include "server/base/json_write.h"

#include <math.h>
#include <stdio.h>

static void put_mean(struct json_write *json, const char *name, double mean, double se)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_double(json, "mean", mean);
    json_put_double(json, "se", se);
    json_object_end(json);
}

static void put_share(struct json_write *json, const char *name, int64_t part, int64_t whole)
{
    json_put_double(json, name, whole > 0 ? (double)part / (double)whole : NAN);
}

/* --- rows --- */

static void put_heldout(struct json_write *json, const struct report_row *row)
{
    json_key(json, "heldout");
    json_object_begin(json);
    for (size_t i = 0; i < row->heldout_count; i++) {
        const struct report_heldout *heldout = &row->heldout[i];
        json_key_text(json, heldout->verifier);
        json_object_begin(json);
        json_put_double(json, "mean", heldout->mean);
        json_put_double(json, "se", heldout->se);
        json_put_int(json, "scored", heldout->scored);
        json_object_end(json);
    }
    json_object_end(json);
}

static void put_failures(struct json_write *json, const struct cell_numbers *numbers)
{
    json_key(json, "failures");
    json_object_begin(json);
    for (size_t i = 0; i < numbers->failure_count; i++) {
        json_key_text(json, numbers->failures[i].code);
        json_int(json, numbers->failures[i].count);
    }
    json_object_end(json);
}

static void put_trainer(struct json_write *json, const json_t *trainer)
{
    const char *name;
    json_t *value;

    json_key(json, "trainer");
    json_object_begin(json);
    json_object_foreach ((json_t *)(uintptr_t)trainer, name, value)
        json_put_double(json, name, json_is_number(value) ? json_number_value(value) : NAN);
    json_object_end(json);
}

static void put_counts(struct json_write *json, const struct report_row *row)
{
    const struct cell_numbers *numbers = &row->numbers;

    json_put_int_or_null(json, "batches", row->batches);
    json_put_int(json, "groups", numbers->groups);
    json_put_int(json, "n", numbers->n);
    json_put_int(json, "scored", numbers->scored);
    json_put_int(json, "failed", numbers->failed);
    json_put_int(json, "cancelled", numbers->cancelled);
}

static void put_objective(struct json_write *json, const struct cell_numbers *numbers)
{
    for (size_t k = 0; k < STORE_OBJECTIVE_MEANS; k++)
        json_put_double(json, store_objective_mean_names[k], numbers->objective[k]);
    json_put_text(json, "kl_estimator", numbers->kl_estimator);
    json_put_double(json, "clip_fraction", numbers->clip_fraction);
    json_put_double(json, "loss", numbers->loss);
}

static void put_row(struct json_write *json, const struct report_row *row)
{
    const struct cell_numbers *numbers = &row->numbers;

    put_counts(json, row);
    put_mean(json, "reward", numbers->reward.mean, numbers->reward.se);
    put_heldout(json, row);
    put_share(json, "zero_variance_share", numbers->zero_variance_groups, numbers->judged_groups);
    json_key(json, "tokens");
    json_object_begin(json);
    json_put_double(json, "mean", numbers->tokens.mean);
    json_put_double(json, "se", numbers->tokens.se);
    json_put_int(json, "sum", numbers->tokens_sum);
    json_object_end(json);
    put_share(json, "truncated_share", numbers->truncated, numbers->judged);
    put_objective(json, numbers);
    json_put_double(json, "staleness", numbers->staleness);
    put_failures(json, numbers);
    json_put_double(json, "engine_seconds", (double)numbers->engine_us / 1e6);
    put_trainer(json, row->trainer);
}

/* rows[0]: the totals */
static void put_rows(struct json_write *json, const struct report_row *rows, size_t count)
{
    json_key(json, "revisions");
    json_array_begin(json);
    for (size_t i = 1; i < count; i++) {
        json_object_begin(json);
        json_put_int(json, "incarnation", rows[i].incarnation);
        json_put_int(json, "revision", rows[i].revision);
        put_row(json, &rows[i]);
        json_object_end(json);
    }
    json_array_end(json);
    json_key(json, "totals");
    json_object_begin(json);
    put_row(json, rows);
    json_put_int(json, "tasks", rows->tasks);
    json_object_end(json);
}

static void put_whole(struct json_write *json, const struct report *report)
{
    put_rows(json, report->rows, report->row_count);
    put_failures(json, &report->rows->numbers);
    json_key(json, "spent");
    json_object_begin(json);
    json_put_int(json, "rollouts", report->counts.spent_rollouts);
    json_put_int(json, "completion_tokens", report->counts.spent_tokens);
    json_object_end(json);
}

/* --- evaluations --- */

static void put_estimates(struct json_write *json, const char *name, const struct report_evaluation *evaluation,
                          size_t member)
{
    char k[24];

    json_key(json, name);
    json_object_begin(json);
    for (size_t i = 0; i < evaluation->estimate_count; i++) {
        const struct report_estimate *estimate = &evaluation->estimates[i];
        const struct clustered_mean *means[] = {&estimate->pass, &estimate->majority, &estimate->best};
        snprintf(k, sizeof k, "%lld", (long long)estimate->k);
        put_mean(json, k, means[member]->mean, means[member]->se);
    }
    json_object_end(json);
}

static void put_evaluations(struct json_write *json, const struct report *report, int64_t slice)
{
    size_t count;
    const struct report_evaluation *evaluations = report_evaluations_of(report, slice, &count);

    json_key(json, "evaluation");
    json_array_begin(json);
    for (size_t i = 0; i < count; i++) {
        const struct report_evaluation *evaluation = &evaluations[i];
        json_object_begin(json);
        json_put_int(json, "incarnation", evaluation->incarnation);
        json_put_int(json, "revision", evaluation->revision);
        json_put_text(json, "set", evaluation->set);
        json_put_text(json, "verifier", evaluation->decider);
        json_put_double(json, "threshold", evaluation->threshold);
        json_put_int(json, "batches", evaluation->batches);
        json_put_int(json, "groups", evaluation->groups);
        json_put_int(json, "judged", evaluation->n);
        put_estimates(json, "pass_at", evaluation, 0);
        put_estimates(json, "maj_at", evaluation, 1);
        put_estimates(json, "best_at", evaluation, 2);
        json_object_end(json);
    }
    json_array_end(json);
}

/* --- tags --- */

static void put_split(struct json_write *json, const struct report *report)
{
    char key[sizeof "tag." + STORE_TAG_NAME_BYTES];

    if (!report->split.data)
        return;
    snprintf(key, sizeof key, "tag.%.*s", (int)report->split.length_bytes, report->split.data);
    json_put_string(json, "by", key);
    json_key(json, "parts");
    json_array_begin(json);
    for (size_t i = 0; i < report->slice_count; i++) {
        const struct report_slice *slice = &report->slices[i];
        json_object_begin(json);
        json_key(json, "key");
        json_object_begin(json);
        json_put_text(json, key, slice->value);
        json_object_end(json);
        put_rows(json, slice->rows, slice->row_count);
        put_evaluations(json, report, slice->number);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_tags(struct json_write *json, const struct report *report)
{
    json_key(json, "tags");
    json_object_begin(json);
    for (size_t i = 0; i < report->tag_count; i++) {
        json_key_text(json, report->tags[i].name);
        json_text(json, report->tags[i].value);
    }
    json_object_end(json);
}

/* --- settings, alarms, limitations, notes --- */

static void put_settings(struct json_write *json, const char *name, const struct report_settings *settings)
{
    json_key(json, name);
    json_array_begin(json);
    for (uint32_t i = 0; i < settings->texts.count; i++) {
        json_object_begin(json);
        json_put_raw(json, "value", names_key(&settings->texts, i));
        json_put_int(json, "batches", settings->rows[i].batches);
        json_put_string(json, "first_batch", settings->rows[i].first_batch);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_configuration(struct json_write *json, const struct report *report)
{
    json_key(json, "configuration");
    json_object_begin(json);
    put_settings(json, "objective", &report->objectives);
    put_settings(json, "sampling", &report->samplings);
    put_settings(json, "verifiers", &report->verifiers);
    json_key(json, "engines");
    json_array_begin(json);
    for (size_t i = 0; i < report->engines.keys.count; i++) {
        const struct report_engine *engine = &report->engines.rows[i];
        json_object_begin(json);
        json_put_string(json, "engine", engine->engine);
        json_put_string(json, "engine_model", engine->model);
        json_put_string(json, "engine_version", engine->version);
        json_put_string(json, "tokenizer_sha256", engine->tokenizer);
        json_put_int(json, "rollouts", engine->rollouts);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void put_alarm(struct json_write *json, const struct report *report, enum alarm_kind kind)
{
    const struct alarm_finding *alarm = &report->alarms[kind];
    char evidence[ALARM_EVIDENCE_BYTES];

    alarm_say_evidence(kind, alarm, report->run, evidence);
    json_object_begin(json);
    json_put_string(json, "alarm", alarm_names[kind]);
    json_put_int_or_null(json, "from_revision", alarm->from_revision);
    json_put_int_or_null(json, "revision", alarm->revision);
    json_put_double(json, "value", alarm->value);
    json_put_double(json, "threshold", alarm->threshold);
    json_put_string(json, "engine", alarm->engine[0] ? alarm->engine : NULL);
    json_put_string(json, "verifier", alarm->verifier[0] ? alarm->verifier : NULL);
    json_put_string(json, "evidence", evidence);
    json_object_end(json);
}

static void put_alarms(struct json_write *json, const struct report *report)
{
    json_key(json, "alarms");
    json_array_begin(json);
    for (size_t kind = 0; kind < ALARM_KINDS; kind++)
        if (report->alarms[kind].state == ALARM_RAISED)
            put_alarm(json, report, (enum alarm_kind)kind);
    json_array_end(json);
}

static void put_limits(struct json_write *json, const struct report *report)
{
    json_key(json, "limitations");
    json_array_begin(json);
    for (size_t i = 0; i < report->limit_count; i++) {
        json_object_begin(json);
        json_put_string(json, "code", report->limits[i].code);
        json_put_int(json, "count", report->limits[i].count);
        json_put_string(json, "message", report->limits[i].message);
        json_object_end(json);
    }
    json_array_end(json);
}

void report_write_note(struct json_write *json, const struct store_note *note)
{
    json_object_begin(json);
    json_put_time(json, "at", note->at_us);
    json_put_text(json, "prediction", note->prediction);
    json_put_text(json, "result", note->result);
    json_put_text(json, "explanation", note->explanation);
    json_put_text(json, "limitation", note->limitation);
    json_object_end(json);
}

static void put_notes(struct json_write *json, const struct report *report)
{
    json_key(json, "notes");
    json_array_begin(json);
    for (size_t i = 0; i < report->notes.count; i++)
        report_write_note(json, &report->notes.notes[i]);
    json_array_end(json);
}

static void put_head(struct json_write *json, const struct report *report)
{
    json_put_text(json, "run", report->run);
    json_put_time(json, "generated_at", report->generated_at_us);
    json_key(json, "rolloutd");
    json_object_begin(json);
    json_put_string(json, "version", ROLLOUTD_VERSION);
    json_object_end(json);
    json_put_raw(json, "manifest", report->manifest.given);
    put_configuration(json, report);
    json_key(json, "inputs");
    json_object_begin(json);
    json_put_int(json, "requests", (int64_t)report->request_count);
    json_put_string(json, "sha256", report->inputs_sha256);
    json_object_end(json);
}

void report_write_json(const struct report *report)
{
    struct json_write json;

    json_write_init(&json, &report->call->reply.body);
    json_object_begin(&json);
    put_head(&json, report);
    put_tags(&json, report);
    put_whole(&json, report);
    put_evaluations(&json, report, REPORT_WHOLE);
    put_split(&json, report);
    put_alarms(&json, report);
    put_limits(&json, report);
    put_notes(&json, report);
    json_object_end(&json);
    call_answer_json(report->call, 200);
}
