/* POST /v1/objective and GET /v1/presets: the worker parts. */
#include "server/api/objective.h"

#include "server/api/routes.h"
#include "server/objective_call/explain.h"
#include "server/objective_call/objective_call.h"
#include "server/objective_call/tensors.h"
#include "server/spec/objective.h"

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
        if (!sequence->rewarded || !is_absent(sequence->old_logprobs))
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
        bool is_compared = sequence->rewarded && !sequence->untrainable && !is_absent(sequence->rollout_logprobs);
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

    if (error->code == OBJECTIVE_ERROR_REFUSED)
        return -1;
    if (error->sequence != SIZE_MAX) {
        bool by_name = strcmp(error->field, "reward") == 0 && objective->items[error->sequence].rewards;
        return objective_refuse(objective, codes[error->code], error->sequence, by_name ? "rewards" : error->field,
                                error->token, error->message);
    }
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
                                          .before_sequence = objective_check_inputs,
                                          .after_sequence = objective->narrow ? objective_outputs_narrow : NULL,
                                          .context = objective,
                                          .slices = objective->slices,
                                          .slice_count = objective->slice_count,
                                          .groups_given = objective->record_given,
                                          .shaped_given = objective->record_given,
                                          .advantages_given = objective->advantages_given,
                                          .totals = objective->has_totals ? &objective->totals : NULL};
    if (objective_evaluate(request, ret_result, &error) < 0)
        return refuse_error(objective, &error);
    return objective_outputs_check(objective);
}

/* --- the handlers --- */

/* A call on rollouts of one run keeps to that run's manifest. */
static int look_at_manifest(struct objective_call *objective, int64_t *ret_version)
{
    struct manifest_hold hold = {0};
    struct json_write json;
    _cleanup_buffer_ struct buffer text = {0};
    *ret_version = 0;
    if (!objective->stored || !objective->run.data)
        return 0;
    buffer_init(&text, 64 * 1024);
    json_write_init(&json, &text);
    objective_json_write(&json, &objective->knobs);
    hold.objective = buffer_text(&text);
    int result = manifest_look(objective->call, objective->run, &hold);
    *ret_version = hold.version;
    return result;
}

static int answer(struct objective_call *objective, struct call *call)
{
    int64_t version;
    struct objective_request request;
    struct objective_result result;

    if (objective_request_read(objective, call) < 0)
        return -1;
    if (objective->stored && objective_record_fill(objective, call->reader) < 0)
        return -1;
    if (look_at_manifest(objective, &version) < 0)
        return -1;
    objective->rollout_against_logprobs = lacks_old_logprobs(objective);
    default_old_logprobs(objective);
    if (objective_explain_read(objective) < 0 || objective_number_slices(objective) < 0)
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
    struct objective_kept *kept = objective_keep(objective, &result);
    kept->hold = (struct manifest_hold){.objective = buffer_text(&kept->objective_json), .version = version};
    kept->wait.op.record_objective.manifest = manifest_guard(&kept->hold);
    call->parsed = kept;
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
    struct objective_knobs knobs;
    struct json_write json;

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
