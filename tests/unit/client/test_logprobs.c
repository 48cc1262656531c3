/* Untruncated sampling by default, and what log-probabilities are worth where it is not. */
#include "support.h"

#include "client/adapters/logprobs.h"

#include <stdlib.h>
#include <string.h>

/* --- what every kind is asked when a request is silent --------------------------------------------- */

/* Names and values that switch every default of the engine's own off, by kind; inside `object` if it is not NULL. */
static const struct off {
    const char *kind, *object, *name;
    double value;
} offs[] = {
    {"vllm", NULL, "temperature", 1},
    {"vllm", NULL, "top_p", 1},
    {"vllm", NULL, "top_k", 0},
    {"vllm", NULL, "min_p", 0},
    {"vllm", NULL, "repetition_penalty", 1},
    {"vllm", NULL, "presence_penalty", 0},
    {"vllm", NULL, "frequency_penalty", 0},
    {"vllm", NULL, "min_tokens", 0},
    {"vllm_generate", "sampling_params", "temperature", 1},
    {"vllm_generate", "sampling_params", "top_p", 1},
    {"vllm_generate", "sampling_params", "top_k", 0},
    {"vllm_generate", "sampling_params", "min_p", 0},
    {"vllm_generate", "sampling_params", "repetition_penalty", 1},
    {"vllm_generate", "sampling_params", "presence_penalty", 0},
    {"vllm_generate", "sampling_params", "frequency_penalty", 0},
    {"vllm_generate", "sampling_params", "min_tokens", 0},
    {"sglang", "sampling_params", "temperature", 1},
    {"sglang", "sampling_params", "top_p", 1},
    {"sglang", "sampling_params", "top_k", -1},
    {"sglang", "sampling_params", "min_p", 0},
    {"sglang", "sampling_params", "repetition_penalty", 1},
    {"sglang", "sampling_params", "presence_penalty", 0},
    {"sglang", "sampling_params", "frequency_penalty", 0},
    {"sglang", "sampling_params", "min_new_tokens", 0},
    {"llamacpp", NULL, "temperature", 1},
    {"llamacpp", NULL, "top_p", 1},
    {"llamacpp", NULL, "top_k", 0},
    {"llamacpp", NULL, "min_p", 0},
    {"llamacpp", NULL, "typical_p", 1},
    {"llamacpp", NULL, "repeat_penalty", 1},
    {"llamacpp", NULL, "presence_penalty", 0},
    {"llamacpp", NULL, "frequency_penalty", 0},
    {"llamacpp", NULL, "dynatemp_range", 0},
    {"llamacpp", NULL, "mirostat", 0},
    {"openai_compat", NULL, "temperature", 1},
    {"openai_compat", NULL, "top_p", 1},
    {"openai_compat", NULL, "top_k", 0},
    {"openai_compat", NULL, "min_p", 0},
    {"openai_compat", NULL, "repetition_penalty", 1},
    {"openai_compat", NULL, "repeat_penalty", 1},
    {"openai_compat", NULL, "presence_penalty", 0},
    {"openai_compat", NULL, "frequency_penalty", 0},
};

static void test_no_default_of_an_engine_applies(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(offs); i++) {
        struct sample_request request = plain_request();
        struct exchange exchange;
        json_t *body, *value;

        exchange_init(&exchange, engine_adapter_find(text_of(offs[i].kind)), &request);
        body = built_body(&exchange, NULL);
        value = json_object_get(offs[i].object ? json_object_get(body, offs[i].object) : body, offs[i].name);
        if (!json_is_number(value) || json_number_value(value) != offs[i].value)
            fail_msg("%s is not told %s %g", offs[i].kind, offs[i].name, offs[i].value);
        json_decref(body);
        exchange_finish(&exchange);
    }
}

/* --- what stands between the model and the sample --------------------------------------------------- */

static struct sampling plain(void)
{
    return (struct sampling){.max_tokens = 16, .temperature = 1, .top_p = 1, .top_k = -1};
}

static struct sampling with_options(const char *options)
{
    struct sampling sampling = plain();

    sampling.engine_options = text_of(options);
    return sampling;
}

static void test_silence_changes_nothing(void **state)
{
    struct sampling sampling = plain();

    (void)state;
    assert_int_equal(sampling_changes(&sampling), 0);
}

static void test_each_parameter_is_a_change_of_its_kind(void **state)
{
    struct sampling sampling = plain();

    (void)state;
    sampling.temperature = 0.7;
    assert_int_equal(sampling_changes(&sampling), SAMPLING_TEMPERATURE);
    sampling = plain();
    sampling.top_p = 0.9;
    assert_int_equal(sampling_changes(&sampling), SAMPLING_FILTER);
    sampling = plain();
    sampling.top_k = 50;
    assert_int_equal(sampling_changes(&sampling), SAMPLING_FILTER);
    sampling = plain();
    sampling.min_p = 0.05;
    sampling.temperature = 0;
    assert_int_equal(sampling_changes(&sampling), SAMPLING_FILTER | SAMPLING_TEMPERATURE);
}

static void test_options_change_what_their_names_say(void **state)
{
    static const struct {
        const char *options;
        unsigned changes;
    } cases[] = {
        {"{}", 0},
        {"{\"repetition_penalty\":1.1}", SAMPLING_PENALTY},
        {"{\"repetition_penalty\":1.0}", 0},
        {"{\"repeat_penalty\":1}", 0},
        {"{\"presence_penalty\":0,\"frequency_penalty\":0.1}", SAMPLING_PENALTY},
        {"{\"logit_bias\":{\"5\":-100}}", SAMPLING_BIAS},
        {"{\"logit_bias\":{}}", 0},
        {"{\"logit_bias\":[]}", 0},
        {"{\"logit_bias\":null}", 0},
        {"{\"typical_p\":0.9}", SAMPLING_FILTER},
        {"{\"xtc_probability\":0.5}", SAMPLING_FILTER},
        {"{\"mirostat\":2}", SAMPLING_FILTER},
        {"{\"ignore_eos\":true}", SAMPLING_IGNORE_EOS},
        {"{\"ignore_eos\":false}", 0},
        {"{\"min_tokens\":3}", SAMPLING_BIAS},
        {"{\"grammar\":\"root ::= \\\"a\\\"\"}", SAMPLING_CONSTRAINT},
        {"{\"grammar\":\"\"}", 0},
        {"{\"structured_outputs\":{\"choice\":[\"a\"]}}", SAMPLING_CONSTRAINT},
        {"{\"cache_prompt\":false,\"priority\":3,\"id_slot\":1}", 0},
        {"{\"samplers\":[\"temperature\"]}", SAMPLING_UNKNOWN},
        {"{\"never_heard_of\":1}", SAMPLING_UNKNOWN},
        {"{\"never_heard_of\":false}", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct sampling sampling = with_options(cases[i].options);

        if (sampling_changes(&sampling) != cases[i].changes)
            fail_msg("%s: %#x, not %#x", cases[i].options, sampling_changes(&sampling), cases[i].changes);
    }
}

/* --- the mode of each kind ------------------------------------------------------------------------- */

enum { PLAIN, WARM, FILTERED };

static struct sampling sampling_of(int what)
{
    struct sampling sampling = plain();

    sampling.temperature = what == WARM ? 0.7 : 1;
    sampling.top_p = what == FILTERED ? 0.9 : 1;
    return sampling;
}

static void test_each_kind_has_its_mode(void **state)
{
    /* kind, sampling, what settings or probe say, what the log-probabilities are */
    static const struct {
        const char *kind;
        int what;
        enum logprobs_mode said, mode;
    } cases[] = {
        {"vllm", PLAIN, LOGPROBS_UNKNOWN, LOGPROBS_RAW},
        {"vllm", WARM, LOGPROBS_UNKNOWN, LOGPROBS_UNKNOWN},
        {"vllm", WARM, LOGPROBS_RAW, LOGPROBS_RAW},
        {"vllm", FILTERED, LOGPROBS_PROCESSED, LOGPROBS_PROCESSED},
        {"vllm_generate", WARM, LOGPROBS_UNKNOWN, LOGPROBS_UNKNOWN},
        {"openai_compat", PLAIN, LOGPROBS_UNKNOWN, LOGPROBS_RAW},
        {"openai_compat", FILTERED, LOGPROBS_UNKNOWN, LOGPROBS_UNKNOWN},
        {"sglang", PLAIN, LOGPROBS_UNKNOWN, LOGPROBS_RAW},
        {"sglang", WARM, LOGPROBS_UNKNOWN, LOGPROBS_PROCESSED},   /* taken behind the temperature … */
        {"sglang", FILTERED, LOGPROBS_UNKNOWN, LOGPROBS_UNKNOWN}, /* … and before the filters */
        {"llamacpp", PLAIN, LOGPROBS_UNKNOWN, LOGPROBS_RAW},
        {"llamacpp", WARM, LOGPROBS_UNKNOWN, LOGPROBS_RAW}, /* whatever the sampler does */
        {"llamacpp", FILTERED, LOGPROBS_PROCESSED, LOGPROBS_RAW},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct sample_request request = plain_request();
        struct exchange exchange;

        request.sampling = sampling_of(cases[i].what);
        request.logprobs_mode = cases[i].said;
        exchange_init(&exchange, engine_adapter_find(text_of(cases[i].kind)), &request);
        if (exchange_logprobs_mode(&exchange) != cases[i].mode)
            fail_msg("%zu: %s is %s", i, cases[i].kind, logprobs_mode_names[exchange_logprobs_mode(&exchange)]);
        exchange_finish(&exchange);
    }
}

static void test_llamacpp_has_processed_ones_where_they_are_asked_for(void **state)
{
    struct sample_request request = plain_request();
    struct exchange exchange;

    (void)state;
    request.sampling = with_options("{\"post_sampling_probs\":true}");
    exchange_init(&exchange, engine_adapter_find((struct text)TEXT_LITERAL("llamacpp")), &request);
    assert_int_equal(exchange_logprobs_mode(&exchange), LOGPROBS_PROCESSED);
    exchange_finish(&exchange);
}

/* --- the notes ------------------------------------------------------------------------------------- */

static void assert_note(const struct sampling *sampling, enum logprobs_mode mode, const char *words)
{
    const char *notes[LOGPROBS_NOTES_MAX];
    size_t count = logprobs_notes(sampling_changes(sampling), mode, notes);

    for (size_t i = 0; i < count; i++)
        if (strstr(notes[i], words))
            return;
    fail_msg("none of %zu notes of mode %s says \"%s\"", count, logprobs_mode_names[mode], words);
}

static void test_where_nothing_stands_between_there_is_nothing_to_say(void **state)
{
    static const enum logprobs_mode modes[] = {LOGPROBS_RAW, LOGPROBS_PROCESSED, LOGPROBS_UNKNOWN};
    struct sampling sampling = plain();
    const char *notes[LOGPROBS_NOTES_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
        assert_int_equal(logprobs_notes(sampling_changes(&sampling), modes[i], notes), 0);
}

static void test_each_wrong_combination_is_named(void **state)
{
    struct sampling warm = sampling_of(WARM), filtered = sampling_of(FILTERED);
    struct sampling penalty = with_options("{\"repetition_penalty\":1.1}"),
                    bias = with_options("{\"logit_bias\":{\"5\":1}}"), grammar = with_options("{\"grammar\":\"x\"}"),
                    forever = with_options("{\"ignore_eos\":true}"), odd = with_options("{\"never_heard_of\":1}");

    (void)state;
    assert_note(&warm, LOGPROBS_RAW, "temperature other than 1");
    assert_note(&filtered, LOGPROBS_RAW, "top_p");
    assert_note(&penalty, LOGPROBS_RAW, "penalty");
    assert_note(&bias, LOGPROBS_RAW, "bias");
    assert_note(&grammar, LOGPROBS_RAW, "grammar");
    assert_note(&warm, LOGPROBS_PROCESSED, "divides by it");
    assert_note(&filtered, LOGPROBS_PROCESSED, "another distribution");
    assert_note(&penalty, LOGPROBS_PROCESSED, "penalty");
    assert_note(&bias, LOGPROBS_PROCESSED, "bias");
    assert_note(&warm, LOGPROBS_UNKNOWN, "nobody knows");
    assert_note(&filtered, LOGPROBS_UNKNOWN, "nobody knows");
    assert_note(&forever, LOGPROBS_RAW, "ignore_eos");
    assert_note(&odd, LOGPROBS_RAW, "not known here");
    assert_note(&odd, LOGPROBS_UNKNOWN, "not known here");
}

static void test_everything_at_once_is_named_at_once(void **state)
{
    struct sampling sampling = with_options("{\"repetition_penalty\":1.1,\"logit_bias\":{\"5\":1},\"grammar\":\"x\","
                                            "\"ignore_eos\":true,\"never_heard_of\":1}");
    const char *notes[LOGPROBS_NOTES_MAX];

    (void)state;
    sampling.temperature = 0.5;
    sampling.top_k = 5;
    assert_int_equal(logprobs_notes(sampling_changes(&sampling), LOGPROBS_RAW, notes), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_default_of_an_engine_applies),
        cmocka_unit_test(test_silence_changes_nothing),
        cmocka_unit_test(test_each_parameter_is_a_change_of_its_kind),
        cmocka_unit_test(test_options_change_what_their_names_say),
        cmocka_unit_test(test_each_kind_has_its_mode),
        cmocka_unit_test(test_llamacpp_has_processed_ones_where_they_are_asked_for),
        cmocka_unit_test(test_where_nothing_stands_between_there_is_nothing_to_say),
        cmocka_unit_test(test_each_wrong_combination_is_named),
        cmocka_unit_test(test_everything_at_once_is_named_at_once),
    };

    return cmocka_run_group_tests_name("logprobs", tests, NULL, NULL);
}
