/* Where the answer stands, rule by rule. */
#include "tests/unit/verifiers/grade.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/base/sanitizer.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/sentence.h"

static void found_by(enum extract_rule rule, const char *completion, const char *answer)
{
    struct extracted extracted;

    extract_answer(text_of(completion), rule, &extracted);
    if (answer ? !text_equals(extracted.answer, answer) : extracted.answer.data != NULL)
        fail_msg("%s of %s: %.*s, expected %s", extract_rule_names[rule], completion,
                 (int)extracted.answer.length_bytes, extracted.answer.data ? extracted.answer.data : "",
                 answer ? answer : "nothing");
}

static void boxed(const char *completion, const char *answer)
{
    found_by(EXTRACT_BOXED, completion, answer);
}

static void test_the_last_box_counts_with_its_braces_matched(void **state)
{
    (void)state;
    boxed("\\boxed{6} then \\boxed{7}.", "7");
    boxed("\\boxed{\\frac{1}{2}}", "\\frac{1}{2}");
    boxed("\\boxed{\\left\\{1,2\\right\\}}", "\\left\\{1,2\\right\\}");
    boxed("\\fbox{ 5 }", "5");
    boxed("\\boxed {5}", "5");
    boxed("\\boxed\n{5}", "5");
    boxed("\\boxed 5.", "5");
    boxed("$\\boxed42$", "42");
    boxed("\\boxed -4.25.", "-4.25");
    boxed("\\(\\boxed 1,800\\) in all", "1,800");
    boxed("\\boxed 42 or 43", NULL);
    boxed("\\boxed{7} or \\boxed 42\\sqrt2", NULL);
    boxed("\\boxed{\\boxed{5}}", "\\boxed{5}");
    boxed("\\boxed{ 5\\ }", "5\\ ");
    boxed("\\boxed{5\\\\ }", "5\\\\");
    boxed("x\\\\\\boxed{4}\\end{aligned}", "4");
}

static void test_words_like_a_box_are_passed_over(void **state)
{
    (void)state;
    boxed("write \\boxed here: \\boxed{7}", "7");
    boxed("\\boxedtext{5}", NULL);
    boxed("\\\\boxed{5}", NULL);
    boxed("boxed{5}", NULL);
    boxed("\\boxed{}", NULL);
    boxed("\\boxed{ \n }", NULL);
    boxed("", NULL);
}

static void test_a_truncated_last_box_is_no_answer(void **state)
{
    (void)state;
    boxed("\\boxed{5", NULL);
    boxed("\\boxed{5} \\boxed{", NULL);
    boxed("\\boxed{5} \\boxed{\\frac{1}{2}", NULL);
    boxed("\\boxed{5\\}", NULL);
    boxed("\\boxed{5} \\boxed 5 + 1", NULL);
    boxed("\\boxed 42, 43", NULL);
    boxed("\\boxed 4!", NULL);
    boxed("\\boxed 4x", NULL);
}

static void test_reasoning_and_what_follows_the_turn_do_not_count(void **state)
{
    (void)state;
    boxed("<think>\\boxed{4}</think>\\boxed{5}", "5");
    boxed("<think>\\boxed{4}</think>", NULL);
    boxed("<think>\\boxed{4}", NULL);
    boxed("a\\boxed{4}</think>b</think>\\boxed{5}", "5");
    boxed("\\boxed{4}</think>\\boxed{5}<think>\\boxed{6}", NULL);
    boxed("\\boxed{11}<|im_end|>\\boxed{12}", "11");
    boxed("\\boxed{11}</s>", "11");
}

static void test_a_turn_ends_with_each_of_the_common_tokens(void **state)
{
    static const char *const tokens[] = {"</s>",
                                         "<eos>",
                                         "<end_of_turn>",
                                         "<start_of_turn>user",
                                         "<|im_end|>",
                                         "<|im_start|>user",
                                         "<|eot_id|>",
                                         "<|eom_id|>",
                                         "<|start_header_id|>user",
                                         "<|end|>",
                                         "<|EOT|>",
                                         "<|return|>",
                                         "<|endoftext|>",
                                         "<|end_of_text|>",
                                         "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",
                                         "<\uFF5CUser\uFF5C>"};
    char completion[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(tokens); i++) {
        snprintf(completion, sizeof completion, "\\boxed{11}%s\\boxed{12}", tokens[i]);
        boxed(completion, "11");
    }
    boxed("\\boxed{11} < x <end> |im_end| <user> \\boxed{12}", "12");
    boxed("\\boxed{11}<|end|><|start|>assistant<|channel|>final<|message|>\\boxed{12}", "12");
    boxed("<|im_start|>think\n\\boxed{11}<|im_start|>answer\n\\boxed{12}", "12");
    boxed(" <|im_start|>assistant\n\\boxed{11}<|im_start|>user\n\\boxed{12}", "11");
}

static void test_auto_is_the_box_or_else_the_answer_tag(void **state)
{
    (void)state;
    found_by(EXTRACT_AUTO, "<answer>4</answer> \\boxed{5}", "5");
    found_by(EXTRACT_AUTO, "<answer>4</answer>", "4");
    found_by(EXTRACT_AUTO, "<answer>4</answer> \\boxed{", NULL);
    found_by(EXTRACT_AUTO, "the answer is 4", NULL);
}

static void test_the_last_answer_tag_must_be_closed(void **state)
{
    (void)state;
    found_by(EXTRACT_ANSWER_TAG, "<answer>4</answer><answer> 5 </answer>", "5");
    found_by(EXTRACT_ANSWER_TAG, "<answer>4</answer><answer>5", NULL);
    found_by(EXTRACT_ANSWER_TAG, "<answer>4<answer>5</answer>", "5");
    found_by(EXTRACT_ANSWER_TAG, "<answer></answer>", NULL);
    found_by(EXTRACT_ANSWER_TAG, "4</answer>", NULL);
}

static void test_a_marker_is_followed_to_the_end_of_its_sentence_or_line(void **state)
{
    (void)state;
    found_by(EXTRACT_ANSWER_IS, "The answer is 5.", "5");
    found_by(EXTRACT_ANSWER_IS, "Answer: 5\nmore", "5");
    found_by(EXTRACT_ANSWER_IS, "**Answer: 5**", "5");
    found_by(EXTRACT_ANSWER_IS, "**Answer:** 5", "5");
    found_by(EXTRACT_ANSWER_IS, "The final answer is $5$. I hope it is correct.", "$5$");
    found_by(EXTRACT_ANSWER_IS, "answer is 4. No, the answer is 2.5.", "2.5");
    found_by(EXTRACT_ANSWER_IS, "an answer isolated", NULL);
    found_by(EXTRACT_GSM8K, "#### 17\nno\n#### 18", "18");
    found_by(EXTRACT_GSM8K, "####\n18", NULL);
    found_by(EXTRACT_GSM8K, "18", NULL);
}

static void test_emphasis_and_quotes_around_a_sentence_do_not_count(void **state)
{
    static const char *const lines[] = {
        "*Answer: 42*",
        "_Answer: 42_",
        "`Answer: 42`",
        "***Answer:*** 42",
        "__Answer:__ **42**",
        "Answer: `42`",
        "Answer: \"42\"",
        "The answer is \"42.\"",
        "The answer is '42'.",
        "\\textbf{Answer:} 42",
        "\\textbf{Answer}: 42",
        "\\textbf{Answer: 42}",
        "The answer is \u201C42\u201D.",
        "Answer: 42,",
        "Answer: 42;",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
        found_by(EXTRACT_ANSWER_IS, lines[i], "42");
    found_by(EXTRACT_ANSWER_IS, "Answer: $$42$$", "$$42$$");
    found_by(EXTRACT_ANSWER_IS, "\\textbf{Answer: \\frac{1}{2}}", "\\frac{1}{2}");
    found_by(EXTRACT_ANSWER_IS, "Answer: R^*", "R^*");
    found_by(EXTRACT_ANSWER_IS, "Answer: 42\\,", "42\\,");
    found_by(EXTRACT_ANSWER_IS, "Answer: 0.3...", "0.3..");
    found_by(EXTRACT_ANSWER_IS, "Answer: \"42\" or \"43\"", "\"42\" or \"43\"");
    found_by(EXTRACT_GSM8K, "**#### 42**", "42");
    found_by(EXTRACT_GSM8K, "#### 42,", "42");
}

static void valued(const char *sentence, const char *value)
{
    struct text found = sentence_value(text_of(sentence));

    if (!text_equals(found, value))
        fail_msg("%s says %.*s, expected %s", sentence, (int)found.length_bytes, found.data, value);
}

static void test_an_explanation_behind_the_value_is_dropped(void **state)
{
    (void)state;
    valued("42 because it is even", "42");
    valued("42, which is even", "42");
    valued("42, as required", "42");
    valued("\\boxed{42}, as required", "\\boxed{42}");
    valued("$42$, since $a b = c$", "$42$");
    valued("42, I hope it is correct", "42");
    valued("42 (because it is even)", "42");
    valued("42 \xE2\x80\x94 because it is even", "42");
    valued("42** because it is even", "42");
    valued("42 red apples in total", "42 red apples");
    valued("$k\\pi$, where $k$ is an integer", "$k\\pi$");
    valued("$42, as required", "$42");
}

static void test_words_that_may_be_another_value_stay(void **state)
{
    static const char *const sentences[] = {
        "42",
        "42 or 43",
        "42, or maybe 43",
        "42, not 43",
        "1, 2, and 3",
        "x = 1 or x = 2",
        "42, which is 43",
        "42, so 43",
        "42 because it may be 43",
        "42 because 43 is correct",
        "42, which is a lie",
        "42 so far",
        "42 by the gross",
        "42 because it isn't 43",
        "42 because n is even, 43 because n is odd",
        "42 since n is even and 43 since n is odd",
        "42, which must be doubled",
        "42, which is six less",
        "42 for all even n, 43 for all odd n",
        "$x$ for all $x$, $y$ for all $y$",
        "\\text{42 because it is even}",
        "$42 \\text{ since } x$",
        "42, whichever is even",
        "42 also",
        "because it is even",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sentences); i++)
        valued(sentences[i], sentences[i]);
}

static void test_the_last_number_has_its_sign_groups_and_fraction(void **state)
{
    (void)state;
    found_by(EXTRACT_LAST_NUMBER, "It costs $1,800.50.", "1,800.50");
    found_by(EXTRACT_LAST_NUMBER, "from -3", "-3");
    found_by(EXTRACT_LAST_NUMBER, "5-7", "7");
    found_by(EXTRACT_LAST_NUMBER,
             "it is \xE2\x88\x92"
             "7",
             "\xE2\x88\x92"
             "7");
    found_by(EXTRACT_LAST_NUMBER,
             "5\xE2\x88\x92"
             "7",
             "7");
    found_by(EXTRACT_LAST_NUMBER, "\xE2\x88\x92.5", "\xE2\x88\x92.5");
    found_by(EXTRACT_LAST_NUMBER, "2/3 of it", "2/3");
    found_by(EXTRACT_LAST_NUMBER, ".5", ".5");
    found_by(EXTRACT_LAST_NUMBER, "none", NULL);
}

static void test_different_boxes_are_counted_and_kept_in_order(void **state)
{
    struct boxes boxes;

    (void)state;
    extract_boxes(text_of("\\boxed{3}\\boxed{5}\\boxed{3}"), &boxes);
    assert_int_equal(boxes.count, 3);
    assert_int_equal(boxes.distinct, 2);
    assert_true(text_equals(boxes.box[0], "3") && text_equals(boxes.box[1], "5") && text_equals(boxes.last, "3"));
    extract_boxes(text_of("\\boxed{1 \\boxed{2}}"), &boxes);
    assert_int_equal(boxes.count, 1);
}

/* A scan that began anew at each box would take hours here: the test would not end. */
static void test_megabytes_of_open_boxes_are_read_in_one_pass(void **state)
{
    static const char *const pieces[] = {"\\boxed{", "<answer>", "\\boxed{1}", "</think>", "####", "answer is "};
    /* The sanitizers look at all of the rest of a text that memmem() is given. */
    const size_t length_bytes = UNDER_SANITIZER ? 1u << 16 : 1u << 22;
    char *text = malloc(length_bytes);

    (void)state;
    for (size_t piece = 0; piece < ARRAY_LENGTH(pieces); piece++) {
        struct extracted extracted;
        size_t step = strlen(pieces[piece]);
        for (size_t at = 0; at + step <= length_bytes; at += step)
            memcpy(text + at, pieces[piece], step);
        for (int rule = 0; rule < EXTRACT_RULES; rule++)
            extract_answer((struct text){text, length_bytes / step * step}, (enum extract_rule)rule, &extracted);
        assert_true(extracted.answer.data == NULL || extracted.answer.length_bytes < 16);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_box_counts_with_its_braces_matched),
        cmocka_unit_test(test_words_like_a_box_are_passed_over),
        cmocka_unit_test(test_a_truncated_last_box_is_no_answer),
        cmocka_unit_test(test_reasoning_and_what_follows_the_turn_do_not_count),
        cmocka_unit_test(test_a_turn_ends_with_each_of_the_common_tokens),
        cmocka_unit_test(test_auto_is_the_box_or_else_the_answer_tag),
        cmocka_unit_test(test_the_last_answer_tag_must_be_closed),
        cmocka_unit_test(test_a_marker_is_followed_to_the_end_of_its_sentence_or_line),
        cmocka_unit_test(test_emphasis_and_quotes_around_a_sentence_do_not_count),
        cmocka_unit_test(test_an_explanation_behind_the_value_is_dropped),
        cmocka_unit_test(test_words_that_may_be_another_value_stay),
        cmocka_unit_test(test_the_last_number_has_its_sign_groups_and_fraction),
        cmocka_unit_test(test_different_boxes_are_counted_and_kept_in_order),
        cmocka_unit_test(test_megabytes_of_open_boxes_are_read_in_one_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
