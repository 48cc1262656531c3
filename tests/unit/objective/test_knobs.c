/* The table of knobs: every row can be reached, every name stands once, the preset is whole. */
#include "tests/unit/objective/fixture.h"

static void test_the_table_is_in_order_and_names_nothing_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        assert_false(objective_knob_is_known(knob->section, knob->name)); /* built or later, not both */
        assert_int_equal(knob->type == KNOB_CHOICE, knob->choices != NULL);
        for (size_t other = 0; other < i; other++)
            assert_false(strcmp(knob->section, objective_knobs_table[other].section) == 0 &&
                         strcmp(knob->name, objective_knobs_table[other].name) == 0);
    }
}

static void test_a_knob_of_the_contract_that_is_not_built_is_known(void **state)
{
    (void)state;
    assert_true(objective_knob_is_known("advantage", "gamma"));
    assert_true(objective_knob_is_known("importance", "hi"));
    assert_false(objective_knob_is_known("loss", "eps_hgih"));
}

static void test_a_kind_uses_only_its_own_knobs(void **state)
{
    struct objective_knobs knobs;
    (void)state;

    assert_true(objective_preset_find("grpo", 4, &knobs));
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->name, "max_len") == 0 || strcmp(knob->name, "denominator") == 0)
            assert_false(objective_knob_is_used(&knobs, knob));
        if (strcmp(knob->name, "eps_low") == 0) {
            assert_true(objective_knob_is_used(&knobs, knob));
            knobs.loss.kind = OBJECTIVE_LOSS_IMPORTANCE_SAMPLING;
            assert_false(objective_knob_is_used(&knobs, knob));
        }
    }
}

static void test_every_preset_is_settled(void **state)
{
    struct objective_knobs knobs;
    struct objective_contradiction contradiction;
    (void)state;

    for (size_t i = 0; i < objective_presets_count; i++) {
        objective_presets[i].fill(&knobs);
        assert_int_equal(objective_settle(&knobs, &contradiction), 0);
        assert_string_equal(knobs.preset, objective_presets[i].name);
    }
    assert_false(objective_preset_find("grp", 3, &knobs));
    assert_false(objective_preset_find("grpo2", 5, &knobs));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_in_order_and_names_nothing_twice),
        cmocka_unit_test(test_a_knob_of_the_contract_that_is_not_built_is_known),
        cmocka_unit_test(test_a_kind_uses_only_its_own_knobs),
        cmocka_unit_test(test_every_preset_is_settled),
        cmocka_unit_test(test_contradictions_name_their_knob),
        cmocka_unit_test(test_only_the_advantage_section_makes_another_advantage_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
