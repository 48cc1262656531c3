/* How lists, sets, relations are read: each row is an answer and its normal form, or a refusal. */
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/verifiers/readings.h"

static void test_a_subscript_below_digits_is_a_base(void **state)
{
    static const struct reading_row rows[] = {
        {"1010_2", "1010_{2}"},     {"1010_{2}", "1010_{2}"}, {"(1010)_2", "1010_{2}"},
        {"2A_{16}", "2A_{16}"},     {"2a_{16}", "2 a_{16}"},  {"1010_{\\text{two}}", "1010_{2}"},
        {"1010_{two}", "1010_{2}"}, {"129_2", REFUSED},       {"3_1", REFUSED},
        {"1_00", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_lists_end_at_commas_and_words(void **state)
{
    static const struct reading_row rows[] = {
        {"a,b", "a, b"},
        {"1, 2 and 3", "1, 2, 3"},
        {"1,2,\\text{ and }3", "1, 2, 3"},
        {"1 \\text{ and } 2", "1, 2"},
        {"1 and 2", "1, 2"},
        {"1 or 2", "1 \\text{ or } 2"},
        {"x=1 or x=2", "x = 1 \\text{ or } x = 2"},
        {"x = 1 \\quad \\text{or} \\quad x = 2", "x = 1 \\text{ or } x = 2"},
        {"x=1; y=2", "x = 1, y = 2"},
        {"1;2", "1, 2"},
        {"1,2,", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_sets_list_members_or_state_a_condition(void **state)
{
    static const struct reading_row rows[] = {
        {"\\{1,2\\}", "\\{1, 2\\}"},
        {"\\lbrace 1,2\\rbrace", "\\{1, 2\\}"},
        {"{1,2,3}", "1, 2, 3"},
        {"\\left\\{ x \\mid x>0 \\right\\}", "\\{x : x > 0\\}"},
        {"\\{x|x>0\\}", "\\{x : x > 0\\}"},
        {"\\{x : x > 0\\}", "\\{x : x > 0\\}"},
        {"\\{x\\in\\mathbb{R} : x>0\\}", "\\{x \\in \\mathbb{R} : x > 0\\}"},
        {"\\{x \\in \\mathbb{R} \\mid x \\neq 2\\}", "\\{x \\in \\mathbb{R} : x \\ne 2\\}"},
        {"\\{ (x,y) : x+y=1 \\}", "\\{(x, y) : x + y = 1\\}"},
        {"\\{2|x|, 3\\}", "\\{2 \\lvert x \\rvert, 3\\}"},
        {"\\{|x|,|y|\\}", "\\{\\lvert x \\rvert, \\lvert y \\rvert\\}"},
        {"\\{|x| : x>0\\}", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_brackets_make_tuples_and_intervals(void **state)
{
    static const struct reading_row rows[] = {
        {"(1,2)", "(1, 2)"},
        {"[1,2)", "[1, 2)"},
        {"(1,2]", "(1, 2]"},
        {"(-\\infty,1)\\cup(2,\\infty)", "(-\\infty, 1) \\cup (2, \\infty)"},
        {"(-\\infty,1) U (2,\\infty)", "(-\\infty, 1) \\cup (2, \\infty)"},
        {"(-\u221e, 1) \u222a (2, \u221e)", "(-\\infty, 1) \\cup (2, \\infty)"},
        {"\\mathbb{R}\\setminus\\{0\\}", "\\mathbb{R} \\setminus \\{0\\}"},
        {"\\mathbb{R} \\backslash \\{0\\}", "\\mathbb{R} \\setminus \\{0\\}"},
        {"\\mathbb{R}^+", "\\mathbb{R}^{+}"},
        {"\\mathbb R", "\\mathbb{R}"},
        {"\\R", "\\mathbb{R}"},
        {"\\mathbb{R}^2", "\\mathbb{R}^{2}"},
        {"\\mathbb{Z}_{\\ge 0}", "\\mathbb{Z}_{\\ge 0}"},
        {"\\langle 1,2\\rangle", "\\langle 1, 2 \\rangle"},
        {"A\\cup B", "A \\cup B"},
        {"A\\cap B", "A \\cap B"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_relations_chain(void **state)
{
    static const struct reading_row rows[] = {
        {"x\\in(3,\\infty)", "x \\in (3, \\infty)"},
        {"x in (3, 5)", "x \\in (3, 5)"},
        {"x \\in [0, 1] \\cup [2, 3]", "x \\in [0, 1] \\cup [2, 3]"},
        {"x \\ne 2", "x \\ne 2"},
        {"x \u2260 2", "x \\ne 2"},
        {"0<x<1", "0 < x < 1"},
        {"x<-1\\text{ or }x>1", "x < -1 \\text{ or } x > 1"},
        {"x \\leq 3", "x \\le 3"},
        {"a \\equiv 3 \\pmod 7", "a \\equiv 3 \\bmod 7"},
        {"n \\equiv 1 \\pmod{4}", "n \\equiv 1 \\bmod 4"},
        {"17 \\bmod 5", "17 \\bmod 5"},
        {"17 mod 5", "17 \\bmod 5"},
        {"\\approx 3.14", REFUSED},
        {"x \\approx 3.14", "x \\approx 3.14"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_ratios_and_times_are_kept_apart(void **state)
{
    static const struct reading_row rows[] = {
        {"3:4", "3:4"},
        {"1:2:3", "1:2:3"},
        {"12:30", "12:30"},
        {"12:30 \\text{ PM}", "12:30 \\text{PM}"},
        {"12:30 pm", "12:30 \\text{pm}"},
        {"3 to 4", "3 \\text{ to } 4"},
        {"3\\text{ to }4:5", REFUSED},
        {"x to 4", REFUSED},
        {"12:30 p.m.", "12:30 \\text{pm}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_only_definitions_are_calls(void **state)
{
    static const struct reading_row rows[] = {
        {"f(x)=x^2", "f(x) = x^{2}"},
        {"f(x,y)=xy", "f(x, y) = x y"},
        {"f(2)=5", "f(2) = 5"},
        {"g(x) = \\frac{1}{x}", "g(x) = \\frac{1}{x}"},
        {"f^{-1}(x)=x+1", "f^{-1}(x) = x + 1"},
        {"x(y)=3", "x(y) = 3"},
        {"a(b)", "a b"},
        {"f(x)", "f x"},
        {"P(A)=\\frac{1}{2}", "P(A) = \\frac{1}{2}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_big_operators_are_kept_as_written(void **state)
{
    static const struct reading_row rows[] = {
        {"\\sum_{k=1}^{n} k", "\\sum_{k = 1}^{n} k"},
        {"\\sum_{k=1}^n k^2+1", "\\sum_{k = 1}^{n} k^{2} + 1"},
        {"\\prod_{i=1}^{n} i", "\\prod_{i = 1}^{n} i"},
        {"\\int_0^1 9x^2\\,dx", "\\int_{0}^{1} 9 x^{2} \\, d x"},
        {"\\int x\\,dx", "\\int x \\, d x"},
        {"\\int_0^1 x dx", "\\int_{0}^{1} x \\, d x"},
        {"\\int_{0}^{\\infty} e^{-x^2} \\mathrm{d}x", "\\int_{0}^{\\infty} e^{-x^{2}} \\, d x"},
        {"\\int x+1\\,dx", "\\int x + 1 \\, d x"},
        {"\\int dx", "\\int 1 \\, d x"},
        {"\\lim_{x\\to 0} \\frac{\\sin x}{x}", "\\lim_{x \\to 0} \\frac{\\sin(x)}{x}"},
        {"\\lim_{n \\to \\infty} a_n", "\\lim_{n \\to \\infty} a_{n}"},
        {"\\sum_{i} x_i", "\\sum_{i} x_{i}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_subscript_below_digits_is_a_base),
        cmocka_unit_test(test_lists_end_at_commas_and_words),
        cmocka_unit_test(test_sets_list_members_or_state_a_condition),
        cmocka_unit_test(test_brackets_make_tuples_and_intervals),
        cmocka_unit_test(test_relations_chain),
        cmocka_unit_test(test_ratios_and_times_are_kept_apart),
        cmocka_unit_test(test_only_definitions_are_calls),
        cmocka_unit_test(test_big_operators_are_kept_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
