/* The batch's own loss: what remains of an objective when the only policy that is known is the engine's. */
#include "server/objective/terms_private.h"

#include <stdio.h>

unsigned objective_at_sampling(const struct objective_knobs *knobs, struct objective_knobs *ret_knobs)
{
    unsigned left_out = 0;

    *ret_knobs = *knobs;
    if (knobs->beta > 0)
        left_out |= OBJECTIVE_LEFT_OUT_KL;
    if (knobs->importance_count > 0)
        left_out |= OBJECTIVE_LEFT_OUT_IMPORTANCE;
    if (knobs->selection.method != OBJECTIVE_SELECTION_NONE)
        left_out |= OBJECTIVE_LEFT_OUT_SELECTION;
    if (knobs->advantage.teacher_coef != 0)
        left_out |= OBJECTIVE_LEFT_OUT_TEACHER;
    if (knobs->loss.positive_nll > 0)
        left_out |= OBJECTIVE_LEFT_OUT_POSITIVE_NLL;
    ret_knobs->beta = 0;
    ret_knobs->kl.in = OBJECTIVE_KL_IN_LOSS;
    ret_knobs->importance_count = 0;
    ret_knobs->selection.method = OBJECTIVE_SELECTION_NONE;
    ret_knobs->advantage.teacher_coef = 0;
    ret_knobs->loss.positive_nll = 0;
    ret_knobs->loss.anchor = OBJECTIVE_ANCHOR_OLD;
    return left_out;
}

static int refuse(struct objective_contradiction *ret_contradiction, const char *path, const char *message)
{
    snprintf(ret_contradiction->path, sizeof ret_contradiction->path, "%s", path);
    snprintf(ret_contradiction->message, sizeof ret_contradiction->message, "%s", message);
    return -1;
}

int objective_check_sampling(const struct objective_knobs *knobs, struct objective_contradiction *ret_contradiction)
{
    if (knobs->kl.in == OBJECTIVE_KL_IN_REWARD)
        return refuse(
            ret_contradiction, "kl.in",
            "a batch has no reference log-probabilities when its advantages are made: put the KL in the loss, "
            "or into POST /v1/objective");
    switch (knobs->advantage.estimator) {
    case OBJECTIVE_ESTIMATOR_REMAX:
        return refuse(ret_contradiction, "advantage.estimator", "a batch has no greedy completions");
    case OBJECTIVE_ESTIMATOR_PROCESS:
        if (knobs->shaping_count > 0)
            return refuse(ret_contradiction, "shaping", "process has rewards of steps, which no shaping changes");
        return 0;
    case OBJECTIVE_ESTIMATOR_OPTIMAL_TOKEN_BASELINE:
        return refuse(ret_contradiction, "advantage.estimator", "engines do not report sums of squared probabilities");
    case OBJECTIVE_ESTIMATOR_REWARD_TO_GO:
    case OBJECTIVE_ESTIMATOR_RPP:
        if (knobs->advantage.gamma != 1)
            return refuse(ret_contradiction, "advantage.gamma",
                          "a rollout on record has one advantage: only a gamma of 1 gives all its tokens the same");
        return 0;
    default:
        return 0;
    }
}

bool objective_loss_reads_logprobs(const struct objective_knobs *knobs)
{
    bool ratio_form = knobs->loss.kind == OBJECTIVE_LOSS_DPPO_TV && knobs->loss.form == OBJECTIVE_TV_FORM_RATIO;
    return objective_losses[knobs->loss.kind].reads_logprob && !ratio_form;
}

int objective_sampled_terms(const struct objective_knobs *knobs, const struct objective_totals *totals, size_t n,
                            struct objective_sequence *members, struct objective_result *ret_result)
{
    struct objective_knobs at_sampling;
    struct objective_group group;
    struct objective_error error;

    objective_at_sampling(knobs, &at_sampling);
    for (size_t i = 0; i < n; i++)
        members[i].group = 0;
    return objective_evaluate(&(struct objective_request){.knobs = &at_sampling,
                                                          .sequences = members,
                                                          .sequence_count = n,
                                                          .groups = &group,
                                                          .group_count = 1,
                                                          .advantages_given = true,
                                                          .shaped_given = true,
                                                          .totals = totals},
                              ret_result, &error);
}
