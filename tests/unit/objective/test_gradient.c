/* dloss_dlogp is the derivative of the scalar loss, for every loss with every KL and every correction. A term
 * that a loss holds constant for the gradient (sg) is held constant here, too. */
#include "tests/unit/objective/fixture.h"

enum { SEQUENCES = 4, GROUPS = 2 };

static double spread(uint64_t *seed, double width)
{
    return (scene_random(seed) - 0.5) * width;
}

static struct scene *random_scene(uint64_t seed)
{
    struct scene *scene = scene_create();

    for (size_t i = 0; i < SEQUENCES; i++) {
        size_t tokens = 2 + (size_t)(scene_random(&seed) * 5);
        size_t index = scene_add(scene, i % GROUPS, (i >= GROUPS) + 0.25 * scene_random(&seed), tokens);
        struct line *line = &scene->lines[index];
        for (size_t t = 0; t < tokens; t++) {
            line->old[t] = -0.1 - 3 * scene_random(&seed);
            line->logprobs[t] = line->old[t] + spread(&seed, 1.2);
            line->reference[t] = line->old[t] + spread(&seed, 1);
            line->rollout[t] = line->old[t] + spread(&seed, 0.6);
            line->mask[t] = scene_random(&seed) < 0.8;
        }
        line->mask[0] = 1;
    }
    return scene;
}

static void run(struct scene *scene)
{
    if (scene_run(scene) < 0)
        fail_msg("refused: %s %s", scene->error.field, scene->error.message);
}

/* --- corrections --- */

static void correct(struct scene *scene, int method, double lo, double hi)
{
    struct objective_correction *correction = &scene->knobs.importance[scene->knobs.importance_count++];
    objective_item_init(objective_section_find("importance"), correction);
    correction->method = method;
    correction->lo = lo;
    correction->hi = hi;
    correction->threshold.number = 0.4;
    correction->option = OBJECTIVE_RS_TOKEN_K2;
    correction->reduction = OBJECTIVE_REDUCTION_MEAN;
}

static void no_correction(struct scene *scene)
{
    (void)scene;
}

static void truncate_tokens(struct scene *scene)
{
    correct(scene, OBJECTIVE_IMPORTANCE_TOKEN_TRUNCATE, 0.9, 1.1);
}

static void mask_sequences(struct scene *scene)
{
    correct(scene, OBJECTIVE_IMPORTANCE_SEQUENCE_MASK, 0.95, NAN);
}

static void mask_and_weigh_and_normalise(struct scene *scene)
{
    correct(scene, OBJECTIVE_IMPORTANCE_TOKEN, NAN, NAN);
    scene->knobs.importance[0].batch_normalise = true;
    correct(scene, OBJECTIVE_IMPORTANCE_TOKEN_MASK, 0.8, 1.2);
}

static void reject_out_of_the_counts(struct scene *scene)
{
    correct(scene, OBJECTIVE_IMPORTANCE_ROLLOUT_RS, NAN, NAN);
    scene->knobs.importance[0].threshold.number = 0.02;
    scene->knobs.importance[0].denominator = OBJECTIVE_IS_DENOMINATOR_KEPT;
}

static void total_variation(struct scene *scene)
{
    correct(scene, OBJECTIVE_IMPORTANCE_TV_MASK, NAN, NAN);
    scene->knobs.importance[0].threshold.number = 0.1;
}

static void against_the_rollout_policy(struct scene *scene)
{
    scene->knobs.loss.anchor = OBJECTIVE_ANCHOR_ROLLOUT;
}

static void without_bad_and_far_sequences(struct scene *scene)
{
    scene->knobs.selection.method = OBJECTIVE_SELECTION_OFF_POLICY;
    scene->knobs.selection.delta = -0.1;
}

static void with_positive_nll(struct scene *scene)
{
    scene->knobs.loss.positive_nll = 0.3;
}

static void (*const corrections[])(struct scene *) = {
    no_correction,
    truncate_tokens,
    mask_sequences,
    mask_and_weigh_and_normalise,
    total_variation,
    reject_out_of_the_counts,
    with_positive_nll,
    against_the_rollout_policy,
    without_bad_and_far_sequences,
};

/* --- one derivative --- */

static double part_of(const struct scene *scene, bool with_policy)
{
    return with_policy ? scene->result.loss : scene->result.kl_loss;
}

static double numeric(struct scene *scene, double *logprob, bool with_policy)
{
    const double h = 1e-5;
    double at = *logprob;

    *logprob = at + h;
    run(scene);
    double above = part_of(scene, with_policy);
    *logprob = at - h;
    run(scene);
    double below = part_of(scene, with_policy);
    *logprob = at;
    run(scene);
    return (above - below) / (2 * h);
}

static double policy_contribution(const struct scene *scene, size_t i, size_t t)
{
    return -scene->lines[i].surrogates[t] * scene->lines[i].weights[t];
}

/* fipo: the factor is held, so its slope is ppo's times the factor, which is the quotient of the values. */
static double slope_of_fipo(struct scene *scene, size_t i, size_t t)
{
    double value = policy_contribution(scene, i, t);
    struct objective_knobs kept = scene->knobs;

    scene->knobs.loss.kind = OBJECTIVE_LOSS_PPO_CLIP;
    scene->knobs.loss.delta = NAN;
    scene->knobs.beta = 0;
    run(scene);
    double plain = policy_contribution(scene, i, t), slope = scene->lines[i].slopes[t];
    scene->knobs = kept;
    run(scene);
    return plain == 0 ? 0 : slope * value / plain;
}

/* Where sg holds all but the log-probability itself, the value is linear in it. */
static bool is_held(const struct objective_knobs *knobs)
{
    int kind = knobs->loss.kind;
    return kind == OBJECTIVE_LOSS_CISPO || kind == OBJECTIVE_LOSS_VESPO || kind == OBJECTIVE_LOSS_ROLLOUT_IS ||
           kind == OBJECTIVE_LOSS_DPPO_KL || kind == OBJECTIVE_LOSS_GSPO_TOKEN || kind == OBJECTIVE_LOSS_FIPO;
}

/* The nll's own part, which no sg touches. */
static double nll_slope(const struct scene *scene, size_t i)
{
    double positive = 0;
    for (size_t k = 0; k < SEQUENCES; k++)
        positive += scene->sequences[k].reward > 0 ? (double)scene->sequences[k].trainable_tokens : 0;
    bool counts = scene->knobs.loss.positive_nll > 0 && scene->sequences[i].reward > 0;
    return counts ? -scene->knobs.loss.positive_nll / positive : 0;
}

static double held_slope(struct scene *scene, size_t i, size_t t)
{
    double nll = nll_slope(scene, i), logprob = scene->lines[i].logprobs[t];
    double value = policy_contribution(scene, i, t) - nll * logprob;

    if (scene->knobs.loss.kind == OBJECTIVE_LOSS_FIPO) {
        scene->knobs.loss.positive_nll = 0;
        run(scene);
        double slope = slope_of_fipo(scene, i, t);
        scene->knobs.loss.positive_nll = nll == 0 ? 0 : 0.3;
        run(scene);
        return slope + nll;
    }
    if (scene->knobs.loss.kind == OBJECTIVE_LOSS_GSPO_TOKEN)
        return (scene->lines[i].clipped[t] ? 0 : value) + nll;
    return value / logprob + nll;
}

static double kl_slope(struct scene *scene, size_t i, size_t t)
{
    int kept = scene->knobs.kl.estimator;
    double slope;

    if (kept == OBJECTIVE_KL_K1_PLUS || kept == OBJECTIVE_KL_K3_PLUS)
        scene->knobs.kl.estimator = OBJECTIVE_KL_K2;
    slope = numeric(scene, &scene->lines[i].logprobs[t], false);
    scene->knobs.kl.estimator = kept;
    run(scene);
    return slope;
}

/* Away from the kinks of clip, clamp and trust region. */
static bool is_smooth(const struct scene *scene, size_t i, size_t t)
{
    static const double kinks[] = {0.6, 0.8, 1.2, 1.3, 1.5, 4};
    const struct line *line = &scene->lines[i];
    double x = line->logprobs[t] - line->old[t], distance = line->logprobs[t] - line->reference[t];
    double ratio = exp(x), moved = exp(line->logprobs[t]) - exp(line->old[t]);

    for (size_t k = 0; k < sizeof kinks / sizeof kinks[0]; k++)
        if (fabs(ratio - kinks[k]) < 1e-3 || fabs(line->ratios[t] - kinks[k]) < 1e-3)
            return false;
    return fabs(fabs(x) - 0.4) > 1e-3 && fabs(distance) > 1e-3 && fabs(fabs(moved) - 0.2) > 1e-3 &&
           fabs(fabs(moved) - 0.1) > 1e-3;
}

static void check_token(struct scene *scene, size_t i, size_t t)
{
    double slope = scene->lines[i].slopes[t], kl = kl_slope(scene, i, t), want;
    bool plus = scene->knobs.kl.estimator == OBJECTIVE_KL_K1_PLUS || scene->knobs.kl.estimator == OBJECTIVE_KL_K3_PLUS;

    if (is_held(&scene->knobs))
        want = held_slope(scene, i, t) + kl;
    else if (plus)
        want = numeric(scene, &scene->lines[i].logprobs[t], true) -
               numeric(scene, &scene->lines[i].logprobs[t], false) + kl;
    else
        want = numeric(scene, &scene->lines[i].logprobs[t], true);
    if (!(fabs(slope - want) <= 2e-7 * fmax(1, fabs(want))))
        fail_msg("loss %d, kl %d, sequence %zu token %zu: slope %.12g, numeric %.12g", scene->knobs.loss.kind,
                 scene->knobs.kl.estimator, i, t, slope, want);
}

static void check_scene(struct scene *scene)
{
    run(scene);
    for (size_t i = 0; i < SEQUENCES; i++)
        for (size_t t = 0; t < scene->sequences[i].tokens; t++) {
            bool masked = !scene->lines[i].mask[t];
            if (masked)
                assert_exactly(scene->lines[i].slopes[t], 0);
            else if (is_smooth(scene, i, t))
                check_token(scene, i, t);
        }
}

static bool go_together(const struct scene *scene)
{
    struct objective_knobs knobs = scene->knobs;
    struct objective_contradiction contradiction;
    return objective_settle(&knobs, &contradiction) == 0;
}

static void test_every_loss_with_every_kl_and_every_correction(void **state)
{
    (void)state;
    for (int loss = 0; loss < OBJECTIVE_LOSS_COUNT; loss++)
        for (int kl = 0; kl < OBJECTIVE_KL_COUNT; kl++)
            for (size_t correction = 0; correction < sizeof corrections / sizeof corrections[0]; correction++) {
                struct scene *scene = random_scene((uint64_t)(loss * 1000 + kl * 100) + correction);
                scene_choose_loss(scene, loss);
                scene->knobs.beta = 0.3;
                scene->knobs.kl.estimator = kl;
                scene->knobs.kl.ratio = correction % 2 ? OBJECTIVE_KL_RATIO_NONE : OBJECTIVE_KL_RATIO_MULTIPLY;
                if (kl == OBJECTIVE_KL_K1_PLUS || kl == OBJECTIVE_KL_K3_PLUS)
                    scene->knobs.kl.ratio = OBJECTIVE_KL_RATIO_NONE;
                corrections[correction](scene);
                if (go_together(scene))
                    check_scene(scene);
                test_free(scene);
            }
}

static void test_every_mode_with_losses_of_tokens_and_of_sequences(void **state)
{
    const int kinds[] = {OBJECTIVE_LOSS_PPO_CLIP, OBJECTIVE_LOSS_GSPO, OBJECTIVE_LOSS_GMPO, OBJECTIVE_LOSS_LUSPO,
                         OBJECTIVE_LOSS_REAL};
    (void)state;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int mode = 0; mode < OBJECTIVE_MODE_COUNT; mode++) {
            struct scene *scene = random_scene((uint64_t)mode + 77 * k);
            scene_choose_loss(scene, kinds[k]);
            scene->knobs.beta = 0.3;
            scene->knobs.aggregation.mode = mode;
            scene->knobs.aggregation.max_len = 7;
            scene->knobs.aggregation.denominator = 11;
            check_scene(scene);
            test_free(scene);
        }
}

static void test_variants_of_ppo_and_of_the_trust_region(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct scene *scene = random_scene(seed);
        scene->knobs.loss.dual_c = 1.5;
        check_scene(scene);
        scene_choose_loss(scene, OBJECTIVE_LOSS_DPPO_TV);
        scene->knobs.loss.kl_tau = 0.2;
        check_scene(scene);
        scene_choose_loss(scene, OBJECTIVE_LOSS_GSPO);
        scene->knobs.loss.log_max = 0.01;
        check_scene(scene);
        test_free(scene);
    }
}

static void test_kl_cov_adds_its_term_to_the_gradient(void **state)
{
    struct scene *scene = random_scene(5);
    struct objective_contradiction contradiction;
    size_t chosen = 0;
    (void)state;

    scene->knobs.selection.method = OBJECTIVE_SELECTION_KL_COV;
    scene->knobs.selection.frac = 0.4;
    scene->knobs.selection.ppo_kl_coef = 1;
    assert_int_equal(objective_settle(&scene->knobs, &contradiction), 0);
    run(scene);
    for (size_t i = 0; i < SEQUENCES; i++)
        for (size_t t = 0; t < scene->sequences[i].tokens; t++) {
            const struct line *line = &scene->lines[i];
            double x = line->logprobs[t] - line->old[t], plain = -exp(x) * scene->sequences[i].advantage;
            if (!line->mask[t])
                continue;
            bool added = fabs(-line->surrogates[t] - plain - fabs(x)) < 1e-12;
            assert_near(-line->surrogates[t], added ? plain + fabs(x) : plain, 1e-14);
            assert_near(line->slopes[t] / line->weights[t], plain + (added ? (x > 0) - (x < 0) : 0), 1e-14);
            chosen += added;
        }
    assert_int_equal(chosen, (size_t)(0.4 * (double)scene->result.sums.tokens));
    test_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_loss_with_every_kl_and_every_correction),
        cmocka_unit_test(test_every_mode_with_losses_of_tokens_and_of_sequences),
        cmocka_unit_test(test_variants_of_ppo_and_of_the_trust_region),
        cmocka_unit_test(test_kl_cov_adds_its_term_to_the_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
