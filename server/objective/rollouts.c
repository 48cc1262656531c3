/* Several sequences of one rollout: they have one reward, and it counts once in every statistic of rewards. The first
 * of them in the request stands for all. */
#include "server/objective/terms_private.h"

int work_link_rollouts(struct objective_work *work)
{
    const struct objective_request *request = work->request;
    size_t *last = NULL; /* index + 1; 0: none yet */

    if (request->rollout_count && !(last = work_allocate(work, request->rollout_count, sizeof *last)))
        return -1;
    for (size_t i = 0; i < request->sequence_count; i++) {
        struct objective_part *part = &work->parts[i];
        part->head = i;
        part->next = NO_SEQUENCE;
        if (!last)
            continue;
        size_t before = last[request->sequences[i].rollout];
        last[request->sequences[i].rollout] = i + 1;
        if (before == 0)
            continue;
        part->head = work->parts[before - 1].head;
        work->parts[before - 1].next = i;
    }
    return 0;
}

/* --- what its sequences must have in common --- */

static bool same_number(double left, double right)
{
    if (isnan(left) || isnan(right))
        return isnan(left) && isnan(right);
    return left < right ? values_are_equal(left, right) : values_are_equal(right, left);
}

static bool same_scores(const struct objective_request *request, const struct objective_sequence *left,
                        const struct objective_sequence *right)
{
    if (!left->scores || !right->scores)
        return left->scores == right->scores;
    for (size_t name = 0; name < request->score_count; name++)
        if (!same_number(left->scores[name], right->scores[name]) ||
            !same_number(left->weights_of_scores[name], right->weights_of_scores[name]))
            return false;
    return true;
}

static bool same_steps(const struct objective_sequence *left, const struct objective_sequence *right)
{
    if (left->step_count != right->step_count)
        return false;
    for (size_t s = 0; s < left->step_count; s++)
        if (!same_number(left->steps[s].reward, right->steps[s].reward))
            return false;
    return true;
}

static int refuse(struct objective_work *work, size_t index, const char *field, const char *message)
{
    return objective_fail(work->error, OBJECTIVE_ERROR_INVALID, index, SIZE_MAX, field, message);
}

static int check_sequence(struct objective_work *work, size_t index)
{
    const struct objective_sequence *own = &work->request->sequences[index];
    const struct objective_sequence *head = &work->request->sequences[work->parts[index].head];

    if (own->group != head->group)
        return refuse(work, index, "rollout", "an earlier sequence of this rollout is in another group");
    if (own->rewarded != head->rewarded || !same_number(own->reward, head->reward))
        return refuse(work, index,
                      is_present(own->token_rewards) ? "token_rewards"
                      : own->steps                   ? "step_rewards"
                                                     : "reward",
                      "an earlier sequence of this rollout has another reward: a rollout has one, and it counts once");
    if (!same_scores(work->request, own, head))
        return refuse(work, index, "rewards", "an earlier sequence of this rollout has other scores");
    if (!same_steps(own, head))
        return refuse(work, index, "step_rewards", "an earlier sequence of this rollout has other rewards of steps");
    if (!same_number(own->shaped_reward, head->shaped_reward))
        return refuse(work, index, "reward",
                      "shaping gives the sequences of one rollout different rewards: a rollout has one");
    return 0;
}

int check_rollouts(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (!is_first_of_rollout(work, i) && check_sequence(work, i) < 0)
            return -1;
    return 0;
}

void share_seen(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        work->parts[i].seen = work->parts[work->parts[i].head].seen;
}
