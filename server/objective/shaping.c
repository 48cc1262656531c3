/* One function for each shaper: from the reward of a sequence to another one, in the order of the list. */
#include "server/objective/terms_private.h"

#include <stdlib.h>
#include <string.h>

typedef int shape(struct objective_work *work, const struct objective_shaper *shaper);

static int missing(struct objective_work *work, size_t index, const char *field, const char *message)
{
    return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, index, SIZE_MAX, field, message);
}

/* Shapers that look at one sequence alone. */
typedef int shape_one(struct objective_work *work, const struct objective_shaper *shaper, size_t index, double *reward);

static int shape_each(struct objective_work *work, const struct objective_shaper *shaper, shape_one *one)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        if (isnan(sequence->shaped_reward))
            continue;
        if (one(work, shaper, i, &sequence->shaped_reward) < 0)
            return -1;
        if (!isfinite(sequence->shaped_reward))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, i, SIZE_MAX, "reward",
                                  "shaping takes it beyond double");
    }
    return 0;
}

/* --- length and truncation --- */

/* R + min(-e / buffer * factor, 0), e = length - (max_len - buffer), at most buffer if capped.
 * Source: DAPO (arXiv 2503.14476) eq. 13, TRL `get_soft_overlong_punishment`, OpenRLHF (capped); verl
 * `DAPORewardManager`, NeMo-RL, AReaL, ms-swift do not cap. */
static int soft_overlong(struct objective_work *work, const struct objective_shaper *shaper, size_t index,
                         double *reward)
{
    double excess = (double)work->request->sequences[index].length - (shaper->max_len - shaper->buffer);

    if (shaper->buffer == 0 || excess <= 0)
        return 0;
    if (shaper->capped && excess > shaper->buffer)
        excess = shaper->buffer;
    *reward = add_rewards(*reward, -excess / shaper->buffer * shaper->factor);
    return 0;
}

static int finish_of(struct objective_work *work, size_t index, bool *ret_truncated)
{
    enum objective_finish finish = work->request->sequences[index].finish_reason;

    *ret_truncated = finish == OBJECTIVE_FINISH_LENGTH;
    if (finish == OBJECTIVE_FINISH_UNKNOWN)
        return missing(work, index, "finish_reason", "a shaper asks whether it was truncated");
    return 0;
}

/* A truncated reward times coef, or coef itself if that is negative. Source: OpenRLHF `stop_properly_penalty_coef`,
 * NeMo-RL. */
static int stop_properly(struct objective_work *work, const struct objective_shaper *shaper, size_t index,
                         double *reward)
{
    bool truncated;

    if (finish_of(work, index, &truncated) < 0)
        return -1;
    if (truncated)
        *reward = shaper->coef >= 0 ? shaper->coef * *reward : shaper->coef;
    return 0;
}

/* Source: AReaL `mask_no_eos_with_zero`; the finish reason decides, never the last id. */
static int no_eos_zero(struct objective_work *work, const struct objective_shaper *shaper, size_t index, double *reward)
{
    bool truncated;

    (void)shaper;
    if (finish_of(work, index, &truncated) < 0)
        return -1;
    if (truncated)
        *reward = 0;
    return 0;
}

/* Half a cosine from the short end to the long one: correct from max_correct down to min_correct, wrong from min_wrong
 * up to max_wrong. Source: Yeo et al. 2025 (arXiv 2502.03373) section 4, with the names of Open-R1. */
static int cosine(struct objective_work *work, const struct objective_shaper *shaper, size_t index, double *reward)
{
    double length = (double)work->request->sequences[index].length;
    bool correct = *reward > 0;
    double near = correct ? shaper->max_correct : shaper->min_wrong;
    double far = correct ? shaper->min_correct : shaper->max_wrong;
    double share = length < shaper->max_len ? length / shaper->max_len : 1;

    *reward = far + 0.5 * (near - far) * (1 + objective_cos_pi(share));
    return 0;
}

/* --- one number to another --- */

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* Source: NeMo-RL `scale_rewards`. */
static int linear_map(struct objective_work *work, const struct objective_shaper *shaper, size_t index, double *reward)
{
    const double *source = shaper->source;
    const double *target = shaper->target;
    double inside = clip(*reward, source[0], source[1]);

    (void)work;
    (void)index;
    double above = add_rewards(inside, -source[0]);
    *reward = add_rewards(target[0], above / (source[1] - source[0]) * (target[1] - target[0]));
    return 0;
}

/* Source: AReaL `reward_bias`, `reward_scaling`, `reward_clip`, in this order. */
static int bias_scale_clip(struct objective_work *work, const struct objective_shaper *shaper, size_t index,
                           double *reward)
{
    (void)work;
    (void)index;
    *reward = clip(add_rewards(*reward, shaper->bias) * shaper->scale, -shaper->clip, shaper->clip);
    return 0;
}

/* Source: TRL RLOO `reward_clip_range`. */
static int reward_clip(struct objective_work *work, const struct objective_shaper *shaper, size_t index, double *reward)
{
    (void)work;
    (void)index;
    *reward = clip(*reward, shaper->lo, shaper->hi);
    return 0;
}

/* --- repetition --- */

struct ngrams {
    const uint32_t *ids;
    size_t n;
};

static int compare_ngrams(const void *left, const void *right, void *arg)
{
    const struct ngrams *ngrams = arg;
    const uint32_t *a = ngrams->ids + *(const size_t *)left;
    const uint32_t *b = ngrams->ids + *(const size_t *)right;

    for (size_t i = 0; i < ngrams->n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* R + (1 - distinct / all n-grams) * max_penalty; nothing below one n-gram.
 * Source: Yeo et al. 2025 (arXiv 2502.03373) appendix, TRL `get_repetition_penalty_reward`. */
static int repetition(struct objective_work *work, const struct objective_shaper *shaper, size_t index, double *reward)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    struct ngrams ngrams = {sequence->completion_ids, (size_t)shaper->ngram};
    size_t distinct = 1;
    size_t *starts;

    if (!sequence->completion_ids)
        return missing(work, index, "completion_ids", "the shaper repetition needs them");
    if (sequence->completion_id_count < ngrams.n)
        return 0;
    size_t all = sequence->completion_id_count - ngrams.n + 1;
    if (!(starts = malloc(all * sizeof *starts)))
        return objective_fail(work->error, OBJECTIVE_ERROR_MEMORY, SIZE_MAX, SIZE_MAX, NULL,
                              "there is no memory for this request");
    for (size_t i = 0; i < all; i++)
        starts[i] = i;
    qsort_r(starts, all, sizeof *starts, compare_ngrams, &ngrams);
    for (size_t i = 1; i < all; i++)
        distinct += compare_ngrams(&starts[i - 1], &starts[i], &ngrams) != 0;
    free(starts);
    *reward = add_rewards(*reward, (1 - (double)distinct / (double)all) * shaper->max_penalty);
    return 0;
}

/* --- over groups --- */

struct longest {
    struct objective_statistics rewards;
    double out, in, turns;
};

static double larger(double left, double right)
{
    return left > right ? left : right;
}

static int measure(struct objective_work *work, const struct objective_shaper *shaper, struct longest *groups)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        struct longest *group = &groups[sequence->group];
        if (isnan(sequence->shaped_reward))
            continue;
        if (shaper->w_in != 0 && sequence->prompt_tokens < 0)
            return missing(work, i, "prompt_tokens", "w_in of linear_length_penalty needs them");
        if (shaper->w_turns != 0 && sequence->turns < 0)
            return missing(work, i, "turns", "w_turns of linear_length_penalty needs them");
        if (is_first_of_rollout(work, i))
            statistics_first(&group->rewards, sequence->shaped_reward);
        group->out = larger(group->out, (double)sequence->length);
        group->in = larger(group->in, (double)sequence->prompt_tokens);
        group->turns = larger(group->turns, (double)sequence->turns);
    }
    return 0;
}

/* R - mean of the group * (w_out * length / longest + w_in * prompt / longest + w_turns * turns / most).
 * Source: prime-rl, orchestrator `grpo.py` length penalty. A negative mean turns it into a bonus, as there. */
static int linear_length(struct objective_work *work, const struct objective_shaper *shaper)
{
    struct longest *groups = work_allocate(work, work->request->group_count, sizeof *groups);

    if (!groups || measure(work, shaper, groups) < 0)
        return -1;
    for (size_t g = 0; g < work->request->group_count; g++)
        statistics_turn(&groups[g].rewards);
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        const struct longest *group = &groups[sequence->group];
        if (isnan(sequence->shaped_reward))
            continue;
        double share = shaper->w_out * (double)sequence->length / larger(group->out, 1);
        if (shaper->w_in != 0)
            share += shaper->w_in * (double)sequence->prompt_tokens / larger(group->in, 1);
        if (shaper->w_turns != 0)
            share += shaper->w_turns * (double)sequence->turns / larger(group->turns, 1);
        sequence->shaped_reward = add_rewards(sequence->shaped_reward, -group->rewards.mean * share);
        if (!isfinite(sequence->shaped_reward))
            return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, i, SIZE_MAX, "reward",
                                  "shaping takes it beyond double");
    }
    return 0;
}

static const struct {
    shape_one *one;
    shape *all;
} shapers[OBJECTIVE_SHAPER_COUNT] = {
    [OBJECTIVE_SHAPER_SOFT_OVERLONG] = {.one = soft_overlong},
    [OBJECTIVE_SHAPER_STOP_PROPERLY] = {.one = stop_properly},
    [OBJECTIVE_SHAPER_LINEAR_LENGTH] = {.all = linear_length},
    [OBJECTIVE_SHAPER_LINEAR_MAP] = {.one = linear_map},
    [OBJECTIVE_SHAPER_BIAS_SCALE_CLIP] = {.one = bias_scale_clip},
    [OBJECTIVE_SHAPER_REWARD_CLIP] = {.one = reward_clip},
    [OBJECTIVE_SHAPER_NO_EOS_ZERO] = {.one = no_eos_zero},
    [OBJECTIVE_SHAPER_COSINE] = {.one = cosine},
    [OBJECTIVE_SHAPER_REPETITION] = {.one = repetition},
};

/* A reward of tokens or steps has no one number that could be shaped. */
static int refuse_parts(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        if (is_present(sequence->token_rewards) || sequence->steps)
            return objective_fail(work->error, OBJECTIVE_ERROR_INVALID, i, SIZE_MAX,
                                  sequence->steps ? "step_rewards" : "token_rewards",
                                  "shaping works on the reward of a sequence");
    }
    return 0;
}

int shape_rewards(struct objective_work *work)
{
    const struct objective_knobs *knobs = work->knobs;

    if (knobs->shaping_count > 0 && refuse_parts(work) < 0)
        return -1;
    for (size_t s = 0; s < knobs->shaping_count; s++) {
        const struct objective_shaper *shaper = &knobs->shaping[s];
        shape *all = shapers[shaper->kind].all;
        if ((all ? all(work, shaper) : shape_each(work, shaper, shapers[shaper->kind].one)) < 0)
            return -1;
    }
    return 0;
}
