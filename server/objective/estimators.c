/* One function for each estimator that gives one advantage to a sequence, from the rewards of its group or of the whole
 * request. Groups that the filter dropped are in no statistic over the request, and a rollout counts once in each. */
#include "server/objective/terms_private.h"

/* --- relative to the others of a group --- */

/* R - mean of the others = n/(n-1) * (R - mean). Source: Ahmadian et al. 2024 (arXiv 2402.14740) eq. 8; TRL
 * RLOOTrainer, verl `compute_rloo_outcome_advantage`; `normalize_batch`: TRL `normalize_advantages`. */
static void rloo_of_sequence(struct objective_work *work, size_t index)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    double n = (double)work->request->groups[sequence->group].seen.count;
    double own = centred(work, index);

    sequence->advantage = n > 1 ? n / (n - 1) * own : own;
}

static double advantage_of(const struct objective_work *work, size_t index)
{
    return work->request->sequences[index].rewarded ? work->request->sequences[index].advantage : NAN;
}

/* Advantages that were centred in their groups have a mean of 0: what rounding left of that is not taken off. */
static double mean_of_advantages(const struct objective_statistics *all)
{
    double largest = -all->minimum > all->maximum ? -all->minimum : all->maximum;
    return fabs(all->mean) <= 1e-12 * largest ? 0 : all->mean;
}

static void normalize_over_request(struct objective_work *work, int ddof, double eps, bool with_mean)
{
    struct objective_statistics all = statistics_of_request(work, advantage_of);
    double std = statistics_deviation(&all, ddof);
    bool as_they_are = !with_mean || mean_of_advantages(&all) == 0;

    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        if (sequence->rewarded)
            sequence->advantage =
                divide(as_they_are ? sequence->advantage : statistics_centred(&all, sequence->advantage), std + eps);
    }
}

int estimate_rloo(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].rewarded)
            rloo_of_sequence(work, i);
    if (work->knobs->advantage.normalize_batch)
        normalize_over_request(work, 1, work->knobs->advantage.eps, true);
    return 0;
}

/* Mean and sample deviation of the rollouts of `group` but `skip`, in two passes. */
static struct objective_statistics others_of(const struct objective_work *work, size_t group, size_t skip)
{
    struct objective_statistics others = {0};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
            size_t i = work->by_group[k];
            if (i == skip || isnan(work->parts[i].seen) || !is_first_of_rollout(work, i))
                continue;
            if (pass == 0)
                statistics_first(&others, work->parts[i].seen);
            else
                statistics_second(&others, work->parts[i].seen);
        }
        if (pass == 0)
            statistics_turn(&others);
    }
    return others;
}

/* The two ends of a group: without the rollout at an end, the second one is the end. */
struct ends {
    size_t lowest, highest; /* the first sequence of the rollout that is there */
    double low, second_low, high, second_high;
};

static void take_end(struct ends *ends, size_t index, double reward)
{
    if (reward < ends->low) {
        ends->second_low = ends->low;
        ends->low = reward;
        ends->lowest = index;
    } else if (reward < ends->second_low)
        ends->second_low = reward;
    if (reward > ends->high) {
        ends->second_high = ends->high;
        ends->high = reward;
        ends->highest = index;
    } else if (reward > ends->second_high)
        ends->second_high = reward;
}

static struct ends find_ends(const struct objective_work *work, size_t group)
{
    struct ends ends = {.lowest = NO_SEQUENCE,
                        .highest = NO_SEQUENCE,
                        .low = INFINITY,
                        .second_low = INFINITY,
                        .high = -INFINITY,
                        .second_high = -INFINITY};

    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        if (!isnan(work->parts[i].seen) && is_first_of_rollout(work, i))
            take_end(&ends, i, work->parts[i].seen);
    }
    return ends;
}

/* The sample deviation of the others, 0 where they are equal. Their squares are the group's without the own share,
 * unless that share is so large that the difference would lose its digits: then they are summed anew, which happens at
 * most for a few members of a group. */
static double deviation_of_others(const struct objective_work *work, size_t index, const struct ends *ends)
{
    size_t group = work->request->sequences[index].group;
    const struct objective_statistics *seen = &work->request->groups[group].seen;
    size_t head = work->parts[index].head;
    double n = (double)seen->count;
    double own = centred(work, index) / seen->unit;
    double squares = statistics_squares(seen);
    double share = own * own * n / (n - 1);

    if (values_are_equal(head == ends->lowest ? ends->second_low : ends->low,
                         head == ends->highest ? ends->second_high : ends->high))
        return 0;
    if (share > 0.5 * squares) {
        struct objective_statistics others = others_of(work, group, head);
        return statistics_deviation(&others, 1);
    }
    return sqrt((squares - share) / (n - 2)) * seen->unit;
}

static void loo_of_sequence(struct objective_work *work, size_t index, const struct ends *ends)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    const struct objective_statistics *seen = &work->request->groups[sequence->group].seen;
    double n = (double)seen->count;

    sequence->advantage = 0;
    if (n < 2 || statistics_constant(seen))
        return;
    double std = deviation_of_others(work, index, ends);
    double difference = centred(work, index) * n / (n - 1);
    sequence->advantage = std > 0 ? divide(difference, std + work->knobs->advantage.eps) : difference;
}

/* (R - mean of the others) / (sample std of the others + eps); std 0: not divided; one member: 0.
 * Source: NeMo-RL `calculate_baseline_and_std_per_prompt` with leave-one-out, GRPO's default there. */
int estimate_loo(struct objective_work *work)
{
    for (size_t g = 0; g < work->request->group_count; g++) {
        struct ends ends = find_ends(work, g);
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++)
            if (work->request->sequences[work->by_group[k]].rewarded)
                loo_of_sequence(work, work->by_group[k], &ends);
    }
    return 0;
}

/* (R - mean) / (mean + eps). Source: MaxRL in prime-rl `max_rl.py` (0 where the mean is not positive) and SkyRL
 * `compute_maxrl_advantage` (eps 1e-6, no guard). */
int estimate_maxrl(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        const struct objective_statistics *seen = &work->request->groups[sequence->group].seen;
        if (!sequence->rewarded)
            continue;
        bool guarded = work->knobs->advantage.guard_nonpositive_mean && seen->mean <= 0;
        bool nothing = guarded || statistics_constant(seen);
        double own = statistics_centred(seen, work->parts[i].seen);
        sequence->advantage = nothing ? 0 : own / (seen->mean + work->knobs->advantage.eps);
    }
    return 0;
}

/* The best member gets its lead over the second, all others and ties 0.
 * Source: verl `compute_grpo_passk_outcome_advantage` (arXiv 2503.19595). */
static void passk_of_group(struct objective_work *work, size_t group)
{
    double best = -INFINITY;
    double second = -INFINITY;
    double divisor = 1;
    size_t winner = NO_SEQUENCE;

    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        double reward = work->parts[i].seen;
        work->request->sequences[i].advantage = 0;
        if (isnan(reward) || reward < second || !is_first_of_rollout(work, i))
            continue;
        if (reward > best) {
            second = best;
            best = reward;
            winner = i;
        } else {
            second = reward;
        }
    }
    if (work->request->groups[group].seen.count < 2 || values_are_equal(second, best))
        return;
    if (work->knobs->advantage.norm)
        divisor = std_of_group(work, group) + work->knobs->advantage.eps;
    for (size_t i = winner; i != NO_SEQUENCE; i = work->parts[i].next)
        work->request->sequences[i].advantage = divide(best - second, divisor);
}

int estimate_passk(struct objective_work *work)
{
    for (size_t g = 0; g < work->request->group_count; g++)
        passk_of_group(work, g);
    return 0;
}

static double mask_tokens(const struct objective_sequence *sequence)
{
    double n = 0;

    if (!has_tokens(sequence))
        return 0;
    for (size_t t = 0; t < sequence->tokens; t++)
        n += !is_masked(sequence, t);
    return n;
}

static void opo_of_group(struct objective_work *work, size_t group)
{
    const struct objective_statistics *seen = &work->request->groups[group].seen;
    double weighted = 0;
    double tokens = 0;

    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        if (isnan(work->parts[i].seen))
            continue;
        double n = mask_tokens(&work->request->sequences[i]);
        weighted += n * statistics_centred(seen, work->parts[i].seen);
        tokens += n;
    }
    double baseline = tokens > 0 ? weighted / tokens : 0;
    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        double reward = work->parts[i].seen;
        work->request->sequences[i].advantage = seen->count == 1 ? reward : statistics_centred(seen, reward) - baseline;
    }
}

/* R - sum of n*R / sum of n over the group, n = trainable tokens (of a rollout: of all its sequences); one member: R.
 * Taken about the mean, so that a large offset costs no digits.
 * Source: OPO (arXiv 2505.23585), verl `compute_opo_outcome_advantage`. */
int estimate_opo(struct objective_work *work)
{
    for (size_t g = 0; g < work->request->group_count; g++)
        opo_of_group(work, g);
    return 0;
}

/* --- relative to the request --- */

/* alpha * (R - mean) / f_norm, alpha = B / #{R != 0} over the request, # at least 1; one member: mean 0.
 * Source: GPG (arXiv 2504.02546), verl `compute_gpg_outcome_advantage`. */
int estimate_gpg(struct objective_work *work)
{
    double all = 0;
    double nonzero = 0;

    for (size_t i = 0; i < work->request->sequence_count; i++) {
        if (isnan(work->parts[i].seen) || !work->request->sequences[i].kept || !is_first_of_rollout(work, i))
            continue;
        all++;
        nonzero += work->parts[i].seen != 0;
    }
    double alpha = all / (nonzero > 0 ? nonzero : 1);
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        const struct objective_statistics *seen = &work->request->groups[sequence->group].seen;
        double reward = work->parts[i].seen;
        double own = seen->count == 1 ? reward : statistics_centred(seen, reward);
        sequence->advantage = alpha * own / work->knobs->advantage.f_norm;
    }
    return 0;
}

/* (R - mean) / (std of all R - mean, + eps). Source: REINFORCE++-baseline (arXiv 2501.03262) as in ms-swift. */
int estimate_rpp_baseline_sequence(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].rewarded)
            work->request->sequences[i].advantage = centred(work, i);
    normalize_over_request(work, work->knobs->advantage.ddof, work->knobs->advantage.eps, false);
    return 0;
}

/* The baseline of an agent before the rollout at hand. */
struct agent_before {
    size_t rollout; /* its first sequence + 1; 0: none yet */
    double baseline;
};

static void ema_of_rollout(struct objective_work *work, size_t head, double *baselines, struct agent_before *agents)
{
    double decay = work->knobs->advantage.decay;

    for (size_t i = head; i != NO_SEQUENCE; i = work->parts[i].next) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        size_t agent = work->request->agent_count ? sequence->agent : 0;
        if (agents[agent].rollout != head + 1) {
            agents[agent] = (struct agent_before){head + 1, baselines[agent]};
            baselines[agent] = decay * baselines[agent] + (1 - decay) * work->parts[i].seen;
        }
        sequence->advantage = work->parts[i].seen - agents[agent].baseline;
    }
}

/* A = R - b, then b <- decay*b + (1-decay)*R, in order of the request, one b for each agent; a rollout moves it once.
 * Source: RAE (arXiv 2506.24119), prime-rl `rae.py`. */
int estimate_ema_baseline(struct objective_work *work)
{
    const struct objective_request *request = work->request;
    size_t agents = request->agent_count ? request->agent_count : 1;
    double *baselines = request->baselines ? request->baselines : work_allocate(work, agents, sizeof *baselines);
    struct agent_before *before = work_allocate(work, agents, sizeof *before);

    if (!baselines || !before)
        return -1;
    for (size_t a = 0; a < agents; a++)
        baselines[a] = work->knobs->advantage.initial;
    for (size_t i = 0; i < request->sequence_count; i++) {
        const struct objective_sequence *sequence = &request->sequences[i];
        if (sequence->rewarded && !sequence->kept)
            request->sequences[i].advantage = 0; /* of a group that the filter dropped: it moves no baseline */
        else if (sequence->rewarded && is_first_of_rollout(work, i))
            ema_of_rollout(work, i, baselines, before);
    }
    return 0;
}

/* --- rewards by name --- */

/* Of the first sequence of its rollout. */
static double score_of(const struct objective_work *work, size_t index, size_t name)
{
    const struct objective_sequence *sequence = &work->request->sequences[work->parts[index].head];
    return sequence->rewarded && sequence->scores ? sequence->scores[name] : NAN;
}

static struct objective_statistics statistics_of_scores(const struct objective_work *work, size_t group, size_t name)
{
    struct objective_statistics scores = {0};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
            double score = score_of(work, work->by_group[k], name);
            if (isnan(score) || !is_first_of_rollout(work, work->by_group[k]))
                continue;
            if (pass == 0)
                statistics_first(&scores, score);
            else
                statistics_second(&scores, score);
        }
        if (pass == 0)
            statistics_turn(&scores);
    }
    return scores;
}

/* Adds weight * (score - mean) / (std + eps_group) of one name to the advantages of a group; sizes[] adds up |term|. A
 * name of weight 0 adds nothing. */
static void add_score(struct objective_work *work, size_t group, size_t name, double *sizes)
{
    struct objective_statistics scores = statistics_of_scores(work, group, name);
    double std = statistics_deviation(&scores, work->knobs->advantage.ddof) + work->knobs->advantage.eps_group;

    if (statistics_constant(&scores))
        return;
    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        const struct objective_sequence *head = &work->request->sequences[work->parts[i].head];
        double score = score_of(work, i, name);
        if (isnan(score) || head->weights_of_scores[name] == 0)
            continue;
        double term = head->weights_of_scores[name] * divide(statistics_centred(&scores, score), std);
        work->request->sequences[i].advantage += term;
        sizes[i] += fabs(term);
    }
}

/* Each name normalised in its group, weighted sum S, then (S - mean) / (std + eps_batch) over the request. Names that
 * cancel leave 0, not the rounding of it. Each name adds up to 0 over its group, so the mean of S is 0.
 * Source: GDPO, TRL `multi_objective_aggregation="normalize_then_sum"`. */
int estimate_gdpo(struct objective_work *work)
{
    double *sizes = work_allocate(work, work->request->sequence_count, sizeof *sizes);

    if (!sizes)
        return -1;
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        if (sequence->rewarded && !sequence->scores)
            return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, i, SIZE_MAX, "rewards",
                                  "gdpo normalises rewards by name");
        sequence->advantage = 0;
    }
    for (size_t g = 0; g < work->request->group_count; g++)
        for (size_t name = 0; name < work->request->score_count; name++)
            add_score(work, g, name, sizes);
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (fabs(work->request->sequences[i].advantage) <= 1e-12 * sizes[i])
            work->request->sequences[i].advantage = 0;
    normalize_over_request(work, work->knobs->advantage.ddof, work->knobs->advantage.eps_batch, true);
    return 0;
}

/* --- own levels of mean and deviation --- */

static void normalize_sequence(struct objective_work *work, size_t index, const struct objective_statistics *all)
{
    const struct objective_knobs *knobs = work->knobs;
    struct objective_sequence *sequence = &work->request->sequences[index];
    const struct objective_statistics *group = &work->request->groups[sequence->group].seen;
    const struct objective_statistics *about = knobs->advantage.mean == OBJECTIVE_SCALE_BATCH ? all : group;
    const struct objective_statistics *over = knobs->advantage.scale == OBJECTIVE_SCALE_BATCH ? all : group;
    double n = (double)about->count;
    bool raw = knobs->advantage.singleton == OBJECTIVE_SINGLETON_RAW;
    double own = work->parts[index].seen;

    if (knobs->advantage.mean != OBJECTIVE_SCALE_NONE && !(n <= 1 && raw)) {
        own = statistics_centred(about, own);
        if (knobs->advantage.leave_one_out && n > 1)
            own = own * n / (n - 1);
    }
    double std = over->count <= 1 && raw ? 1 : statistics_deviation(over, knobs->advantage.ddof);
    bool scaled = knobs->advantage.scale != OBJECTIVE_SCALE_NONE;
    sequence->advantage = scaled ? divide(own, std + knobs->advantage.eps) : own;
}

/* (R - mean) / (std + eps), each by its own level. Source: AReaL `Normalization` (`mean_level`, `std_level`,
 * `mean_leave1out`, `std_unbiased`). */
int estimate_normalization(struct objective_work *work)
{
    struct objective_statistics all = statistics_of_request(work, seen_of);

    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].rewarded)
            normalize_sequence(work, i, &all);
    return 0;
}
