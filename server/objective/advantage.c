/* From rewards to what the loss takes as advantage: the estimator, the clip, the teacher term. */
#include "server/objective/terms_private.h"

#include <stdlib.h>
#include <string.h>

double std_of_group(const struct objective_work *work, size_t group)
{
    return statistics_deviation(&work->request->groups[group].seen, work->knobs->advantage.ddof);
}

double centred(const struct objective_work *work, size_t index)
{
    const struct objective_group *group = &work->request->groups[work->request->sequences[index].group];
    double reward = work->parts[index].seen;

    if (group->seen.count == 1)
        return work->knobs->advantage.singleton == OBJECTIVE_SINGLETON_RAW ? reward : 0;
    return statistics_centred(&group->seen, reward);
}

/* A = R. Source: Williams 1992 (REINFORCE) without a baseline. */
static int estimate_reward(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        work->request->sequences[i].advantage = work->parts[i].seen;
    return 0;
}

/* The deviation of the rewards of all groups that the filter kept. */
static int batch_deviation(struct objective_work *work, double *ret_std)
{
    struct objective_statistics all = statistics_of_request(work, seen_of);

    *ret_std = statistics_deviation(&all, work->knobs->advantage.ddof);
    if (all.count > 0 && !isfinite(all.mean))
        return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, SIZE_MAX, SIZE_MAX, "reward",
                              "the sum of the rewards is beyond double");
    return 0;
}

/* (R - mean) / (std + eps) inside the group. Equal rewards give exactly 0.
 * Source: DeepSeekMath (arXiv 2402.03300) section 4.1; Dr. GRPO (arXiv 2503.20783) is scale none; scale batch: TRL
 * `scale_rewards`. The population deviation is the default, so that [0,0,1,1] gives [-1,-1,1,1]; TRL
 * (GRPOTrainer._generate_and_score_completions) and verl (compute_grpo_outcome_advantage) take the sample one. One
 * member with `raw`: verl's rule, mean 0 and deviation 1. */
static int estimate_grpo(struct objective_work *work)
{
    const struct objective_knobs *knobs = work->knobs;
    double batch_std = NAN;

    if (knobs->advantage.scale == OBJECTIVE_SCALE_BATCH && batch_deviation(work, &batch_std) < 0)
        return -1;
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        const struct objective_group *group = &work->request->groups[sequence->group];
        if (!sequence->rewarded)
            continue;
        double own = centred(work, i);
        double std = batch_std;
        if (group->seen.count == 1)
            std = 1;
        else if (knobs->advantage.scale == OBJECTIVE_SCALE_GROUP)
            std = std_of_group(work, sequence->group);
        bool scaled = knobs->advantage.scale != OBJECTIVE_SCALE_NONE;
        sequence->advantage = scaled ? divide(own, std + knobs->advantage.eps) : own;
    }
    return 0;
}

objective_estimate *const objective_estimators[OBJECTIVE_ESTIMATOR_COUNT] = {
    [OBJECTIVE_ESTIMATOR_GRPO] = estimate_grpo,
    [OBJECTIVE_ESTIMATOR_REWARD] = estimate_reward,
    [OBJECTIVE_ESTIMATOR_RLOO] = estimate_rloo,
    [OBJECTIVE_ESTIMATOR_LOO] = estimate_loo,
    [OBJECTIVE_ESTIMATOR_MAXRL] = estimate_maxrl,
    [OBJECTIVE_ESTIMATOR_PASSK] = estimate_passk,
    [OBJECTIVE_ESTIMATOR_OPO] = estimate_opo,
    [OBJECTIVE_ESTIMATOR_GPG] = estimate_gpg,
    [OBJECTIVE_ESTIMATOR_REMAX] = estimate_remax,
    [OBJECTIVE_ESTIMATOR_REWARD_TO_GO] = estimate_reward_to_go,
    [OBJECTIVE_ESTIMATOR_RPP] = estimate_rpp,
    [OBJECTIVE_ESTIMATOR_RPP_BASELINE] = estimate_rpp_baseline,
    [OBJECTIVE_ESTIMATOR_RPP_BASELINE_SEQUENCE] = estimate_rpp_baseline_sequence,
    [OBJECTIVE_ESTIMATOR_GDPO] = estimate_gdpo,
    [OBJECTIVE_ESTIMATOR_NORMALIZATION] = estimate_normalization,
    [OBJECTIVE_ESTIMATOR_PROCESS] = estimate_process,
    [OBJECTIVE_ESTIMATOR_EMA_BASELINE] = estimate_ema_baseline,
    [OBJECTIVE_ESTIMATOR_OPTIMAL_TOKEN_BASELINE] = estimate_optimal_token_baseline,
};

/* --- inputs that only some estimators can use --- */

static int check_inputs(struct objective_work *work)
{
    static const uint32_t by_token = 1u << OBJECTIVE_ESTIMATOR_REMAX | 1u << OBJECTIVE_ESTIMATOR_REWARD_TO_GO |
                                     1u << OBJECTIVE_ESTIMATOR_RPP | 1u << OBJECTIVE_ESTIMATOR_OPTIMAL_TOKEN_BASELINE;
    int estimator = work->knobs->advantage.estimator;

    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        if (is_present(sequence->token_rewards) && !(by_token >> estimator & 1))
            return objective_fail(work->error, OBJECTIVE_ERROR_INVALID, i, SIZE_MAX, "token_rewards",
                                  "this estimator works on the reward of a sequence");
        if (sequence->steps && estimator != OBJECTIVE_ESTIMATOR_PROCESS)
            return objective_fail(work->error, OBJECTIVE_ERROR_INVALID, i, SIZE_MAX, "step_rewards",
                                  "only the estimator process reads them");
    }
    return 0;
}

/* --- after the estimator --- */

static double clip(double value, double low, double high) /* NAN: no bound */
{
    if (value < low)
        return low;
    if (value > high)
        return high;
    return value + 0.0;
}

static int clip_sequence(struct objective_work *work, size_t index)
{
    double low = work->knobs->advantage.clip_low;
    double high = work->knobs->advantage.clip_high;
    struct objective_sequence *sequence = &work->request->sequences[index];

    if (!isfinite(sequence->advantage))
        return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, index, SIZE_MAX,
                              work->request->advantages_given ? "advantage" : "reward",
                              "its advantage is not a finite number");
    sequence->advantage = clip(sequence->advantage, low, high);
    return 0;
}

static int clip_tokens(struct objective_work *work, size_t index)
{
    double low = work->knobs->advantage.clip_low;
    double high = work->knobs->advantage.clip_high;
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *advantages = work->advantages + work->parts[index].first;

    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t) || !has_tokens(sequence)) {
            advantages[t] = 0;
            continue;
        }
        if (!isfinite(advantages[t]))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, index, t,
                                  work->request->advantages_given ? "advantage" : "reward",
                                  "a trainable token needs a finite advantage");
        advantages[t] = clip(advantages[t], low, high);
    }
    return 0;
}

/* A_t + coef * (log teacher - log old). Source: on-policy distillation (arXiv 2306.13649), slime `use_opd`, ms-swift
 * `teacher_kl_coef`, NeMo-RL. */
static int add_teacher(struct objective_work *work, size_t index)
{
    double coef = work->knobs->advantage.teacher_coef;
    double teacher;
    double old;
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *advantages = work->advantages + work->parts[index].first;

    if (work_need(work, index, sequence->teacher_logprobs, "teacher_logprobs", "teacher_coef needs them") < 0 ||
        work_need(work, index, old_values(sequence), "old_logprobs", "teacher_coef needs them") < 0)
        return -1;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        if (work_read(work, index, t, sequence->teacher_logprobs, "teacher_logprobs", &teacher) < 0 ||
            work_read(work, index, t, old_values(sequence), "old_logprobs", &old) < 0)
            return -1;
        advantages[t] += coef * (teacher - old);
        if (!isfinite(advantages[t]))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, index, t, "teacher_logprobs",
                                  "the teacher term is beyond double");
    }
    return 0;
}

/* One number for a sequence becomes one for each of its trainable tokens. */
static void spread(struct objective_work *work, size_t index)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *advantages = work->advantages + work->parts[index].first;

    for (size_t t = 0; t < sequence->tokens; t++)
        advantages[t] = sequence->token_advantages ? sequence->token_advantages[t] : sequence->advantage;
}

static int finish_sequence(struct objective_work *work, size_t index, bool by_token)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    double *advantages = work->advantages ? work->advantages + work->parts[index].first : NULL;

    if (!by_token && clip_sequence(work, index) < 0)
        return -1;
    if (!advantages)
        return 0;
    if (!by_token || work->request->advantages_given)
        spread(work, index);
    if (clip_tokens(work, index) < 0)
        return -1;
    if (work->knobs->advantage.teacher_coef != 0 && has_tokens(sequence) && add_teacher(work, index) < 0)
        return -1;
    sequence->advantage = 0;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        sequence->advantage = advantages[t];
        break;
    }
    return 0;
}

static void hand_out(struct objective_work *work, size_t index)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    const double *advantages = work->advantages ? work->advantages + work->parts[index].first : NULL;

    for (size_t t = 0; sequence->advantages && t < sequence->tokens; t++) {
        bool counts = has_tokens(sequence) && !is_masked(sequence, t);
        sequence->advantages[t] = !counts ? 0 : advantages ? advantages[t] : sequence->advantage;
    }
}

static int finish_advantages(struct objective_work *work, bool estimated_by_token)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        bool by_token = work->request->advantages_given ? sequence->token_advantages != NULL : estimated_by_token;
        if (!sequence->rewarded)
            sequence->advantage = NAN;
        else if (finish_sequence(work, i, by_token) < 0)
            return -1;
        hand_out(work, i);
    }
    return 0;
}

static bool wants_tokens(const struct objective_work *work, bool *ret_estimated_by_token)
{
    struct objective_knobs without_teacher = *work->knobs;

    without_teacher.advantage.teacher_coef = 0;
    *ret_estimated_by_token = !work->request->advantages_given && objective_is_per_token(&without_teacher);
    if (*ret_estimated_by_token || work->knobs->advantage.teacher_coef != 0)
        return true;
    for (size_t i = 0; work->request->advantages_given && i < work->request->sequence_count; i++)
        if (work->request->sequences[i].token_advantages)
            return true;
    return false;
}

int work_advantages(struct objective_work *work)
{
    const struct objective_request *request = work->request;
    bool estimated_by_token;

    if (!request->advantages_given && check_inputs(work) < 0)
        return -1;
    if (work_rewards(work) < 0)
        return -1;
    if (wants_tokens(work, &estimated_by_token) &&
        !(work->advantages = work_allocate(work, work->tokens, sizeof *work->advantages)))
        return -1;
    if (!request->advantages_given && objective_estimators[work->knobs->advantage.estimator](work) < 0)
        return -1;
    return finish_advantages(work, estimated_by_token);
}

int objective_advantages(const struct objective_request *request, struct objective_error *ret_error)
{
    struct objective_work work;
    int result = work_init(&work, request, ret_error);

    if (result == 0)
        result = work_advantages(&work);
    work_finish(&work);
    return result;
}
