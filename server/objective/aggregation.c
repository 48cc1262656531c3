/* One function for each mode: the weight of a trainable token in the loss. tokens: n of its sequence, at least 1. */
#include "server/objective/terms.h"

/* GRPO (arXiv 2402.03300): tokens, then sequences. */
static double seq_mean_token_mean(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                  double tokens)
{
    (void)knobs;
    return 1 / (tokens * totals->sequences);
}

/* DAPO (arXiv 2503.14476); BNPO. */
static double token_mean(const struct objective_knobs *knobs, const struct objective_totals *totals, double tokens)
{
    (void)knobs;
    (void)tokens;
    return 1 / totals->tokens;
}

static double token_sum(const struct objective_knobs *knobs, const struct objective_totals *totals, double tokens)
{
    (void)knobs;
    (void)totals;
    (void)tokens;
    return 1;
}

static double seq_mean_token_sum(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                 double tokens)
{
    (void)knobs;
    (void)tokens;
    return 1 / totals->sequences;
}

/* Dr. GRPO (arXiv 2503.20783). */
static double seq_mean_token_sum_norm(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                      double tokens)
{
    (void)tokens;
    return 1 / (totals->sequences * knobs->aggregation.max_len);
}

/* verl before its repair of January 2026: not divided by the number of sequences. */
static double seq_sum_token_sum_norm(const struct objective_knobs *knobs, const struct objective_totals *totals,
                                     double tokens)
{
    (void)totals;
    (void)tokens;
    return 1 / knobs->aggregation.max_len;
}

/* open-instruct, loss_denominator as a number. */
static double constant(const struct objective_knobs *knobs, const struct objective_totals *totals, double tokens)
{
    (void)totals;
    (void)tokens;
    return 1 / knobs->aggregation.denominator;
}

const struct objective_mode objective_modes[OBJECTIVE_MODE_BUILT] = {
    [OBJECTIVE_MODE_SEQ_MEAN_TOKEN_MEAN] = {seq_mean_token_mean, DIVIDES_BY_SEQUENCES},
    [OBJECTIVE_MODE_TOKEN_MEAN] = {token_mean, DIVIDES_BY_TOKENS},
    [OBJECTIVE_MODE_TOKEN_SUM] = {token_sum, 0},
    [OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM] = {seq_mean_token_sum, DIVIDES_BY_SEQUENCES},
    [OBJECTIVE_MODE_SEQ_MEAN_TOKEN_SUM_NORM] = {seq_mean_token_sum_norm, DIVIDES_BY_SEQUENCES},
    [OBJECTIVE_MODE_SEQ_SUM_TOKEN_SUM_NORM] = {seq_sum_token_sum_norm, 0},
    [OBJECTIVE_MODE_CONSTANT] = {constant, 0},
};
