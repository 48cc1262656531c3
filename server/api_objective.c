/* POST /v1/objective and GET /v1/presets: the worker parts. */
#include "server/api_objective.h"

#include "server/objective_call.h"
#include "server/objective_explain.h"
#include "server/objective_json.h"
#include "server/objective_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- inputs that a request may leave out --- */

static bool is_absent(struct objective_values values)
{
    return !values.f64 && !values.f32;
}

/* old_logprobs default to rollout_logprobs, then to logprobs: ratio 1. */
static void default_old_logprobs(struct objective_call *objective)
{
    for (size_t i = 0; i < objective->count; i++) {
        struct objective_sequence *sequence = &objective->sequences[i];
        if (!sequence->judged || !is_absent(sequence->old_logprobs))
            continue;
        bool rollout = !is_absent(sequence->rollout_logprobs);
        sequence->old_logprobs = rollout ? sequence->rollout_logprobs : sequence->logprobs;
        objective_note(objective, rollout ? "old_logprobs were taken from rollout_logprobs"
                                          : "old_logprobs were taken from logprobs: every ratio is 1");
    }
}

/* One figure compares one policy with the engine's: logprobs, unless every sequence brings its old ones. Those that
 * were filled in are the engine's own. */
static bool lacks_old_logprobs(const struct objective_call *objective)
{
    for (size_t i = 0; i < objective->count; i++) {
        const struct objective_sequence *sequence = &objective->sequences[i];
        bool is_compared = sequence->judged && !sequence->untrainable && !is_absent(sequence->rollout_logprobs);
        if (is_compared && !objective->items[i].has_old_logprobs)
            return true;
    }
    return false;
}

/* --- evaluation --- */

static int refuse_error(struct objective_call *objective, const struct objective_error *error)
{
    static const enum error_code codes[] = {[OBJECTIVE_ERROR_NON_FINITE] = ERR_NON_FINITE,
                                            [OBJECTIVE_ERROR_MISSING_INPUT] = ERR_OBJECTIVE_OPTIONS,
                                            [OBJECTIVE_ERROR_TOTALS] = ERR_OBJECTIVE_OPTIONS,
                                            [OBJECTIVE_ERROR_INVALID] = ERR_OBJECTIVE_OPTIONS,
                                            [OBJECTIVE_ERROR_MEMORY] = ERR_QUEUE_FULL};
    char path[PATH_BYTES];

    if (error->sequence != SIZE_MAX)
        return objective_refuse(objective, codes[error->code], error->sequence, error->field, error->token,
                                error->message);
    bool of_totals = error->code != OBJECTIVE_ERROR_NON_FINITE;
    if (error->code == OBJECTIVE_ERROR_MEMORY)
        return call_refuse(objective->call, ERR_QUEUE_FULL, NULL, "%s", error->message);
    path_join(path, of_totals ? "totals" : "", error->field);
    return call_refuse(objective->call, codes[error->code], path, "%s", error->message);
}

static int evaluate(struct objective_call *objective, struct objective_request *request,
                    struct objective_result *ret_result)
{
    struct objective_error error;

    *request = (struct objective_request){.knobs = &objective->knobs,
                                          .sequences = objective->sequences,
                                          .sequence_count = objective->count,
                                          .groups = objective->groups,
                                          .group_count = objective->group_count,
                                          .rollout_count = objective->rollout_count,
                                          .score_count = objective->score_count,
                                          .agent_count = objective->agent_count,
                                          .baselines = objective->baselines,
                                          .rollout_against_logprobs = objective->rollout_against_logprobs,
                                          .groups_given = objective->record_given,
                                          .shaped_given = objective->record_given,
                                          .advantages_given = objective->advantages_given,
                                          .totals = objective->has_totals ? &objective->totals : NULL};
    if (objective_evaluate(request, ret_result, &error) < 0)
        return refuse_error(objective, &error);
    return 0;
}

/* --- keeping --- */

void objective_kept_destroy(void *pointer)
{
    struct objective_kept *kept = pointer;

    if (!kept)
        return;
    buffer_finish(&kept->objective_json);
    buffer_finish(&kept->sums_json);
    free(kept->run);
    free(kept);
}

static void write_sums(struct json_write *json, const struct objective_result *result)
{
    const struct objective_sums *sums = &result->sums;

    json_object_begin(json);
    json_put_double(json, "loss", result->loss);
    json_put_double(json, "policy_loss", result->policy_loss);
    json_put_double(json, "kl_loss", result->kl_loss);
    json_put_int(json, "tokens", (int64_t)sums->tokens);
    json_put_int(json, "sequences", (int64_t)sums->sequences);
    json_put_int(json, "clip_low", (int64_t)sums->clip_low);
    json_put_int(json, "clip_high", (int64_t)sums->clip_high);
    json_put_int(json, "outside_band", (int64_t)sums->outside_band);
    json_put_int(json, "ratio_overflows", (int64_t)sums->ratio_overflows);
    json_put_double(json, "ratio_sum", sums->ratio_sum);
    json_put_double(json, "ratio_max", sums->ratio_max);
    json_put_double(json, "approx_kl_k1_sum", sums->k1_sum);
    json_put_double(json, "approx_kl_k3_sum", sums->k3_sum);
    json_put_int(json, "kl_tokens", (int64_t)sums->kl_tokens);
    json_put_double(json, "kl_sum", sums->kl_sum);
    json_put_int(json, "logprob_gap_tokens", (int64_t)sums->gap_tokens);
    json_put_double(json, "logprob_gap_sum", sums->gap_sum);
    json_object_end(json);
}

static struct objective_kept *keep(const struct objective_call *objective, const struct objective_result *result)
{
    struct objective_kept *kept = xcalloc(1, sizeof *kept);
    struct json_write json;

    kept->run = xstrndup(objective->run.data, objective->run.length_bytes);
    buffer_init(&kept->objective_json, 64 * 1024);
    json_write_init(&json, &kept->objective_json);
    objective_json_write(&json, &objective->knobs);
    buffer_init(&kept->sums_json, 16 * 1024);
    json_write_init(&json, &kept->sums_json);
    write_sums(&json, result);
    kept->op.kind = STORE_RECORD_OBJECTIVE;
    kept->op.context = kept;
    kept->op.record_objective = (struct store_record_objective){.run = {kept->run, objective->run.length_bytes},
                                                                .optimizer_step = objective->optimizer_step,
                                                                .ppo_epoch = objective->ppo_epoch,
                                                                .part = objective->part,
                                                                .objective = buffer_text(&kept->objective_json),
                                                                .sums = buffer_text(&kept->sums_json)};
    return kept;
}

/* --- the handlers --- */

static int answer(struct objective_call *objective, struct call *call)
{
    struct objective_request request;
    struct objective_result result;

    if (objective_request_read(objective, call) < 0)
        return -1;
    if (objective->stored && objective_record_fill(objective, call->reader) < 0)
        return -1;
    if (objective_check_inputs(objective) < 0)
        return -1;
    objective->rollout_against_logprobs = lacks_old_logprobs(objective);
    default_old_logprobs(objective);
    if (objective_explain_read(objective) < 0)
        return -1;
    if (objective_outputs_prepare(objective) < 0 || evaluate(objective, &request, &result) < 0)
        return -1;
    if (objective->explain) {
        objective_explain_write(objective, &request, &result);
        return call_answer_json(call, 200);
    }
    objective_call_release(objective);
    objective_tensors_reply(objective, &request, &result);
    if (!objective->keep)
        return objective_answer(call);
    call->parsed = keep(objective, &result);
    call->parsed_destroy = objective_kept_destroy;
    return 0;
}

void objective_handler(struct call *call)
{
    struct objective_call objective;

    answer(&objective, call);
    objective_call_finish(&objective);
}

void presets_handler(struct call *call)
{
    static const char *const known[] = {NULL};
    struct objective_knobs knobs;
    struct json_write json;

    if (call_check_query(call, known) < 0)
        return;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "presets");
    json_array_begin(&json);
    for (size_t i = 0; i < objective_presets_count; i++) {
        objective_preset_fill(&objective_presets[i], &knobs);
        json_object_begin(&json);
        json_put_string(&json, "name", objective_presets[i].name);
        json_put_bool(&json, "default", strcmp(objective_presets[i].name, OBJECTIVE_DEFAULT_PRESET) == 0);
        json_put_string(&json, "summary", objective_presets[i].summary);
        json_key(&json, "objective");
        objective_json_write(&json, &knobs);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    call_answer_json(call, 200);
}
