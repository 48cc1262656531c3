/* The table of knobs: every row can be reached, every name stands once, the preset is whole. */
#include "tests/unit/objective/fixture.h"

#include <stdio.h>

static void test_the_table_is_in_order_and_names_nothing_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        assert_int_equal(knob->type == KNOB_CHOICE, knob->choices != NULL);
        for (size_t other = 0; other < i; other++)
            assert_false(strcmp(knob->section, objective_knobs_table[other].section) == 0 &&
                         strcmp(knob->name, objective_knobs_table[other].name) == 0);
    }
}

static const struct objective_knob *find_knob(const char *section, const char *name)
{
    for (size_t i = 0; i < objective_knobs_count; i++)
        if (strcmp(objective_knobs_table[i].section, section) == 0 && strcmp(objective_knobs_table[i].name, name) == 0)
            return &objective_knobs_table[i];
    fail_msg("no knob %s.%s", section, name);
    return NULL;
}

static void test_a_kind_uses_only_its_own_knobs(void **state)
{
    struct objective_knobs knobs;
    (void)state;

    assert_true(objective_preset_find("grpo", 4, &knobs));
    assert_false(objective_knob_is_used(&knobs, find_knob("aggregation", "max_len")));
    assert_false(objective_knob_is_used(&knobs, find_knob("aggregation", "denominator")));
    assert_true(objective_knob_is_used(&knobs, find_knob("loss", "eps_low")));
    knobs.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
    assert_false(objective_knob_is_used(&knobs, find_knob("loss", "eps_low")));
    assert_true(objective_knob_is_used(&knobs, find_knob("loss", "log_clamp")));
    knobs.loss.kind = OBJECTIVE_LOSS_GPG;
    assert_false(objective_knob_is_used(&knobs, find_knob("loss", "anchor")));
}

static void test_another_kind_brings_its_own_defaults(void **state)
{
    struct objective_knobs knobs;
    (void)state;

    assert_true(objective_preset_find("dapo", 4, &knobs));
    knobs.loss.kind = OBJECTIVE_LOSS_GMPO;
    objective_kind_chosen(&knobs, find_knob("loss", "kind"), OBJECTIVE_LOSS_PPO_CLIP);
    assert_exactly(knobs.loss.eps_low, 0.4);
    assert_true(objective_preset_find("dapo", 4, &knobs));
    knobs.loss.kind = OBJECTIVE_LOSS_DUAL_CLIP; /* the same family: its bounds stay */
    objective_kind_chosen(&knobs, find_knob("loss", "kind"), OBJECTIVE_LOSS_PPO_CLIP);
    assert_exactly(knobs.loss.eps_high, 0.28);
    assert_exactly(knobs.loss.dual_c, 3);
    knobs.loss.kind = OBJECTIVE_LOSS_DPPO_KL;
    objective_kind_chosen(&knobs, find_knob("loss", "kind"), OBJECTIVE_LOSS_DUAL_CLIP);
    assert_exactly(knobs.loss.d_low, 0.05);
    knobs.loss.kind = OBJECTIVE_LOSS_IPO;
    objective_kind_chosen(&knobs, find_knob("loss", "kind"), OBJECTIVE_LOSS_DPPO_KL);
    assert_exactly(knobs.loss.kl_tau, 1e-3);
}

static void count_override(void *arg, const char *path)
{
    (void)path;
    ++*(size_t *)arg;
}

static void test_every_preset_is_settled(void **state)
{
    size_t overrides;
    struct objective_knobs knobs;
    struct objective_contradiction contradiction;
    (void)state;

    for (size_t i = 0; i < objective_presets_count; i++) {
        objective_preset_fill(&objective_presets[i], &knobs);
        if (objective_settle(&knobs, &contradiction) < 0)
            fail_msg("%s: %s %s", objective_presets[i].name, contradiction.path, contradiction.message);
        assert_string_equal(knobs.preset, objective_presets[i].name);
        overrides = 0;
        objective_overrides(&knobs, count_override, &overrides);
        assert_int_equal(overrides, 0);
    }
    assert_false(objective_preset_find("grp", 3, &knobs));
    assert_false(objective_preset_find("grpo2", 5, &knobs));
}

static void test_the_bare_name_of_a_trainer_is_its_newest_version(void **state)
{
    struct objective_knobs knobs;
    (void)state;

    assert_true(objective_preset_find("verl", 4, &knobs));
    assert_string_equal(knobs.preset, "verl@1dda039b");
    assert_true(objective_preset_find("verl@b178a3cd", 13, &knobs));
    assert_int_equal(knobs.aggregation.masked_seq, OBJECTIVE_MASKED_SEQ_EXCLUDE);
    assert_true(objective_preset_find("trl", 3, &knobs));
    assert_string_equal(knobs.preset, "trl@1.16");
    assert_false(objective_preset_find("verl@", 5, &knobs));
    assert_false(objective_preset_find("verl@1dda", 9, &knobs));
    assert_false(objective_preset_find("", 0, &knobs));
}

static void note_override(void *arg, const char *path)
{
    strcat(strcat(arg, path), " ");
}

static void test_overrides_are_named_by_their_paths(void **state)
{
    struct objective_knobs knobs;
    char found[256] = "";
    (void)state;

    assert_true(objective_preset_find("trl", 3, &knobs));
    knobs.loss.eps_high = 0.28;
    knobs.beta = 0.1;
    knobs.importance_count = 0;
    objective_overrides(&knobs, note_override, found);
    assert_string_equal(found, "loss.eps_high importance beta ");
}

static void settle_fails(struct objective_knobs knobs, const char *path)
{
    struct objective_contradiction contradiction = {.path = "nothing"};
    int result = objective_settle(&knobs, &contradiction);
    if (result != -1 || strcmp(contradiction.path, path) != 0)
        fail_msg("%d, path %s instead of %s", result, contradiction.path, path);
}

static struct objective_correction *correction(struct objective_knobs *knobs, int method)
{
    struct objective_correction *made = &knobs->importance[knobs->importance_count++];
    objective_item_init(objective_section_find("importance"), made);
    made->method = method;
    return made;
}

static void test_terms_that_exclude_each_other_are_refused(void **state)
{
    struct objective_knobs grpo, knobs;
    (void)state;

    assert_true(objective_preset_find("grpo", 4, &grpo));
    knobs = grpo;
    correction(&knobs, OBJECTIVE_IMPORTANCE_TOKEN);
    knobs.loss.anchor = OBJECTIVE_ANCHOR_ROLLOUT;
    settle_fails(knobs, "loss.anchor");
    knobs = grpo;
    knobs.loss.kind = OBJECTIVE_LOSS_REAL;
    correction(&knobs, OBJECTIVE_IMPORTANCE_TOKEN);
    settle_fails(knobs, "importance.method");
    knobs.importance_count = 0;
    knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_REWARD_TO_GO;
    settle_fails(knobs, "advantage.estimator");
    knobs = grpo;
    correction(&knobs, OBJECTIVE_IMPORTANCE_ROLLOUT_RS);
    settle_fails(knobs, "importance.option");
    knobs.importance[0].option = OBJECTIVE_RS_TOKEN_K1;
    settle_fails(knobs, "importance.threshold");
    knobs.importance[0].threshold.number = 0.5;
    settle_fails(knobs, "importance.threshold");
    correction(&knobs, OBJECTIVE_IMPORTANCE_TOKEN_MASK)->lo = 3;
    knobs.importance[0].threshold.number = 2;
    knobs.importance[1].hi = 2;
    settle_fails(knobs, "importance[1].lo");
    knobs = grpo;
    knobs.kl.in = OBJECTIVE_KL_IN_REWARD;
    knobs.kl.ratio = OBJECTIVE_KL_RATIO_MULTIPLY;
    settle_fails(knobs, "kl.ratio");
    knobs = grpo;
    knobs.loss.kind = OBJECTIVE_LOSS_CISPO;
    settle_fails(knobs, "loss.hi");
    knobs.loss.hi = 1;
    knobs.loss.lo = 2;
    settle_fails(knobs, "loss.lo");
}

static void test_objectives_that_need_the_whole_request_are_named(void **state)
{
    struct objective_knobs knobs;
    (void)state;

    assert_true(objective_preset_find("grpo", 4, &knobs));
    assert_null(objective_needs_whole_request(&knobs, false));
    knobs.advantage.estimator = OBJECTIVE_ESTIMATOR_GDPO;
    assert_string_equal(objective_needs_whole_request(&knobs, false), "advantage.estimator");
    assert_null(objective_needs_whole_request(&knobs, true));
    knobs.loss.positive_nll = 0.1;
    assert_string_equal(objective_needs_whole_request(&knobs, true), "loss.positive_nll");
    knobs.selection.method = OBJECTIVE_SELECTION_M2PO;
    assert_string_equal(objective_needs_whole_request(&knobs, true), "selection.method");
    correction(&knobs, OBJECTIVE_IMPORTANCE_TOKEN)->batch_normalise = true;
    assert_string_equal(objective_needs_whole_request(&knobs, true), "importance.batch_normalise");
}

static void test_contradictions_name_their_knob(void **state)
{
    struct objective_knobs knobs;
    struct objective_contradiction contradiction;
    (void)state;

    assert_true(objective_preset_find("grpo", 4, &knobs));
    knobs.loss.delta = 1.1;
    assert_int_equal(objective_settle(&knobs, &contradiction), -1);
    assert_string_equal(contradiction.path, "loss.delta");
    knobs.loss.accept_delta_below_clip = true;
    assert_int_equal(objective_settle(&knobs, &contradiction), 0);
    knobs.aggregation.mode = OBJECTIVE_MODE_CONSTANT;
    assert_int_equal(objective_settle(&knobs, &contradiction), -1);
    assert_string_equal(contradiction.path, "aggregation.denominator");
}

static char *documentation;

/* docs/objective.md has an entry for every knob and every value. */
static void test_every_knob_and_value_is_documented(void **state)
{
    char path[96];
    (void)state;

    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        snprintf(path, sizeof path, "`%s%s%s`", knob->section, knob->section[0] ? "." : "", knob->name);
        if (!strstr(documentation, path))
            fail_msg("no entry for %s", path);
        for (size_t k = 0; knob->flags & KNOB_SELECTOR && knob->choices[k]; k++)
            if (!strstr(documentation, knob->choices[k]))
                fail_msg("no entry for %s of %s", knob->choices[k], path);
    }
    for (size_t i = 0; i < objective_presets_count; i++)
        if (!strstr(documentation, objective_presets[i].name))
            fail_msg("no entry for the preset %s", objective_presets[i].name);
}

static void test_only_the_advantage_section_makes_another_advantage_rule(void **state)
{
    struct objective_knobs left, right;
    (void)state;

    assert_true(objective_preset_find("grpo", 4, &left));
    right = left;
    right.loss.eps_low = 0.1;
    right.beta = 1;
    assert_true(objective_same_advantage_rule(&left, &right));
    right.advantage.ddof = 1;
    assert_false(objective_same_advantage_rule(&left, &right));
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0)
        exit(99);
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_in_order_and_names_nothing_twice),
        cmocka_unit_test(test_a_kind_uses_only_its_own_knobs),
        cmocka_unit_test(test_another_kind_brings_its_own_defaults),
        cmocka_unit_test(test_every_preset_is_settled),
        cmocka_unit_test(test_the_bare_name_of_a_trainer_is_its_newest_version),
        cmocka_unit_test(test_overrides_are_named_by_their_paths),
        cmocka_unit_test(test_terms_that_exclude_each_other_are_refused),
        cmocka_unit_test(test_objectives_that_need_the_whole_request_are_named),
        cmocka_unit_test(test_contradictions_name_their_knob),
        cmocka_unit_test(test_every_knob_and_value_is_documented),
        cmocka_unit_test(test_only_the_advantage_section_makes_another_advantage_rule),
    };
    documentation = read_file(argc > 1 ? argv[1] : "docs/objective.md");
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    free(documentation);
    return result;
}
