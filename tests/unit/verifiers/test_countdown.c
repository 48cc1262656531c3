/* countdown: each given number once, the four operations, exact values, and nothing else. */
#include "tests/unit/verifiers/grade.h"

#include <stdio.h>
#include <stdlib.h>

struct row {
    const char *numbers;
    const char *target;
    const char *answer;
    const char *reason;
    const char *options; /* NULL: none */
};

#define EQUALS "{\"allow_equals\": true}"
#define MINUS "{\"unary_minus\": true}"

static const struct row rows[] = {
    /* the operations, their order, brackets, spaces */
    {"[2,3]", "5", "2+3", "equal", NULL},
    {"[2,3]", "5", " 3 + 2 ", "equal", NULL},
    {"[2,3]", "6", "2*3", "equal", NULL},
    {"[2,3]", "-1", "2-3", "equal", NULL},
    {"[6,3]", "2", "6/3", "equal", NULL},
    {"[1,2,3]", "7", "1+2*3", "equal", NULL},
    {"[1,2,3]", "9", "1+2*3", "different", NULL},
    {"[1,2,3]", "9", "(1+2)*3", "equal", NULL},
    {"[1,2,3]", "9", "((1+2))*(3)", "equal", NULL},
    {"[8,4,2]", "1", "8/4/2", "equal", NULL},
    {"[8,4,2]", "4", "8/(4/2)", "equal", NULL},
    {"[8,4,2]", "2", "8-4-2", "equal", NULL},
    {"[8,4,2]", "6", "8-(4-2)", "equal", NULL},
    {"[7,3,2]", "\"21/2\"", "7/2*3", "equal", NULL},
    {"[5,5,5,1]", "24", "5*(5-1/5)", "equal", NULL},
    {"[8,8,3,3]", "24", "8/(3-8/3)", "equal", NULL},
    {"[3,1,3]", "1", "1/3*3", "equal", NULL},
    {"[10,3]", "3", "10/3", "different", NULL},
    {"[5]", "5", "5", "equal", NULL},
    {"[0,5]", "0", "0*5", "equal", NULL},
    {"[0,5]", "0", "0/5", "equal", NULL},
    {"[9223372036854775807,9223372036854775807]", "\"18446744073709551614\"", "9223372036854775807+9223372036854775807",
     "equal", NULL},
    /* targets */
    {"[7,2]", "\"3.5\"", "7/2", "equal", NULL},
    {"[7,2]", "\"7/2\"", "7/2", "equal", NULL},
    {"[2,7]", "\"-5\"", "2-7", "equal", NULL},
    {"[2,7]", "-5", "7-2", "different", NULL},
    /* in LaTeX, and with signs beyond ASCII */
    {"[2,3]", "6", "2 \\times 3", "equal", NULL},
    {"[2,3]", "6", "2\\cdot 3", "equal", NULL},
    {"[6,3]", "2", "6\\div 3", "equal", NULL},
    {"[6,3]", "2", "\\frac{6}{3}", "equal", NULL},
    {"[6,3,1]", "3", "\\dfrac{6}{3}+1", "equal", NULL},
    {"[6,3,1]", "3", "\\frac{6+3}{1}", "different", NULL},
    {"[6,3,1]", "9", "\\frac{6+3}{1}", "equal", NULL},
    {"[6,3,2]", "4", "\\frac{6}{3}*2", "equal", NULL},
    {"[6,3,2]", "1", "\\left(6-3\\right)-2", "equal", NULL},
    {"[6,3]", "3", "$6-3$", "equal", NULL},
    {"[6,3]", "3", "\\(6-3\\)", "equal", NULL},
    {"[6,3]", "3", "\\boxed{6-3}", "equal", NULL},
    {"[6,3]", "18", "6\u00d73", "equal", NULL},
    {"[6,3]", "2", "6\u00f73", "equal", NULL},
    {"[6,3]", "3", "6\u22123", "equal", NULL},
    {"[6,3]", "18", "6\u22c53", "equal", NULL},
    {"[6,3]", "9", "6+3.", "equal", NULL},
    /* which numbers */
    {"[2,3]", "5", "2+3+0", "wrong_numbers", NULL},
    {"[2,3]", "5", "5", "wrong_numbers", NULL},
    {"[2,3,4]", "5", "2+3", "wrong_numbers", NULL},
    {"[2,3]", "7", "2+2+3", "wrong_numbers", NULL},
    {"[2,2]", "4", "2*2", "equal", NULL},
    {"[2,2,2]", "4", "2*2", "wrong_numbers", NULL},
    {"[2,3]", "23", "23", "wrong_numbers", NULL},
    {"[2,3]", "5", "02+3", "wrong_numbers", NULL},
    {"[2,3]", "5", "2.0+3", "wrong_numbers", NULL},
    {"[2,3]", "5", "2.5+2.5", "wrong_numbers", NULL},
    {"[2,3]", "5", "10/2+3-3", "wrong_numbers", NULL},
    {"[1,0]", "1", "1+0", "equal", NULL},
    /* signs */
    {"[2,3]", "1", "-2+3", "unary_minus", NULL},
    {"[2,3]", "1", "-2+3", "equal", MINUS},
    {"[2,3]", "1", "3+(-2)", "unary_minus", NULL},
    {"[2,3]", "1", "3+(-2)", "equal", MINUS},
    {"[2,3]", "-5", "-(2+3)", "equal", MINUS},
    {"[2,3]", "1", "3+-2", "unparsed_answer", MINUS},
    {"[2,3]", "5", "3--2", "unparsed_answer", MINUS},
    {"[2,3]", "5", "--2+3", "unparsed_answer", MINUS},
    {"[2,3]", "5", "+2+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "2+ +3", "unparsed_answer", NULL},
    {"[2,3]", "6", "2*+3", "unparsed_answer", NULL},
    {"[2,3]", "8", "2**3", "unparsed_answer", NULL},
    {"[8,3]", "2", "8//3", "unparsed_answer", NULL},
    {"[2,3]", "8", "2^3", "unparsed_answer", NULL},
    {"[2,3]", "8", "2^{3}", "unparsed_answer", NULL},
    {"[5,3]", "2", "5%3", "unparsed_answer", NULL},
    {"[3,2]", "8", "3!+2", "unparsed_answer", NULL},
    /* products without their sign */
    {"[2,3]", "6", "2(3)", "implied_product", NULL},
    {"[2,3]", "6", "(2)(3)", "implied_product", NULL},
    {"[2,3]", "6", "(2)3", "implied_product", NULL},
    {"[2,3]", "23", "2 3", "implied_product", NULL},
    {"[2,3]", "6", "{2}{3}", "unparsed_answer", NULL},
    {"[2,3,6]", "4", "2\\frac{6}{3}", "implied_product", NULL},
    {"[2,3,6]", "4", "\\frac{6}{3}2", "implied_product", NULL},
    {"[2,3,4]", "24", "2*3(4)", "implied_product", NULL},
    /* brackets */
    {"[2,3]", "5", "(2+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "2+3)", "unparsed_answer", NULL},
    {"[2,3]", "5", "(2+3}", "unparsed_answer", NULL},
    {"[2,3]", "5", "()2+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "[2+3]", "unparsed_answer", NULL},
    {"[2,3]", "5", "\\frac{2}+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "\\frac23", "unparsed_answer", NULL},
    {"[2,3]", "5", "2+", "unparsed_answer", NULL},
    {"[2,3]", "5", "", "no_answer", NULL},
    /* equals signs */
    {"[2,3]", "5", "2+3=5", "equals_sign", NULL},
    {"[2,3]", "5", "2+3=5", "equal", EQUALS},
    {"[2,3]", "5", "2+3 = 6", "wrong_claim", EQUALS},
    {"[2,3]", "-1", "2-3 = -1", "equal", EQUALS},
    {"[7,2]", "\"7/2\"", "7/2 = 3.5", "equal", EQUALS},
    {"[2,3]", "6", "2+3=5", "different", EQUALS},
    {"[2,3]", "5", "2+3=5=5", "equals_sign", EQUALS},
    {"[2,3]", "5", "5=2+3", "wrong_numbers", EQUALS},
    {"[2,3]", "5", "2+3=2+3", "equals_sign", EQUALS},
    {"[2,3]", "5", "2+3=", "unparsed_answer", EQUALS},
    {"[2,3]", "5", "(2=2)+3", "equals_sign", EQUALS},
    /* no value */
    {"[2,0]", "1", "2/0", "division_by_zero", NULL},
    {"[2,2,3]", "1", "3/(2-2)", "division_by_zero", NULL},
    {"[2,2,3]", "0", "\\frac{3}{2-2}", "division_by_zero", NULL},
    {"[0,0]", "0", "0/0", "division_by_zero", NULL},
    /* other texts */
    {"[2,3]", "5", "2+3\n2+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "\u0662+\u0663", "unparsed_answer", NULL},
    {"[2,3]", "5", "\uff12+\uff13", "unparsed_answer", NULL},
    {"[2,3]", "5", "2+3\u200b", "unparsed_answer", NULL},
    {"[2,3]", "5", "2+3 apples", "unparsed_answer", NULL},
    {"[2,3]", "5", "2+3#", "unparsed_answer", NULL},
    {"[2,3]", "5", "2,3", "unparsed_answer", NULL},
    {"[2,3]", "5", "0x2+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "2e0+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "x+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "int(2)+3", "unparsed_answer", NULL},
    {"[2,3]", "5", "\\sqrt{2}+3", "unparsed_answer", NULL},
    {"[2000,3]", "2003", "2,000+3", "unparsed_answer", NULL},
};

static void expect_row(const struct row *row, const char *completion)
{
    _cleanup_free_ char *reference = xasprintf("{\"numbers\": %s, \"target\": %s}", row->numbers, row->target);

    expect("countdown", row->options, reference, completion, strcmp(row->reason, "equal") == 0, row->reason);
}

static void test_each_expression_has_its_verdict_and_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        _cleanup_free_ char *completion = xasprintf("I think.\n<answer>%s</answer>", rows[i].answer);
        expect_row(&rows[i], completion);
    }
}

static void test_the_answer_is_the_last_tag_or_without_any_the_last_box(void **state)
{
    static const struct row row[] = {{"[2,3]", "5", NULL, "equal", NULL},
                                     {"[2,3]", "5", NULL, "different", NULL},
                                     {"[2,3]", "5", NULL, "no_answer", NULL}};
    (void)state;
    expect_row(&row[0], "<answer>2*3</answer> no: <answer>2+3</answer>");
    expect_row(&row[1], "<answer>2+3</answer> no: <answer>2*3</answer>");
    expect_row(&row[0], "<think><answer>2*3</answer></think><answer>2+3</answer>");
    expect_row(&row[0], "so \\boxed{2+3}");
    expect_row(&row[0], "not \\boxed{2*3}: <answer>2+3</answer>");
    expect_row(&row[2], "\\boxed{2+3} <answer>2+3");
    expect_row(&row[2], "<think>\\boxed{2+3}");
    expect_row(&row[2], "2+3");
    expect_row(&row[2], "");
}

static void test_depth_and_length_are_bounded(void **state)
{
    static const struct row fine = {"[2,3]", "5", NULL, "equal", NULL};
    static const struct row deep = {"[2,3]", "5", NULL, "unparsed_answer", NULL};
    static const struct row shallow = {"[2,3]", "5", NULL, "unparsed_answer", "{\"max_depth\": 3}"};
    static const struct row long_one = {"[2,3]", "5", NULL, "too_long", NULL};
    _cleanup_buffer_ struct buffer out;

    (void)state;
    expect_row(&fine, "<answer>((((((2+3))))))</answer>");
    expect_row(&shallow, "<answer>((((((2+3))))))</answer>");
    buffer_init(&out, 1 << 20);
    buffer_append_string(&out, "<answer>");
    for (int i = 0; i < 3000; i++)
        buffer_append_byte(&out, '(');
    buffer_append_string(&out, "2+3");
    for (int i = 0; i < 3000; i++)
        buffer_append_byte(&out, ')');
    buffer_append_string(&out, "</answer>");
    expect_row(&deep, out.data);
    buffer_clear(&out);
    buffer_append_string(&out, "<answer>2+3");
    for (int i = 0; i < 4100; i++)
        buffer_append_string(&out, "+0");
    buffer_append_string(&out, "</answer>");
    expect_row(&long_one, out.data);
}

static void test_a_reference_that_is_no_puzzle_is_unscored(void **state)
{
    static const char *const references[] = {"\"5\"",
                                             "[2,3]",
                                             "{}",
                                             "{\"numbers\": [2,3]}",
                                             "{\"target\": 5}",
                                             "{\"numbers\": [], \"target\": 5}",
                                             "{\"numbers\": [2,\"3\"], \"target\": 5}",
                                             "{\"numbers\": [2,-3], \"target\": 5}",
                                             "{\"numbers\": [2,3.0], \"target\": 5}",
                                             "{\"numbers\": [2,3], \"target\": 5.0}",
                                             "{\"numbers\": [2,3], \"target\": \"five\"}",
                                             "{\"numbers\": [2,3], \"target\": \"1/0\"}",
                                             "{\"numbers\": [2,3], \"target\": \"2+3\"}",
                                             "{\"numbers\": [2,3], \"target\": null}"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(references); i++) {
        struct verdict verdict = grade("countdown", NULL, references[i], "<answer>2+3</answer>");
        assert_int_equal(verdict.kind, VERDICT_UNSCORED);
        assert_string_equal(verdict.failure_code, "reference_unreadable");
        verdict_finish(&verdict);
    }
}

static void test_the_detail_says_what_was_read_and_what_it_is_worth(void **state)
{
    struct verdict verdict =
        grade("countdown", NULL, "{\"numbers\": [7,2,1], \"target\": 4}", "<answer>7/2+1</answer>");

    (void)state;
    assert_string_equal(verdict.reason, "different");
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "extracted")), "7/2+1");
    assert_string_equal(json_string_value(json_object_get(verdict.detail, "value")), "9/2");
    assert_non_null(json_string_value(json_object_get(verdict.detail, "read")));
    verdict_finish(&verdict);
}

/* --- expressions that are made up, with the value that they are made with --- */

static uint32_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Appends an expression over numbers[0..count) with its value as a quotient; brackets around everything, so that its
 * order needs no rules. The value's parts stay small enough for doubles to hold them exactly; a denominator of 0 says
 * that it divides by zero somewhere. */
static void make_up(const int *numbers, size_t count, struct buffer *out, double ret_value[2])
{
    static const char signs[] = "+-*/";
    double left[2], right[2];
    size_t split = count > 1 ? 1 + draw((unsigned)count - 1) : 0;
    unsigned sign = draw(4);

    if (count == 1) {
        buffer_append_format(out, "%d", numbers[0]);
        ret_value[0] = numbers[0];
        ret_value[1] = 1;
        return;
    }
    buffer_append_byte(out, '(');
    make_up(numbers, split, out, left);
    buffer_append_format(out, "%s%c%s", draw(2) ? " " : "", signs[sign], draw(2) ? " " : "");
    make_up(numbers + split, count - split, out, right);
    buffer_append_byte(out, ')');
    ret_value[0] = sign == 2   ? left[0] * right[0]
                   : sign == 3 ? left[0] * right[1]
                   : sign == 0 ? left[0] * right[1] + right[0] * left[1]
                               : left[0] * right[1] - right[0] * left[1];
    ret_value[1] = sign == 3 ? left[1] * right[0] * (right[1] != 0) : left[1] * right[1];
}

static char *list_of(const int *numbers, size_t count)
{
    struct buffer out;

    buffer_init(&out, 256);
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&out, "%c%d", i ? ',' : '[', numbers[i]);
    buffer_append_byte(&out, ']');
    return out.data;
}

static void test_a_made_up_expression_is_worth_its_own_value(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2000; turn++) {
        int numbers[4];
        size_t count = 1 + draw(4);
        double value[2];
        _cleanup_buffer_ struct buffer out;

        for (size_t i = 0; i < count; i++)
            numbers[i] = (int)draw(20);
        buffer_init(&out, 4096);
        buffer_append_string(&out, "<answer>");
        make_up(numbers, count, &out, value);
        buffer_append_string(&out, "</answer>");
        _cleanup_free_ char *list = list_of(numbers, count);
        double sign = value[1] < 0 ? -1 : 1;
        _cleanup_free_ char *right = xasprintf("\"%.0f/%.0f\"", sign * value[0], sign * value[1]);
        _cleanup_free_ char *wrong = xasprintf("\"%.0f/%.0f\"", sign * value[0] + 1, sign * value[1]);
        if (value[1] == 0) {
            expect_row(&(struct row){list, "1", NULL, "division_by_zero", NULL}, out.data);
            continue;
        }
        expect_row(&(struct row){list, right, NULL, "equal", NULL}, out.data);
        expect_row(&(struct row){list, wrong, NULL, "different", NULL}, out.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_expression_has_its_verdict_and_reason),
        cmocka_unit_test(test_the_answer_is_the_last_tag_or_without_any_the_last_box),
        cmocka_unit_test(test_depth_and_length_are_bounded),
        cmocka_unit_test(test_a_reference_that_is_no_puzzle_is_unscored),
        cmocka_unit_test(test_the_detail_says_what_was_read_and_what_it_is_worth),
        cmocka_unit_test(test_a_made_up_expression_is_worth_its_own_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
