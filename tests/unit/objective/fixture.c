#include "tests/unit/objective/fixture.h"

struct scene *scene_create(void)
{
    struct scene *scene = test_calloc(1, sizeof *scene);
    assert_true(objective_preset_find("grpo", 4, &scene->knobs));
    scene->request = (struct objective_request){
        .knobs = &scene->knobs, .sequences = scene->sequences, .groups = scene->groups, .group_count = 1};
    return scene;
}

size_t scene_add(struct scene *scene, size_t group, double reward, size_t tokens)
{
    size_t index = scene->request.sequence_count++;
    struct line *line = &scene->lines[index];

    assert_true(index < MAX_SEQUENCES && tokens <= MAX_TOKENS && group < MAX_SEQUENCES);
    for (size_t t = 0; t < tokens; t++) {
        line->logprobs[t] = line->old[t] = line->reference[t] = line->rollout[t] = -1;
        line->mask[t] = 1;
    }
    scene->sequences[index] = (struct objective_sequence){
        .group = group,
        .reward = reward,
        .rewarded = !isnan(reward),
        .tokens = tokens,
        .length = (int64_t)tokens,
        .mask = line->mask,
        .logprobs.f64 = line->logprobs,
        .old_logprobs.f64 = line->old,
        .ref_logprobs.f64 = line->reference,
        .rollout_logprobs.f64 = line->rollout,
        .greedy_reward = NAN,
        .advantages = line->advantages,
        .surrogates = line->surrogates,
        .contributions = line->contributions,
        .dloss_dlogp = line->slopes,
        .ratios = line->ratios,
        .weights = line->weights,
        .kl = line->kl,
        .clipped = line->clipped,
        .selected = line->selected,
    };
    if (group >= scene->request.group_count)
        scene->request.group_count = group + 1;
    return index;
}

size_t scene_add_ratio(struct scene *scene, double advantage, double ratio)
{
    size_t index = scene_add(scene, 0, NAN, 1);
    scene->sequences[index].rewarded = true;
    scene->sequences[index].advantage = advantage;
    scene->lines[index].logprobs[0] = -1 + log(ratio);
    scene->request.advantages_given = true;
    return index;
}

void scene_choose_loss(struct scene *scene, int kind)
{
    const struct objective_knob *selector = NULL;
    struct objective_contradiction contradiction;
    int before = scene->knobs.loss.kind;

    for (size_t i = 0; i < objective_knobs_count && !selector; i++)
        if (strcmp(objective_knobs_table[i].section, "loss") == 0)
            selector = &objective_knobs_table[i];
    scene->knobs.loss.kind = kind;
    objective_kind_chosen(&scene->knobs, selector, before);
    scene->knobs.loss.hi = 1.3;
    scene->knobs.loss.beta = 0.1;
    if (kind == OBJECTIVE_LOSS_TWO_SIDED)
        scene->knobs.loss.delta = 1.5;
    assert_int_equal(objective_settle(&scene->knobs, &contradiction), 0);
}

int scene_run(struct scene *scene)
{
    return objective_evaluate(&scene->request, &scene->result, &scene->error);
}

double scene_contributions(const struct scene *scene)
{
    double sum = 0;
    for (size_t i = 0; i < scene->request.sequence_count; i++)
        for (size_t t = 0; t < scene->sequences[i].tokens; t++)
            sum += scene->lines[i].contributions[t];
    return sum;
}

void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want))))
        fail_msg("got %.17g, want %.17g", got, want);
}

void assert_exactly(double got, double want)
{
    if (!(got == want) || signbit(got) != signbit(want))
        fail_msg("got %.17g, want exactly %.17g", got, want);
}

double scene_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

int group_advantages(const struct objective_knobs *knobs, size_t n, const double *rewards, double *ret_advantages,
                     struct objective_group *ret_group)
{
    struct objective_sequence *members = calloc(n ? n : 1, sizeof *members);
    struct objective_request request = {
        .knobs = knobs, .sequences = members, .sequence_count = n, .groups = ret_group, .group_count = 1};
    struct objective_error error;
    bool whole = objective_needs_whole_batch(knobs);
    int result = members ? 0 : -1;

    *ret_group = (struct objective_group){.mean = NAN, .std = NAN};
    for (size_t i = 0; result == 0 && i < n; i++) {
        members[i].reward = rewards[i];
        members[i].rewarded = !isnan(rewards[i]);
        if (whole) /* statistics alone */
            members[i].advantage = 0;
    }
    request.advantages_given = whole;
    if (result == 0)
        result = objective_advantages(&request, &error);
    for (size_t i = 0; ret_advantages && i < n; i++)
        ret_advantages[i] = result == 0 && !whole ? members[i].advantage : NAN;
    free(members);
    return result;
}
