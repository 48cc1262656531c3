/* Off-policy correction: what the trainer's old policy and the inference engine disagree about. x = old - rollout,
 * w = e^x. Each method gives every trainable token a weight, or rejects it; weights multiply, rejections add up.
 * Source: truncated importance sampling: Espeholt et al. 2018 (arXiv 1802.01561), Yao et al. 2025 ("Your efficient RL
 * framework secretly brings you off-policy RL training"); IcePop: Ant Ling team 2025; sequence forms: TRL
 * `vllm_importance_sampling_mode`, verl `rollout_corr_helper.py`, SkyRL `off_policy_correction_utils.py`; seq_mask_tis:
 * OpenRLHF, NeMo-RL; tv_mask: open-instruct; seq_mult_prob_error: NeMo-RL; rollout_rs: verl. */
#include "server/objective/terms_private.h"

#include <string.h>

/* Sums over the trainable tokens of one sequence, for the methods of correction. */
struct rollout_view {
    double n, sum, mean;    /* of x */
    double least, most;     /* of w */
    double distance, error; /* mean |w - 1|, mean e^|x| */
    double statistic[3][3]; /* rollout_rs: k1, k2, k3 by sum, mean, max */
    const double *x;        /* [tokens] of the sequence; unset where masked */
};

struct correcting {
    struct objective_work *work;
    const struct objective_correction *how;
    double *own; /* [tokens of the request]: weights of this method */
    double *x;   /* [tokens of the request] */
};

static double clamp(double value, double limit) /* NAN: none */
{
    return value > limit ? limit : value < -limit ? -limit : value;
}

static bool is_inside(const struct objective_correction *how, double weight)
{
    return !(weight < how->lo) && !(weight > how->hi);
}

static double bounded(const struct objective_correction *how, double weight)
{
    return weight < how->lo ? how->lo : weight > how->hi ? how->hi : weight;
}

static double token_weight(const struct objective_correction *how, double x)
{
    return objective_exp(clamp(x, how->log_clamp));
}

/* --- one sequence --- */

/* Sums over the tokens of a sequence that a method needs beside the sum of x. */
enum { ASKS_NOTHING, ASKS_WEIGHTS, ASKS_STATISTICS };

static int what_it_asks(const struct objective_correction *how)
{
    switch (how->method) {
    case OBJECTIVE_IMPORTANCE_OUTLIER_TOKEN:
    case OBJECTIVE_IMPORTANCE_TV_MASK:
    case OBJECTIVE_IMPORTANCE_SEQ_MULT_PROB_ERROR:
        return ASKS_WEIGHTS;
    case OBJECTIVE_IMPORTANCE_ROLLOUT_RS:
        return ASKS_STATISTICS;
    default:
        return ASKS_NOTHING;
    }
}

/* The x of the next trainable tokens from *t on, without gaps; how many. */
static size_t next_xs(const struct objective_sequence *sequence, const double *x, size_t *t, double *ret_x)
{
    size_t count = 0;

    if (!sequence->mask) {
        size_t left = sequence->tokens - *t;
        count = left < OBJECTIVE_BLOCK ? left : OBJECTIVE_BLOCK;
        memcpy(ret_x, x + *t, count * sizeof *ret_x);
        *t += count;
        return count;
    }
    for (; *t < sequence->tokens && count < OBJECTIVE_BLOCK; ++*t)
        if (!is_masked(sequence, *t))
            ret_x[count++] = x[*t];
    return count;
}

/* Sums over the tokens of a sequence, in lanes. */
struct looking {
    struct lane_exact_sum sum, distance, error;
};

static void add_weights(const struct correcting *correcting, size_t n, const double *x, struct looking *looking,
                        struct rollout_view *view)
{
    double size[OBJECTIVE_BLOCK];
    double weights[OBJECTIVE_BLOCK];
    double values[OBJECTIVE_BLOCK];

    for (size_t k = 0; k < n; k++)
        values[k] = clamp(x[k], correcting->how->log_clamp);
    objective_exps(n, values, weights);
    for (size_t k = 0; k < n; k++)
        size[k] = fabs(values[k]);
    objective_exps(n, size, values);
    correcting->work->kernels->add_exactly(n, values, &looking->error);
    for (size_t k = 0; k < n; k++) {
        bool is_first = view->n + (double)k == 0;
        view->least = is_first || weights[k] < view->least ? weights[k] : view->least;
        view->most = is_first || weights[k] > view->most ? weights[k] : view->most;
        values[k] = fabs(weights[k] - 1);
    }
    correcting->work->kernels->add_exactly(n, values, &looking->distance);
}

/* k1, k2, k3 of rollout_rs. */
static void rs_values(double x, double ret_k[3])
{
    double held = clamp(x, 20);

    ret_k[0] = -held;
    ret_k[1] = held * held / 2;
    ret_k[2] = objective_k3(held);
}

static void add_statistics(struct rollout_view *view, bool is_first, double x)
{
    double k[3];

    rs_values(x, k);
    for (int i = 0; i < 3; i++) {
        view->statistic[i][0] += k[i];
        view->statistic[i][2] = is_first || k[i] > view->statistic[i][2] ? k[i] : view->statistic[i][2];
    }
}

static double total_of(const struct lane_exact_sum *lanes)
{
    struct precise_sum sum = {0};

    lane_exact_sum_add_to(lanes, &sum);
    return precise_sum_value(&sum);
}

static void look(const struct correcting *correcting, size_t index, struct rollout_view *ret_view)
{
    const struct objective_sequence *sequence = &correcting->work->request->sequences[index];
    struct rollout_view view = {.x = correcting->x + correcting->work->parts[index].first};
    struct looking looking = {0};
    int asks = what_it_asks(correcting->how);
    double x[OBJECTIVE_BLOCK];
    size_t count;

    for (size_t t = 0; (count = next_xs(sequence, view.x, &t, x)) > 0;) {
        if (asks == ASKS_WEIGHTS)
            add_weights(correcting, count, x, &looking, &view);
        for (size_t k = 0; asks == ASKS_STATISTICS && k < count; k++)
            add_statistics(&view, view.n + (double)k == 0, x[k]);
        correcting->work->kernels->add_exactly(count, x, &looking.sum);
        view.n += (double)count;
    }
    if (view.n > 0) {
        view.sum = total_of(&looking.sum);
        view.mean = view.sum / view.n;
        view.distance = total_of(&looking.distance) / view.n;
        view.error = total_of(&looking.error) / view.n;
        for (int i = 0; i < 3; i++)
            view.statistic[i][1] = view.statistic[i][0] / view.n;
    }
    *ret_view = view;
}

/* --- the methods: the weight of a token, and whether it, or its whole sequence, is rejected --- */

struct sequence_weight {
    double weight;
    bool rejects_sequence;
    bool by_token; /* `weight` is to be taken of each token */
};

static struct sequence_weight weigh_sequence(const struct objective_correction *how, const struct rollout_view *view)
{
    double reduced = how->reduction == OBJECTIVE_REDUCTION_MEAN ? view->mean : view->sum;
    double whole = objective_exp(clamp(reduced, how->log_clamp));
    double geometric = objective_exp(view->mean);

    switch (how->method) {
    case OBJECTIVE_IMPORTANCE_SEQUENCE_TRUNCATE:
        return (struct sequence_weight){.weight = bounded(how, whole)};
    case OBJECTIVE_IMPORTANCE_SEQUENCE_MASK:
        return (struct sequence_weight){.weight = whole, .rejects_sequence = !is_inside(how, whole)};
    case OBJECTIVE_IMPORTANCE_SEQ_MASK_TIS:
        return (struct sequence_weight){.by_token = true, .rejects_sequence = !is_inside(how, geometric)};
    case OBJECTIVE_IMPORTANCE_OUTLIER_TOKEN:
        return (struct sequence_weight){
            .weight = 1, .rejects_sequence = !is_inside(how, view->least) || !is_inside(how, view->most)};
    case OBJECTIVE_IMPORTANCE_SEQ_MULT_PROB_ERROR:
        return (struct sequence_weight){.weight = 1, .rejects_sequence = view->error > how->threshold.number};
    case OBJECTIVE_IMPORTANCE_TV_MASK:
    case OBJECTIVE_IMPORTANCE_ROLLOUT_RS:
        return (struct sequence_weight){.weight = 1};
    default:
        return (struct sequence_weight){.by_token = true};
    }
}

/* Estimator (k1, k2, k3) and aggregation (token, sum, mean, max) of each option. */
static const struct {
    int estimator;
    int reduction; /* -1: by token */
} rs_options[OBJECTIVE_RS_COUNT] = {
    [OBJECTIVE_RS_TOKEN_K1] = {0, -1},   [OBJECTIVE_RS_TOKEN_K2] = {1, -1},   [OBJECTIVE_RS_TOKEN_K3] = {2, -1},
    [OBJECTIVE_RS_SEQ_SUM_K1] = {0, 0},  [OBJECTIVE_RS_SEQ_SUM_K2] = {1, 0},  [OBJECTIVE_RS_SEQ_SUM_K3] = {2, 0},
    [OBJECTIVE_RS_SEQ_MEAN_K1] = {0, 1}, [OBJECTIVE_RS_SEQ_MEAN_K2] = {1, 1}, [OBJECTIVE_RS_SEQ_MEAN_K3] = {2, 1},
    [OBJECTIVE_RS_SEQ_MAX_K2] = {1, 2},  [OBJECTIVE_RS_SEQ_MAX_K3] = {2, 2},
};

/* Bounds of k1 = -x are ratios, taken as logarithms: they apply to rollout / old, the inverse of w. */
static bool rs_inside(const struct objective_correction *how, double statistic)
{
    const struct objective_bounds *threshold = &how->threshold;

    if (rs_options[how->option].estimator != 0)
        return statistic <= threshold->number;
    double high = isnan(threshold->number) ? threshold->high : threshold->number;
    double low = isnan(threshold->number) ? threshold->low : 1 / threshold->number;
    return objective_log(low) <= statistic && statistic <= objective_log(high);
}

static bool rs_rejects_sequence(const struct objective_correction *how, const struct rollout_view *view)
{
    int reduction = rs_options[how->option].reduction;
    return reduction >= 0 && !rs_inside(how, view->statistic[rs_options[how->option].estimator][reduction]);
}

static bool rs_rejects_token(const struct objective_correction *how, double x)
{
    double k[3];

    rs_values(x, k);
    return rs_options[how->option].reduction < 0 && !rs_inside(how, k[rs_options[how->option].estimator]);
}

static bool rejects_token(const struct correcting *correcting, const struct rollout_view *view, size_t index, size_t t)
{
    const struct objective_correction *how = correcting->how;
    double x = view->x[t];

    switch (how->method) {
    case OBJECTIVE_IMPORTANCE_TOKEN_MASK:
        return !is_inside(how, token_weight(how, x));
    case OBJECTIVE_IMPORTANCE_TV_MASK:
        return view->distance > how->threshold.number && x * work_advantage(correcting->work, index, t) > 0;
    case OBJECTIVE_IMPORTANCE_ROLLOUT_RS:
        return rs_rejects_token(how, x);
    default:
        return false;
    }
}

static void reject(const struct correcting *correcting, size_t at)
{
    bool from_counts = correcting->how->denominator == OBJECTIVE_IS_DENOMINATOR_KEPT;

    correcting->own[at] = 0;
    correcting->work->dropped[at] |= DROPPED_BY_IMPORTANCE | (from_counts ? DROPPED_FROM_COUNTS : 0);
}

/* The weights of all tokens: of what is masked too, which nothing looks at. */
static void weigh(const struct correcting *correcting, size_t n, const struct sequence_weight *weight, const double *x,
                  double *ret_weights)
{
    const struct objective_correction *how = correcting->how;
    double held[OBJECTIVE_BLOCK];

    for (size_t t = 0; t < n; t += OBJECTIVE_BLOCK) {
        size_t count = n - t < OBJECTIVE_BLOCK ? n - t : OBJECTIVE_BLOCK;
        for (size_t k = 0; k < count; k++)
            held[k] = weight->by_token ? clamp(x[t + k], how->log_clamp) : weight->weight;
        if (weight->by_token)
            objective_exps(count, held, ret_weights + t);
        else
            memcpy(ret_weights + t, held, count * sizeof held[0]);
    }
    for (size_t t = 0; how->method == OBJECTIVE_IMPORTANCE_TOKEN_TRUNCATE && t < n; t++)
        ret_weights[t] = bounded(how, ret_weights[t]);
}

static bool may_reject_tokens(const struct objective_correction *how)
{
    return how->method == OBJECTIVE_IMPORTANCE_TOKEN_MASK || how->method == OBJECTIVE_IMPORTANCE_TV_MASK ||
           how->method == OBJECTIVE_IMPORTANCE_ROLLOUT_RS;
}

static void correct_sequence(const struct correcting *correcting, size_t index)
{
    struct objective_sequence *sequence = &correcting->work->request->sequences[index];
    size_t first = correcting->work->parts[index].first;
    struct rollout_view view;

    look(correcting, index, &view);
    if (view.n == 0)
        return;
    struct sequence_weight weight = weigh_sequence(correcting->how, &view);
    if (correcting->how->method == OBJECTIVE_IMPORTANCE_ROLLOUT_RS)
        weight.rejects_sequence = rs_rejects_sequence(correcting->how, &view);
    if (weight.rejects_sequence)
        sequence->kept = false;
    weigh(correcting, sequence->tokens, &weight, view.x, correcting->own + first);
    if (!weight.rejects_sequence && !may_reject_tokens(correcting->how))
        return;
    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        if (weight.rejects_sequence || rejects_token(correcting, &view, index, t))
            reject(correcting, first + t);
    }
}

/* --- one method over the request --- */

static int normalise(const struct correcting *correcting)
{
    struct objective_work *work = correcting->work;
    struct precise_sum sum = {0};
    double tokens = 0;

    for (size_t i = 0; i < work->request->sequence_count; i++)
        for (size_t t = 0; work->parts[i].live && t < work->request->sequences[i].tokens; t++) {
            if (is_masked(&work->request->sequences[i], t))
                continue;
            precise_sum_add(&sum, correcting->own[work->parts[i].first + t]);
            tokens++;
        }
    double mean = precise_sum_value(&sum) / tokens;
    if (tokens == 0 || mean == 0)
        return 0;
    if (!isfinite(mean))
        return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, SIZE_MAX, SIZE_MAX, "rollout_logprobs",
                              "the mean weight of importance is beyond double");
    for (size_t at = 0; at < work->tokens; at++)
        correcting->own[at] /= mean;
    return 0;
}

/* In one go, where no token is masked: false where the two are not in one precision, or one is no number. ret_x has
 * room for some more. */
static bool read_run(const struct objective_work *work, const struct objective_sequence *sequence, double *ret_x)
{
    struct objective_values old = old_values(sequence);
    struct objective_values rollout = sequence->rollout_logprobs;
    double wide_old[OBJECTIVE_BLOCK];
    double wide_rollout[OBJECTIVE_BLOCK];
    bool finite = true;

    if (sequence->mask)
        return false;
    if (old.f64 && rollout.f64)
        return work->kernels->subtract(sequence->tokens, old.f64, rollout.f64, ret_x);
    if (old.f64 || rollout.f64)
        return false;
    for (size_t t = 0; t < sequence->tokens && finite; t += OBJECTIVE_BLOCK) {
        size_t left = sequence->tokens - t;
        finite = work->kernels->subtract_floats(left < OBJECTIVE_BLOCK ? left : OBJECTIVE_BLOCK, old.f32 + t,
                                                rollout.f32 + t, wide_old, wide_rollout, ret_x + t);
    }
    return finite;
}

static int read_one_by_one(struct objective_work *work, size_t index, double *ret_x)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    double old;
    double rollout;

    for (size_t t = 0; t < sequence->tokens; t++) {
        if (is_masked(sequence, t))
            continue;
        if (work_read(work, index, t, old_values(sequence), "old_logprobs", &old) < 0 ||
            work_read(work, index, t, sequence->rollout_logprobs, "rollout_logprobs", &rollout) < 0)
            return -1;
        ret_x[t] = old - rollout;
    }
    return 0;
}

static int read_x(struct objective_work *work, double *x)
{
    for (size_t i = 0; i < work->request->sequence_count; i++) {
        const struct objective_sequence *sequence = &work->request->sequences[i];
        double *own = x + work->parts[i].first;
        if (!work->parts[i].live)
            continue;
        if (work_need(work, i, sequence->rollout_logprobs, "rollout_logprobs", "importance needs them") < 0 ||
            work_need(work, i, old_values(sequence), "old_logprobs", "importance needs them") < 0)
            return -1;
        if (!read_run(work, sequence, own) && read_one_by_one(work, i, own) < 0)
            return -1;
    }
    return 0;
}

static int correct(struct correcting *correcting)
{
    struct objective_work *work = correcting->work;

    for (size_t i = 0; i < work->request->sequence_count; i++)
        if (work->parts[i].live)
            correct_sequence(correcting, i);
    if (correcting->how->batch_normalise && normalise(correcting) < 0)
        return -1;
    for (size_t at = 0; at < work->tokens; at++)
        work->weights[at] = work->dropped[at] & DROPPED_BY_IMPORTANCE ? 0 : work->weights[at] * correcting->own[at];
    return 0;
}

int work_importance(struct objective_work *work)
{
    const struct objective_knobs *knobs = work->knobs;
    struct correcting correcting = {.work = work};

    if (knobs->importance_count == 0)
        return 0;
    work->weights = work_allocate(work, work->tokens, sizeof *work->weights);
    work->dropped = work_allocate(work, work->tokens, 1);
    correcting.own = work_allocate(work, work->tokens, sizeof *correcting.own);
    correcting.x = work_allocate(work, work->tokens + OBJECTIVE_LANES, sizeof *correcting.x);
    if (!work->weights || !work->dropped || !correcting.own || !correcting.x || read_x(work, correcting.x) < 0)
        return -1;
    for (size_t at = 0; at < work->tokens; at++)
        work->weights[at] = 1;
    for (size_t c = 0; c < knobs->importance_count; c++) {
        correcting.how = &knobs->importance[c];
        if (correct(&correcting) < 0)
            return -1;
    }
    return 0;
}
