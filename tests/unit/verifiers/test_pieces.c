/* Lines and paragraphs as steps. */
#include "server/base/buffer.h"
#include "server/base/cleanup.h"
#include "tests/unit/base/cmocka_all.h"
#include "verifiers/text/pieces.h"
#include "verifiers/verifier.h"

#include <math.h>
#include <stdio.h>

/* "text@end|text@end" */
static void show(struct text text, enum pieces_kind kind, struct buffer *out)
{
    struct piece piece;
    size_t at = 0;

    while (pieces_next(text, kind, &at, &piece)) {
        if (out->length_bytes > 0)
            buffer_append_format(out, "|");
        buffer_append(out, piece.text.data, piece.text.length_bytes);
        buffer_append_format(out, "@%zu", piece.end_bytes);
    }
}

static void expect(struct text text, enum pieces_kind kind, const char *expected)
{
    _cleanup_buffer_ struct buffer out;

    buffer_init(&out, 1 << 20);
    show(text, kind, &out);
    buffer_append(&out, "", 1);
    assert_string_equal(out.data, expected);
}

static void expect_lines(const char *text, const char *expected)
{
    expect(text_of(text), PIECES_PER_LINE, expected);
}

static void expect_paragraphs(const char *text, const char *expected)
{
    expect(text_of(text), PIECES_PER_PARAGRAPH, expected);
}

static void test_a_line_ends_behind_its_break(void **state)
{
    (void)state;
    expect_lines("a\nbc\nd", "a@2|bc@5|d@6");
    expect_lines("a\nbc\n", "a@2|bc@5");
    expect_lines("a\r\nb\r\n", "a@3|b@6");
}

static void test_blank_lines_are_no_steps(void **state)
{
    (void)state;
    expect_lines("", "");
    expect_lines(" \t\n\v\f\r\n\r\n", "");
    expect_lines("\n\na\n \nb", "a@4|b@7");
}

static void test_nothing_else_is_a_break(void **state)
{
    (void)state;
    expect_lines("a\rb\nc\r", "a\rb@4|c\r@6");
    expect_lines("a\xe2\x80\xa8"
                 "b\x0b"
                 "c",
                 "a\xe2\x80\xa8"
                 "b\x0b"
                 "c@7");
    expect_lines("\xc2\xa0\na", "\xc2\xa0@3|a@4");
    _cleanup_buffer_ struct buffer out;
    buffer_init(&out, 1 << 20);
    show((struct text){"a\0b\nc", 5}, PIECES_PER_LINE, &out);
    assert_memory_equal(out.data, "a\0b@4|c@5", 9);
}

static void test_a_paragraph_is_a_run_of_lines_with_their_inner_breaks(void **state)
{
    (void)state;
    expect_paragraphs("a\nb\n\nc", "a\nb@4|c@6");
    expect_paragraphs("a\r\nb\r\n \t\r\nc\r\nd", "a\r\nb@6|c\r\nd@14");
    expect_paragraphs("\n\na\n\n\n", "a@4");
    expect_paragraphs("\n \n", "");
}

static void test_a_mebibyte_of_breaks_has_no_piece(void **state)
{
    size_t length_bytes = (size_t)1 << 20;
    _cleanup_free_ char *breaks = xcalloc(length_bytes, 1);
    size_t count = 1;

    (void)state;
    memset(breaks, '\n', length_bytes);
    for (int kind = PIECES_PER_LINE; kind < PIECES_KINDS; kind++) {
        _cleanup_free_ struct piece *pieces =
            pieces_of((struct text){breaks, length_bytes}, (enum pieces_kind)kind, &count);
        assert_int_equal(count, 0);
        assert_non_null(pieces);
    }
}

static void test_more_pieces_than_the_limit_are_not_kept(void **state)
{
    size_t length_bytes = (size_t)1 << 20;
    _cleanup_free_ char *lines = xcalloc(length_bytes, 1);
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < length_bytes; i++)
        lines[i] = i % 2 ? '\n' : 'a';
    _cleanup_free_ struct piece *many = pieces_of((struct text){lines, length_bytes}, PIECES_PER_LINE, &count);
    assert_int_equal(count, PIECES_MAX + 1);
    _cleanup_free_ struct piece *most =
        pieces_of((struct text){lines, 2 * (size_t)PIECES_MAX}, PIECES_PER_LINE, &count);
    assert_int_equal(count, PIECES_MAX);
    assert_int_equal(most[PIECES_MAX - 1].end_bytes, 2 * PIECES_MAX);
    assert_int_equal(many[0].end_bytes, 2);
}

static void test_a_verdict_on_steps_is_their_mean(void **state)
{
    static const double scores[] = {1, 0, 0.5};
    struct verdict verdict = {.kind = VERDICT_UNSCORED};

    (void)state;
    verdict_set_steps(&verdict, scores, 3);
    assert_int_equal(verdict.kind, VERDICT_SCORED);
    assert_true(verdict.score == 0.5);
    assert_int_equal(verdict.step_count, 3);
    verdict_set_steps(&verdict, scores, 0);
    assert_int_equal(verdict.kind, VERDICT_INCORRECT);
    assert_string_equal(verdict.reason, "no_answer");
    verdict_set_steps(&verdict, (const double[]){1, NAN}, 2);
    assert_int_equal(verdict.kind, VERDICT_UNSCORED);
    verdict_finish(&verdict);
}

static void test_values_of_steps_have_names(void **state)
{
    (void)state;
    assert_int_equal(pieces_kind_of(TEXT_LITERAL("per_line")), PIECES_PER_LINE);
    assert_int_equal(pieces_kind_of(TEXT_LITERAL("per_paragraph")), PIECES_PER_PARAGRAPH);
    assert_int_equal(pieces_kind_of(TEXT_LITERAL("none")), PIECES_NONE);
    assert_int_equal(pieces_kind_of(TEXT_NONE), PIECES_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_ends_behind_its_break),
        cmocka_unit_test(test_blank_lines_are_no_steps),
        cmocka_unit_test(test_nothing_else_is_a_break),
        cmocka_unit_test(test_a_paragraph_is_a_run_of_lines_with_their_inner_breaks),
        cmocka_unit_test(test_a_mebibyte_of_breaks_has_no_piece),
        cmocka_unit_test(test_more_pieces_than_the_limit_are_not_kept),
        cmocka_unit_test(test_a_verdict_on_steps_is_their_mean),
        cmocka_unit_test(test_values_of_steps_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
