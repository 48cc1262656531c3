/* One function for each estimator that gives an advantage to every trainable token. Their statistics are over the
 * tokens that the request's masks leave, truncated sequences included. */
#include "server/objective/terms_private.h"

/* --- rewards of tokens --- */

static bool token_counts(const struct objective_sequence *sequence, size_t token)
{
    return has_tokens(sequence) && !is_masked(sequence, token);
}

/* rho_t: the reward of the token, or that of the sequence on its last trainable token; minus the KL, if that is in the
 * reward. */
static double reward_of_token(const struct objective_work *work, size_t index, size_t token, bool is_last)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double reward = 0;

    if (is_present(sequence->token_rewards))
        reward = value_at(sequence->token_rewards, token);
    else if (is_last)
        reward = sequence->shaped_reward;
    return work->reward_kl ? reward - work->reward_kl[work->parts[index].first + token] : reward;
}

/* G_t = rho_t + gamma * G_{t+1}, carried unchanged through masked tokens, so that what stands before a tool's answer
 * gets its return too. */
static void returns_of_sequence(struct objective_work *work, size_t index, double gamma)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *returns = work->advantages + work->parts[index].first;
    double carried = 0;
    bool is_last = true;

    for (size_t t = sequence->tokens; t > 0; t--) {
        returns[t - 1] = 0;
        if (!token_counts(sequence, t - 1))
            continue;
        carried = reward_of_token(work, index, t - 1, is_last) + gamma * carried;
        returns[t - 1] = carried;
        is_last = false;
    }
}

/* Source: verl `compute_reinforce_plus_plus_outcome_advantage` without its whitening; Sutton and Barto eq. 3.8. */
int estimate_reward_to_go(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        returns_of_sequence(work, i, work->knobs->advantage.gamma);
    return 0;
}

/* A_t = sum of rho_s, s >= t, minus the reward of the greedy completion.
 * Source: ReMax (arXiv 2310.10505), verl `compute_remax_outcome_advantage`. */
int estimate_remax(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        double *advantages = work->advantages + work->parts[i].first;
        if (!has_tokens(sequence))
            continue;
        if (!isfinite(sequence->greedy_reward))
            return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, i, SIZE_MAX, "greedy_reward",
                                  "remax needs the reward of a greedy completion");
        returns_of_sequence(work, i, 1);
        for (size_t t = 0; t < sequence->tokens; t++)
            if (!is_masked(sequence, t))
                advantages[t] -= sequence->greedy_reward;
    }
    return 0;
}

/* --- whitening --- */

/* Without eps it is the deviation itself, whose square may be below double. */
static double whitening_divisor(const struct objective_knobs *knobs, double std)
{
    double eps = knobs->advantage.eps;
    double variance = std * std;
    if (eps == 0)
        return std;
    if (knobs->advantage.form == OBJECTIVE_FORM_MAX_EPS)
        return sqrt(variance > eps ? variance : eps);
    return sqrt(variance + eps);
}

/* Over the trainable tokens of all groups that the filter kept: (x - mean) / sqrt(var + eps), or / sqrt(max(var, eps)).
 */
static void whiten(struct objective_work *work)
{
    const struct objective_knobs *knobs = work->knobs;
    struct objective_statistics all = {0};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < work->request->sequence_count; i++) {
            const struct objective_sequence *sequence = &work->request->sequences[i];
            const double *values = work->advantages + work->parts[i].first;
            for (size_t t = 0; sequence->kept && t < sequence->tokens; t++) {
                if (token_counts(sequence, t) && pass == 0)
                    statistics_first(&all, values[t]);
                else if (token_counts(sequence, t))
                    statistics_second(&all, values[t]);
            }
        }
        if (pass == 0)
            statistics_turn(&all);
    }
    double divisor = whitening_divisor(knobs, statistics_deviation(&all, knobs->advantage.ddof));
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        double *values = work->advantages + work->parts[i].first;
        for (size_t t = 0; t < sequence->tokens; t++)
            if (token_counts(sequence, t))
                values[t] = divide(statistics_centred(&all, values[t]), divisor);
    }
}

/* Source: REINFORCE++ (arXiv 2501.03262); form and ddof: verl `masked_whiten` (sample variance, + eps), OpenRLHF and
 * NeMo-RL (population variance, max). */
int estimate_rpp(struct objective_work *work)
{
    estimate_reward_to_go(work);
    whiten(work);
    return 0;
}

/* R - mean of the group on every trainable token, whitened. Source: verl
 * `compute_reinforce_plus_plus_baseline_outcome_advantage`. */
int estimate_rpp_baseline(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        double *values = work->advantages + work->parts[i].first;
        for (size_t t = 0; t < sequence->tokens; t++)
            values[t] = token_counts(sequence, t) ? centred(work, i) : 0;
    }
    whiten(work);
    return 0;
}

/* --- rewards of steps --- */

static int gather_steps(struct objective_work *work, struct objective_statistics *groups,
                        struct objective_statistics *all, bool second)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        if (!sequence->rewarded)
            continue;
        if (!sequence->steps)
            return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, i, SIZE_MAX, "step_rewards",
                                  "the estimator process needs them");
        if (!is_first_of_rollout(work, i))
            continue;
        for (size_t s = 0; s < sequence->step_count; s++) {
            void (*add)(struct objective_statistics *, double) = second ? statistics_second : statistics_first;
            add(&groups[sequence->group], sequence->steps[s].reward);
            if (sequence->kept)
                add(all, sequence->steps[s].reward);
        }
    }
    return 0;
}

static double normalized_step(const struct objective_knobs *knobs, const struct objective_statistics *group,
                              const struct objective_statistics *all, double reward)
{
    bool single = group->count == 1;
    double own = statistics_centred(group, reward);
    double std = statistics_deviation(group, knobs->advantage.ddof);

    if (single)
        own = knobs->advantage.singleton == OBJECTIVE_SINGLETON_RAW ? reward : 0;
    if (knobs->advantage.scale == OBJECTIVE_SCALE_NONE)
        return own;
    if (knobs->advantage.scale == OBJECTIVE_SCALE_BATCH)
        std = statistics_deviation(all, knobs->advantage.ddof);
    return divide(own, (single ? 1 : std) + knobs->advantage.eps);
}

/* From the last token to the first: a step's reward counts for every token before its end. */
static void add_steps(struct objective_work *work, size_t index, const struct objective_statistics *group,
                      const struct objective_statistics *all)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *advantages = work->advantages + work->parts[index].first;
    double sum = 0;
    size_t step = sequence->step_count;

    for (size_t t = sequence->tokens; t > 0; t--) {
        while (step > 0 && sequence->steps[step - 1].end >= t)
            sum += normalized_step(work->knobs, group, all, sequence->steps[--step].reward);
        advantages[t - 1] = sum;
    }
}

static void gather_outcomes(const struct objective_work *work, struct objective_statistics *groups,
                            struct objective_statistics *all, void (*add)(struct objective_statistics *, double))
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        if (!sequence->rewarded || !sequence->has_outcome || !is_first_of_rollout(work, i))
            continue;
        add(&groups[sequence->group], sequence->outcome);
        if (sequence->kept)
            add(all, sequence->outcome);
    }
}

/* The outcome's advantage as grpo has it, over the members that have one, times a coefficient at every token. */
static int add_outcomes(struct objective_work *work)
{
    double coef = work->knobs->advantage.outcome_coef;
    struct objective_statistics all = {0};
    struct objective_statistics *groups = work_allocate(work, work->request->group_count, sizeof *groups);

    if (!groups)
        return -1;
    gather_outcomes(work, groups, &all, statistics_first);
    for (size_t g = 0; g < work->request->group_count; g++)
        statistics_turn(&groups[g]);
    statistics_turn(&all);
    gather_outcomes(work, groups, &all, statistics_second);
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        double *advantages = work->advantages + work->parts[i].first;
        if (!sequence->rewarded || !sequence->has_outcome)
            continue;
        double own = coef * normalized_step(work->knobs, &groups[sequence->group], &all, sequence->outcome);
        for (size_t t = 0; t < sequence->tokens; t++)
            advantages[t] += own;
    }
    return 0;
}

/* Source: DeepSeekMath (arXiv 2402.03300) section 4.1.3, process supervision; the outcome's part is its section 4.1.2. */
int estimate_process(struct objective_work *work)
{
    struct objective_statistics all = {0};
    struct objective_statistics *groups = work_allocate(work, work->request->group_count, sizeof *groups);

    if (!groups || gather_steps(work, groups, &all, false) < 0)
        return -1;
    for (size_t g = 0; g < work->request->group_count; g++)
        statistics_turn(&groups[g]);
    statistics_turn(&all);
    if (gather_steps(work, groups, &all, true) < 0)
        return -1;
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].rewarded)
            add_steps(work, i, &groups[work->request->sequences[i].group], &all);
    return work->knobs->advantage.outcome_coef != 0 ? add_outcomes(work) : 0;
}

/* --- a baseline for each place --- */

/* Over the members of a group that have a trainable token at a place. G is taken about one of them, so that a large
 * offset costs no digits. */
struct place {
    double about;            /* the first G */
    double weighted, weight; /* sums of (G - about)*W and of W */
    double minimum, maximum; /* of G */
    size_t members;
    size_t here; /* sequences of the rollout at hand that reach it: they share one weight */
};

/* W_t = sum over s <= t of 1 - 2 pi_s + sum of squared probabilities, in work->spare. */
static int running_weights(struct objective_work *work, size_t index)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    struct objective_values old = old_values(sequence);
    double sum = 0;
    double logprob;
    double squares;

    if (work_need(work, index, old, "old_logprobs", "optimal_token_baseline needs them") < 0 ||
        work_need(work, index, sequence->sum_pi_squared, "sum_pi_squared", "optimal_token_baseline needs them") < 0)
        return -1;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        if (work_read(work, index, t, old, "old_logprobs", &logprob) < 0 ||
            work_read(work, index, t, sequence->sum_pi_squared, "sum_pi_squared", &squares) < 0)
            return -1;
        sum += 1 - 2 * objective_exp(logprob) + squares;
        work->spare[work->parts[index].first + t] = sum;
    }
    return 0;
}

static void add_places(const struct objective_work *work, size_t index, struct place *places)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    const double *returns = work->advantages + work->parts[index].first;
    const double *weights = work->spare + work->parts[index].first;

    for (size_t t = 0; t < sequence->tokens; t++) {
        struct place *place = &places[t];
        if (!token_counts(sequence, t))
            continue;
        double weight = weights[t] / (double)place->here;
        if (place->members == 0)
            place->about = returns[t];
        place->weighted += (returns[t] - place->about) * weight;
        place->weight += weight;
        place->minimum = place->members == 0 || returns[t] < place->minimum ? returns[t] : place->minimum;
        place->maximum = place->members == 0 || returns[t] > place->maximum ? returns[t] : place->maximum;
        place->members++;
    }
}

static void count_places(const struct objective_work *work, size_t index, struct place *places, bool over)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];

    for (size_t t = 0; t < sequence->tokens; t++)
        if (token_counts(sequence, t))
            places[t].here = over ? 0 : places[t].here + 1;
}

static void add_rollout(const struct objective_work *work, size_t head, struct place *places)
{
    for (size_t i = head; i != NO_SEQUENCE; i = work->parts[i].next)
        count_places(work, i, places, false);
    for (size_t i = head; i != NO_SEQUENCE; i = work->parts[i].next)
        add_places(work, i, places);
    for (size_t i = head; i != NO_SEQUENCE; i = work->parts[i].next)
        count_places(work, i, places, true);
}

static void subtract_places(const struct objective_work *work, size_t index, const struct place *places)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double *returns = work->advantages + work->parts[index].first;

    for (size_t t = 0; t < sequence->tokens; t++) {
        const struct place *place = &places[t];
        if (!token_counts(sequence, t))
            continue;
        bool constant = values_are_equal(place->minimum, place->maximum);
        double eps = work->knobs->advantage.eps;
        double divisor = place->weight + eps;
        double offset = eps > 0 ? place->about * (eps / divisor) : 0;
        returns[t] = constant ? 0 : returns[t] - place->about - place->weighted / divisor + offset;
    }
}

static size_t longest_sequence(const struct objective_work *work)
{
    size_t longest = 0;
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].tokens > longest)
            longest = work->request->sequences[i].tokens;
    return longest;
}

/* A_t = G_t - sum of G_t W_t / (sum of W_t + eps), sums over the group at the same place.
 * Source: verl `compute_optimal_token_baseline_advantage`. */
int estimate_optimal_token_baseline(struct objective_work *work)
{
    size_t longest = longest_sequence(work);
    struct place *places = work_allocate(work, longest, sizeof *places);

    if (!places || !(work->spare = work_allocate(work, work->tokens, sizeof *work->spare)))
        return -1;
    estimate_reward_to_go(work);
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (has_tokens(&work->request->sequences[i]) && running_weights(work, i) < 0)
            return -1;
    for (size_t g = 0; g < work->request->group_count; g++) {
        size_t reach = 0;
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++) {
            size_t tokens = work->request->sequences[work->by_group[k]].tokens;
            if (is_first_of_rollout(work, work->by_group[k]))
                add_rollout(work, work->by_group[k], places);
            reach = tokens > reach ? tokens : reach;
        }
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++)
            subtract_places(work, work->by_group[k], places);
        for (size_t t = 0; t < reach; t++)
            places[t] = (struct place){0};
    }
    return 0;
}
