/* The walk over sequences and tokens: gather a block, compute it, scatter it. */
#include "server/objective/terms.h"

#include <string.h>

struct walk {
    struct objective_work *work;
    const struct objective_knobs *knobs;
    const struct objective_loss *loss;
    struct objective_meter meter;
    struct objective_sum policy, kl;
    struct objective_sum contributions; /* of the sequence */
    struct objective_whole whole;
    size_t index;
    double weight;
    double nll;                     /* positive_nll, before the weight; 0 where R is not positive */
    struct objective_values anchor; /* absent: ratio 1 */
    bool with_ratio, with_kl, with_rollout;
    struct objective_block block;
};

static int non_finite(struct walk *walk, size_t token, const char *field, const char *message)
{
    return objective_fail(walk->work->error, OBJECTIVE_ERROR_NON_FINITE, walk->index, token, field, message);
}

/* --- inputs --- */

static int check_inputs(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_work *work = walk->work;
    bool needs_rollout = walk->knobs->loss.anchor == OBJECTIVE_ANCHOR_ROLLOUT || walk->loss->reads_rollout;

    if (walk->with_kl &&
        work_need(work, walk->index, sequence->ref_logprobs, "ref_logprobs", "beta above 0 needs them") < 0)
        return -1;
    if ((walk->with_kl || objective_loss_reads_logprobs(walk->knobs) || walk->knobs->loss.positive_nll > 0) &&
        work_need(work, walk->index, sequence->logprobs, "logprobs", "this objective needs them") < 0)
        return -1;
    if (needs_rollout && is_present(sequence->logprobs) &&
        work_need(work, walk->index, sequence->rollout_logprobs, "rollout_logprobs",
                  "the ratio is taken against the rollout policy") < 0)
        return -1;
    if (walk->knobs->loss.positive_nll > 0 && isnan(sequence->reward))
        return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, walk->index, SIZE_MAX, "reward",
                              "positive_nll asks whether it is above 0");
    return 0;
}

/* --- one block --- */

static int gather(struct walk *walk, const struct objective_sequence *sequence, size_t token)
{
    struct objective_work *work = walk->work;
    struct objective_block *block = &walk->block;
    size_t k = block->count;
    size_t at = work->parts[walk->index].first + token;
    double old = 0;
    double reference = 0;

    block->token[k] = token;
    block->logprob[k] = 0;
    block->advantage[k] = work_advantage(work, walk->index, token);
    if (is_present(sequence->logprobs) &&
        work_read(work, walk->index, token, sequence->logprobs, "logprobs", &block->logprob[k]) < 0)
        return -1;
    if (is_present(sequence->old_logprobs) &&
        work_read(work, walk->index, token, sequence->old_logprobs, "old_logprobs", &old) < 0)
        return -1;
    block->old[k] = block->logprob[k];
    if (walk->with_ratio && work_read(work, walk->index, token, walk->anchor, "rollout_logprobs", &block->old[k]) < 0)
        return -1;
    block->x[k] = block->logprob[k] - block->old[k];
    if (walk->with_kl && work_read(work, walk->index, token, sequence->ref_logprobs, "ref_logprobs", &reference) < 0)
        return -1;
    block->distance[k] = block->logprob[k] - reference;
    if (walk->with_rollout) {
        if (work_read(work, walk->index, token, sequence->rollout_logprobs, "rollout_logprobs", &block->rollout[k]) < 0)
            return -1;
        block->rollout_x[k] = (is_present(sequence->old_logprobs) ? old : block->logprob[k]) - block->rollout[k];
    }
    block->weight[k] = work->weights ? work->weights[at] : 1;
    block->dropped[k] = work->dropped ? work->dropped[at] : 0;
    block->count++;
    return 0;
}

static void compute_ratios(const struct objective_knobs *knobs, struct objective_block *block)
{
    double limit = isnan(knobs->loss.log_clamp) ? INFINITY : knobs->loss.log_clamp;

    for (size_t k = 0; k < block->count; k++) {
        double x = block->x[k];
        bool above = x > limit, below = x < -limit;
        block->x[k] = above ? limit : below ? -limit : x;
        block->clamped[k] = above || below ? 0 : 1;
    }
    objective_exps(block->count, block->x, block->ratio);
    memcpy(block->shown, block->ratio, block->count * sizeof block->ratio[0]);
}

/* kl_cov: + coef |x| on the chosen tokens. */
static void add_kl_cov(const struct objective_knobs *knobs, struct objective_block *block)
{
    double coef = knobs->selection.ppo_kl_coef;

    for (size_t k = 0; k < block->count; k++) {
        double x = block->x[k];
        if (!(block->dropped[k] & CHOSEN_BY_KL_COV))
            continue;
        block->value[k] += coef * fabs(x);
        block->slope[k] += coef * ((x > 0) - (x < 0)) * block->clamped[k];
    }
}

/* Selection and importance on the policy term: what is rejected is set to 0, never multiplied by it. */
static void apply_weights(const struct walk *walk, struct objective_block *block)
{
    bool shares = walk->loss->shares_slope;

    if ((!walk->work->weights && !walk->work->dropped) || walk->knobs->loss.kind == OBJECTIVE_LOSS_REAL)
        return;
    for (size_t k = 0; k < block->count; k++) {
        unsigned why =
            walk->loss->takes_importance ? DROPPED_BY_SELECTION : DROPPED_BY_SELECTION | DROPPED_BY_IMPORTANCE;
        bool out = block->dropped[k] & why;
        double weight = walk->loss->takes_importance ? 1 : block->weight[k];
        block->value[k] = out || block->value[k] == 0 ? 0 : block->value[k] * weight;
        if (!shares)
            block->slope[k] = out || block->slope[k] == 0 ? 0 : block->slope[k] * weight;
        block->selected[k] = block->selected[k] && !out;
        if (out)
            block->weight[k] = block->dropped[k] & DROPPED_BY_IMPORTANCE ? 0 : block->weight[k];
    }
}

/* Source: VAPO (arXiv 2504.05118) positive-example NLL, NeMo-RL `positive_nll`. */
static void add_nll(const struct walk *walk, struct objective_block *block)
{
    for (size_t k = 0; k < block->count && walk->nll != 0; k++) {
        block->value[k] -= walk->nll * block->logprob[k];
        block->slope[k] -= walk->nll;
    }
}

/* + 0.0 turns a negative zero into zero. */
static void scatter(const struct walk *walk, const struct objective_sequence *sequence, size_t k, double contribution,
                    double slope)
{
    const struct objective_block *block = &walk->block;
    size_t token = block->token[k];

    if (sequence->surrogates)
        sequence->surrogates[token] = -block->value[k] + 0.0;
    if (sequence->contributions)
        sequence->contributions[token] = contribution + 0.0;
    if (sequence->dloss_dlogp)
        sequence->dloss_dlogp[token] = slope + 0.0;
    if (sequence->ratios)
        sequence->ratios[token] = block->shown[k];
    if (sequence->weights)
        sequence->weights[token] = walk->weight;
    if (sequence->kl && walk->with_kl)
        sequence->kl[token] = block->kl[k] + 0.0;
    if (sequence->importance)
        sequence->importance[token] = block->weight[k];
    if (sequence->clipped)
        sequence->clipped[token] = block->clipped[k];
    if (sequence->selected)
        sequence->selected[token] = block->selected[k];
}

static int add_up(struct walk *walk, const struct objective_sequence *sequence)
{
    const struct objective_block *block = &walk->block;
    double beta = walk->knobs->beta;

    for (size_t k = 0; k < block->count; k++) {
        double policy = walk->weight * block->value[k];
        double slope = walk->weight * block->slope[k];
        double kl = 0;
        if (!isfinite(policy) || !isfinite(slope))
            return non_finite(walk, block->token[k], "logprobs", "its loss is beyond double: the ratio is too large");
        if (walk->with_kl) {
            kl = walk->weight * (beta * block->kl[k]);
            slope += walk->weight * (beta * block->kl_slope[k]);
            if (!isfinite(kl) || !isfinite(slope))
                return non_finite(walk, block->token[k], "ref_logprobs", "its KL term is beyond double");
        }
        objective_sum_add(&walk->policy, policy);
        objective_sum_add(&walk->kl, kl);
        objective_sum_add(&walk->contributions, policy + kl);
        scatter(walk, sequence, k, policy + kl, slope);
    }
    return 0;
}

static int flush(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;

    compute_ratios(walk->knobs, block);
    walk->loss->terms(walk->knobs, &walk->whole, block);
    if (walk->knobs->selection.method == OBJECTIVE_SELECTION_KL_COV)
        add_kl_cov(walk->knobs, block);
    apply_weights(walk, block);
    add_nll(walk, block);
    if (walk->with_kl)
        objective_kl_block(walk->knobs, block);
    if (add_up(walk, sequence) < 0)
        return -1;
    meter_block(walk->work->request, block, walk->with_rollout, walk->with_kl, &walk->meter, &walk->work->result->sums);
    block->first += block->count;
    block->count = 0;
    return 0;
}

/* --- one sequence --- */

static void clear_outputs(struct objective_sequence *sequence)
{
    double *const numbers[] = {sequence->surrogates, sequence->contributions, sequence->dloss_dlogp,
                               sequence->ratios,     sequence->weights,       sequence->kl,
                               sequence->importance};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i] && sequence->tokens)
            memset(numbers[i], 0, sequence->tokens * sizeof(double));
    if (sequence->clipped && sequence->tokens)
        memset(sequence->clipped, 0, sequence->tokens);
    if (sequence->selected && sequence->tokens)
        memset(sequence->selected, 0, sequence->tokens);
    sequence->loss = 0;
}

static int walk_tokens(struct walk *walk, const struct objective_sequence *sequence)
{
    walk->block.count = walk->block.first = 0;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (!is_trained(walk->work, walk->index, t))
            continue;
        if (gather(walk, sequence, t) < 0)
            return -1;
        if (walk->block.count == OBJECTIVE_BLOCK && flush(walk, sequence) < 0)
            return -1;
    }
    return walk->block.count ? flush(walk, sequence) : 0;
}

static void enter_sequence(struct walk *walk, size_t index)
{
    struct objective_work *work = walk->work;
    const struct objective_sequence *sequence = &work->request->sequences[index];
    const struct objective_group *group = &work->request->groups[sequence->group];

    walk->index = index;
    walk->weight = work->parts[index].weight;
    walk->nll = 0;
    if (walk->knobs->loss.positive_nll > 0 && sequence->reward > 0)
        walk->nll = walk->knobs->loss.positive_nll / work->positive_tokens / walk->weight;
    walk->anchor = anchor_values(walk->knobs, sequence);
    walk->with_ratio = is_present(sequence->logprobs) && is_present(walk->anchor);
    walk->with_kl = walk->knobs->beta > 0 && walk->knobs->kl.in == OBJECTIVE_KL_IN_LOSS &&
                    !(walk->knobs->kl.skip_zero_variance && group->zero_variance);
    walk->with_rollout = is_present(sequence->rollout_logprobs) && is_present(old_values(sequence));
    walk->contributions = (struct objective_sum){0};
    walk->whole = (struct objective_whole){.index = index, .n = (double)sequence->trainable_tokens};
}

static int walk_sequence(struct walk *walk, size_t index)
{
    struct objective_sequence *sequence = &walk->work->request->sequences[index];

    clear_outputs(sequence);
    if (sequence->trainable_tokens == 0 || sequence->counted_only)
        return 0;
    enter_sequence(walk, index);
    if (check_inputs(walk, sequence) < 0)
        return -1;
    if (walk->loss->prepare && walk->loss->prepare(walk->work, &walk->whole) < 0)
        return -1;
    if (walk_tokens(walk, sequence) < 0)
        return -1;
    meter_sequence(&walk->meter);
    sequence->loss = objective_sum_value(&walk->contributions) + 0.0;
    return 0;
}

/* --- the whole --- */

static unsigned notes(const struct objective_work *work)
{
    const struct objective_request *request = work->request;
    const struct objective_result *result = work->result;
    unsigned found = 0;

    if (isnan(result->loss))
        found |= OBJECTIVE_NOTE_NOTHING_SCORED;
    else if (result->counted.tokens == 0)
        found |= OBJECTIVE_NOTE_ALL_MASKED;
    if (result->sums.ratio_overflows)
        found |= OBJECTIVE_NOTE_RATIO_OVERFLOW;
    for (size_t g = 0; g < request->group_count; g++) {
        if (request->groups[g].judged == 1 && !request->advantages_given)
            found |= OBJECTIVE_NOTE_SINGLETON;
        if (request->groups[g].dropped)
            found |= OBJECTIVE_NOTE_FILTERED;
    }
    return found;
}

static bool anything_judged(const struct objective_request *request)
{
    for (size_t i = 0; i < request->sequence_count; i++)
        if (request->sequences[i].judged)
            return true;
    return false;
}

static int walk_all(struct walk *walk)
{
    const struct objective_request *request = walk->work->request;
    struct objective_result *result = walk->work->result;

    for (size_t i = 0; i < request->sequence_count; i++)
        if (walk_sequence(walk, i) < 0)
            return -1;
    bool scored = anything_judged(request);
    result->policy_loss = scored ? objective_sum_value(&walk->policy) + 0.0 : NAN;
    result->kl_loss = scored ? objective_sum_value(&walk->kl) + 0.0 : NAN;
    result->loss = result->policy_loss + result->kl_loss;
    result->notes = notes(walk->work);
    objective_fill_metrics(walk->work, &walk->meter);
    return 0;
}

int objective_evaluate(const struct objective_request *request, struct objective_result *ret_result,
                       struct objective_error *ret_error)
{
    struct objective_work work;
    struct walk walk = {.work = &work, .knobs = request->knobs, .loss = &objective_losses[request->knobs->loss.kind]};

    *ret_result = (struct objective_result){0};
    int result = work_init(&work, request, ret_error);
    work.result = ret_result;
    if (result == 0)
        result = work_advantages(&work);
    if (result == 0)
        result = work_importance(&work);
    if (result == 0)
        result = work_selection(&work);
    if (result == 0)
        result = work_aggregation(&work);
    if (result == 0)
        result = real_begin(&work);
    if (result == 0)
        result = walk_all(&walk);
    work_finish(&work);
    return result;
}
