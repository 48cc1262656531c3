/* choice: options and references that cannot be meant, what a verdict says, and the parts it is made of. Its cases are in
 * tests/cases. */
#include "tests/unit/verifiers/grade.h"

#include "verifiers/text/claims.h"
#include "verifiers/text/lookalikes.h"
#include "verifiers/text/option_text.h"
#include "verifiers/text/prose.h"

static void expect_refused(const char *options, const char *name)
{
    json_t *given = json_loads(options, JSON_ALLOW_NUL, NULL);
    struct verifier_problem problem = {"", ""};
    json_t *filled = registry_fill_options(registry_find(text_of("choice")), given, &problem);

    assert_non_null(given);
    assert_null(filled);
    assert_string_equal(problem.name, name);
    assert_true(problem.message[0]);
    json_decref(given);
}

static void test_options_that_cannot_be_meant_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused("{\"letters\": \"\"}", "letters");
    expect_refused("{\"letters\": \"ABA\"}", "letters");
    expect_refused("{\"letters\": \"abcd\"}", "letters");
    expect_refused("{\"letters\": \"A,B\"}", "letters");
    expect_refused("{\"letters\": \"A\\u0000\"}", "letters");
    expect_refused("{\"letters\": \"A\\u0392\"}", "letters");
    expect_refused("{\"letters\": \"ABCDEFGHIJKLMNOPQRSTUVWXYZ01234567890\"}", "letters");
    expect_refused("{\"texts\": {\"E\": \"x\"}}", "texts");
    expect_refused("{\"texts\": {\"a\": \"x\"}}", "texts");
    expect_refused("{\"texts\": {\"AB\": \"x\"}}", "texts");
    expect_refused("{\"texts\": {\"A\": \" \"}}", "texts");
    expect_refused("{\"texts\": {\"A\": 1}}", "texts");
    expect_refused("{\"texts\": [\"x\"]}", "texts");
    expect_refused("{\"markers\": []}", "markers");
    expect_refused("{\"markers\": [\" \"]}", "markers");
    expect_refused("{\"max_boxes\": 0}", "max_boxes");
    expect_refused("{\"mode\": \"boxed\"}", "mode");
    expect_refused("{\"unicode_letters\": \"accept\"}", "unicode_letters");
}

static void test_a_verdict_says_what_it_read_and_where(void **state)
{
    struct verdict verdict = grade("choice", "{\"multi\": true}", "\"A,C\"", "So: Answer: C and A. Done.");

    (void)state;
    assert_int_equal(verdict.kind, VERDICT_CORRECT);
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "read")), "A,C");
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "extracted")), "C and A. Done.");
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "start")), 12);
    assert_int_equal(json_integer_value(json_object_get(verdict.detail, "end")), 26);
    verdict_finish(&verdict);
}

static void test_a_text_without_its_widthless_characters_has_no_span(void **state)
{
    struct verdict verdict = grade("choice", "{\"strip_zero_width\": true}", "\"B\"", "Answer: \u200bB");

    (void)state;
    assert_int_equal(verdict.kind, VERDICT_CORRECT);
    assert_null(json_object_get(verdict.detail, "start"));
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "extracted")), "B");
    verdict_finish(&verdict);
}

static void test_the_reference_is_read_before_the_completion(void **state)
{
    static const char *const broken[] = {"\"\"",    "\"AB\"", "\"A,B\"",     "7",
                                         "[\"A\"]", "true",   "\"\\u0412\"", "\"A\\u0000\""};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
        struct verdict verdict = grade("choice", NULL, broken[i], "");
        assert_int_equal(verdict.kind, VERDICT_UNSCORED);
        assert_string_equal(verdict.failure_code, "reference_unreadable");
        verdict_finish(&verdict);
    }
}

static void test_broken_utf8_and_nul_beside_a_letter_make_it_no_letter(void **state)
{
    static const struct text completions[] = {
        TEXT_LITERAL("Answer: B\xff"),
        TEXT_LITERAL("Answer: \xc3"
                     "B"),
        TEXT_LITERAL("Answer: B\xe2\x80"),
        TEXT_LITERAL("Answer: B\0"),
        TEXT_LITERAL("Answer: \0B"),
        TEXT_LITERAL("Answer: B\xf0\x9d\x90"),
        TEXT_LITERAL("Answer: \xe2\x80"
                     "B"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(completions); i++) {
        struct verdict verdict = grade_text("choice", "{\"unicode_letters\": \"nfkc\", \"strip_zero_width\": true}",
                                            "\"B\"", completions[i]);
        assert_int_equal(verdict.kind, VERDICT_INCORRECT);
        assert_string_equal(verdict.reason, "unparsed_answer");
        verdict_finish(&verdict);
    }
}

static void test_a_line_of_text_comes_apart_into_words_and_signs(void **state)
{
    static const struct {
        enum prose_kind kind;
        const char *text;
        bool decorated;
    } wanted[] = {
        {PROSE_WORD, "B's", true},  {PROSE_LIST, ",", true},
        {PROSE_WORD, "D.C", false}, {PROSE_WORD, "3.5", true},
        {PROSE_LABEL, ":", false},  {PROSE_WORD, "x_1", true},
        {PROSE_UNKNOWN, "+", true}, {PROSE_WORD, "\u00e9t\u00e9", true},
        {PROSE_STOP, ".", false},   {PROSE_END, "", false},
    };
    struct prose prose = {text_of("**B's**, D.C (3.5: \\text{x_1}+\u201c\u00e9t\u00e9."), 0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++) {
        struct prose_word word = prose_next(&prose);
        assert_int_equal(word.kind, wanted[i].kind);
        assert_true(word.kind == PROSE_END || text_equals(word.text, wanted[i].text));
        if (i < 8)
            assert_int_equal(word.decorated, wanted[i].decorated);
    }
}

static void test_brackets_of_an_options_text_count_and_its_layout_does_not(void **state)
{
    (void)state;
    assert_true(option_text_is(text_of("a rocky planet"), text_of("**A  rocky\nplanet**.")));
    assert_true(option_text_is(text_of("$x^2$"), text_of("x^{2}")));
    assert_true(option_text_is(text_of("[0,1)"), text_of("$[0, 1)$")));
    assert_false(option_text_is(text_of("[0,1)"), text_of("[0,1]")));
    assert_false(option_text_is(text_of("(0,1)"), text_of("0,1")));
    assert_false(option_text_is(text_of("{0,1}"), text_of("(0,1)")));
    assert_false(option_text_is(text_of("12"), text_of("120")));
    assert_false(option_text_is(text_of("f'"), text_of("f")));
    assert_false(option_text_is(TEXT_NONE, text_of("")));
    assert_false(option_text_is(text_of("gold"), text_of("gold ring")));
}

static void test_lookalikes_of_latin_letters_are_mapped_and_those_of_other_scripts_stay(void **state)
{
    _cleanup_buffer_ struct buffer room;
    struct text same = text_of("\u0410\u0392 plain");

    (void)state;
    buffer_init(&room, 100);
    assert_true(
        text_equals(lookalikes_plain(text_of("\uff21\uff42\u24b8\U0001d403\u2130\u249c\U0001d7d9"), true, false, &room),
                    "AbCDE(a)1"));
    assert_ptr_equal(lookalikes_plain(same, true, true, &room).data, same.data);
    assert_true(text_equals(lookalikes_plain(text_of("A\u200bB\ufeff\u2060"), false, true, &room), "AB"));
    assert_true(text_equals(lookalikes_plain(text_of("A\u202eB\u200b"), true, true, &room), "A\u202eB"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_that_cannot_be_meant_are_refused_by_name),
        cmocka_unit_test(test_a_verdict_says_what_it_read_and_where),
        cmocka_unit_test(test_a_text_without_its_widthless_characters_has_no_span),
        cmocka_unit_test(test_the_reference_is_read_before_the_completion),
        cmocka_unit_test(test_broken_utf8_and_nul_beside_a_letter_make_it_no_letter),
        cmocka_unit_test(test_a_line_of_text_comes_apart_into_words_and_signs),
        cmocka_unit_test(test_brackets_of_an_options_text_count_and_its_layout_does_not),
        cmocka_unit_test(test_lookalikes_of_latin_letters_are_mapped_and_those_of_other_scripts_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
