/* Replies that are refused as inconsistent. Each case changes one thing of a good reply. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A vLLM reply of one choice, from the JSON texts of its parts. */
struct choice {
    const char *text, *ids, *logprobs, *names, *finish, *rest;
};

static const struct choice good = {
    .text = "\" 4.\"",
    .ids = "[812,13,2]",
    .logprobs = "[-0.5,-1.5,-0.25]",
    .names = "[\"token_id:812\",\"token_id:13\",\"token_id:2\"]",
    .finish = "\"stop\"",
    .rest = "",
};

static char *reply_of(const struct choice *choice)
{
    return xasprintf("{\"id\":\"c\",\"choices\":[{\"index\":0,\"text\":%s,\"token_ids\":%s,\"finish_reason\":%s,"
                     "\"logprobs\":{\"token_logprobs\":%s,\"tokens\":%s,\"top_logprobs\":[]},\"prompt_token_ids\":[1,"
                     "411,907,23]%s}]}",
                     choice->text, choice->ids, choice->finish, choice->logprobs, choice->names, choice->rest);
}

static enum exchange_outcome parse_with(const struct sample_request *request, const char *kind, const char *reply,
                                        struct sample *ret_sample, struct sample_error *ret_error)
{
    struct exchange exchange;
    enum exchange_outcome outcome;

    exchange_init(&exchange, engine_adapter_find(text_of(kind)), request);
    outcome = parse_bytes(&exchange, 200, reply, strlen(reply), ret_sample, ret_error);
    exchange_finish(&exchange);
    return outcome;
}

static enum exchange_outcome parse_choice(const struct choice *choice, struct sample *ret_sample,
                                          struct sample_error *ret_error)
{
    struct sample_request request = plain_request();
    char *reply = reply_of(choice);
    enum exchange_outcome outcome = parse_with(&request, "vllm", reply, ret_sample, ret_error);

    free(reply);
    return outcome;
}

static void assert_refused(const struct choice *choice, enum sample_failure code)
{
    struct sample sample;
    struct sample_error error;

    assert_int_equal(parse_choice(choice, &sample, &error), EXCHANGE_ERROR);
    if (error.code != code)
        fail_msg("refused as %s: %s", sample_failure_names[error.code], error.message);
    assert_null(sample.memory);
}

/* --- what is believed ---------------------------------------------------------------------------- */

static void test_a_good_reply_is_a_trainable_sample(void **state)
{
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse_choice(&good, &sample, &error), EXCHANGE_SAMPLE);
    assert_true(text_equals(sample.text, " 4."));
    assert_int_equal(sample.id_count, 3);
    assert_int_equal(sample.ids[0], 812);
    assert_true(sample.logprobs[1] == -1.5f);
    assert_int_equal(sample.prompt_id_count, 4);
    assert_int_equal(sample.finish, FINISH_STOP);
    assert_true(sample.eos_in_ids);
    assert_true(sample.trainable);
    assert_true(sample.seed_honoured);
    assert_true(sample.seed_sent == UINT64_C(8795940449617632684));
    assert_int_equal(sample.logprobs_mode, LOGPROBS_RAW); /* nothing stands between the two kinds */
    sample_finish(&sample);
}

static void test_a_half_of_a_surrogate_pair_is_mended_and_counted(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.text = "\"\\\\boxed{42} \\ud83d\"";
    assert_int_equal(parse_choice(&choice, &sample, &error), EXCHANGE_SAMPLE);
    assert_true(text_equals(sample.text, "\\boxed{42} \xef\xbf\xbd"));
    assert_int_equal(sample.text_replaced, 1);
    sample_finish(&sample);
}

static void test_a_nul_in_the_text_is_kept(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.text = "\"a\\u0000b\"";
    assert_int_equal(parse_choice(&choice, &sample, &error), EXCHANGE_SAMPLE);
    assert_int_equal(sample.text.length_bytes, 3);
    assert_memory_equal(sample.text.data, "a\0b", 3);
    assert_int_equal(sample.text_replaced, 0);
    sample_finish(&sample);
}

static void test_a_stop_string_leaves_no_end_of_sequence(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.rest = ",\"stop_reason\":\"\\n\\n#\"";
    assert_int_equal(parse_choice(&choice, &sample, &error), EXCHANGE_SAMPLE);
    assert_false(sample.eos_in_ids);
    sample_finish(&sample);
}

static void test_rounding_above_zero_becomes_zero(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.logprobs = "[9e-7,-1.5,-0.25]";
    assert_int_equal(parse_choice(&choice, &sample, &error), EXCHANGE_SAMPLE);
    assert_true(sample.logprobs[0] == 0);
    sample_finish(&sample);
}

static void test_behind_a_filter_the_mode_is_unknown(void **state)
{
    struct sample_request request = plain_request();
    char *reply = reply_of(&good);
    struct sample sample;
    struct sample_error error;

    (void)state;
    request.sampling.top_p = 0.9;
    assert_int_equal(parse_with(&request, "vllm", reply, &sample, &error), EXCHANGE_SAMPLE);
    assert_int_equal(sample.logprobs_mode, LOGPROBS_UNKNOWN);
    sample_finish(&sample);
    request.logprobs_mode = LOGPROBS_PROCESSED;
    assert_int_equal(parse_with(&request, "vllm", reply, &sample, &error), EXCHANGE_SAMPLE);
    assert_int_equal(sample.logprobs_mode, LOGPROBS_PROCESSED);
    sample_finish(&sample);
    free(reply);
}

static void test_text_without_ids_is_kept_as_untrainable(void **state)
{
    struct sample_request request = plain_request();
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(
        parse_with(&request, "openai_compat",
                   "{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"stop\",\"logprobs\":null}]}", &sample,
                   &error),
        EXCHANGE_SAMPLE);
    assert_false(sample.trainable);
    assert_null(sample.ids);
    assert_null(sample.logprobs);
    assert_false(sample.seed_honoured);
    sample_finish(&sample);
}

/* --- what is not --------------------------------------------------------------------------------- */

#define REFUSED(claim, member, value, code)                                                                            \
    static void test_##claim(void **state)                                                                             \
    {                                                                                                                  \
        struct choice choice = good;                                                                                   \
        (void)state;                                                                                                   \
        choice.member = value;                                                                                         \
        assert_refused(&choice, code);                                                                                 \
    }

REFUSED(ids_without_logprobs_are_refused, logprobs, "null", SAMPLE_INVALID_REPLY)
REFUSED(fewer_logprobs_than_ids_are_refused, logprobs, "[-0.5,-1.5]", SAMPLE_INVALID_REPLY)
REFUSED(more_logprobs_than_ids_are_refused, logprobs, "[-0.5,-1.5,-0.25,-1]", SAMPLE_INVALID_REPLY)
REFUSED(a_null_logprob_is_not_finite, logprobs, "[-0.5,null,-0.25]", SAMPLE_NON_FINITE_LOGPROB)
REFUSED(a_nan_logprob_is_not_finite, logprobs, "[-0.5,NaN,-0.25]", SAMPLE_NON_FINITE_LOGPROB)
REFUSED(minus_infinity_is_not_finite, logprobs, "[-0.5,-Infinity,-0.25]", SAMPLE_NON_FINITE_LOGPROB)
REFUSED(minus_9999_stands_for_minus_infinity, logprobs, "[-0.5,-9999.0,-0.25]", SAMPLE_NON_FINITE_LOGPROB)
REFUSED(the_lowest_float_stands_for_minus_infinity, logprobs, "[-0.5,-3.4028234663852886e+38,-0.25]",
        SAMPLE_NON_FINITE_LOGPROB)
REFUSED(a_positive_logprob_is_something_else, logprobs, "[-0.5,0.1,-0.25]", SAMPLE_INVALID_REPLY)
REFUSED(all_zero_logprobs_are_refused, logprobs, "[0.0,-0.0,0]", SAMPLE_INVALID_REPLY)
REFUSED(another_id_beside_a_logprob_is_refused, names, "[\"token_id:812\",\"token_id:14\",\"token_id:2\"]",
        SAMPLE_INVALID_REPLY)
REFUSED(fewer_names_than_logprobs_are_refused, names, "[\"token_id:812\"]", SAMPLE_INVALID_REPLY)
REFUSED(a_negative_id_is_refused, ids, "[812,-1,2]", SAMPLE_INVALID_REPLY)
REFUSED(an_id_beyond_31_bits_is_refused, ids, "[812,2147483648,2]", SAMPLE_INVALID_REPLY)
REFUSED(an_id_beyond_32_bits_is_refused, ids, "[812,4294967297,2]", SAMPLE_INVALID_REPLY)
REFUSED(no_tokens_are_an_empty_completion, ids, "[]", SAMPLE_EMPTY_COMPLETION)
REFUSED(a_null_finish_reason_is_refused, finish, "null", SAMPLE_INVALID_REPLY)
REFUSED(an_empty_finish_reason_is_refused, finish, "\"\"", SAMPLE_INVALID_REPLY)
REFUSED(an_unknown_finish_reason_is_refused, finish, "\"preempted\"", SAMPLE_INVALID_REPLY)
REFUSED(an_aborted_sample_is_the_engines_fault, finish, "\"aborted\"", SAMPLE_ENGINE_ERROR)
REFUSED(a_filtered_sample_is_the_engines_fault, finish, "\"content_filter\"", SAMPLE_ENGINE_ERROR)
REFUSED(a_missing_text_is_refused, text, "null", SAMPLE_INVALID_REPLY)
REFUSED(a_number_for_a_text_is_refused, text, "7", SAMPLE_INVALID_REPLY)
REFUSED(another_prompt_is_refused, rest, ",\"prompt_token_ids\":[1,411]", SAMPLE_INVALID_REPLY)

static void test_an_abort_is_asked_again_with_the_same_seed_and_a_filter_is_not(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.finish = "\"abort\"";
    parse_choice(&choice, &sample, &error);
    assert_true(error.retryable && !error.resample);
    assert_non_null(strstr(error.message, "abort"));
    choice.finish = "\"content_filter\"";
    parse_choice(&choice, &sample, &error);
    assert_false(error.retryable || error.resample);
    assert_non_null(strstr(error.message, "content_filter"));
}

static void test_a_refused_whole_answer_draws_a_new_seed(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.logprobs = "[-0.5,null,-0.25]";
    parse_choice(&choice, &sample, &error);
    assert_true(error.retryable && error.resample);
    choice = good;
    choice.ids = "[812]";
    parse_choice(&choice, &sample, &error);
    assert_true(error.retryable && error.resample);
}

static void test_an_empty_completion_is_not_asked_again(void **state)
{
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;

    (void)state;
    choice.text = "\"\"";
    choice.ids = choice.logprobs = choice.names = "[]";
    choice.finish = "\"length\"";
    parse_choice(&choice, &sample, &error);
    assert_int_equal(error.code, SAMPLE_EMPTY_COMPLETION);
    assert_false(error.retryable);
}

static void test_all_zero_is_right_where_the_sampler_is_certain(void **state)
{
    struct sample_request request = plain_request();
    struct choice choice = good;
    struct sample sample;
    struct sample_error error;
    char *reply;

    (void)state;
    choice.logprobs = "[0.0,0.0,0.0]";
    reply = reply_of(&choice);
    request.sampling.temperature = 0;
    assert_int_equal(parse_with(&request, "vllm", reply, &sample, &error), EXCHANGE_SAMPLE);
    sample_finish(&sample);
    free(reply);
}

static void test_the_engines_own_count_must_agree(void **state)
{
    struct sample_request request = plain_request();
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse_with(&request, "vllm",
                                "{\"choices\":[{\"text\":\"x\",\"token_ids\":[1],\"finish_reason\":\"stop\","
                                "\"logprobs\":{\"token_logprobs\":[-1]}}],"
                                "\"usage\":{\"completion_tokens\":2}}",
                                &sample, &error),
                     EXCHANGE_ERROR);
    assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
}

/* Two lists of log-probabilities in one object: the second must not be written behind the end of the first. */
static void test_log_probabilities_in_two_forms_are_refused(void **state)
{
    struct sample_request request = plain_request();
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(
        parse_with(&request, "vllm",
                   "{\"choices\":[{\"text\":\"x\",\"token_ids\":[1],\"finish_reason\":\"stop\",\"logprobs\":{\"token_"
                   "logprobs\":[-1],"
                   "\"content\":[{\"logprob\":-1},{\"logprob\":-1},{\"logprob\":-1}],\"tokens\":[\"a\",\"b\"]}}]}",
                   &sample, &error),
        EXCHANGE_ERROR);
    assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
}

static void test_a_broken_number_beside_a_logprob_is_no_matter(void **state)
{
    struct sample_request request = plain_request();
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(
        parse_with(&request, "vllm",
                   "{\"choices\":[{\"text\":\"x\",\"token_ids\":[1],\"finish_reason\":\"stop\",\"logprobs\":{"
                   "\"token_logprobs\":[NaN],\"top_logprobs\":[{\"token_id:1\":NaN}]}}]}",
                   &sample, &error),
        EXCHANGE_ERROR);
    assert_int_equal(error.code, SAMPLE_NON_FINITE_LOGPROB);
}

static void test_a_prompt_that_the_engine_cut_is_an_overflow(void **state)
{
    struct sample_request request = plain_request();
    struct sample sample;
    struct sample_error error;

    (void)state;
    assert_int_equal(parse_with(&request, "llamacpp",
                                "{\"content\":\"x\",\"tokens\":[5],\"stop_type\":\"limit\",\"tokens_evaluated\":3,"
                                "\"completion_probabilities\":[{\"id\":5,\"logprob\":-1}]}",
                                &sample, &error),
                     EXCHANGE_ERROR);
    assert_int_equal(error.code, SAMPLE_CONTEXT_OVERFLOW);
}

static void test_replies_without_a_sample_are_refused(void **state)
{
    static const char *const bodies[] = {"{\"object\":\"text_completion\",\"choices\":[]}",
                                         "{\"choices\":null}",
                                         "null",
                                         "[]",
                                         "",
                                         "{}",
                                         "<html>hello</html>",
                                         "{\"choices\":[1]}",
                                         "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
                                         "{\"choices\":[{\"text\":\"a\"}]} trailing"};
    static const char *const names[] = {"vllm", "llamacpp", "sglang", "openai_compat", "vllm_generate"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(bodies); i++) {
        for (size_t k = 0; k < ARRAY_LENGTH(names); k++) {
            struct sample_request request = plain_request();
            struct sample sample;
            struct sample_error error;

            assert_int_equal(parse_with(&request, names[k], bodies[i], &sample, &error), EXCHANGE_ERROR);
            assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
            assert_true(*error.message);
        }
    }
}

static void test_more_ids_than_were_asked_for_are_refused(void **state)
{
    struct sample_request request = plain_request();
    char *reply = reply_of(&good);
    struct sample sample;
    struct sample_error error;

    (void)state;
    request.sampling.max_tokens = 3;
    assert_int_equal(parse_with(&request, "vllm", reply, &sample, &error), EXCHANGE_SAMPLE);
    sample_finish(&sample);
    request.sampling.max_tokens = 2;
    assert_int_equal(parse_with(&request, "vllm", reply, &sample, &error), EXCHANGE_ERROR);
    assert_int_equal(error.code, SAMPLE_INVALID_REPLY);
    free(reply);
}

/* Requests are of n = 1: an index that is not 0 belongs to somebody else's. */
static void test_another_index_than_the_first_is_refused(void **state)
{
    static const struct {
        const char *index;
        enum exchange_outcome outcome;
    } cases[] = {{"0", EXCHANGE_SAMPLE}, {"null", EXCHANGE_SAMPLE}, {"1", EXCHANGE_ERROR},
                 {"-1", EXCHANGE_ERROR}, {"\"0\"", EXCHANGE_ERROR}, {"1e99", EXCHANGE_ERROR}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char *reply =
            xasprintf("{\"choices\":[{\"text\":\"4\",\"finish_reason\":\"stop\",\"index\":%s}]}", cases[i].index);
        struct sample_request request = plain_request();
        struct sample sample;
        struct sample_error error;
        enum exchange_outcome outcome = parse_with(&request, "openai_compat", reply, &sample, &error);

        if (outcome != cases[i].outcome || (outcome == EXCHANGE_ERROR && error.code != SAMPLE_INVALID_REPLY))
            fail_msg("index %s", cases[i].index);
        if (outcome == EXCHANGE_SAMPLE)
            sample_finish(&sample);
        free(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_reply_is_a_trainable_sample),
        cmocka_unit_test(test_a_half_of_a_surrogate_pair_is_mended_and_counted),
        cmocka_unit_test(test_a_nul_in_the_text_is_kept),
        cmocka_unit_test(test_a_stop_string_leaves_no_end_of_sequence),
        cmocka_unit_test(test_rounding_above_zero_becomes_zero),
        cmocka_unit_test(test_behind_a_filter_the_mode_is_unknown),
        cmocka_unit_test(test_text_without_ids_is_kept_as_untrainable),
        cmocka_unit_test(test_ids_without_logprobs_are_refused),
        cmocka_unit_test(test_fewer_logprobs_than_ids_are_refused),
        cmocka_unit_test(test_more_logprobs_than_ids_are_refused),
        cmocka_unit_test(test_a_null_logprob_is_not_finite),
        cmocka_unit_test(test_a_nan_logprob_is_not_finite),
        cmocka_unit_test(test_minus_infinity_is_not_finite),
        cmocka_unit_test(test_minus_9999_stands_for_minus_infinity),
        cmocka_unit_test(test_the_lowest_float_stands_for_minus_infinity),
        cmocka_unit_test(test_a_positive_logprob_is_something_else),
        cmocka_unit_test(test_all_zero_logprobs_are_refused),
        cmocka_unit_test(test_another_id_beside_a_logprob_is_refused),
        cmocka_unit_test(test_fewer_names_than_logprobs_are_refused),
        cmocka_unit_test(test_a_negative_id_is_refused),
        cmocka_unit_test(test_an_id_beyond_31_bits_is_refused),
        cmocka_unit_test(test_an_id_beyond_32_bits_is_refused),
        cmocka_unit_test(test_no_tokens_are_an_empty_completion),
        cmocka_unit_test(test_a_null_finish_reason_is_refused),
        cmocka_unit_test(test_an_empty_finish_reason_is_refused),
        cmocka_unit_test(test_an_unknown_finish_reason_is_refused),
        cmocka_unit_test(test_an_aborted_sample_is_the_engines_fault),
        cmocka_unit_test(test_a_filtered_sample_is_the_engines_fault),
        cmocka_unit_test(test_a_missing_text_is_refused),
        cmocka_unit_test(test_a_number_for_a_text_is_refused),
        cmocka_unit_test(test_another_prompt_is_refused),
        cmocka_unit_test(test_an_abort_is_asked_again_with_the_same_seed_and_a_filter_is_not),
        cmocka_unit_test(test_a_refused_whole_answer_draws_a_new_seed),
        cmocka_unit_test(test_an_empty_completion_is_not_asked_again),
        cmocka_unit_test(test_all_zero_is_right_where_the_sampler_is_certain),
        cmocka_unit_test(test_the_engines_own_count_must_agree),
        cmocka_unit_test(test_log_probabilities_in_two_forms_are_refused),
        cmocka_unit_test(test_a_broken_number_beside_a_logprob_is_no_matter),
        cmocka_unit_test(test_a_prompt_that_the_engine_cut_is_an_overflow),
        cmocka_unit_test(test_replies_without_a_sample_are_refused),
        cmocka_unit_test(test_more_ids_than_were_asked_for_are_refused),
        cmocka_unit_test(test_another_index_than_the_first_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
