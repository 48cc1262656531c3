/* Parts of the room ifeval, and completions that are meant to hurt. The rules themselves are held by tests/cases. */
#include "tests/unit/verifiers/grade.h"

#include <stdio.h>

#include "verifiers/ifeval/instruction.h"
#include "verifiers/ifeval/language.h"
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/passage.h"

static void expect_sentences(const char *text, size_t count)
{
    struct spans sentences = {0};

    split_sentences(text_of(text), &sentences);
    if (sentences.count != count)
        fail_msg("%zu sentences in: %s", sentences.count, text);
    spans_finish(&sentences);
}

static void test_a_sentence_ends_at_its_end_and_at_no_abbreviation(void **state)
{
    (void)state;
    expect_sentences("", 0);
    expect_sentences("No end", 1);
    expect_sentences("One. Two! Three? Four", 4);
    expect_sentences("Mr. J. R. Smith of Acme Inc. paid $3.50, e.g. in cash.", 1);
    expect_sentences("He lives in the U.S. He likes it.", 2);
    expect_sentences("\"Really?\" she said. \"Yes.\" He left.", 3);
    expect_sentences("Wait... then go. Wait... Then go.", 3);
    expect_sentences("1. Apples\n2. Pears", 1);
    expect_sentences("It is so! \xf0\x9f\x98\x80", 1);
    expect_sentences("\xe5\xaf\x92\xe3\x80\x82\xe6\x9a\x91\xe3\x80\x82", 2);
}

static size_t count_spoken(const char *string)
{
    struct text rest = text_of(string);
    struct text word;
    size_t count = 0;

    while (next_spoken(&rest, &word))
        count++;
    return count;
}

static void test_a_spoken_word_keeps_its_inner_signs(void **state)
{
    (void)state;
    assert_int_equal(count_spoken("don't well-known 3.5 1,000 U.S."), 5);
    assert_int_equal(count_spoken("one,two - three/four"), 4);
    assert_int_equal(count_spoken("... \xe2\x80\x94 !"), 0);
}

static void test_characters_have_the_classes_of_unicode(void **state)
{
    (void)state;
    for (uint32_t point = 0; point < 128; point++)
        assert_int_equal(character_classes(point), character_wide_classes(point));
    assert_int_equal(character_lower(0x416), 0x436);
    assert_int_equal(character_lower(0x1f600), 0x1f600);
    assert_true(character_classes(0x1e9e) & CHARACTER_UPPER);
    assert_true(character_classes(0x20ac) == 0);
    assert_true(character_classes(0xa0) & CHARACTER_SPACE);
    assert_true(character_classes(0x663) & CHARACTER_DIGIT);
    assert_true(character_classes(0x1f600) & CHARACTER_EMOJI);
    assert_true(character_classes(0x30000) & CHARACTER_LETTER);
    assert_true(text_same_letters(text_of("STRA\xc3\x9f"
                                          "E"),
                                  text_of("stra\xc3\x9f"
                                          "e")));
    assert_int_equal(characters_count(text_of("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z")), 4);
}

static void test_a_language_is_decided_by_script_or_words_or_not_at_all(void **state)
{
    (void)state;
    assert_int_equal(language_is(text_of("the cat sat on the mat and was happy"), text_of("en")), LANGUAGE_SAME);
    assert_int_equal(language_is(text_of("the cat sat on the mat and was happy"), text_of("de")), LANGUAGE_OTHER);
    assert_int_equal(language_is(text_of("hello"), text_of("en")), LANGUAGE_UNDECIDED);
    assert_int_equal(language_is(text_of("123"), text_of("en")), LANGUAGE_OTHER);
    assert_int_equal(language_is(text_of("\xe0\xb9\x84\xe0\xb8\x97\xe0\xb8\xa2"), text_of("th")), LANGUAGE_SAME);
    assert_false(language_is_known(text_of("xx")));
}

/* Kwargs that fit any rule of the instruction. */
static json_t *kwargs_of(const struct instruction *instruction)
{
    json_t *kwargs = json_object();

    for (const struct kwarg_rule *rule = instruction->kwargs; rule->name; rule++) {
        json_t *value = rule->kind == KWARG_RELATION   ? json_string("at least")
                        : rule->kind == KWARG_WORDS    ? json_pack("[s]", "ab")
                        : rule->kind == KWARG_LANGUAGE ? json_string("hi")
                        : rule->kind == KWARG_LETTER   ? json_string("a")
                        : rule->kind == KWARG_COUNT || rule->kind == KWARG_PLACE || rule->kind == KWARG_PERCENT
                            ? json_integer(3)
                            : json_string("a b");
        json_object_set_new(kwargs, rule->name, value);
    }
    return kwargs;
}

static void grade_with(const struct instruction *instruction, struct text completion)
{
    json_t *reference =
        json_pack("{s:[s], s:[o]}", "instruction_id_list", instruction->id, "kwargs", kwargs_of(instruction));
    char *text = json_dumps(reference, 0);
    struct verdict verdict = grade_text("ifeval", "{\"mode\": \"loose\"}", text, completion);

    if (verdict.kind == VERDICT_UNSCORED)
        assert_string_equal(verdict.failure_code, "unsupported");
    else
        assert_true(verdict.score == 0 || verdict.score == 1);
    verdict_finish(&verdict);
    free(text);
    json_decref(reference);
}

static void test_no_completion_hurts_any_rule(void **state)
{
    static const char *const units[] = {
        "a",   " ",     "\n", "*",        "**",   "a* ",        ". ",     "! ? ",  "\"'",
        "([{", "<<a",   "[",  "\xc3\xa9", "\xff", "Question 1", "\"a\",", "a b\n", "\xf0\x9f\x98\x80 ",
        "-",   "* a\n",
    };
    char *text = malloc(1 << 14);

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(units); i++) {
        for (size_t at = 0; at < 1 << 14; at++)
            text[at] = units[i][at % strlen(units[i])];
        for (size_t k = 0; k < instruction_count; k++)
            grade_with(&instructions[k], (struct text){text, 1 << 14});
    }
    free(text);
}

static void test_nul_and_broken_utf8_are_characters(void **state)
{
    static const char text[] = "a\0b \xff\xfe\xe2\x82 \xed\xa0\x80 <<x>>";

    (void)state;
    for (size_t k = 0; k < instruction_count; k++)
        for (size_t bytes = 0; bytes < sizeof text; bytes++)
            grade_with(&instructions[k], (struct text){text, bytes});
}

static void test_ids_are_there_once(void **state)
{
    (void)state;
    assert_int_equal(instruction_count, 25 + 29 + 58);
    for (size_t i = 0; i < instruction_count; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(instructions[i].id, instructions[k].id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sentence_ends_at_its_end_and_at_no_abbreviation),
        cmocka_unit_test(test_a_spoken_word_keeps_its_inner_signs),
        cmocka_unit_test(test_characters_have_the_classes_of_unicode),
        cmocka_unit_test(test_a_language_is_decided_by_script_or_words_or_not_at_all),
        cmocka_unit_test(test_no_completion_hurts_any_rule),
        cmocka_unit_test(test_nul_and_broken_utf8_are_characters),
        cmocka_unit_test(test_ids_are_there_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
