/* How numbers and expressions are read: each row is an answer and its normal form, or a refusal. */
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/verifiers/readings.h"

static void test_thousands_are_groups_of_three_or_the_answer_is_a_list(void **state)
{
    static const struct reading_row rows[] = {
        {"1 234 567", "1234567"}, {"1\\,234\\,567", "1234567"}, {"1\\!234", "1234"},          {"1,\\!234", "1234"},
        {"12,345,67", REFUSED},   {"10,20,300", "10, 20, 300"}, {"100,200,300", "100200300"}, {"1,234,5", REFUSED},
        {"0,100", "0, 100"},      {"1, 234", "1, 234"},         {"1 234/5", REFUSED},         {"12 345.67", "12345.67"},
        {"2 100", "2100"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_decimals_may_begin_or_end_with_the_point(void **state)
{
    static const struct reading_row rows[] = {
        {".5", "0.5"}, {"5.", "5"}, {"5.+3", "5 + 3"}, {"1.2.3", REFUSED}, {"1.2.", "1.2"}, {"..5", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_digits_that_repeat_are_marked(void **state)
{
    static const struct reading_row rows[] = {
        {"0.1\\overline{6}", "0.1\\overline{6}"},
        {"0.\\dot{3}", "0.\\overline{3}"},
        {"0.\\dot{1}4285\\dot{7}", "0.\\overline{142857}"},
        {"0.\\dot1\\dot2", "0.\\overline{12}"},
        {"0.(3)", "0.\\overline{3}"},
        {"0.1(6)", "0.1 (6)"},
        {"\\overline{3}", REFUSED},
        {"\\overline{AB}", "\\overline{AB}"},
        {"\\overline{z}", "\\overline{z}"},
        {"\\overline{1+i}", "\\overline{1 + i}"},
        {"\\bar{x}", "\\overline{x}"},
        {"\\bar{z}_1", REFUSED},
        {"\\vec{v}", "\\vec{v}"},
        {"\\vec{AB}", "\\vec{AB}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_an_exponent_of_ten_stands_directly_behind_digits(void **state)
{
    static const struct reading_row rows[] = {
        {"2.5E-3", "2.5E-3"},
        {"2.5e-3", "2.5E-3"},
        {"2e-3", "2 e - 3"},
        {"1e-5", "1E-5"},
        {"2e", "2 e"},
        {"2e3", "2E3"},
        {"2E5", "2E5"},
        {"6.02e23", "6.02E23"},
        {"1e99999", TOO_LARGE},
        {"1e16384", "1E16384"},
        {"2\\times10^{-3}", "2 \\cdot 10^{-3}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_a_whole_number_and_a_proper_fraction_are_a_mixed_number(void **state)
{
    static const struct reading_row rows[] = {
        {"-1\\frac{1}{2}", "-1\\frac{1}{2}"},
        {"1 \\frac{1}{2}", "1\\frac{1}{2}"},
        {"1\u00bd", "1\\frac{1}{2}"},
        {"1 \u00bd", "1\\frac{1}{2}"},
        {"-3 1/2", "-3\\frac{1}{2}"},
        {"2\\frac{5}{3}", REFUSED},
        {"2\\frac{x}{3}", "2 \\frac{x}{3}"},
        {"2\\frac{1}{2}x", "2\\frac{1}{2} x"},
        {"1\\frac12", "1\\frac{1}{2}"},
        {"1\\frac{1}{2}^2", REFUSED},
        {"3\\frac{1}{2}\\%", "(3\\frac{1}{2})\\%"},
        {"3 1/2 cups", "3\\frac{1}{2} \\text{cups}"},
        {"3\\frac{1}{2}\\text{ cups}", "3\\frac{1}{2} \\text{cups}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_small_and_special_signs_are_what_they_stand_for(void **state)
{
    static const struct reading_row rows[] = {
        {"x\u00b2", "x^{2}"},
        {"x\u2081", "x_{1}"},
        {"x\u207b\u00b9", "x^{-1}"},
        {"x\u00b2\u00b3", "x^{23}"},
        {"x\u2081\u2082y", "x_{12} y"},
        {"10\u207b\u00b3", "10^{-3}"},
        {"2\u2075", "2^{5}"},
        {"\u221a2", "\\sqrt{2}"},
        {"\u221a{x+1}", "\\sqrt{x + 1}"},
        {"\u221a(x+1)", "\\sqrt{x + 1}"},
        {"\u221b8", "\\sqrt[3]{8}"},
        {"\u221c16", "\\sqrt[4]{16}"},
        {"\u221a10", "\\sqrt{10}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_a_command_takes_braces_or_one_token(void **state)
{
    static const struct reading_row rows[] = {
        {"\\frac1{2}", "\\frac{1}{2}"},
        {"\\frac{1}2", "\\frac{1}{2}"},
        {"\\frac ab", "\\frac{a}{b}"},
        {"\\frac\\pi2", "\\frac{\\pi}{2}"},
        {"\\frac{\\pi}2", "\\frac{\\pi}{2}"},
        {"\\frac123", REFUSED},
        {"\\frac{1}25", REFUSED},
        {"\\frac 12", "\\frac{1}{2}"},
        {"\\sqrt2", "\\sqrt{2}"},
        {"\\sqrt23", "\\sqrt{23}"},
        {"\\sqrt x", "\\sqrt{x}"},
        {"\\sqrt{x}y", "\\sqrt{x} y"},
        {"\\sqrt(2)", "\\sqrt{2}"},
        {"6\\sqrt(3)", "6 \\sqrt{3}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_words_of_ascii_name_functions(void **state)
{
    static const struct reading_row rows[] = {
        {"sqrt(2)", "\\sqrt{2}"},
        {"2sqrt(2)", "2 \\sqrt{2}"},
        {"sqrt2", "\\sqrt{2}"},
        {"sqrt 2", "\\sqrt{2}"},
        {"sqrt(x^2+1)", "\\sqrt{x^{2} + 1}"},
        {"pi", "\\pi"},
        {"2pi", "2 \\pi"},
        {"2*pi", "2 \\cdot \\pi"},
        {"exp(4)", "\\exp(4)"},
        {"-1 + exp(4)", "-1 + \\exp(4)"},
        {"e^4-1", "e^{4} - 1"},
        {"ln(2)", "\\ln(2)"},
        {"log(2)", "\\log(2)"},
        {"log2(8)", REFUSED},
        {"log_2(8)", "\\log_{2}(8)"},
        {"sin(x)", "\\sin(x)"},
        {"sin x", "\\sin(x)"},
        {"sinx", "\\sin(x)"},
        {"sin 30", "\\sin(30)"},
        {"arctan(1/2)", "\\arctan(\\frac{1}{2})"},
        {"atan(1)", "\\arctan(1)"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_digits_behind_a_caret_are_one_exponent(void **state)
{
    static const struct reading_row rows[] = {
        {"x^10", "x^{10}"},
        {"x^{1}0", "{x^{1}} (0)"},
        {"x^-1", "x^{-1}"},
        {"x^-12y", "x^{-12} y"},
        {"-x^2", "-x^{2}"},
        {"2^3^2", "2^{3^{2}}"},
        {"2^{3^2}", "2^{3^{2}}"},
        {"x^{2}^{3}", "x^{2^{3}}"},
        {"x**2", "x^{2}"},
        {"x^ab", "x^{a} b"},
        {"x^1/2", "\\frac{x^{1}}{2}"},
        {"x^(1/2)", "x^{\\frac{1}{2}}"},
        {"2^1.5", "2^{1.5}"},
        {"2^{1,000}", "2^{1000}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_the_divided_part_must_be_clear(void **state)
{
    static const struct reading_row rows[] = {
        {"1/2x", "\\frac{1}{2} x"},         {"a/bc", REFUSED},          {"1/2(x+1)", "\\frac{1}{2} (x + 1)"},
        {"1/(2x)", "\\frac{1}{2 x}"},       {"x/2y", "\\frac{x}{2} y"}, {"a/b/c", "\\frac{\\frac{a}{b}}{c}"},
        {"a/b*c", "\\frac{a}{b} \\cdot c"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_factorials_bind_tighter_than_powers(void **state)
{
    static const struct reading_row rows[] = {
        {"5!", "5!"},         {"5!!", "5!!"},           {"n!^2", "(n!)^{2}"},
        {"2^3!", REFUSED},    {"(2n)!", "(2 n)!"},      {"n!!", "n!!"},
        {"n!!!", REFUSED},    {"5!=120", "5! = 120"},   {"{n \\choose k}", "\\binom{n}{k}"},
        {"{}^nC_k", REFUSED}, {"C(n,k)", "{C} (n, k)"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

/* All digits that stand together are the subscript, as in x_12. */
static void test_a_number_of_choices_is_read_alike_with_braces_and_without(void **state)
{
    static const struct reading_row rows[] = {
        {"A_22^4", "\\frac{22!}{18!}"}, {"A_{22}^{4}", "\\frac{22!}{18!}"}, {"C_10^3", "\\binom{10}{3}"},
        {"C^3_10", "\\binom{10}{3}"},   {"C_5^2", "\\binom{5}{2}"},         {"{}_10C_3", "\\binom{10}{3}"},
        {"^13/_16", "\\frac{13}{16}"},  {"C_5^12", "{C_{5}}^{12}"},         {"{A_{22}}^{4}", "{A_{22}}^{4}"},
        {"{C_5}^2", "{C_{5}}^{2}"},     {"B_22^4", "B_{22}^{4}"},           {"x_12^4", "x_{12}^{4}"},
        {"C_1 0^3", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_bars_pair_up(void **state)
{
    static const struct reading_row rows[] = {
        {"||x|-1|", "\\lvert \\lvert x \\rvert - 1 \\rvert"},
        {"|a|b|c|", "\\lvert a \\rvert b \\lvert c \\rvert"},
        {"|x|y", "\\lvert x \\rvert y"},
        {"2|x|", "2 \\lvert x \\rvert"},
        {"\\left|\\left|x\\right|-1\\right|", "\\lvert \\lvert x \\rvert - 1 \\rvert"},
        {"\\lvert x\\rvert", "\\lvert x \\rvert"},
        {"|x+1|=3", "\\lvert x + 1 \\rvert = 3"},
        {"\\lfloor x\\rfloor", "\\lfloor x \\rfloor"},
        {"\u230a2.5\u230b", "\\lfloor 2.5 \\rfloor"},
        {"\\lceil x\\rceil", "\\lceil x \\rceil"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_functions_take_what_stands_behind_them(void **state)
{
    static const struct reading_row rows[] = {
        {"\\log_2^2 x", "\\log_{2}(x)^{2}"},
        {"\\lg 100", "\\log_{10}(100)"},
        {"\\ln x", "\\ln(x)"},
        {"\\ln 2x", "\\ln(2 x)"},
        {"\\ln|x|", "\\ln(\\lvert x \\rvert)"},
        {"\\ln|x|+C", "\\ln(\\lvert x \\rvert) + C"},
        {"\\ln^2 x", "\\ln(x)^{2}"},
        {"\\log_{10} 5", "\\log_{10}(5)"},
        {"e^x", "e^{x}"},
        {"\\mathrm{e}^{2x}", "e^{2 x}"},
        {"e^{i\\pi}", "e^{i \\pi}"},
        {"\\sin^2 x", "\\sin(x)^{2}"},
        {"\\sin^{-1} x", "\\arcsin(x)"},
        {"\\sin^{-1}(1/2)", "\\arcsin(\\frac{1}{2})"},
        {"\\sin^2 x+\\cos^2 x", "\\sin(x)^{2} + \\cos(x)^{2}"},
        {"\\sin 2x", "\\sin(2 x)"},
        {"\\sin x\\cos y", "\\sin(x) \\cos(y)"},
        {"\\sin\\frac{\\pi}{6}", "\\sin(\\frac{\\pi}{6})"},
        {"\\sin 60^\\circ", "\\sin(60^{\\circ})"},
        {"\\operatorname{arctan} x", "\\arctan(x)"},
        {"\\operatorname{lcm}(4,6)", "\\operatorname{lcm}(4, 6)"},
        {"\\text{lcm}(4,6)", "\\operatorname{lcm}(4, 6)"},
        {"\\gcd(12,18)", "\\gcd(12, 18)"},
        {"\\max\\{1,2\\}", "\\max(1, 2)"},
        {"\\max(1,2)", "\\max(1, 2)"},
        {"\\sin x/2", REFUSED},
        {"\\ln 2/\\ln 3", "\\frac{\\ln(2)}{\\ln(3)}"},
        {"\\ln 2/3", REFUSED},
        {"\\cos 2\\pi/3", REFUSED},
        {"\\sin(x)^2", "\\sin(x)^{2}"},
        {"\\sin(x)\\cos(x)", "\\sin(x) \\cos(x)"},
        {"x\\sin x", "x \\sin(x)"},
        {"\\sin x e^x", "\\sin(x) e^{x}"},
        {"x e^{x}", "x e^{x}"},
        {"\\sin nx", "\\sin(n x)"},
        {"\\sin x y", REFUSED},
        {"\\tan^{-1}\\frac{1}{2}", "\\arctan(\\frac{1}{2})"},
        {"\\exp\\left(-x^2\\right)", "\\exp(-x^{2})"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_degrees_percent_and_money_are_kept(void **state)
{
    static const struct reading_row rows[] = {
        {"60^\\circ", "60^{\\circ}"},
        {"60\u00b0", "60^{\\circ}"},
        {"60 degrees", "60^{\\circ}"},
        {"60 \\text{ degrees}", "60^{\\circ}"},
        {"\\frac{\\pi}{2}\\text{ radians}", "\\frac{\\pi}{2} \\text{radians}"},
        {"25\\%", "25\\%"},
        {"25%", "25\\%"},
        {"25 percent", "25\\%"},
        {"25 \\text{ percent}", "25\\%"},
        {"\\$5", "\\$5"},
        {"$5", "\\$5"},
        {"-\\$5", "\\$-5"},
        {"\\$-5", "\\$-5"},
        {"\\$2,500.00", "\\$2500.00"},
        {"\u20ac5", "\\euro 5"},
        {"\u00a35", "\\pounds 5"},
        {"5\\$", "\\$5"},
        {"5 dollars", "5 \\text{dollars}"},
        {"\\$5 dollars", "\\$5"},
        {"\\$5\\text{ dollars}", "\\$5"},
        {"\\$1.5\\text{ million}", REFUSED},
        {"5\\text{ dollars}", "5 \\text{dollars}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_names_carry_subscripts_and_primes(void **state)
{
    static const struct reading_row rows[] = {
        {"2\\pm\\sqrt3", "2 \\pm \\sqrt{3}"},
        {"\\frac{-b\\pm\\sqrt{b^2-4ac}}{2a}", "\\frac{-b \\pm \\sqrt{b^{2} - 4 a c}}{2 a}"},
        {"3+4i", "3 + 4 i"},
        {"4j", "4 j"},
        {"3 + 4i", "3 + 4 i"},
        {"x_1", "x_{1}"},
        {"x_{12}", "x_{12}"},
        {"a_n", "a_{n}"},
        {"a_{n+1}", "a_{n+1}"},
        {"a_{n}^{2}", "a_{n}^{2}"},
        {"x_{\\text{max}}", "x_{max}"},
        {"x_\\text{max}", "x_{max}"},
        {"x'", "x'"},
        {"f'(x)", "f' x"},
        {"f'(x)=2x", "f'(x) = 2 x"},
        {"x''", "x''"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thousands_are_groups_of_three_or_the_answer_is_a_list),
        cmocka_unit_test(test_decimals_may_begin_or_end_with_the_point),
        cmocka_unit_test(test_digits_that_repeat_are_marked),
        cmocka_unit_test(test_an_exponent_of_ten_stands_directly_behind_digits),
        cmocka_unit_test(test_a_whole_number_and_a_proper_fraction_are_a_mixed_number),
        cmocka_unit_test(test_small_and_special_signs_are_what_they_stand_for),
        cmocka_unit_test(test_a_command_takes_braces_or_one_token),
        cmocka_unit_test(test_words_of_ascii_name_functions),
        cmocka_unit_test(test_digits_behind_a_caret_are_one_exponent),
        cmocka_unit_test(test_the_divided_part_must_be_clear),
        cmocka_unit_test(test_factorials_bind_tighter_than_powers),
        cmocka_unit_test(test_a_number_of_choices_is_read_alike_with_braces_and_without),
        cmocka_unit_test(test_bars_pair_up),
        cmocka_unit_test(test_functions_take_what_stands_behind_them),
        cmocka_unit_test(test_degrees_percent_and_money_are_kept),
        cmocka_unit_test(test_names_carry_subscripts_and_primes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
