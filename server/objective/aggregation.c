/* Counts, totals, and one function for each mode: the weight of a trainable token in the loss. */
#include "server/objective/terms_private.h"

/* --- weights --- */

/* GRPO (arXiv 2402.03300): tokens, then sequences. */
static double seq_mean_token_mean(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                  const struct objective_counts *counts)
{
    (void)knobs;
    return 1 / (counts->tokens * totals->sequences);
}

/* DAPO (arXiv 2503.14476); BNPO. */
static double token_mean(const struct objective_knobs *knobs, const struct objective_totals *totals,
                         const struct objective_counts *counts)
{
    (void)knobs;
    (void)counts;
    return 1 / totals->tokens;
}

static double token_sum(const struct objective_knobs *knobs, const struct objective_totals *totals,
                        const struct objective_counts *counts)
{
    (void)knobs;
    (void)totals;
    (void)counts;
    return 1;
}

static double seq_mean_token_sum(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                 const struct objective_counts *counts)
{
    (void)knobs;
    (void)counts;
    return 1 / totals->sequences;
}

/* Dr. GRPO (arXiv 2503.20783). */
static double seq_mean_token_sum_norm(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                      const struct objective_counts *counts)
{
    (void)counts;
    return 1 / (totals->sequences * knobs->aggregation.max_len);
}

/* verl before its repair of January 2026: not divided by the number of sequences. */
static double seq_sum_token_sum_norm(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                     const struct objective_counts *counts)
{
    (void)totals;
    (void)counts;
    return 1 / knobs->aggregation.max_len;
}

/* SkyRL `prompt_mean`: tokens inside each prompt, then prompts. */
static double prompt_mean(const struct objective_knobs *knobs, const struct objective_totals *totals,
                          const struct objective_counts *counts)
{
    (void)knobs;
    return 1 / (totals->groups * counts->group_tokens);
}

/* slime: samples of one multi-turn rollout share a denominator (`rollout_mask_sums`). */
static double rollout_mean(const struct objective_knobs *knobs, const struct objective_totals *totals,
                           const struct objective_counts *counts)
{
    (void)knobs;
    return 1 / ((isnan(totals->rollouts) ? totals->sequences : totals->rollouts) * counts->rollout_tokens);
}

/* open-instruct, loss_denominator as a number. */
static double constant(const struct objective_knobs *knobs, const struct objective_totals *totals,
                       const struct objective_counts *counts)
{
    (void)totals;
    (void)counts;
    return 1 / knobs->aggregation.denominator;
}

/* DeepSeekMath's own form: tokens, then responses of their group, then groups. */
static double group_mean(const struct objective_knobs *knobs, const struct objective_totals *totals,
                         const struct objective_counts *counts)
{
    (void)knobs;
    return 1 / (totals->groups * counts->group_rewarded * counts->tokens);
}

const struct objective_mode objective_modes[OBJECTIVE_MODE_COUNT] = {
    [OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN] = {seq_mean_token_mean, DIVIDES_BY_SEQUENCES},
    [OBJECTIVE_MODE_TOKEN_MEAN] = {token_mean, DIVIDES_BY_TOKENS},
    [OBJECTIVE_MODE_TOKEN_SUM] = {token_sum, 0},
    [OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM] = {seq_mean_token_sum, DIVIDES_BY_SEQUENCES},
    [OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM_NORM] = {seq_mean_token_sum_norm, DIVIDES_BY_SEQUENCES},
    [OBJECTIVE_MODE_SEQ_SUM_TOKEN_SUM_NORM] = {seq_sum_token_sum_norm, 0},
    [OBJECTIVE_MODE_PROMPT_MEAN] = {prompt_mean, DIVIDES_BY_GROUPS},
    [OBJECTIVE_MODE_ROLLOUT_MEAN] = {rollout_mean, DIVIDES_BY_ROLLOUTS},
    [OBJECTIVE_MODE_CONSTANT] = {constant, 0},
    [OBJECTIVE_MODE_GROUP_MEAN] = {group_mean, DIVIDES_BY_GROUPS},
};

/* real has no weights of its own; its KL term is a token mean (ms-swift). */
static const struct objective_mode *mode_of(const struct objective_knobs *knobs)
{
    static const struct objective_mode of_real = {token_mean, DIVIDES_BY_TOKENS | DIVIDES_BY_GROUPS};
    return knobs->loss.kind == OBJECTIVE_LOSS_REAL ? &of_real : &objective_modes[knobs->aggregation.mode];
}

/* --- counting --- */

static bool is_counted(const struct objective_work *work, size_t index)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    bool count_masked = work->knobs->aggregation.masked_seq == OBJECTIVE_MASKED_SEQ_COUNT;
    bool dropped = work->request->groups[sequence->group].dropped;
    return has_tokens(sequence) && !dropped && (count_masked || sequence->trainable_tokens > 0);
}

OBJECTIVE_CLONES
static size_t count_set(size_t n, const uint8_t *mask)
{
    size_t count = 0;

    for (size_t t = 0; t < n; t++)
        count += mask[t] != 0;
    return count;
}

static size_t trained_tokens(const struct objective_work *work, size_t index)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    size_t count = 0;

    if (!work->parts[index].live)
        return 0;
    if (!sequence->mask && !work->dropped)
        return sequence->tokens;
    if (!work->dropped)
        return count_set(sequence->tokens, sequence->mask);
    for (size_t t = 0; t < sequence->tokens; t++)
        count += is_trained(work, index, t);
    return count;
}

/* Of each rollout: its trained tokens, and whether a sequence of it counts. */
struct rollout_count {
    double tokens;
    bool counted;
};

static void count_sequence(struct objective_work *work, size_t index, struct rollout_count *rollouts,
                           struct objective_totals *counted)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    struct objective_group *group = &work->request->groups[sequence->group];
    struct rollout_count *rollout = &rollouts[work->request->rollout_count ? sequence->rollout : index];

    sequence->trainable_tokens = trained_tokens(work, index);
    counted->tokens += (double)sequence->trainable_tokens;
    group->tokens += (double)sequence->trainable_tokens;
    rollout->tokens += (double)sequence->trainable_tokens;
    if (sequence->trainable_tokens > 0 && sequence->reward > 0)
        work->positive_tokens += (double)sequence->trainable_tokens;
    work->result->sums.sequences += sequence->rewarded;
    if (!is_counted(work, index))
        return;
    counted->sequences++;
    counted->groups += !group->counted;
    counted->rollouts += !rollout->counted;
    group->counted = rollout->counted = true;
}

static void count_all(struct objective_work *work, struct rollout_count *rollouts)
{
    struct objective_totals counted = {0};

    for (size_t g = 0; g < work->request->group_count; g++) {
        work->request->groups[g].tokens = 0;
        work->request->groups[g].counted = false;
    }
    for (size_t i = 0; i < work->request->sequence_count; i++)
        count_sequence(work, i, rollouts, &counted);
    work->result->sums.tokens = (uint64_t)counted.tokens;
    work->result->counted = counted;
    work->result->totals = counted;
}

/* --- totals --- */

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

static int take_totals(struct objective_work *work)
{
    const struct objective_totals *given = work->request->totals;
    const struct objective_totals *counted = &work->result->counted;
    struct objective_totals *totals = &work->result->totals;
    unsigned by = mode_of(work->knobs)->divides_by;
    bool own_rollouts = by & DIVIDES_BY_ROLLOUTS && given && !isnan(given->rollouts);
    bool by_sequences = by & DIVIDES_BY_SEQUENCES || (by & DIVIDES_BY_ROLLOUTS && !own_rollouts);

    if (!given)
        return 0;
    if (take_total(given->tokens, counted->tokens, by & DIVIDES_BY_TOKENS, "tokens", &totals->tokens, work->error) < 0)
        return -1;
    if (take_total(given->sequences, counted->sequences, by_sequences, "sequences", &totals->sequences, work->error) <
        0)
        return -1;
    if (take_total(given->rollouts, counted->rollouts, own_rollouts, "rollouts", &totals->rollouts, work->error) < 0)
        return -1;
    return take_total(given->groups, counted->groups, by & DIVIDES_BY_GROUPS, "groups", &totals->groups, work->error);
}

/* --- the whole --- */

static double rewarded_of_group(const struct objective_work *work, size_t group)
{
    double rewarded = 0;

    if (work->request->groups_given)
        return (double)work->request->groups[group].rewarded;
    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++)
        rewarded += is_counted(work, work->by_group[k]);
    return rewarded;
}

int work_aggregation(struct objective_work *work)
{
    const struct objective_request *request = work->request;
    size_t rollout_count = request->rollout_count ? request->rollout_count : request->sequence_count;
    struct rollout_count *rollouts = work_allocate(work, rollout_count, sizeof *rollouts);
    double *rewarded = work_allocate(work, request->group_count, sizeof *rewarded);

    if (!rollouts || !rewarded)
        return -1;
    count_all(work, rollouts);
    if (take_totals(work) < 0)
        return -1;
    for (size_t g = 0; g < request->group_count; g++)
        rewarded[g] = rewarded_of_group(work, g);
    for (size_t i = 0; i < request->sequence_count; i++) {
        const struct objective_sequence *sequence = &request->sequences[i];
        struct objective_counts counts = {
            .tokens = (double)sequence->trainable_tokens,
            .group_tokens = request->groups[sequence->group].tokens,
            .group_rewarded = rewarded[sequence->group],
            .rollout_tokens = rollouts[request->rollout_count ? sequence->rollout : i].tokens,
        };
        if (sequence->trainable_tokens > 0)
            work->parts[i].weight = mode_of(work->knobs)->weight(work->knobs, &work->result->totals, &counts);
    }
    return 0;
}
