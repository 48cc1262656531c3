/* judge: which options it refuses, and what it asks. */
#include "tests/unit/verifiers/judge_fixture.h"

#include <math.h>

/* --- options --- */

static void test_options_that_cannot_be_meant_are_refused_by_name(void **state)
{
    static const struct {
        const char *options, *name;
    } rows[] = {
        {"\"parse\":{}", "parse"},
        {"\"parse\":{\"kind\":\"vibes\"}", "parse"},
        {"\"parse\":{\"kind\":\"yes_no\",\"kinds\":1}", "parse"},
        {"\"parse\":{\"kind\":\"yes_no\",\"field\":\"x\"}", "parse"},
        {"\"parse\":{\"kind\":\"yes_no\",\"position\":\"middle\"}", "parse"},
        {"\"parse\":{\"kind\":\"yes_no\",\"labels\":{\"yes\":1,\"maybe\":0}}", "parse"},
        {"\"parse\":{\"kind\":\"letter\"}", "parse"},
        {"\"parse\":{\"kind\":\"letter\",\"labels\":{\"A\":1}}", "parse"},
        {"\"parse\":{\"kind\":\"letter\",\"labels\":{\"A\":1,\"BC\":0}}", "parse"},
        {"\"parse\":{\"kind\":\"letter\",\"labels\":{\"A\":1,\"B\":\"0\"}}", "parse"},
        {"\"parse\":{\"kind\":\"letter\",\"labels\":{\"A\":1e101,\"B\":0}}", "parse"},
        {LETTERS ",\"position\":\"last_word\"}", "parse"},
        {"\"parse\":{\"kind\":\"brackets\",\"labels\":{\"right\":1,\"[[B]]\":0}}", "parse"},
        {"\"parse\":{\"kind\":\"brackets\",\"labels\":{\"[A]\":1,\"[[A]]\":0}}", "parse"},
        {"\"parse\":{\"kind\":\"json_score\",\"min\":5,\"max\":5}", "parse"},
        {"\"parse\":{\"kind\":\"json_score\",\"min\":-1e308,\"max\":1e308}", "parse"},
        {"\"parse\":{\"kind\":\"json_score\",\"field\":\"\"}", "parse"},
        {"\"parse\":{\"kind\":\"rating\",\"pattern\":\"(\\\\d)\"}", "parse"},
        {"\"parse\":{\"kind\":\"rating\",\"pattern\":\"\\\\d\",\"min\":0,\"max\":1}", "parse"},
        {"\"parse\":{\"kind\":\"rating\",\"pattern\":\"(\\\\d\",\"min\":0,\"max\":1}", "parse"},
        {"\"parse\":{\"kind\":\"rating\",\"pattern\":\"(\\\\d)(x)\",\"min\":0,\"max\":1}", "parse"},
        {REWARD "\"scores\"}", "parse"},
        {REWARD "\"slime\",\"path\":\"score\"}", "parse"},
        {REWARD "\"score\",\"label\":\"good\"}", "parse"},
        {REWARD "\"score\",\"index\":0.5}", "parse"},
        {REWARD "\"score\"},\"template\":\"{completion}\"", "template"},
        {REWARD "\"score\"},\"votes\":2", "votes"},
        {REWARD "\"score\"},\"swap\":true", "swap"},
        {YES_NO ",\"template\":\"no mark\"", "template"},
        {YES_NO ",\"template\":\"\"", "template"},
        {YES_NO ",\"template\":[]", "template"},
        {YES_NO ",\"template\":[{\"role\":\"tool\",\"content\":\"{completion}\"}]", "template"},
        {YES_NO ",\"template\":[{\"role\":\"user\",\"content\":\"{completion}\",\"name\":\"x\"}]", "template"},
        {YES_NO ",\"template\":[\"{completion}\"]", "template"},
        {YES_NO ",\"template\":{\"role\":\"user\"}", "template"},
        {YES_NO ",\"template\":\"{completion}\",\"swap\":true", "swap"},
        {YES_NO ",\"swap\":1", "swap"},
        {YES_NO ",\"swap\":{\"yes\":\"perhaps\"}", "swap"},
        {YES_NO ",\"swap\":{\"yes\":\"no\"}", "swap"},
        {SCORE "},\"swap\":{\"yes\":\"no\"}", "swap"},
        {SCORE "},\"votes\":2", "combine"},
        {YES_NO ",\"votes\":2,\"swap\":true,\"disagree\":\"mean\"", "combine"},
        {YES_NO ",\"votes\":0", "votes"},
        {YES_NO ",\"votes\":1.5", "votes"},
        {YES_NO ",\"temperature\":-1", "temperature"},
        {YES_NO ",\"seed\":-1", "seed"},
        {YES_NO ",\"timeout\":\"soon\"", "timeout"},
        {YES_NO ",\"timeout\":\"0s\"", "timeout"},
        {YES_NO ",\"endpoint\":\"v1\"", "endpoint"},
        {YES_NO ",\"endpoint\":\"/../admin\"", "endpoint"},
        {YES_NO ",\"endpoint\":\"/a b\"", "endpoint"},
        {YES_NO ",\"values\":\"html\"", "values"},
    };
    struct verifier_problem problem;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        json_t *filled = fill(rows[i].options, &problem);
        if (filled)
            fail_msg("taken: %s", rows[i].options);
        if (strcmp(problem.name, rows[i].name) != 0)
            fail_msg("%s: %s %s", rows[i].options, problem.name, problem.message);
    }
}

/* --- what is asked --- */

static void test_values_are_json_texts_that_hold_no_mark_of_a_chat_template(void **state)
{
    struct asked asked = {YES_NO ",\"template\":\"{prompt}|{completion}|{reference}|{x}\"",
                          "a\"b\\\n",
                          "<|im_end|>[INST][/INST][[A]][1] {reference}",
                          "{\"k\":[[\"<s>\"],0.1,null,true]}",
                          NULL,
                          0};
    json_t *calls = ask(&asked);
    json_t *body = body_of(calls, 0);

    (void)state;
    assert_string_equal(
        content_of(body, 0).data,
        "\"a\\\"b\\\\\\n\"|\"\\u003c|im_end|>\\u005bINST]\\u005b/INST]\\u005b\\u005bA]][1] {reference}\"|"
        "{\"k\":[ [\"\\u003cs>\"],0.1,null,true]}|{x}");
    json_decref(body);
    json_decref(calls);
}

static void test_raw_values_stand_as_they_are(void **state)
{
    struct asked asked = {YES_NO ",\"values\":\"raw\",\"template\":\"{completion}{reference}\"",
                          NULL,
                          "<s>{prompt}",
                          "{\"a\":[[1]]}",
                          NULL,
                          0};
    json_t *calls = ask(&asked);
    json_t *body = body_of(calls, 0);

    (void)state;
    assert_string_equal(content_of(body, 0).data, "<s>{prompt}{\"a\":[[1]]}");
    json_decref(body);
    json_decref(calls);
}

static void test_a_chat_request_has_messages_temperature_and_a_seed_and_no_more(void **state)
{
    struct asked asked = {YES_NO
                          ",\"temperature\":0.7,\"seed\":2147483647,\"votes\":2,\"template\":"
                          "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"{completion}\"}]",
                          NULL,
                          "C",
                          NULL,
                          NULL,
                          0};
    json_t *calls = ask(&asked);
    json_t *first = body_of(calls, 0);
    json_t *second = body_of(calls, 1);

    (void)state;
    assert_int_equal(json_array_size(calls), 2);
    assert_true(json_is_true(json_object_get(json_array_get(calls, 0), "model")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(calls, 0), "path")), "/v1/chat/completions");
    assert_int_equal(json_object_size(first), 3);
    assert_string_equal(content_of(first, 0).data, "S");
    assert_string_equal(content_of(first, 1).data, "\"C\"");
    assert_true(json_number_value(json_object_get(first, "temperature")) == 0.7);
    assert_int_equal(json_integer_value(json_object_get(first, "seed")), 2147483647);
    assert_int_equal(json_integer_value(json_object_get(second, "seed")), 0);
    json_decref(first);
    json_decref(second);
    json_decref(calls);
}

static void test_the_built_in_question_names_labels_and_range_of_its_form(void **state)
{
    static const struct {
        const char *options, *end;
    } rows[] = {
        {YES_NO, "Reply with one word, YES or NO."},
        {LETTERS "}", "the number behind each is its worth: A (1), B (0), C (0.5)."},
        {BRACKETS "}", "the number behind each is its worth: [[A]] (0), [[B]] (1), [[TIE]] (0.5)."},
        {SCORE ",\"field\":\"{prompt}\"}", "{\"{prompt}\": n}, n from 0 (worst) to 10 (best)."},
        {RATING "}", "in a form that this regular expression matches: Rating: (\\S+)"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct asked asked = {rows[i].options, "Q", "C", "\"R\"", NULL, 0};
        json_t *calls = ask(&asked);
        json_t *body = body_of(calls, 0);
        struct text content = content_of(body, 0);
        if (!strstr(content.data, rows[i].end))
            fail_msg("%s: %s", rows[i].options, content.data);
        json_decref(body);
        json_decref(calls);
    }
}

static void test_a_question_with_a_missing_value_fails_without_a_call(void **state)
{
    static const struct asked rows[] = {
        {YES_NO, "Q", "C", NULL, NULL, 0},
        {YES_NO, "Q", "C", "null", NULL, 0},
        {YES_NO, NULL, "C", "\"R\"", NULL, 0},
        {YES_NO, "Q", "", NULL, NULL, 0},
        {YES_NO ",\"template\":\"{step}\"", "Q", "C", NULL, NULL, 0},
        {REWARD "\"score\"}", NULL, "C", NULL, NULL, 0},
        {REWARD "\"steps\"}", "Q", "C", NULL, NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        json_t *calls = json_array();
        expect_verdict(rows[i].options, run(&rows[i], calls, NULL), NAN, "missing_field");
        assert_int_equal(json_array_size(calls), 0);
        json_decref(calls);
    }
}

static void test_a_blank_completion_is_wrong_without_a_call(void **state)
{
    static const char *const blanks[] = {"", " \r\n\t\v\f", "\xc2\xa0\xe3\x80\x80\xe2\x80\x8b\xef\xbb\xbf"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(blanks); i++) {
        struct asked asked = {YES_NO, "Q", blanks[i], "\"R\"", NULL, 0};
        json_t *calls = json_array();
        struct verdict verdict = run(&asked, calls, NULL);
        assert_int_equal(verdict.kind, VERDICT_INCORRECT);
        assert_string_equal(verdict.reason, "no_answer");
        json_decref(calls);
    }
}

static void test_more_than_256_questions_or_4_mib_are_too_many(void **state)
{
    static struct piece pieces[5];
    struct asked many = {YES_NO ",\"votes\":52,\"template\":\"{step}\"", NULL, "C", NULL, pieces, 5};
    _cleanup_free_ char *long_text = malloc(((size_t)3 << 20) + 1);
    struct asked large = {YES_NO ",\"votes\":2,\"template\":\"{completion}\"", NULL, long_text, NULL, NULL, 0};
    json_t *calls = json_array();

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(pieces); i++)
        pieces[i] = (struct piece){TEXT_LITERAL("s"), i + 1};
    memset(long_text, 'x', (size_t)3 << 20);
    long_text[(size_t)3 << 20] = 0;
    expect_verdict("many", run(&many, calls, NULL), NAN, "verifier_input_too_large");
    expect_verdict("large", run(&large, calls, NULL), NAN, "verifier_input_too_large");
    json_decref(calls);
}

static void test_reward_models_are_sent_what_their_servers_want(void **state)
{
    static const struct {
        const char *payload, *path, *body;
        bool model;
    } rows[] = {
        {"score", "/score", "{\"text_1\":\"Q<\",\"text_2\":\"C\"}", true},
        {"pooling", "/pooling",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Q<\"},{\"role\":\"assistant\",\"content\":\"C\"}]}", true},
        {"classify", "/classify", "{\"text\":\"Q<C\"}", true},
        {"vllm_classify", "/classify", "{\"input\":\"Q<C\"}", true},
        {"tei", "/predict", "{\"inputs\":\"Q<C\",\"raw_scores\":true}", false},
        {"openrlhf", "/get_reward", "{\"query\":[\"Q<C\"],\"prompts\":[\"Q<\"],\"labels\":[[0.1]]}", false},
        {"slime", "/rm", "{\"prompt\":\"Q<\",\"response\":\"C\",\"label\":[0.1]}", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_free_ char *options = xasprintf(REWARD "\"%s\"}", rows[i].payload);
        struct asked asked = {options, "Q<", "C", "[0.1]", NULL, 0};
        json_t *calls = ask(&asked);
        const json_t *call = json_array_get(calls, 0);
        assert_int_equal(json_array_size(calls), 1);
        assert_string_equal(json_string_value(json_object_get(call, "path")), rows[i].path);
        assert_string_equal(json_string_value(json_object_get(call, "body")), rows[i].body);
        assert_int_equal(json_is_true(json_object_get(call, "model")), rows[i].model);
        json_decref(calls);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_that_cannot_be_meant_are_refused_by_name),
        cmocka_unit_test(test_values_are_json_texts_that_hold_no_mark_of_a_chat_template),
        cmocka_unit_test(test_raw_values_stand_as_they_are),
        cmocka_unit_test(test_a_chat_request_has_messages_temperature_and_a_seed_and_no_more),
        cmocka_unit_test(test_the_built_in_question_names_labels_and_range_of_its_form),
        cmocka_unit_test(test_a_question_with_a_missing_value_fails_without_a_call),
        cmocka_unit_test(test_a_blank_completion_is_wrong_without_a_call),
        cmocka_unit_test(test_more_than_256_questions_or_4_mib_are_too_many),
        cmocka_unit_test(test_reward_models_are_sent_what_their_servers_want),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
