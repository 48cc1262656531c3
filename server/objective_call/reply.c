/* The reply of POST /v1/objective, and what of it is kept. */
#include "server/objective_call/objective_call.h"
#include "server/spec/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- metrics --- */

#define METRIC(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct objective_metrics, name)                                                                \
    }
static const struct {
    const char *name;
    size_t offset;
} metric_rows[] =
    {
        METRIC(clip_fraction),
        METRIC(clip_low_fraction),
        METRIC(clip_high_fraction),
        METRIC(ratio_mean),
        METRIC(ratio_max),
        METRIC(ratio_outside_band),
        METRIC(approx_kl_k1),
        METRIC(approx_kl_k3),
        METRIC(kl),
        METRIC(reward_mean),
        METRIC(reward_std),
        METRIC(frac_reward_zero_std),
        METRIC(frac_groups_zero_std),
        METRIC(mean_length),
        METRIC(min_length),
        METRIC(max_length),
        METRIC(truncated_fraction),
        METRIC(mean_terminated_length),
        METRIC(min_terminated_length),
        METRIC(max_terminated_length),
},
  rollout_rows[] = {
#define ROLLOUT_METRIC(name)                                                                                           \
    {                                                                                                                  \
#name, offsetof(struct objective_metrics, rollout.name)                                                        \
    }
      ROLLOUT_METRIC(kl),
      ROLLOUT_METRIC(k3_kl),
      ROLLOUT_METRIC(training_log_ppl),
      ROLLOUT_METRIC(rollout_log_ppl),
      ROLLOUT_METRIC(log_ppl_diff),
      ROLLOUT_METRIC(ppl_ratio),
      ROLLOUT_METRIC(chi2_token),
      ROLLOUT_METRIC(chi2_seq),
      ROLLOUT_METRIC(is_mean),
      ROLLOUT_METRIC(is_max),
      ROLLOUT_METRIC(is_min),
      ROLLOUT_METRIC(ess),
      ROLLOUT_METRIC(logprob_gap),
};

static double metric_at(const struct objective_metrics *metrics, size_t offset)
{
    return *(const double *)((const char *)metrics + offset);
}

static void write_rollout_metrics(struct objective_call *objective, struct json_write *json,
                                  const struct objective_metrics *metrics)
{
    if (!metrics->has_rollout)
        return;
    json_key(json, "rollout");
    json_object_begin(json);
    json_put_string(json, "against", objective->rollout_against_logprobs ? "logprobs" : "old_logprobs");
    if (objective->rollout_against_logprobs)
        objective_note(objective, "metrics.rollout compares the engine's log-probabilities with logprobs: not every "
                                  "sequence brings old_logprobs");
    for (size_t i = 0; i < ARRAY_LENGTH(rollout_rows); i++) {
        double value = metric_at(metrics, rollout_rows[i].offset);
        json_put_double(json, rollout_rows[i].name, value);
        if (isnan(value))
            objective_note(objective, "a metric under `rollout` is null: it is beyond double");
    }
    json_object_end(json);
}

static void write_pass_at(struct objective_call *objective, struct json_write *json,
                          const struct objective_request *request)
{
    char name[24];

    if (objective->pass_at_count == 0)
        return;
    json_key(json, "pass_at_k");
    json_object_begin(json);
    for (size_t i = 0; i < objective->pass_at_count; i++) {
        double value = objective_pass_at_k(request, (uint64_t)objective->pass_at[i]);
        snprintf(name, sizeof name, "%lld", (long long)objective->pass_at[i]);
        json_put_double(json, name, value);
        if (isnan(value))
            objective_note(objective,
                           "a pass_at_k is null: a group has fewer members with a reward than k, or there is none");
    }
    json_object_end(json);
}

/* ema_baseline: one number, or one for each agent. */
static void write_baselines(const struct objective_call *objective, struct json_write *json)
{
    if (objective->advantages_given || objective->knobs.advantage.estimator != OBJECTIVE_ESTIMATOR_EMA_BASELINE)
        return;
    if (objective->agent_count == 0) {
        json_put_double(json, "final_baseline", objective->baselines[0]);
        return;
    }
    json_key(json, "final_baseline");
    json_object_begin(json);
    for (size_t a = 0; a < objective->agent_count; a++) {
        json_key_text(json, objective->agent_names[a]);
        json_double(json, objective->baselines[a]);
    }
    json_object_end(json);
}

static void write_metrics(struct objective_call *objective, struct json_write *json,
                          const struct objective_request *request, const struct objective_result *result)
{
    const struct objective_metrics *metrics = &result->metrics;

    json_key(json, "metrics");
    json_object_begin(json);
    json_put_int(json, "trainable_tokens", (int64_t)result->sums.tokens);
    json_put_int(json, "sequences", (int64_t)result->sums.sequences);
    json_put_int(json, "zero_variance_groups", (int64_t)metrics->zero_variance_groups);
    for (size_t i = 0; i < ARRAY_LENGTH(metric_rows); i++)
        json_put_double(json, metric_rows[i].name, metric_at(metrics, metric_rows[i].offset));
    write_rollout_metrics(objective, json, metrics);
    write_pass_at(objective, json, request);
    write_baselines(objective, json);
    json_object_end(json);
}

/* --- sequences --- */

static void write_advantage(const struct objective_call *objective, struct json_write *json, size_t index)
{
    const struct objective_sequence *sequence = &objective->sequences[index];

    if (!sequence->rewarded || !objective->by_token)
        json_put_double(json, "advantage", sequence->advantage);
    else if (objective->arrays != JSON_ARRAYS_NONE)
        json_put_f64s(json, "advantage", sequence->advantages, sequence->tokens, objective->arrays);
}

static void write_array(struct json_write *json, const struct objective_output *output,
                        const struct objective_sequence *sequence, enum json_arrays how)
{
    const void *values = *(const void *const *)((const char *)sequence + output->offset);

    if (output->type == TENSOR_F64)
        json_put_f64s(json, output->name, values, sequence->tokens, how);
    else if (output->type == TENSOR_I8)
        json_put_i8s(json, output->name, values, sequence->tokens, how);
    else
        json_put_u8s(json, output->name, values, sequence->tokens, how);
}

static void write_arrays(const struct objective_call *objective, struct json_write *json,
                         const struct objective_sequence *sequence)
{
    for (size_t k = 0; k < OBJECTIVE_OUTPUTS; k++)
        if (objective_outputs[k].which != ARRAY_COUNT && objective_output_is_wanted(objective, k))
            write_array(json, &objective_outputs[k], sequence, objective->arrays);
}

static void write_sequence(const struct objective_call *objective, struct json_write *json, size_t index)
{
    const struct objective_item *item = &objective->items[index];
    const struct objective_sequence *sequence = &objective->sequences[index];

    json_object_begin(json);
    if (item->rollout.data)
        json_put_text(json, "rollout", item->rollout);
    json_put_text(json, "group", item->group);
    if (item->has_reward || objective->stored) {
        json_put_double(json, "reward", sequence->reward);
        json_put_double(json, "shaped_reward", sequence->shaped_reward);
    }
    write_advantage(objective, json, index);
    json_put_double(json, "loss", sequence->rewarded ? sequence->loss : NAN);
    json_put_bool(json, "kept", sequence->kept);
    write_arrays(objective, json, sequence);
    json_object_end(json);
}

/* --- notes --- */

static const struct {
    enum objective_note note;
    const char *text;
} note_texts[] = {
    {OBJECTIVE_NOTE_SINGLETON, "a group has one member with a reward: its advantage follows advantage.singleton"},
    {OBJECTIVE_NOTE_ALL_MASKED, "no token is trainable: every one is masked, so the loss is 0"},
    {OBJECTIVE_NOTE_NOTHING_SCORED, "no sequence has a reward or an advantage, so the loss is null"},
    {OBJECTIVE_NOTE_RATIO_OVERFLOW,
     "a ratio is beyond double and null; it does not enter the loss, but ratio_mean and ratio_max are null"},
    {OBJECTIVE_NOTE_FILTERED, "the filter dropped groups: they are in no denominator, and kept is false"},
};

static void add_notes(struct objective_call *objective, unsigned notes)
{
    const struct objective_knobs *knobs = &objective->knobs;

    for (size_t i = 0; i < ARRAY_LENGTH(note_texts); i++)
        if (notes & note_texts[i].note)
            objective_note(objective, note_texts[i].text);
    if (!objective->advantages_given && knobs->advantage.estimator == OBJECTIVE_ESTIMATOR_GRPO &&
        knobs->advantage.scale != OBJECTIVE_SCALE_NONE && knobs->advantage.ddof == 0)
        objective_note(objective, "advantages use the population deviation (ddof 0); TRL and verl use the sample one");
}

void objective_write_notes(struct json_write *json, const struct objective_call *objective)
{
    json_key(json, "notes");
    json_array_begin(json);
    if (objective->notes.length_bytes)
        json_raw(json, buffer_text(&objective->notes));
    json_array_end(json);
}

/* --- the whole --- */

void objective_reply_write(struct objective_call *objective, const struct objective_request *request,
                           const struct objective_result *result)
{
    struct json_write json;

    json_write_init(&json, &objective->call->reply.body);
    json_object_begin(&json);
    json_key(&json, "objective");
    objective_json_write(&json, &objective->knobs);
    json_key(&json, "overrides");
    objective_json_write_overrides(&json, &objective->knobs);
    json_put_double(&json, "loss", result->loss);
    json_put_double(&json, "policy_loss", result->policy_loss);
    json_put_double(&json, "kl_loss", result->kl_loss);
    json_put_double(&json, "surrogate", -result->policy_loss + 0.0);
    json_key(&json, "totals");
    json_object_begin(&json);
    objective_json_write_totals(&json, &result->totals);
    json_object_end(&json);
    write_metrics(objective, &json, request, result);
    json_key(&json, "sequences");
    json_array_begin(&json);
    for (size_t i = 0; i < objective->count; i++)
        write_sequence(objective, &json, i);
    json_array_end(&json);
    add_notes(objective, result->notes);
    objective_write_notes(&json, objective);
    json_object_end(&json);
}
