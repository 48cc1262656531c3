/* The walk over sequences and tokens: gather a block, compute it, scatter it. */
#include "server/objective/terms.h"

#include <string.h>

/* An array that is there, and where its numbers go. */
struct input {
    struct objective_values values;
    const char *field;
    double *place;
};

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
    bool old_is_anchor;
    struct input inputs[5]; /* of the sequence, in the order in which they are looked at */
    size_t input_count;
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

static void take(struct walk *walk, struct objective_values values, const char *field, double *place)
{
    walk->inputs[walk->input_count++] = (struct input){values, field, place};
}

static bool is_same(struct objective_values one, struct objective_values other)
{
    return one.f64 == other.f64 && one.f32 == other.f32;
}

static void choose_inputs(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;
    bool has_old = is_present(sequence->old_logprobs);

    walk->input_count = 0;
    walk->old_is_anchor = walk->with_ratio && has_old && is_same(walk->anchor, sequence->old_logprobs);
    if (is_present(sequence->logprobs))
        take(walk, sequence->logprobs, "logprobs", block->logprob);
    else
        memset(block->logprob, 0, sizeof block->logprob);
    if (has_old)
        take(walk, sequence->old_logprobs, "old_logprobs", walk->old_is_anchor ? block->old : block->previous);
    if (walk->with_ratio && !walk->old_is_anchor)
        take(walk, walk->anchor, "rollout_logprobs", block->old);
    if (walk->with_kl)
        take(walk, sequence->ref_logprobs, "ref_logprobs", block->reference);
    if (walk->with_rollout)
        take(walk, sequence->rollout_logprobs, "rollout_logprobs", block->rollout);
}

/* The first token in the order of the request. */
static int refuse_input(struct walk *walk)
{
    double value;

    for (size_t k = 0; k < walk->block.count; k++)
        for (size_t i = 0; i < walk->input_count; i++)
            if (work_read(walk->work, walk->index, token_at(&walk->block, k), walk->inputs[i].values,
                          walk->inputs[i].field, &value) < 0)
                return -1;
    return -1;
}

static void fill(size_t n, double value, double *ret_values)
{
    for (size_t k = 0; k < n; k++)
        ret_values[k] = value;
}

/* What is the same in every block of a sequence; gather_rules() writes the rest. */
static void fill_rules(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;
    size_t n = sequence->tokens < OBJECTIVE_BLOCK ? sequence->tokens : OBJECTIVE_BLOCK;

    fill(n, sequence->advantage, block->advantage);
    fill(n, 1, block->weight);
    fill(n, 1, block->clamped);
    memset(block->dropped, 0, n);
}

static void gather_rules(struct walk *walk)
{
    const struct objective_work *work = walk->work;
    struct objective_block *block = &walk->block;
    size_t first = work->parts[walk->index].first;

    for (size_t k = 0; work->advantages && k < block->count; k++)
        block->advantage[k] = work->advantages[first + token_at(block, k)];
    if (!work->weights && !work->dropped)
        return;
    for (size_t k = 0; k < block->count; k++) {
        size_t at = first + token_at(block, k);
        block->weight[k] = work->weights ? work->weights[at] : 1;
        block->dropped[k] = work->dropped ? work->dropped[at] : 0;
    }
}

static int gather(struct walk *walk)
{
    struct objective_block *block = &walk->block;
    size_t n = block->count;

    for (size_t i = 0; i < walk->input_count; i++)
        if (!block_read(block, walk->inputs[i].values, walk->inputs[i].place))
            return refuse_input(walk);
    if (!walk->with_ratio)
        memcpy(block->old, block->logprob, n * sizeof block->old[0]);
    block_subtract(n, block->logprob, block->old, block->x);
    if (walk->with_kl)
        block_subtract(n, block->logprob, block->reference, block->distance);
    if (walk->with_rollout) {
        bool has_old = is_present(walk->work->request->sequences[walk->index].old_logprobs);
        const double *policy = walk->old_is_anchor ? block->old : has_old ? block->previous : block->logprob;
        block_subtract(n, policy, block->rollout, block->rollout_x);
    }
    gather_rules(walk);
    return 0;
}

OBJECTIVE_CLONES
static void clamp_ratios(size_t n, double limit, double *restrict x, double *restrict ret_clamped)
{
    for (size_t k = 0; k < n; k++) {
        double value = x[k];
        double held = value > limit ? limit : value;
        held = value < -limit ? -limit : held;
        ret_clamped[k] = held == value ? 1 : 0;
        x[k] = held;
    }
}

static void compute_ratios(const struct objective_knobs *knobs, struct objective_block *block)
{
    if (!isnan(knobs->loss.log_clamp))
        clamp_ratios(block->count, knobs->loss.log_clamp, block->x, block->clamped);
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

/* --- outputs --- */

/* The terms of a block with their weight: what becomes of value, slope, kl, kl_slope. */
struct weighed {
    double policy[OBJECTIVE_BLOCK], kl[OBJECTIVE_BLOCK];
    double contribution[OBJECTIVE_BLOCK], slope[OBJECTIVE_BLOCK];
};

/* The top bit is set if a term is beyond double. */
OBJECTIVE_CLONES
static uint64_t weigh_policy(const struct objective_block *restrict block, double weight,
                             struct weighed *restrict ret_weighed)
{
    uint64_t far = 0;

    for (size_t k = 0; k < block->count; k++) {
        double policy = weight * block->value[k];
        double slope = weight * block->slope[k];
        ret_weighed->policy[k] = policy;
        ret_weighed->contribution[k] = policy + 0.0;
        ret_weighed->slope[k] = slope;
        far |= objective_is_far(policy, INFINITY) | objective_is_far(slope, INFINITY);
    }
    return far;
}

OBJECTIVE_CLONES
static uint64_t weigh_kl(const struct objective_block *restrict block, double weight, double beta,
                         struct weighed *restrict ret_weighed)
{
    uint64_t far = 0;

    for (size_t k = 0; k < block->count; k++) {
        double kl = weight * (beta * block->kl[k]);
        double slope = ret_weighed->slope[k] + weight * (beta * block->kl_slope[k]);
        ret_weighed->kl[k] = kl;
        ret_weighed->contribution[k] = ret_weighed->policy[k] + kl;
        ret_weighed->slope[k] = slope;
        far |= objective_is_far(kl, INFINITY) | objective_is_far(slope, INFINITY);
    }
    return far;
}

/* The KL term of a token, or its derivative together with the loss's. */
static bool kl_is_beyond_double(const struct walk *walk, size_t k)
{
    const struct objective_block *block = &walk->block;
    double beta = walk->knobs->beta;

    return !isfinite(walk->weight * (beta * block->kl[k])) ||
           !isfinite(walk->weight * block->slope[k] + walk->weight * (beta * block->kl_slope[k]));
}

/* The first token with a term beyond double. */
static int refuse_term(struct walk *walk)
{
    const struct objective_block *block = &walk->block;

    for (size_t k = 0; k < block->count; k++)
        if (!isfinite(walk->weight * block->value[k]) || !isfinite(walk->weight * block->slope[k]))
            return non_finite(walk, token_at(block, k), "logprobs",
                              "its loss is beyond double: the ratio is too large");
        else if (walk->with_kl && kl_is_beyond_double(walk, k))
            return non_finite(walk, token_at(block, k), "ref_logprobs", "its KL term is beyond double");
    return -1;
}

/* Two sums side by side, each in the order of the tokens: objective_sum_add() in two lanes. */
static void add_both(size_t n, const double *one, const double *other, struct objective_sum *sum_one,
                     struct objective_sum *sum_other)
{
    typedef double pair __attribute__((vector_size(16)));
    pair sum = {sum_one->sum, sum_other->sum};
    pair lost = {sum_one->lost, sum_other->lost};

    for (size_t k = 0; k < n; k++) {
        pair value = {one[k], other[k]};
        pair after = sum + value;
        pair taken = after - sum;
        lost += (sum - (after - taken)) + (value - taken);
        sum = after;
    }
    *sum_one = (struct objective_sum){sum[0], lost[0]};
    *sum_other = (struct objective_sum){sum[1], lost[1]};
}

static void add_all(size_t n, const double *values, struct objective_sum *sum)
{
    struct objective_sum running = *sum; /* in registers */

    for (size_t k = 0; k < n; k++)
        objective_sum_add(&running, values[k]);
    *sum = running;
}

static void scatter(const struct walk *walk, const struct objective_sequence *sequence, const struct weighed *weighed)
{
    const struct objective_block *block = &walk->block;

    block_put(block, -1, block->value, sequence->surrogates);
    block_put(block, 1, weighed->contribution, sequence->contributions);
    block_put(block, 1, weighed->slope, sequence->dloss_dlogp);
    block_put(block, 1, block->shown, sequence->ratios);
    block_put(block, 1, block->weight, sequence->importance);
    if (walk->with_kl)
        block_put(block, 1, block->kl, sequence->kl);
    for (size_t k = 0; sequence->weights && k < block->count; k++)
        sequence->weights[token_at(block, k)] = walk->weight;
    block_put_bytes(block, block->clipped, sequence->clipped);
    block_put_bytes(block, block->selected, sequence->selected);
}

static int add_up(struct walk *walk, const struct objective_sequence *sequence)
{
    const struct objective_block *block = &walk->block;
    struct weighed weighed;
    uint64_t far = weigh_policy(block, walk->weight, &weighed);

    if (walk->with_kl)
        far |= weigh_kl(block, walk->weight, walk->knobs->beta, &weighed);
    if (far >> 63)
        return refuse_term(walk);
    add_both(block->count, weighed.policy, weighed.contribution, &walk->policy, &walk->contributions);
    if (walk->with_kl)
        add_all(block->count, weighed.kl, &walk->kl);
    scatter(walk, sequence, &weighed);
    return 0;
}

static int flush(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;

    if (gather(walk) < 0)
        return -1;
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
    bool all_written = sequence->trainable_tokens == sequence->tokens && !sequence->counted_only;
    double *const numbers[] = {sequence->surrogates, sequence->contributions, sequence->dloss_dlogp,
                               sequence->ratios,     sequence->weights,       sequence->importance};

    sequence->loss = 0;
    if (sequence->kl && sequence->tokens)
        memset(sequence->kl, 0, sequence->tokens * sizeof(double));
    if (all_written)
        return;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i])
            memset(numbers[i], 0, sequence->tokens * sizeof(double));
    if (sequence->clipped)
        memset(sequence->clipped, 0, sequence->tokens);
    if (sequence->selected)
        memset(sequence->selected, 0, sequence->tokens);
}

static int walk_run(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;

    block->is_run = true;
    for (size_t start = 0; start < sequence->tokens; start += OBJECTIVE_BLOCK) {
        size_t left = sequence->tokens - start;
        block->count = left < OBJECTIVE_BLOCK ? left : OBJECTIVE_BLOCK;
        block->token[0] = start;
        if (flush(walk, sequence) < 0)
            return -1;
    }
    return 0;
}

static int walk_tokens(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;

    block->count = block->first = 0;
    if (sequence->trainable_tokens == sequence->tokens)
        return walk_run(walk, sequence);
    block->is_run = false;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (!is_trained(walk->work, walk->index, t))
            continue;
        block->token[block->count++] = t;
        if (block->count == OBJECTIVE_BLOCK && flush(walk, sequence) < 0)
            return -1;
    }
    return block->count ? flush(walk, sequence) : 0;
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
    choose_inputs(walk, sequence);
    fill_rules(walk, sequence);
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
    /* Each term is within double, their sums may not be; what is beyond it once stays there. */
    if (!isfinite(sequence->loss) || !isfinite(objective_sum_value(&walk->policy) + objective_sum_value(&walk->kl)))
        return non_finite(walk, SIZE_MAX, "logprobs", "with its loss the sum is beyond double");
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
