/* judge: what it reads from replies, and what it makes of several. */
#include "tests/unit/verifiers/judge_fixture.h"

#include <math.h>

/* --- what is read --- */

static void test_verdicts_are_read_by_the_form_of_their_kind(void **state)
{
    static const struct {
        const char *options, *reply;
        double score; /* NAN: cannot be read */
    } rows[] = {
        {YES_NO, "YES", 1},
        {YES_NO, "I say: no!", 0},
        {YES_NO, "yes_", 1},
        {YES_NO, "\xe2\x80\x9cYes\xe2\x80\x9d", 1},
        {YES_NO, "\xe7\xad\x94\xe6\xa1\x88\xe6\x98\xafYES\xe3\x80\x82", 1},
        {YES_NO, "nov\xc3\xa9", NAN},
        {YES_NO, "no\xc3\xab", NAN},
        {YES_NO, "no\xcc\x88", NAN},
        {YES_NO, "yesno", NAN},
        {YES_NO, "no2", NAN},
        {YES_NO, "yes, yes, YES", 1},
        {YES_NO, "yes or no", NAN},
        {YES_NO, "<think>yes</think>no", 0},
        {YES_NO, "yes</think>no", 0},
        {YES_NO, "<think>a</think>yes</think>no", 0},
        {YES_NO, "ye<think>x</think>s", NAN},
        {YES_NO, "yes<think>", NAN},
        {YES_NO, "<think>yes", NAN},
        {"\"parse\":{\"kind\":\"yes_no\",\"position\":\"last_word\"}", "no no maybe", NAN},
        {"\"parse\":{\"kind\":\"yes_no\",\"position\":\"last_word\"}", "no. It is, yes! ...", 1},
        {"\"parse\":{\"kind\":\"yes_no\",\"labels\":{\"yes\":-1,\"no\":1}}", "no", 1},
        {LETTERS "}", "A", 1},
        {LETTERS "}", "**C**", 0.5},
        {LETTERS "}", "a", NAN},
        {LETTERS "}", "AB", NAN},
        {LETTERS "}", "A. Not B.", NAN},
        {LETTERS ",\"position\":\"first\"}", "A. Not B.", 1},
        {BRACKETS "}", "[[A]] [[B]]", 1},
        {BRACKETS "}", "[[[B]]]", 1},
        {BRACKETS "}", "[[b]] [B]", NAN},
        {BRACKETS ",\"position\":\"only\"}", "[[B]] [[A]]", NAN},
        {SCORE "}", "{\"score\":5}", 0.5},
        {SCORE "}", "x {\"other\":{\"score\":5}} {\"score\":10}", 1},
        {SCORE "}", "the set {1,2} and {\"score\":1e0}", 0.1},
        {SCORE "}", "{\"score\":5} {\"score\":5.0}", 0.5},
        {SCORE "}", "[{\"score\":5}]", NAN},
        {SCORE "}", "[{\"a\":1},{\"score\":5}]", NAN},
        {SCORE "}", "[1] {\"score\":5}", 0.5},
        {SCORE "}", "{\"score\":5", NAN},
        {SCORE "}", "{\"score\":true}", NAN},
        {SCORE "}", "{\"score\":99999999999999999999}", NAN},
        {SCORE "}", "{\"a\":{\"score\":5},\"a\":1}", NAN},
        {SCORE "}", "{\"score\":NaN} {\"score\":5}", NAN},
        {SCORE ",\"position\":\"last\"}", "{\"score\":NaN} {\"score\":5}", 0.5},
        {SCORE ",\"position\":\"first\"}", "{\"score\":11} {\"score\":5}", NAN},
        {RATING "}", "Rating: 0", 0.5},
        {RATING "}", "Rating: -1e0", 0},
        {RATING "}", "Rating: 2", NAN},
        {RATING "}", "Rating: one", NAN},
        {RATING "}", "Rating: 1 Rating: one", NAN},
        {RATING ",\"position\":\"last\"}", "Rating: 0 Rating: 1", 1},
        {"\"parse\":{\"kind\":\"rating\",\"pattern\":\"(\\\\d?)\",\"min\":0,\"max\":9,\"position\":\"first\"}",
         "9x\xc3\xa9", 1},
        {"\"parse\":{\"kind\":\"rating\",\"pattern\":\"(a*)*[bc]\",\"min\":0,\"max\":9}",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NAN},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        expect_verdict(rows[i].reply, hear(rows[i].options, json_pack("[o]", said(rows[i].reply))), rows[i].score,
                       isnan(rows[i].score) ? "judge_unreadable" : NULL);
}

static void test_a_reply_that_is_no_whole_chat_reply_has_its_code(void **state)
{
    static const struct {
        const char *body, *code;
    } rows[] = {
        {"", "invalid_reply"},
        {"<html>YES</html>", "invalid_reply"},
        {"{\"error\":{\"message\":\"busy\"}}", "invalid_reply"},
        {"{\"choices\":[]}", "invalid_reply"},
        {"{\"choices\":[{\"text\":\"YES\"}]}", "invalid_reply"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\"}},{\"message\":{\"content\":\"YES\"}}]}", "invalid_reply"},
        {"{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"YES\"}]}}]}", "invalid_reply"},
        {"{\"choices\":[{\"message\":{\"content\":null}}]}", "judge_unreadable"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\",\"refusal\":\"No.\"}}]}", "judge_unreadable"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\",\"tool_calls\":[{\"id\":\"1\"}]}}]}", "judge_unreadable"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\"},\"finish_reason\":\"length\"}]}", "judge_truncated"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\"},\"finish_reason\":\"content_filter\"}]}",
         "judge_unreadable"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\"},\"finish_reason\":\"tool_calls\"}]}", "judge_unreadable"},
        {"{\"choices\":[{\"message\":{\"content\":\"YES\"},\"finish_reason\":\"abort\"}]}", "engine_error"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        expect_verdict(rows[i].body, hear(YES_NO, json_pack("[o]", body_text(rows[i].body))), NAN, rows[i].code);
    expect_verdict("null beside",
                   hear(YES_NO, json_pack("[o]", body_text("{\"choices\":[{\"message\":{\"content\":\"YES\","
                                                           "\"refusal\":null,\"tool_calls\":[]},"
                                                           "\"finish_reason\":null}]}"))),
                   1, NULL);
}

static void test_a_call_that_failed_gives_its_code(void **state)
{
    json_t *failure =
        json_pack("{s:{s:s, s:s, s:b}}", "failure", "code", "engine_overloaded", "message", "busy", "retryable", 1);
    struct verdict verdict = hear(YES_NO ",\"votes\":2", json_pack("[o, o]", said("YES"), failure));
    const json_t *asks = json_object_get(verdict.detail, "asks");

    (void)state;
    assert_string_equal(verdict.failure_code, "engine_overloaded");
    assert_string_equal(verdict.failure_message, "busy");
    assert_string_equal(json_string_value(json_object_get(json_array_get(asks, 0), "read")), "yes");
    assert_true(json_is_null(json_object_get(json_array_get(asks, 1), "read")));
    assert_string_equal(json_string_value(json_object_get(json_array_get(asks, 1), "failure")), "engine_overloaded");
    verdict_finish(&verdict);
    expect_verdict("a code that nobody knows", hear(YES_NO, json_pack("[{s:{s:s}}]", "failure", "code", "surprise")),
                   NAN, "engine_error");
    expect_verdict("no success", hear(YES_NO, json_pack("[{s:i, s:s}]", "status", 500, "body", "{}")), NAN,
                   "engine_error");
}

static void test_replies_to_other_questions_are_none(void **state)
{
    (void)state;
    expect_verdict("two for one", hear(YES_NO, json_pack("[o, o]", said("YES"), said("YES"))), NAN, "verifier_crashed");
}

static void test_numbers_of_reward_models_stand_where_their_servers_put_them(void **state)
{
    static const struct {
        const char *parse, *body;
        double score; /* NAN: invalid_reply */
    } rows[] = {
        {"\"score\"}", "{\"data\":[{\"score\":-1.5}]}", -1.5},
        {"\"score\"}", "{\"data\":[{\"score\":[2]}]}", 2},
        {"\"score\"}", "{\"data\":[{\"score\":[[2]]}]}", NAN},
        {"\"score\"}", "{\"data\":[{\"score\":1},{\"score\":2}]}", NAN},
        {"\"score\"}", "{\"data\":[{\"score\":1,\"score\":2}]}", NAN},
        {"\"score\"}", "{\"data\":{\"0\":{\"score\":1}}}", 1},
        {"\"score\",\"path\":\"/data/1/score\"}", "{\"data\":[{\"score\":1},{\"score\":2}]}", 2},
        {"\"score\",\"path\":\"/data/01/score\"}", "{\"data\":[{\"score\":1},{\"score\":2}]}", NAN},
        {"\"score\",\"path\":\"/a~1b/~0\"}", "{\"a/b\":{\"~\":3}}", 3},
        {"\"score\",\"path\":\"/~2\"}", "{\"~2\":3}", NAN},
        {"\"pooling\",\"index\":-1}", "{\"data\":[{\"data\":[1,2,3]}]}", 3},
        {"\"pooling\",\"index\":-4}", "{\"data\":[{\"data\":[1,2,3]}]}", NAN},
        {"\"pooling\",\"index\":0}", "{\"data\":[{\"data\":7}]}", 7},
        {"\"classify\"}", "[{\"embedding\":[1]}]", 1},
        {"\"classify\"}", "{\"embedding\":[]}", NAN},
        {"\"tei\"}", "[{\"score\":1,\"label\":\"x\"}]", 1},
        {"\"tei\"}", "[[{\"score\":1,\"label\":\"x\"}]]", 1},
        {"\"tei\"}", "[{\"score\":1},{\"score\":2}]", NAN},
        {"\"tei\",\"label\":\"y\"}", "[{\"score\":1,\"label\":\"x\"},{\"score\":2,\"label\":\"y\"}]", 2},
        {"\"tei\",\"label\":\"y\"}", "[{\"score\":1,\"label\":\"y\"},{\"score\":2,\"label\":\"y\"}]", NAN},
        {"\"tei\",\"label\":\"z\"}", "[{\"score\":1,\"label\":\"x\"}]", NAN},
        {"\"openrlhf\"}", "{\"rewards\":[[0.5]]}", 0.5},
        {"\"openrlhf\"}", "{\"rewards\":[0.5],\"scores\":[1]}", 0.5},
        {"\"slime\"}", "-3", -3},
        {"\"slime\"}", "[3]", NAN},
        {"\"slime\"}", "true", NAN},
        {"\"slime\",\"path\":\"/r\"}", "{\"r\":[3]}", 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_free_ char *options = xasprintf(REWARD "%s", rows[i].parse);
        struct verdict verdict = hear(options, json_pack("[o]", body_text(rows[i].body)));
        assert_true(verdict.kind == VERDICT_SCORED || verdict.kind == VERDICT_UNSCORED);
        expect_verdict(rows[i].body, verdict, rows[i].score, isnan(rows[i].score) ? "invalid_reply" : NULL);
    }
}

/* --- several replies --- */

static void test_both_orders_must_say_the_same_label(void **state)
{
    static const struct {
        const char *more, *first, *second;
        double score; /* NAN: judge_disagreed */
    } rows[] = {
        {"true", "[[B]]", "[[B]]", 1},
        {"true", "[[B]]", "[[A]]", NAN},
        {"{\"[[A]]\":\"[[B]]\",\"[[B]]\":\"[[A]]\"}", "[[B]]", "[[A]]", 1},
        {"{\"[[A]]\":\"[[B]]\",\"[[B]]\":\"[[A]]\"}", "[[TIE]]", "[[TIE]]", 0.5},
        {"{\"[[A]]\":\"[[B]]\",\"[[B]]\":\"[[A]]\"}", "[[A]]", "[[A]]", NAN},
        {"true,\"disagree\":\"min\"", "[[B]]", "[[TIE]]", 0.5},
        {"true,\"disagree\":\"mean\"", "[[B]]", "[[TIE]]", 0.75},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_free_ char *options = xasprintf(BRACKETS "},\"swap\":%s", rows[i].more);
        expect_verdict(options, hear(options, json_pack("[o, o]", said(rows[i].first), said(rows[i].second))),
                       rows[i].score, isnan(rows[i].score) ? "judge_disagreed" : NULL);
    }
}

static void test_both_orders_of_a_number_must_be_equal(void **state)
{
    (void)state;
    expect_verdict("equal",
                   hear(SCORE "},\"swap\":true", json_pack("[o, o]", said("{\"score\":5}"), said("{\"score\":5}"))),
                   0.5, NULL);
    expect_verdict("not",
                   hear(SCORE "},\"swap\":true", json_pack("[o, o]", said("{\"score\":5}"), said("{\"score\":6}"))),
                   NAN, "judge_disagreed");
}

static void test_the_second_order_has_the_answers_in_each_others_place(void **state)
{
    struct asked asked = {YES_NO ",\"swap\":true,\"template\":\"{reference}/{completion}\"", NULL, "C", "[1]", NULL, 0};
    json_t *calls = ask(&asked);
    json_t *first = body_of(calls, 0);
    json_t *second = body_of(calls, 1);

    (void)state;
    assert_int_equal(json_array_size(calls), 2);
    assert_string_equal(content_of(first, 0).data, "[1]/\"C\"");
    assert_string_equal(content_of(second, 0).data, "\"C\"/[1]");
    assert_true(json_equal(json_object_get(first, "seed"), json_object_get(second, "seed")));
    json_decref(first);
    json_decref(second);
    json_decref(calls);
}

static void test_votes_are_counted_by_label(void **state)
{
    (void)state;
    expect_verdict(
        "two of three",
        hear(BRACKETS "},\"votes\":3", json_pack("[o, o, o]", said("[[B]]"), said("[[TIE]]"), said("[[B]]"))), 1, NULL);
    expect_verdict(
        "one each",
        hear(BRACKETS "},\"votes\":3", json_pack("[o, o, o]", said("[[B]]"), said("[[TIE]]"), said("[[A]]"))), NAN,
        "judge_tied");
    expect_verdict(
        "mean",
        hear(BRACKETS "},\"votes\":2,\"combine\":\"mean\"", json_pack("[o, o]", said("[[B]]"), said("[[TIE]]"))), 0.75,
        NULL);
    expect_verdict("a vote that cannot be read",
                   hear(BRACKETS "},\"votes\":3", json_pack("[o, o, o]", said("[[B]]"), said("?"), said("[[B]]"))), NAN,
                   "judge_unreadable");
    expect_verdict("pairs of votes",
                   hear(BRACKETS "},\"votes\":3,\"swap\":true,\"disagree\":\"min\"",
                        json_pack("[o, o, o, o, o, o]", said("[[B]]"), said("[[B]]"), said("[[B]]"), said("[[A]]"),
                                  said("[[B]]"), said("[[B]]"))),
                   1, NULL);
}

static void test_a_label_worth_1_or_0_is_right_or_wrong_and_any_other_is_scored(void **state)
{
    static const struct {
        const char *reply;
        enum verdict_kind kind;
    } rows[] = {{"[[B]]", VERDICT_CORRECT}, {"[[A]]", VERDICT_INCORRECT}, {"[[TIE]]", VERDICT_SCORED}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct verdict verdict = hear(BRACKETS "}", json_pack("[o]", said(rows[i].reply)));
        assert_int_equal(verdict.kind, rows[i].kind);
        assert_string_equal(verdict.reason, "judged");
        assert_string_equal(json_string_value(json_object_get(verdict.detail, "label")), rows[i].reply);
        verdict_finish(&verdict);
    }
}

/* --- the record --- */

static void test_replies_model_and_version_are_in_the_detail(void **state)
{
    struct verdict verdict = hear(YES_NO ",\"seed\":7", json_pack("[o]", said("YES.")));
    json_t *wanted =
        json_pack("{s:[{s:s, s:s, s:i, s:b, s:s}], s:s, s:s, s:s}", "asks", "reply", "YES.", "read", "yes", "seed", 7,
                  "swapped", 0, "engine", "e1", "engine_model", "m-1", "engine_version", "0.9", "label", "yes");

    (void)state;
    assert_true(json_equal(verdict.detail, wanted));
    json_decref(wanted);
    verdict_finish(&verdict);
}

static void test_a_long_reply_is_cut_at_4_kib_before_a_character(void **state)
{
    char reply[5001];
    struct verdict verdict;
    const json_t *shown;

    (void)state;
    memset(reply, ' ', sizeof reply - 1);
    memcpy(reply + 4095, "\xc3\xa9", 2);
    memcpy(reply + 4990, "YES", 3);
    reply[5000] = 0;
    verdict = hear(YES_NO, json_pack("[o]", said(reply)));
    shown = json_object_get(json_array_get(json_object_get(verdict.detail, "asks"), 0), "reply");
    assert_int_equal(verdict.kind, VERDICT_CORRECT);
    assert_int_equal(json_string_length(shown), 4095);
    verdict_finish(&verdict);
}

/* --- steps --- */

static void test_a_judge_is_asked_once_a_step(void **state)
{
    struct asked asked = {YES_NO ",\"template\":\"{completion}|{step}\"", NULL, "2+2=4\nso 5", NULL, two_steps, 2};
    json_t *calls = ask(&asked);
    json_t *second = body_of(calls, 1);
    json_t *replies = json_pack("[o, o]", said("YES"), said("NO"));
    struct verdict verdict = run(&asked, NULL, replies);

    (void)state;
    assert_int_equal(json_array_size(calls), 2);
    assert_string_equal(content_of(second, 0).data, "\"2+2=4\\nso 5\"|\"so 5\"");
    assert_int_equal(verdict.step_count, 2);
    assert_true(verdict.step_scores[0] == 1 && verdict.step_scores[1] == 0 && verdict.score == 0.5);
    verdict_finish(&verdict);
    json_decref(replies);
    json_decref(second);
    json_decref(calls);
}

static void test_a_template_without_step_is_shown_each_step_as_the_completion(void **state)
{
    struct asked asked = {YES_NO ",\"template\":\"{completion}\"", NULL, "2+2=4\nso 5", NULL, two_steps, 2};
    json_t *calls = ask(&asked);
    json_t *first = body_of(calls, 0);

    (void)state;
    assert_string_equal(content_of(first, 0).data, "\"2+2=4\"");
    json_decref(first);
    json_decref(calls);
}

static void test_the_built_in_question_shows_the_step_and_the_whole(void **state)
{
    struct asked asked = {YES_NO, "Q", "2+2=4\nso 5", "\"R\"", two_steps, 2};
    json_t *calls = ask(&asked);
    json_t *second = body_of(calls, 1);
    struct text content = content_of(second, 0);

    (void)state;
    assert_non_null(strstr(content.data, "\"2+2=4\\nso 5\""));
    assert_non_null(strstr(content.data, "graded:\n\"so 5\"\n\nIs the step right?"));
    json_decref(second);
    json_decref(calls);
}

static void test_a_step_that_cannot_be_read_leaves_the_verdict_without_a_score(void **state)
{
    struct asked asked = {YES_NO ",\"template\":\"{step}\",\"votes\":2", NULL, "2+2=4\nso 5", NULL, two_steps, 2};
    json_t *replies = json_pack("[o, o, o, o]", said("YES"), said("YES"), said("YES"), said("NO"));

    (void)state;
    expect_verdict("a tie", run(&asked, NULL, replies), NAN, "judge_tied");
    json_decref(replies);
}

static void test_a_reward_model_of_steps_is_told_them_all_at_once(void **state)
{
    static const struct {
        const char *body;
        double score; /* NAN: invalid_reply */
    } rows[] = {
        {"{\"scores\":[1,0.25]}", 0.625}, {"{\"scores\":[1]}", NAN},       {"{\"scores\":[1,1,1]}", NAN},
        {"{\"scores\":[1,\"0\"]}", NAN},  {"{\"scores\":[[1],[0]]}", 0.5}, {"{\"scores\":0.5}", NAN},
    };
    struct asked asked = {REWARD "\"steps\"}", "Q", "2+2=4\nso 5", NULL, two_steps, 2};
    json_t *calls = ask(&asked);

    (void)state;
    assert_int_equal(json_array_size(calls), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(calls, 0), "body")),
                        "{\"prompt\":\"Q\",\"steps\":[\"2+2=4\",\"so 5\"]}");
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        json_t *replies = json_pack("[o]", body_text(rows[i].body));
        expect_verdict(rows[i].body, run(&asked, NULL, replies), rows[i].score,
                       isnan(rows[i].score) ? "invalid_reply" : NULL);
        json_decref(replies);
    }
    json_decref(calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_are_read_by_the_form_of_their_kind),
        cmocka_unit_test(test_a_reply_that_is_no_whole_chat_reply_has_its_code),
        cmocka_unit_test(test_a_call_that_failed_gives_its_code),
        cmocka_unit_test(test_replies_to_other_questions_are_none),
        cmocka_unit_test(test_numbers_of_reward_models_stand_where_their_servers_put_them),
        cmocka_unit_test(test_both_orders_must_say_the_same_label),
        cmocka_unit_test(test_both_orders_of_a_number_must_be_equal),
        cmocka_unit_test(test_the_second_order_has_the_answers_in_each_others_place),
        cmocka_unit_test(test_votes_are_counted_by_label),
        cmocka_unit_test(test_a_label_worth_1_or_0_is_right_or_wrong_and_any_other_is_scored),
        cmocka_unit_test(test_replies_model_and_version_are_in_the_detail),
        cmocka_unit_test(test_a_long_reply_is_cut_at_4_kib_before_a_character),
        cmocka_unit_test(test_a_judge_is_asked_once_a_step),
        cmocka_unit_test(test_a_template_without_step_is_shown_each_step_as_the_completion),
        cmocka_unit_test(test_the_built_in_question_shows_the_step_and_the_whole),
        cmocka_unit_test(test_a_step_that_cannot_be_read_leaves_the_verdict_without_a_score),
        cmocka_unit_test(test_a_reward_model_of_steps_is_told_them_all_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
