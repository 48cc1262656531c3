/* The walk over sequences and tokens: gather a block, compute it, scatter it. */
#include "server/objective/terms_private.h"

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
    struct precise_sum policy, kl;
    struct lane_exact_sum sequence_policy, sequence_kl;
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

/* Fills the rules that are the same in every block of a sequence; gather_rules() writes the rest. */
static void fill_rules(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;
    size_t n = sequence->tokens < OBJECTIVE_BLOCK ? sequence->tokens : OBJECTIVE_BLOCK;

    fill(n, sequence->advantage, block->advantage);
    fill(n, 1, block->weight);
    fill(n, 1, block->clamped);
    memset(block->dropped, 0, n);
}

static void gather_numbers(const struct objective_block *block, const double *from, double *ret_values)
{
    if (block->is_run)
        memcpy(ret_values, from + block->token[0], block->count * sizeof *ret_values);
    for (size_t k = 0; !block->is_run && k < block->count; k++)
        ret_values[k] = from[block->token[k]];
}

static void gather_rules(struct walk *walk)
{
    const struct objective_work *work = walk->work;
    struct objective_block *block = &walk->block;
    size_t first = work->parts[walk->index].first;

    if (work->advantages)
        gather_numbers(block, work->advantages + first, block->advantage);
    if (work->weights)
        gather_numbers(block, work->weights + first, block->weight);
    for (size_t k = 0; work->dropped && k < block->count; k++)
        block->dropped[k] = work->dropped[first + token_at(block, k)];
}

/* Both log-probabilities of the ratio side by side in float: the usual request, read in one go. */
static bool is_float_pair(const struct walk *walk)
{
    struct objective_values logprobs = walk->work->request->sequences[walk->index].logprobs;
    return walk->block.is_run && walk->with_ratio && !logprobs.f64 && !walk->anchor.f64;
}

/* True: all finite. */
static bool read_float_pair(struct walk *walk)
{
    struct objective_block *block = &walk->block;
    const float *logprobs = walk->work->request->sequences[walk->index].logprobs.f32;
    size_t first = block->token[0];

    return block->kernels->subtract_floats(block->count, logprobs + first, walk->anchor.f32 + first, block->logprob,
                                           block->old, block->x);
}

static bool read_inputs(struct walk *walk)
{
    struct objective_block *block = &walk->block;
    bool is_pair = is_float_pair(walk);

    if (is_pair && !read_float_pair(walk))
        return false;
    for (size_t i = 0; i < walk->input_count; i++) {
        double *place = walk->inputs[i].place;
        bool is_read = is_pair && (place == block->logprob || place == block->old);
        if (!is_read && !block_read(block, walk->inputs[i].values, place))
            return false;
    }
    if (!walk->with_ratio)
        memcpy(block->old, block->logprob, block->count * sizeof block->old[0]);
    if (!is_pair)
        block->kernels->subtract(block->count, block->logprob, block->old, block->x);
    return true;
}

/* old_logprobs of the block; NULL: there are none. */
static const double *old_of_block(const struct walk *walk)
{
    if (!is_present(walk->work->request->sequences[walk->index].old_logprobs))
        return NULL;
    return walk->old_is_anchor ? walk->block.old : walk->block.previous;
}

/* The log-probabilities that metrics.rollout compares with those of the rollout. */
static const double *policy_of_metrics(const struct walk *walk)
{
    const double *old = old_of_block(walk);
    return old && !walk->work->request->rollout_against_logprobs ? old : walk->block.logprob;
}

static int gather(struct walk *walk)
{
    struct objective_block *block = &walk->block;

    if (!read_inputs(walk))
        return refuse_input(walk);
    if (walk->with_kl)
        block->kernels->subtract(block->count, block->logprob, block->reference, block->distance);
    if (walk->with_rollout)
        block->kernels->subtract(block->count, policy_of_metrics(walk), block->rollout, block->rollout_x);
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

static void compute_ratios(struct walk *walk)
{
    struct objective_block *block = &walk->block;

    if (!isnan(walk->knobs->loss.log_clamp))
        clamp_ratios(block->count, walk->knobs->loss.log_clamp, block->x, block->clamped);
    lane_powers(block->kernels, block->count, block->x, block->ratio, &walk->meter.ratios);
    block->shown = block->ratio;
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

/* kept[k] = 0 where the policy term is out, else 1. False: none is out. */
static bool find_dropped(struct objective_block *block, unsigned why, double *ret_kept)
{
    unsigned any = 0;

    for (size_t k = 0; k < block->count; k++)
        any |= block->dropped[k];
    for (size_t k = 0; any & why && k < block->count; k++) {
        bool out = block->dropped[k] & why;
        ret_kept[k] = out ? 0 : 1;
        block->selected[k] = block->selected[k] && !out;
    }
    return any & why;
}

/* Selection and importance on the policy term: what is rejected is set to 0, never multiplied by it. The weight of what
 * importance rejects is 0 already. */
static void apply_weights(const struct walk *walk, struct objective_block *block)
{
    const struct objective_loss *loss = walk->loss;
    unsigned why = loss->takes_importance ? DROPPED_BY_SELECTION : DROPPED_BY_SELECTION | DROPPED_BY_IMPORTANCE;
    const double *weight = walk->work->weights && !loss->takes_importance ? block->weight : NULL;
    double kept[OBJECTIVE_BLOCK];

    if ((!walk->work->weights && !walk->work->dropped) || walk->knobs->loss.kind == OBJECTIVE_LOSS_REAL)
        return;
    bool any = find_dropped(block, why, kept);
    if (!weight && !any)
        return;
    block->kernels->reweigh(block->count, weight, any ? kept : NULL, block->value);
    if (!loss->shares_slope)
        block->kernels->reweigh(block->count, weight, any ? kept : NULL, block->slope);
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

/* The first token with a term beyond double; 0: there is none, only their sum is. */
static int refuse_term(struct walk *walk)
{
    const struct objective_block *block = &walk->block;

    for (size_t k = 0; k < block->count; k++) {
        double policy = walk->weight * block->value[k];
        double slope = walk->weight * block->slope[k];
        double kl = walk->with_kl ? walk->weight * (walk->knobs->beta * block->kl[k]) : 0;
        double kl_slope = walk->with_kl ? walk->weight * (walk->knobs->beta * block->kl_slope[k]) : 0;
        if (!isfinite(policy) || !isfinite(slope))
            return non_finite(walk, token_at(block, k), "logprobs",
                              "its loss is beyond double: the ratio is too large");
        if (!isfinite(policy + kl) || !isfinite(slope + kl_slope))
            return non_finite(walk, token_at(block, k), "ref_logprobs", "its KL term is beyond double");
    }
    return 0;
}

/* Writes the other outputs of a block. */
static void scatter(const struct walk *walk, const struct objective_sequence *sequence)
{
    const struct objective_block *block = &walk->block;

    block_put(block, -1, block->value, sequence->surrogates);
    block_put(block, 1, block->shown, sequence->ratios);
    block_put(block, 1, block->weight, sequence->importance);
    if (walk->with_kl)
        block_put(block, 1, block->kl, sequence->kl);
    for (size_t k = 0; sequence->weights && k < block->count; k++)
        sequence->weights[token_at(block, k)] = walk->weight;
    block_put_sides(block, sequence->clipped);
    block_put_bytes(block, block->selected, sequence->selected);
}

/* Where a kernel may write: right into the reply where the tokens stand side by side. */
static double *output_of(const struct objective_block *block, double *output, double *spare)
{
    return output && block->is_run ? output + block->token[0] : spare;
}

static int add_up(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;
    double contributions[OBJECTIVE_BLOCK];
    double slopes[OBJECTIVE_BLOCK];
    struct lane_terms terms = {
        .weight = walk->weight,
        .beta = walk->knobs->beta,
        .value = block->value,
        .slope = block->slope,
        .kl = walk->with_kl ? block->kl : NULL,
        .kl_slope = block->kl_slope,
        .contributions = output_of(block, sequence->contributions, contributions),
        .slopes = output_of(block, sequence->dloss_dlogp, slopes),
    };

    if (!block->kernels->settle(block->count, &terms, &walk->sequence_policy, &walk->sequence_kl) &&
        refuse_term(walk) < 0)
        return -1;
    if (!block->is_run) {
        block_put(block, 1, contributions, sequence->contributions);
        block_put(block, 1, slopes, sequence->dloss_dlogp);
    }
    scatter(walk, sequence);
    return 0;
}

static void slice(struct walk *walk)
{
    if (walk->work->request->slices)
        slice_block(walk->work, walk->index,
                    &(struct slice_inputs){old_of_block(walk), walk->with_rollout, walk->with_kl}, &walk->block);
}

static int flush(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;

    if (gather(walk) < 0)
        return -1;
    compute_ratios(walk);
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
    slice(walk);
    block->first += block->count;
    block->count = 0;
    return 0;
}

/* --- one sequence --- */

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

/* Into the block, until it is full, without a branch on the mask; where it stopped. The sequence is live. */
static size_t find_trained(struct walk *walk, const struct objective_sequence *sequence, size_t t)
{
    struct objective_block *block = &walk->block;
    const uint8_t *mask = sequence->mask;
    const uint8_t *dropped = walk->work->dropped;
    size_t count = block->count;

    if (dropped)
        dropped += walk->work->parts[walk->index].first;
    for (; t < sequence->tokens && count < OBJECTIVE_BLOCK; t++) {
        bool masked = mask && !mask[t];
        bool out = dropped && dropped[t] & DROPPED_FROM_COUNTS;
        block->token[count] = t;
        count += !(masked | out);
    }
    block->count = count;
    return t;
}

static int walk_tokens(struct walk *walk, const struct objective_sequence *sequence)
{
    struct objective_block *block = &walk->block;

    block->count = block->first = 0;
    if (sequence->trainable_tokens == sequence->tokens)
        return walk_run(walk, sequence);
    block->is_run = false;
    for (size_t t = 0; t < sequence->tokens;) {
        t = find_trained(walk, sequence, t);
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
    walk->sequence_policy = walk->sequence_kl = (struct lane_exact_sum){0};
    walk->block.one_advantage = !work->advantages;
    walk->whole = (struct objective_whole){.index = index, .n = (double)sequence->trainable_tokens};
}

static void add_sum(const struct precise_sum *part, struct precise_sum *sum)
{
    precise_sum_add(sum, part->sum);
    sum->lost += part->lost;
}

/* The sums of the sequence into those of the request. */
static void leave_sequence(struct walk *walk, struct objective_sequence *sequence)
{
    struct precise_sum policy = {0};
    struct precise_sum kl = {0};

    lane_exact_sum_add_to(&walk->sequence_policy, &policy);
    add_sum(&policy, &walk->policy);
    if (walk->with_kl) {
        lane_exact_sum_add_to(&walk->sequence_kl, &kl);
        add_sum(&kl, &walk->kl);
        add_sum(&kl, &policy);
    }
    sequence->loss = precise_sum_value(&policy) + 0.0;
    meter_sequence(&walk->meter);
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
    leave_sequence(walk, sequence);
    /* Each term is within double, their sums may not be; what is beyond it once stays there. */
    if (!isfinite(sequence->loss) || !isfinite(precise_sum_value(&walk->policy) + precise_sum_value(&walk->kl)))
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
        if (request->groups[g].rewarded == 1 && !request->advantages_given)
            found |= OBJECTIVE_NOTE_SINGLETON;
        if (request->groups[g].dropped)
            found |= OBJECTIVE_NOTE_FILTERED;
    }
    return found;
}

static bool anything_rewarded(const struct objective_request *request)
{
    for (size_t i = 0; i < request->sequence_count; i++)
        if (request->sequences[i].rewarded)
            return true;
    return false;
}

static int walk_all(struct walk *walk)
{
    const struct objective_request *request = walk->work->request;
    struct objective_result *result = walk->work->result;

    for (size_t i = 0; i < request->sequence_count; i++) {
        if (request->before_sequence && request->before_sequence(request->context, i) < 0)
            return objective_fail(walk->work->error, OBJECTIVE_ERROR_REFUSED, i, SIZE_MAX, NULL, NULL);
        if (walk_sequence(walk, i) < 0)
            return -1;
        if (request->after_sequence)
            request->after_sequence(request->context, i);
    }
    bool scored = anything_rewarded(request);
    result->policy_loss = scored ? precise_sum_value(&walk->policy) + 0.0 : NAN;
    result->kl_loss = scored ? precise_sum_value(&walk->kl) + 0.0 : NAN;
    result->loss = result->policy_loss + result->kl_loss;
    result->notes = notes(walk->work);
    if (request->slices)
        slices_finish(request);
    objective_fill_metrics(walk->work, &walk->meter);
    return 0;
}

int objective_evaluate(const struct objective_request *request, struct objective_result *ret_result,
                       struct objective_error *ret_error)
{
    struct objective_work work;
    struct walk walk = {.work = &work,
                        .knobs = request->knobs,
                        .loss = &objective_losses[request->knobs->loss.kind],
                        .meter.weights.least = INFINITY,
                        .block.kernels = objective_kernels()};

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
