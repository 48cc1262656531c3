/* Recognition of an engine, and checks of its promises. */
#include "made_up_vllm.h"
#include "support.h"

#include <stdio.h>

static const struct sample_error late = {.code = SAMPLE_ENGINE_TIMEOUT, .message = "no answer in time"};

static void take(struct probe *probe, struct vllm *vllm)
{
    struct engine_call call;
    char body[2048] = "";

    while (probe_build(probe, &call)) {
        int status = vllm_answer(vllm, &call, body, sizeof(body));
        struct engine_reply reply = {.status = status, .body = text_of(body)};

        engine_call_finish(&call);
        if (!probe_take(probe, status ? &reply : NULL, &late))
            return;
    }
    engine_call_finish(&call);
}

static struct engine_facts facts_of(struct vllm vllm)
{
    struct probe_rules rules = {
        .adapter = engine_adapter_find(text_of("vllm")), .url = "http://a", .ask_tokens = true, .ask_samples = true};
    struct engine_facts facts;
    struct probe probe;

    probe_init(&probe, &rules);
    take(&probe, &vllm);
    assert_null(probe_failed(&probe));
    facts = probe.facts;
    probe_finish(&probe);
    return facts;
}

static void test_an_honest_engine_is_found_to_be_honest(void **state)
{
    struct vllm vllm = honest_vllm;

    (void)state;
    vllm.weights = "step-7";
    struct engine_facts facts = facts_of(vllm);
    assert_string_equal(facts.model, "smol");
    assert_string_equal(facts.version, "0.32.0");
    assert_string_equal(facts.weight_version, "step-7");
    assert_int_equal(facts.context_tokens, 2048);
    /* printf 5,6,7 | sha256sum */
    assert_string_equal(facts.tokenizer_sha256, "9988e8a737dd629d5014a04ec3c0b97444416bb63e48f3ab7aa4da48a3aeb569");
    assert_int_equal(facts.capabilities.ids, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.logprobs, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.seeds, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.n, CAPABILITY_YES);
    assert_int_equal(facts.capabilities.logprobs_kind, LOGPROBS_KIND_RAW);
    assert_true(facts.capabilities.asked);
    assert_string_equal(facts.capabilities.note, "");
}

static void test_an_engine_that_ignores_seeds_is_found_out(void **state)
{
    struct vllm vllm = honest_vllm;

    (void)state;
    vllm.seeds = SEEDS_IGNORED;
    struct engine_capabilities found = facts_of(vllm).capabilities;
    assert_int_equal(found.seeds, CAPABILITY_NO);
    assert_string_equal(found.note, "the same seed gave other tokens");
    vllm.seeds = SEEDS_CONSTANT;
    found = facts_of(vllm).capabilities;
    assert_int_equal(found.seeds, CAPABILITY_NO);
    assert_string_equal(found.note, "another seed gave the same tokens");
}

/* A trained policy may have one answer left: that is not the engine's fault. */
static void test_a_model_that_always_says_the_same_proves_nothing_about_seeds(void **state)
{
    struct vllm vllm = honest_vllm;

    (void)state;
    vllm.seeds = SEEDS_CONSTANT;
    vllm.certain = -0.01;
    struct engine_capabilities found = facts_of(vllm).capabilities;
    assert_int_equal(found.seeds, CAPABILITY_UNKNOWN);
    assert_true(found.asked);
}

static void test_an_engine_without_ids_is_found_out(void **state)
{
    struct vllm vllm = honest_vllm;

    (void)state;
    vllm.no_ids = true;
    struct engine_capabilities found = facts_of(vllm).capabilities;
    assert_int_equal(found.ids, CAPABILITY_NO);
    assert_int_equal(found.logprobs, CAPABILITY_NO);
    assert_int_equal(found.seeds, CAPABILITY_YES); /* by its texts */
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_UNKNOWN);
}

static void test_one_sample_for_two_is_noticed(void **state)
{
    struct vllm vllm = honest_vllm;

    (void)state;
    vllm.one_only = true;
    assert_int_equal(facts_of(vllm).capabilities.n, CAPABILITY_NO);
}

static void test_the_distribution_of_the_log_probabilities_is_told_by_two_temperatures(void **state)
{
    static const enum logprobs_kind kinds[] = {LOGPROBS_KIND_RAW, LOGPROBS_KIND_TEMPERATURE, LOGPROBS_KIND_PROCESSED,
                                               LOGPROBS_KIND_LOGITS};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct vllm vllm = honest_vllm;
        vllm.kind = kinds[i];
        assert_int_equal(facts_of(vllm).capabilities.logprobs_kind, kinds[i]);
    }
}

/* vLLM in its default mode, recorded: -2.15 for the likeliest token; with processed_logprobs 0. */
static void test_capabilities_are_concluded_from_answers_of_real_servers(void **state)
{
    struct probe_answer answers[PROBE_QUESTIONS] = {{.given = false}};
    struct engine_capabilities found = {.asked = false};

    (void)state;
    for (size_t i = 0; i < 6; i++)
        answers[i] = (struct probe_answer){
            .given = true, .has_ids = true, .count = 1, .ids = {i == 1 ? 2020 : 37631}, .first_logprob = -10.4};
    answers[4].ids[0] = answers[5].ids[0] = 19556;
    answers[4].first_logprob = answers[5].first_logprob = -2.1504807472229004;
    probe_conclude(answers, &found);
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_RAW);
    assert_int_equal(found.seeds, CAPABILITY_YES);
    answers[4].first_logprob = answers[5].first_logprob = 0;
    probe_conclude(answers, &found);
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_PROCESSED);
    for (size_t i = 0; i < 4; i++)
        answers[i].first_logprob = 0; /* it is certain: both would look like this */
    probe_conclude(answers, &found);
    assert_int_equal(found.logprobs_kind, LOGPROBS_KIND_UNKNOWN);
}

static void test_questions_that_are_refused_or_not_answered_leave_the_engine_up_and_unknown(void **state)
{
    static const int statuses[] = {0, 400, 401, 429, 500, 503};

    (void)state;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct vllm vllm = honest_vllm;
        vllm.silent = statuses[i] == 0;
        vllm.status = statuses[i];
        struct engine_facts facts = facts_of(vllm);
        assert_string_equal(facts.model, "smol");
        assert_int_equal(facts.capabilities.seeds, CAPABILITY_UNKNOWN);
        assert_int_equal(facts.capabilities.ids, CAPABILITY_UNKNOWN);
        assert_int_equal(facts.capabilities.asked, statuses[i] == 400 || statuses[i] == 401);
        assert_true(facts.capabilities.note[0]);
    }
}

static void test_a_refusal_ends_the_questions(void **state)
{
    struct probe_rules rules = {
        .adapter = engine_adapter_find(text_of("vllm")), .url = "http://a", .ask_samples = true};
    struct vllm vllm = honest_vllm;
    struct probe probe;

    (void)state;
    vllm.status = 429;
    probe_init(&probe, &rules);
    take(&probe, &vllm);
    probe_finish(&probe);
    assert_int_equal(vllm.asked, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_honest_engine_is_found_to_be_honest),
        cmocka_unit_test(test_an_engine_that_ignores_seeds_is_found_out),
        cmocka_unit_test(test_a_model_that_always_says_the_same_proves_nothing_about_seeds),
        cmocka_unit_test(test_an_engine_without_ids_is_found_out),
        cmocka_unit_test(test_one_sample_for_two_is_noticed),
        cmocka_unit_test(test_the_distribution_of_the_log_probabilities_is_told_by_two_temperatures),
        cmocka_unit_test(test_capabilities_are_concluded_from_answers_of_real_servers),
        cmocka_unit_test(test_questions_that_are_refused_or_not_answered_leave_the_engine_up_and_unknown),
        cmocka_unit_test(test_a_refusal_ends_the_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
