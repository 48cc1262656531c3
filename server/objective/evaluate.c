/* The walk over sequences and tokens: count, then gather a block, compute it, scatter it. */
#include "server/objective/terms.h"

#include <math.h>
#include <string.h>

int objective_fail(struct objective_error *ret_error, enum objective_error_code code, size_t sequence, size_t token,
                   const char *field, const char *message)
{
    *ret_error = (struct objective_error){
        .code = code, .sequence = sequence, .token = token, .field = field, .message = message};
    return -1;
}

/* --- counting --- */

static bool takes_part(const struct objective_sequence *sequence)
{
    return sequence->judged && !sequence->untrainable;
}

static size_t trainable_tokens(const struct objective_knobs *knobs, const struct objective_sequence *sequence)
{
    size_t count = 0;

    if (!takes_part(sequence) || (knobs->mask.truncated && sequence->finish_reason == OBJECTIVE_FINISH_LENGTH))
        return 0;
    if (!sequence->mask)
        return sequence->tokens;
    for (size_t t = 0; t < sequence->tokens; t++)
        count += sequence->mask[t] != 0;
    return count;
}

static bool is_counted(const struct objective_knobs *knobs, const struct objective_sequence *sequence)
{
    bool count_masked = knobs->aggregation.masked_seq == OBJECTIVE_MASKED_SEQ_COUNT;
    return takes_part(sequence) && (count_masked || sequence->trainable_tokens > 0);
}

static void count(const struct objective_request *request, struct objective_result *result)
{
    struct objective_totals counted = {0};

    for (size_t i = 0; i < request->sequence_count; i++) {
        struct objective_sequence *sequence = &request->sequences[i];
        struct objective_group *group = &request->groups[sequence->group];
        sequence->trainable_tokens = trainable_tokens(request->knobs, sequence);
        counted.tokens += (double)sequence->trainable_tokens;
        result->sums.sequences += sequence->judged;
        if (!is_counted(request->knobs, sequence))
            continue;
        counted.sequences++;
        counted.groups += !group->counted;
        group->counted = true;
    }
    result->sums.tokens = (uint64_t)counted.tokens;
    result->counted = counted;
    result->totals = counted;
}

static int take_total(double given, double counted, bool needed, const char *field, double *total,
                      struct objective_error *ret_error)
{
    *total = given;
    if (!needed)
        return 0;
    if (isnan(given))
        return objective_fail(ret_error, OBJECTIVE_ERROR_MISSING_INPUT, SIZE_MAX, SIZE_MAX, field,
                              "this aggregation divides by it");
    if (given < counted)
        return objective_fail(ret_error, OBJECTIVE_ERROR_TOTALS, SIZE_MAX, SIZE_MAX, field,
                              "the whole cannot be smaller than this part of it");
    return 0;
}

static int take_totals(const struct objective_request *request, struct objective_result *result,
                       struct objective_error *ret_error)
{
    const struct objective_totals *given = request->totals;
    const struct objective_totals *counted = &result->counted;
    unsigned by = objective_modes[request->knobs->aggregation.mode].divides_by;

    if (!given)
        return 0;
    if (take_total(given->tokens, counted->tokens, by & DIVIDES_BY_TOKENS, "tokens", &result->totals.tokens,
                   ret_error) < 0)
        return -1;
    if (take_total(given->sequences, counted->sequences, by & DIVIDES_BY_SEQUENCES, "sequences",
                   &result->totals.sequences, ret_error) < 0)
        return -1;
    return take_total(given->groups, counted->groups, by & DIVIDES_BY_GROUPS, "groups", &result->totals.groups,
                      ret_error);
}

/* --- inputs --- */

static bool is_present(struct objective_values values)
{
    return values.f64 || values.f32;
}

static double value_at(struct objective_values values, size_t token)
{
    return values.f64 ? values.f64[token] : (double)values.f32[token];
}

static int check_inputs(const struct objective_request *request, size_t index, struct objective_error *ret_error)
{
    const struct objective_sequence *sequence = &request->sequences[index];
    bool kl = request->knobs->beta > 0;

    if (kl && !is_present(sequence->ref_logprobs))
        return objective_fail(ret_error, OBJECTIVE_ERROR_MISSING_INPUT, index, SIZE_MAX, "ref_logprobs",
                              "beta above 0 needs them");
    if (kl && !is_present(sequence->logprobs))
        return objective_fail(ret_error, OBJECTIVE_ERROR_MISSING_INPUT, index, SIZE_MAX, "logprobs",
                              "beta above 0 needs them");
    return 0;
}

/* --- one block --- */

struct walk {
    const struct objective_request *request;
    struct objective_result *result;
    struct objective_error *error;
    struct objective_meter meter;
    struct objective_sum policy, kl;
    size_t index;
    double weight;
    bool with_ratio, with_kl, with_rollout;
    struct objective_sum contributions; /* of the sequence */
    struct objective_block block;
};

static int non_finite(struct walk *walk, size_t token, const char *field, const char *message)
{
    return objective_fail(walk->error, OBJECTIVE_ERROR_NON_FINITE, walk->index, token, field, message);
}

static int read_finite(struct walk *walk, struct objective_values values, size_t token, const char *field,
                       double *ret_value)
{
    *ret_value = value_at(values, token);
    if (isfinite(*ret_value))
        return 0;
    return non_finite(walk, token, field, "a trainable token needs a finite number");
}

static int read_advantage(struct walk *walk, const struct objective_sequence *sequence, size_t token, double *ret_value)
{
    const struct objective_knobs *knobs = walk->request->knobs;

    *ret_value = sequence->advantage;
    if (!sequence->token_advantages)
        return 0;
    *ret_value = sequence->token_advantages[token];
    if (!isfinite(*ret_value))
        return non_finite(walk, token, "advantage", "a trainable token needs a finite number");
    if (*ret_value < knobs->advantage.clip_low)
        *ret_value = knobs->advantage.clip_low;
    if (*ret_value > knobs->advantage.clip_high)
        *ret_value = knobs->advantage.clip_high;
    return 0;
}

/* Appends one token to the block. */
static int gather(struct walk *walk, const struct objective_sequence *sequence, size_t token)
{
    struct objective_block *block = &walk->block;
    size_t k = block->count;
    double old = 0;
    double reference = 0;

    block->token[k] = token;
    block->logprob[k] = 0;
    block->x[k] = 0;
    if (read_advantage(walk, sequence, token, &block->advantage[k]) < 0)
        return -1;
    if (is_present(sequence->logprobs) &&
        read_finite(walk, sequence->logprobs, token, "logprobs", &block->logprob[k]) < 0)
        return -1;
    if (is_present(sequence->old_logprobs) &&
        read_finite(walk, sequence->old_logprobs, token, "old_logprobs", &old) < 0)
        return -1;
    if (walk->with_ratio)
        block->x[k] = block->logprob[k] - old;
    if (walk->with_kl && read_finite(walk, sequence->ref_logprobs, token, "ref_logprobs", &reference) < 0)
        return -1;
    block->distance[k] = block->logprob[k] - reference;
    if (walk->with_rollout) {
        if (read_finite(walk, sequence->rollout_logprobs, token, "rollout_logprobs", &block->rollout[k]) < 0)
            return -1;
        block->rollout_x[k] = (is_present(sequence->old_logprobs) ? old : block->logprob[k]) - block->rollout[k];
    }
    block->count++;
    return 0;
}

static void compute_ratios(const struct objective_knobs *knobs, struct objective_block *block)
{
    double limit = knobs->loss.log_clamp; /* NAN: none */

    for (size_t k = 0; k < block->count; k++) {
        block->clamped[k] = 1;
        if (block->x[k] > limit || block->x[k] < -limit) {
            block->x[k] = block->x[k] > 0 ? limit : -limit;
            block->clamped[k] = 0;
        }
        block->ratio[k] = objective_exp(block->x[k]);
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
        sequence->ratios[token] = block->ratio[k];
    if (sequence->weights)
        sequence->weights[token] = walk->weight;
    if (sequence->kl && walk->with_kl)
        sequence->kl[token] = block->kl[k] + 0.0;
    if (sequence->clipped)
        sequence->clipped[token] = block->clipped[k];
    if (sequence->selected)
        sequence->selected[token] = block->selected[k];
}

static int add_up(struct walk *walk, const struct objective_sequence *sequence)
{
    const struct objective_block *block = &walk->block;
    double beta = walk->request->knobs->beta;

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
    const struct objective_knobs *knobs = walk->request->knobs;
    struct objective_block *block = &walk->block;

    compute_ratios(knobs, block);
    objective_losses[knobs->loss.kind].terms(knobs, block);
    if (walk->with_kl)
        objective_kl_block(knobs, block);
    if (add_up(walk, sequence) < 0)
        return -1;
    meter_block(walk->request, block, walk->with_rollout, walk->with_kl, &walk->meter, &walk->result->sums);
    block->count = 0;
    return 0;
}

/* --- one sequence --- */

static void clear_outputs(struct objective_sequence *sequence)
{
    double *const numbers[] = {sequence->surrogates, sequence->contributions, sequence->dloss_dlogp,
                               sequence->ratios,     sequence->weights,       sequence->kl};

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
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (sequence->mask && !sequence->mask[t])
            continue;
        if (gather(walk, sequence, t) < 0)
            return -1;
        if (walk->block.count == OBJECTIVE_BLOCK && flush(walk, sequence) < 0)
            return -1;
    }
    return walk->block.count ? flush(walk, sequence) : 0;
}

static int walk_sequence(struct walk *walk, size_t index)
{
    const struct objective_request *request = walk->request;
    struct objective_sequence *sequence = &request->sequences[index];

    clear_outputs(sequence);
    if (sequence->trainable_tokens == 0)
        return 0;
    if (check_inputs(request, index, walk->error) < 0)
        return -1;
    walk->index = index;
    walk->weight = objective_modes[request->knobs->aggregation.mode].weight(request->knobs, &walk->result->totals,
                                                                            (double)sequence->trainable_tokens);
    walk->with_ratio = is_present(sequence->logprobs) && is_present(sequence->old_logprobs);
    walk->with_rollout = is_present(sequence->rollout_logprobs) &&
                         (is_present(sequence->old_logprobs) || is_present(sequence->logprobs));
    walk->contributions = (struct objective_sum){0};
    if (walk_tokens(walk, sequence) < 0)
        return -1;
    meter_sequence(&walk->meter);
    sequence->loss = objective_sum_value(&walk->contributions) + 0.0;
    return 0;
}

static unsigned notes(const struct objective_request *request, const struct objective_result *result)
{
    unsigned found = 0;

    if (isnan(result->loss))
        found |= OBJECTIVE_NOTE_NOTHING_SCORED;
    else if (result->counted.tokens == 0)
        found |= OBJECTIVE_NOTE_ALL_MASKED;
    if (result->sums.ratio_overflows)
        found |= OBJECTIVE_NOTE_RATIO_OVERFLOW;
    for (size_t g = 0; g < request->group_count && !request->advantages_given; g++)
        if (request->groups[g].judged == 1)
            found |= OBJECTIVE_NOTE_SINGLETON;
    return found;
}

static bool anything_judged(const struct objective_request *request)
{
    for (size_t i = 0; i < request->sequence_count; i++)
        if (request->sequences[i].judged)
            return true;
    return false;
}

int objective_evaluate(const struct objective_request *request, struct objective_result *ret_result,
                       struct objective_error *ret_error)
{
    struct walk walk = {.request = request, .result = ret_result, .error = ret_error};

    *ret_result = (struct objective_result){0};
    walk.with_kl = request->knobs->beta > 0;
    if (objective_advantages(request, ret_error) < 0)
        return -1;
    count(request, ret_result);
    if (take_totals(request, ret_result, ret_error) < 0)
        return -1;
    for (size_t i = 0; i < request->sequence_count; i++)
        if (walk_sequence(&walk, i) < 0)
            return -1;
    bool scored = anything_judged(request);
    ret_result->policy_loss = scored ? objective_sum_value(&walk.policy) + 0.0 : NAN;
    ret_result->kl_loss = scored ? objective_sum_value(&walk.kl) + 0.0 : NAN;
    ret_result->loss = ret_result->policy_loss + ret_result->kl_loss;
    ret_result->notes = notes(request, ret_result);
    objective_fill_metrics(request, &walk.meter, ret_result);
    return 0;
}

/* --- a sampled batch --- */

unsigned objective_at_sampling(const struct objective_knobs *knobs, struct objective_knobs *ret_knobs)
{
    unsigned left_out = 0;

    *ret_knobs = *knobs;
    if (knobs->beta > 0) {
        ret_knobs->beta = 0;
        left_out |= OBJECTIVE_LEFT_OUT_KL;
    }
    return left_out;
}

/* NOLINTBEGIN(readability-function-size,readability-non-const-parameter): the arrays are written through the sequence
 */
int objective_rollout_terms(const struct objective_knobs *knobs, const struct objective_totals *totals,
                            double advantage, size_t tokens, const uint8_t *mask, struct objective_values logprobs,
                            enum objective_finish finish_reason, double *surrogates, double *contributions)
{
    struct objective_knobs at_sampling;
    struct objective_group group;
    struct objective_result result;
    struct objective_error error;
    struct objective_sequence sequence = {.reward = NAN,
                                          .judged = true,
                                          .tokens = tokens,
                                          .mask = mask,
                                          .logprobs = logprobs,
                                          .finish_reason = finish_reason,
                                          .advantage = advantage,
                                          .surrogates = surrogates,
                                          .contributions = contributions};

    objective_at_sampling(knobs, &at_sampling);
    return objective_evaluate(&(struct objective_request){.knobs = &at_sampling,
                                                          .sequences = &sequence,
                                                          .sequence_count = 1,
                                                          .groups = &group,
                                                          .group_count = 1,
                                                          .advantages_given = true,
                                                          .totals = totals},
                              &result, &error);
}
/* NOLINTEND(readability-function-size,readability-non-const-parameter) */
