/* One function for each estimator that gives one advantage to a sequence, from the rewards of its group or of the whole
 * request. Groups that the filter dropped are in no statistic over the request. */
#include "server/objective/terms.h"

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

static void normalize_over_request(struct objective_work *work, int ddof, double eps, bool with_mean)
{
    struct objective_statistics all = {0};

    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].judged && work->request->sequences[i].kept)
            statistics_first(&all, work->request->sequences[i].advantage);
    statistics_turn(&all);
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].judged && work->request->sequences[i].kept)
            statistics_second(&all, work->request->sequences[i].advantage);
    double std = statistics_deviation(&all, ddof);
    double mean = with_mean && all.count > 0 ? all.mean : 0;
    bool constant = with_mean && statistics_constant(&all);
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        if (sequence->judged)
            sequence->advantage = constant ? 0 : divide(sequence->advantage - mean, std + eps);
    }
}

int estimate_rloo(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].judged)
            rloo_of_sequence(work, i);
    if (work->knobs->advantage.normalize_batch)
        normalize_over_request(work, 1, work->knobs->advantage.eps, true);
    return 0;
}

/* Mean and sample deviation of the members of `group` but `skip`, in two passes. */
static struct objective_statistics others_of(const struct objective_work *work, size_t group, size_t skip)
{
    struct objective_statistics others = {0};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
            size_t i = work->by_group[k];
            if (i == skip || isnan(work->parts[i].seen))
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

/* How many members stand at the group's minimum and maximum: only then can the others be all equal. */
struct ends {
    size_t at_minimum, at_maximum;
};

static struct ends count_ends(const struct objective_work *work, size_t group)
{
    const struct objective_statistics *seen = &work->request->groups[group].seen;
    struct ends ends = {0};

    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        double reward = work->parts[work->by_group[k]].seen;
        ends.at_minimum += reward == seen->minimum;
        ends.at_maximum += reward == seen->maximum;
    }
    return ends;
}

/* The others' squares are the group's without the own share, unless that share is so large that the difference would
 * lose its digits: then they are summed anew, which happens at most for a few members of a group. */
static void loo_of_sequence(struct objective_work *work, size_t index, const struct ends *ends)
{
    struct objective_sequence *sequence = &work->request->sequences[index];
    const struct objective_statistics *seen = &work->request->groups[sequence->group].seen;
    double n = (double)seen->count;
    double reward = work->parts[index].seen;
    double own = (reward - seen->mean) / seen->unit;
    double squares = seen->squares - seen->drift * seen->drift / n;
    double share = own * own * n / (n - 1);
    double std = NAN;
    double difference = centred(work, index) * n / (n - 1);
    bool alone_low = reward == seen->minimum && ends->at_maximum + 1 == seen->count;
    bool alone_high = reward == seen->maximum && ends->at_minimum + 1 == seen->count;

    if (alone_low || alone_high) { /* the others are equal */
        sequence->advantage = difference;
        return;
    }
    if (share > 0.5 * squares) {
        struct objective_statistics others = others_of(work, sequence->group, index);
        std = statistics_deviation(&others, 1);
        difference = reward - others.mean;
    } else if (n > 2) {
        std = sqrt((squares - share) / (n - 2)) * seen->unit;
    }
    sequence->advantage = std > 0 ? difference / (std + work->knobs->advantage.eps) : difference;
}

/* (R - mean of the others) / (sample std of the others + eps); std 0: not divided; one member: 0.
 * Source: NeMo-RL `calculate_baseline_and_std_per_prompt` with leave-one-out, GRPO's default there. */
int estimate_loo(struct objective_work *work)
{
    for (size_t g = 0; g < work->request->group_count; g++) {
        const struct objective_statistics *seen = &work->request->groups[g].seen;
        struct ends ends = count_ends(work, g);
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++) {
            size_t i = work->by_group[k];
            if (!work->request->sequences[i].judged)
                continue;
            if (seen->count < 2 || statistics_constant(seen))
                work->request->sequences[i].advantage = 0;
            else
                loo_of_sequence(work, i, &ends);
        }
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
        if (!sequence->judged)
            continue;
        bool guarded = work->knobs->advantage.guard_nonpositive_mean && seen->mean <= 0;
        bool nothing = guarded || statistics_constant(seen);
        sequence->advantage =
            nothing ? 0 : (work->parts[i].seen - seen->mean) / (seen->mean + work->knobs->advantage.eps);
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
    size_t winner = SIZE_MAX;

    for (size_t k = work->group_first[group]; k < work->group_first[group + 1]; k++) {
        size_t i = work->by_group[k];
        double reward = work->parts[i].seen;
        work->request->sequences[i].advantage = 0;
        if (isnan(reward) || reward < second)
            continue;
        if (reward > best) {
            second = best;
            best = reward;
            winner = i;
        } else {
            second = reward;
        }
    }
    if (work->request->groups[group].seen.count < 2 || best == second)
        return;
    if (work->knobs->advantage.norm)
        divisor = std_of_group(work, group) + work->knobs->advantage.eps;
    work->request->sequences[winner].advantage = divide(best - second, divisor);
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

/* R - sum of n*R / sum of n over the group, n = trainable tokens; one member: R.
 * Source: OPO (arXiv 2505.23585), verl `compute_opo_outcome_advantage`. */
int estimate_opo(struct objective_work *work)
{
    for (size_t g = 0; g < work->request->group_count; g++) {
        const struct objective_statistics *seen = &work->request->groups[g].seen;
        double weighted = 0;
        double tokens = 0;
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++) {
            size_t i = work->by_group[k];
            if (isnan(work->parts[i].seen))
                continue;
            double n = mask_tokens(&work->request->sequences[i]);
            weighted += n * work->parts[i].seen;
            tokens += n;
        }
        double baseline = seen->count == 1 ? 0 : tokens > 0 ? weighted / tokens : seen->mean;
        bool constant = seen->count > 1 && statistics_constant(seen);
        for (size_t k = work->group_first[g]; k < work->group_first[g + 1]; k++) {
            size_t i = work->by_group[k];
            work->request->sequences[i].advantage = constant ? 0 : work->parts[i].seen - baseline;
        }
    }
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
        if (isnan(work->parts[i].seen) || !work->request->sequences[i].kept)
            continue;
        all++;
        nonzero += work->parts[i].seen != 0;
    }
    double alpha = all / (nonzero > 0 ? nonzero : 1);
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        const struct objective_statistics *seen = &work->request->groups[sequence->group].seen;
        bool constant = seen->count > 1 && statistics_constant(seen);
        double mean = seen->count == 1 ? 0 : seen->mean;
        sequence->advantage = constant ? 0 : alpha * (work->parts[i].seen - mean) / work->knobs->advantage.f_norm;
    }
    return 0;
}

/* (R - mean) / (std of all R - mean, + eps). Source: REINFORCE++-baseline (arXiv 2501.03262) as in ms-swift. */
int estimate_rpp_baseline_sequence(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].judged)
            work->request->sequences[i].advantage = centred(work, i);
    normalize_over_request(work, work->knobs->advantage.ddof, work->knobs->advantage.eps, false);
    return 0;
}

/* A = R - b, then b <- decay*b + (1-decay)*R, in order of the request, one b for each agent.
 * Source: RAE (arXiv 2506.24119), prime-rl `rae.py`. */
int estimate_ema_baseline(struct objective_work *work)
{
    const struct objective_request *request = work->request;
    size_t agents = request->agent_count ? request->agent_count : 1;
    double decay = work->knobs->advantage.decay;
    double *baselines = request->baselines ? request->baselines : work_allocate(work, agents, sizeof *baselines);

    if (!baselines)
        return -1;
    for (size_t a = 0; a < agents; a++)
        baselines[a] = work->knobs->advantage.initial;
    for (size_t i = 0; i < request->sequence_count; i++) {
        struct objective_sequence *sequence = &request->sequences[i];
        if (!sequence->judged)
            continue;
        sequence->advantage = 0; /* of a group that the filter dropped: it moves no baseline */
        if (!sequence->kept)
            continue;
        double *baseline = &baselines[request->agent_count ? sequence->agent : 0];
        sequence->advantage = work->parts[i].seen - *baseline;
        *baseline = decay * *baseline + (1 - decay) * work->parts[i].seen;
    }
    return 0;
}

/* --- rewards by name --- */

static double score_of(const struct objective_sequence *sequence, size_t name)
{
    return sequence->judged && sequence->scores ? sequence->scores[name] : NAN;
}

/* Adds weight * (score - mean) / (std + eps_group) of one name to the advantages of a group. */
static void add_score(struct objective_work *work, size_t group, size_t name)
{
    const size_t *first = work->by_group + work->group_first[group];
    const size_t *end = work->by_group + work->group_first[group + 1];
    struct objective_statistics scores = {0};

    for (const size_t *at = first; at < end; at++)
        if (!isnan(score_of(&work->request->sequences[*at], name)))
            statistics_first(&scores, score_of(&work->request->sequences[*at], name));
    statistics_turn(&scores);
    for (const size_t *at = first; at < end; at++)
        if (!isnan(score_of(&work->request->sequences[*at], name)))
            statistics_second(&scores, score_of(&work->request->sequences[*at], name));
    if (statistics_constant(&scores))
        return;
    double std = statistics_deviation(&scores, work->knobs->advantage.ddof) + work->knobs->advantage.eps_group;
    for (const size_t *at = first; at < end; at++) {
        struct objective_sequence *sequence = &work->request->sequences[*at];
        double score = score_of(sequence, name);
        if (!isnan(score))
            sequence->advantage += sequence->weights_of_scores[name] * divide(score - scores.mean, std);
    }
}

/* Each name normalised in its group, weighted sum S, then (S - mean) / (std + eps_batch) over the request.
 * Source: GDPO, TRL `multi_objective_aggregation="normalize_then_sum"`. */
int estimate_gdpo(struct objective_work *work)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        struct objective_sequence *sequence = &work->request->sequences[i];
        if (sequence->judged && !sequence->scores)
            return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, i, SIZE_MAX, "rewards",
                                  "gdpo normalises rewards by name");
        sequence->advantage = 0;
    }
    for (size_t g = 0; g < work->request->group_count; g++)
        for (size_t name = 0; name < work->request->score_count; name++)
            add_score(work, g, name);
    normalize_over_request(work, work->knobs->advantage.ddof, work->knobs->advantage.eps_batch, true);
    return 0;
}

/* --- own levels of mean and deviation --- */

struct level {
    bool constant, single;
    double mean, std;
};

static struct level level_of(const struct objective_statistics *statistics, int ddof)
{
    return (struct level){.constant = statistics_constant(statistics),
                          .single = statistics->count <= 1,
                          .mean = statistics->mean,
                          .std = statistics_deviation(statistics, ddof)};
}

static void normalize_sequence(struct objective_work *work, size_t index, const struct objective_statistics *all)
{
    const struct objective_knobs *knobs = work->knobs;
    struct objective_sequence *sequence = &work->request->sequences[index];
    const struct objective_statistics *group = &work->request->groups[sequence->group].seen;
    const struct objective_statistics *about = knobs->advantage.mean == OBJECTIVE_SCALE_BATCH ? all : group;
    const struct objective_statistics *over = knobs->advantage.scale == OBJECTIVE_SCALE_BATCH ? all : group;
    struct level mean = level_of(about, knobs->advantage.ddof);
    struct level scale = level_of(over, knobs->advantage.ddof);
    double reward = work->parts[index].seen;
    double n = (double)about->count;
    bool raw = knobs->advantage.singleton == OBJECTIVE_SINGLETON_RAW;
    double own = reward;

    if (knobs->advantage.mean != OBJECTIVE_SCALE_NONE) {
        own = mean.single ? (raw ? reward : 0) : mean.constant ? 0 : reward - mean.mean;
        if (knobs->advantage.leave_one_out && !mean.single)
            own = own * n / (n - 1);
    }
    if (knobs->advantage.scale == OBJECTIVE_SCALE_NONE)
        sequence->advantage = own;
    else
        sequence->advantage = divide(own, (scale.single && raw ? 1 : scale.std) + knobs->advantage.eps);
}

/* (R - mean) / (std + eps), each by its own level. Source: AReaL `Normalization` (`mean_level`, `std_level`,
 * `mean_leave1out`, `std_unbiased`). */
int estimate_normalization(struct objective_work *work)
{
    struct objective_statistics all = {0};

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < work->request->sequence_count; i++) {
            if (isnan(work->parts[i].seen) || !work->request->sequences[i].kept)
                continue;
            if (pass == 0)
                statistics_first(&all, work->parts[i].seen);
            else
                statistics_second(&all, work->parts[i].seen);
        }
        if (pass == 0)
            statistics_turn(&all);
    }
    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->request->sequences[i].judged)
            normalize_sequence(work, i, &all);
    return 0;
}
