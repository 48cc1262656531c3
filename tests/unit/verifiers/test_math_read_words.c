/* How units, words, matrices and decorations are read: each row is an answer and its normal form, or a refusal. */
#include "tests/unit/base/cmocka_all.h"
#include "tests/unit/verifiers/readings.h"

static void test_a_unit_follows_a_number(void **state)
{
    static const struct reading_row rows[] = {
        {"12 cm", "12 \\text{cm}"},
        {"12cm", "12 \\text{cm}"},
        {"5 km/h", "5 \\text{km/h}"},
        {"5 km per hour", "5 \\text{km per hour}"},
        {"5\\text{ km/h}", "5 \\text{km/h}"},
        {"12\\,\\mathrm{m}^2", "12 \\text{m^2}"},
        {"12 \\text{ m}^2", "12 \\text{m^2}"},
        {"12\\text{ cm}^{3}", "12 \\text{cm^3}"},
        {"12 cm^2", "12 \\text{cm^2}"},
        {"12\\mathrm{\\,cm}", "12 \\text{cm}"},
        {"9.8\\,\\mathrm{m/s^2}", "9.8 \\text{m/s^2}"},
        {"9.8 \\text{ m}/\\text{s}^2", "9.8 \\text{m/s^2}"},
        {"3\\times 10^8\\text{ m/s}", "3 \\cdot 10^{8} \\text{m/s}"},
        {"3 \\cdot 10^{8} \\, \\mathrm{m \\cdot s^{-1}}", "3 \\cdot 10^{8} \\text{m*s^-1}"},
        {"5\\text{ kg}\\cdot\\text{m}", "5 \\text{kg*m}"},
        {"5 apples", "5 \\text{apples}"},
        {"6 xyz", "6 x y z"},
        {"6 xy", "6 x y"},
        {"5 minutes", "5 \\text{minutes}"},
        {"2 in", "2 \\text{in}"},
        {"20^\\circ\\text{C}", "20^{\\circ}\\text{C}"},
        {"20^\\circ C", "20^{\\circ}\\text{C}"},
        {"20^{\\circ}\\mathrm{C}", "20^{\\circ}\\text{C}"},
        {"-40^\\circ F", "-40^{\\circ}\\text{F}"},
        {"10\\text{ square units}", "10 \\text{square units}"},
        {"10 square units", "10 \\text{square units}"},
        {"12\\text{ ways}", "12 \\text{ways}"},
        {"\\frac{1}{2}\\text{ cm}", "\\frac{1}{2} \\text{cm}"},
        {"x = 5\\text{ cm}", "x = 5 \\text{cm}"},
        {"5\\text{ cm}, 6\\text{ cm}", "5 \\text{cm}, 6 \\text{cm}"},
        {"(5\\text{ cm})", "5 \\text{cm}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_prose_is_never_a_number(void **state)
{
    static const struct reading_row rows[] = {
        {"42 or possibly 43", REFUSED},
        {"42\\text{ (or possibly }43)", REFUSED},
        {"42 \\text{ is what others say, but the truth is } 7", REFUSED},
        {"the answer is 42", REFUSED},
        {"The answer is 42.", REFUSED},
        {"42 is the answer", REFUSED},
        {"\\text{the answer is 42}", "\\text{the answer is 42}"},
        {"\\text{42 is the answer}", REFUSED},
        {"\\text{13 apples}", "13 \\text{apples}"},
        {"42 maybe", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_code_and_hidden_text_are_refused(void **state)
{
    static const struct reading_row rows[] = {
        {"eval(\"42\")", REFUSED},
        {"__import__('os')", REFUSED},
        {"\\pi if __import__('time').sleep(0) is None else 0", REFUSED},
        {"0x64", REFUSED},
        {"4 2", REFUSED},
        {"\u202e24", REFUSED},
        {"4\u200b2", REFUSED},
        {"\\phantom{42}", REFUSED},
        {"\\color{white}{42}", REFUSED},
        {"\\hspace{1cm}42", "42"},
        {"43\\hspace{-1cm}42", REFUSED},
        {"\\label{a}42", REFUSED},
        {"\\text{\\{answer\\}}", REFUSED},
        {"\\text{The smallest even prime}", "\\text{the smallest even prime}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_words_are_words(void **state)
{
    static const struct reading_row rows[] = {
        {"even", "\\text{even}"},
        {"abc", "abc"},
        {"cab", "cab"},
        {"2abc", "2 a b c"},
        {"abc+1", "abc + 1"},
        {"-abc", "-abc"},
        {"Alice", "Alice"},
        {"Alice and Bob", "\\text{alice and bob}"},
        {"all odd primes", "\\text{all odd primes}"},
        {"No", "\\text{no}"},
        {"no", "\\text{no}"},
        {"x and y", "x, y"},
        {"true", "\\text{true}"},
        {"undefined", "\\text{undefined}"},
        {"None", "\\text{none}"},
        {"\\text{A}", "A"},
        {"(A)", "A"},
        {"A", "A"},
        {"\\textbf{(A)}", "A"},
        {"\\text{(A)}", "A"},
        {"A, B", "A, B"},
        {"A,C", "A, C"},
        {"\\text{A and C}", "\\text{a and c}"},
        {"\\text{Monday}", "\\text{monday}"},
        {"\\mathrm{d}x", "d x"},
        {"\\mathrm{i}", "i"},
        {"\\mathbf{i}+\\mathbf{j}", "i + j"},
        {"\\hat{i}", "\\hat{i}"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_matrices_have_rows_of_equal_length(void **state)
{
    static const struct reading_row rows[] = {
        {"\\begin{bmatrix}1&2\\\\3&4\\end{bmatrix}", "\\begin{pmatrix}1 & 2 \\\\ 3 & 4\\end{pmatrix}"},
        {"\\begin{array}{cc}1&2\\\\3&4\\end{array}", "\\begin{pmatrix}1 & 2 \\\\ 3 & 4\\end{pmatrix}"},
        {"\\left(\\begin{array}{c}1\\\\2\\end{array}\\right)", "\\begin{pmatrix}1 \\\\ 2\\end{pmatrix}"},
        {"\\left[\\begin{array}{c|c}1&2\\end{array}\\right]", "\\begin{pmatrix}1 & 2\\end{pmatrix}"},
        {"\\left|\\begin{array}{cc}1&2\\\\3&4\\end{array}\\right|", "\\begin{vmatrix}1 & 2 \\\\ 3 & 4\\end{vmatrix}"},
        {"\\begin{pmatrix}1&2\\\\3\\end{pmatrix}", REFUSED},
        {"\\begin{pmatrix}1\\\\2\\end{pmatrix}+t\\begin{pmatrix}3\\\\4\\end{pmatrix}",
         "\\begin{pmatrix}1 \\\\ 2\\end{pmatrix} + t \\begin{pmatrix}3 \\\\ 4\\end{pmatrix}"},
        {"\\det\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}", "\\begin{vmatrix}1 & 2 \\\\ 3 & 4\\end{vmatrix}"},
        {"\\begin{pmatrix}1&2\\\\[2pt]3&4\\end{pmatrix}", "\\begin{pmatrix}1 & 2 \\\\ 3 & 4\\end{pmatrix}"},
        {"\\begin{pmatrix}1&2\\\\[2]3&4\\end{pmatrix}", REFUSED},
        {"\\begin{cases}x=1\\\\y=2\\end{cases}", "x = 1, y = 2"},
        {"\\begin{cases}x=1,\\\\y=2.\\end{cases}", "x = 1, y = 2"},
        {"\\begin{cases}x=1,\\\\y=2\\\\\\end{cases}", "x = 1, y = 2"},
        {"\\begin{cases}x&x>1\\\\2&x<1\\end{cases}", REFUSED},
        {"\\begin{aligned}x&=1\\end{aligned}", "x = 1"},
        {"\\begin{aligned}x&=1\\\\&=2\\end{aligned}", REFUSED},
        {"\\begin{aligned}x=1\\end{cases}", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_brackets_close_as_they_open(void **state)
{
    static const struct reading_row rows[] = {
        {"(1,2,3)+t(4,5,6)", "(1, 2, 3) + {t} (4, 5, 6)"},
        {"[3]", REFUSED},
        {"[3+4]", "3 + 4"},
        {"((1,2),(3,4))", "((1, 2), (3, 4))"},
        {"\\{(1,2),(3,4)\\}", "\\{(1, 2), (3, 4)\\}"},
        {"(3,4]", "(3, 4]"},
        {"(3]", REFUSED},
        {"]0,1[", "(0, 1)"},
        {"]0,1)", REFUSED},
        {"]0,1,2[", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_signs_stand_once(void **state)
{
    static const struct reading_row rows[] = {
        {"--2", REFUSED},  {"3--2", REFUSED},      {"3 - -2", "3 - (-2)"},
        {"3+-2", "3 - 2"}, {"+-3", REFUSED},       {"2\\cdot-3", "2 \\cdot (-3)"},
        {"2(3)", "2 (3)"}, {"(2)(3)", "2 (3)"},    {"(2)3", "2 (3)"},
        {"2{3}", REFUSED}, {"\\pi 2", "\\pi (2)"}, {"\\sqrt{2}3", "\\sqrt{2} (3)"},
        {"x2", REFUSED},   {"x 2", REFUSED},       {"2 x", "2 x"},
        {"2{x}", "2 x"},   {"{x}{y}", "x y"},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_decorations_leave_nothing(void **state)
{
    static const struct reading_row rows[] = {
        {"\\boxed{5}", "5"},
        {"$5$", "5"},
        {"$$5$$", "5"},
        {"\\(5\\)", "5"},
        {"\\[5\\]", "5"},
        {"**5**", "5"},
        {"$\\frac{1}{2}$.", "\\frac{1}{2}"},
        {"\\displaystyle 5", "5"},
        {"\\left.5\\right.", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

static void test_letters_and_signs_of_mathematics(void **state)
{
    static const struct reading_row rows[] = {
        {"\\alpha+\\beta", "\\alpha + \\beta"},
        {"\u03b8", "\\theta"},
        {"\\Delta t", "\\Delta t"},
        {"\\ell", "\\ell"},
        {"x\\cdot y\\times z", "x \\cdot y \\cdot z"},
        {"x \\div y", "\\frac{x}{y}"},
        {"6 \u00f7 2", "\\frac{6}{2}"},
        {"2 \u00d7 3", "2 \\cdot 3"},
        {"2 * 3", "2 \\cdot 3"},
        {"a \\ast b", "a \\cdot b"},
        {"1-1/e", "1 - \\frac{1}{e}"},
        {"1-\\frac{1}{\\mathrm{e}}", "1 - \\frac{1}{e}"},
        {"x=3,y=-2", "x = 3, y = -2"},
        {"x=3\\text{ and }y=-2", "x = 3, y = -2"},
        {"x = 3, \\quad y = -2", "x = 3, y = -2"},
        {"(x,y)=(3,-2)", "(x, y) = (3, -2)"},
        {"(x, y) = (3, -2), (1, 2)", "(x, y) = (3, -2), (1, 2)"},
        {"n=1,2,3", "n = 1, 2, 3"},
        {"a=b=c", "a = b = c"},
        {"x+2y-4=0", "x + 2 y - 4 = 0"},
        {"2x\\text{ cm}", "2 x \\text{cm}"},
        {"\\frac{x}{2}\\text{ cm}", "\\frac{x}{2} \\text{cm}"},
        {"1000 \\text{ m} \\times 5", REFUSED},
        {"\\text{Area}=5", "\\text{area} = 5"},
        {"\\text{area} = 5\\text{ cm}^2", "\\text{area} = 5 \\text{cm^2}"},
        {"y=mx+b", "y = m x + b"},
        {"y = ax^2 + bx + c", "y = a x^{2} + b x + c"},
        {"3,\\!000", "3000"},
        {"1{,}5", REFUSED},
        {"10\\%", "10\\%"},
        {"10\\,\\%", "10\\%"},
        {"\\left(\\frac{1}{2},\\frac{3}{4}\\right)", "(\\frac{1}{2}, \\frac{3}{4})"},
        {"-\\frac{1}{2}", "-\\frac{1}{2}"},
        {"- 5", "-5"},
        {"\\frac{-1}{-2}", "\\frac{-1}{-2}"},
        {"x^{\\frac{1}{2}}", "x^{\\frac{1}{2}}"},
        {"\\{\\}", "\\{\\}"},
        {"\\{ \\ldots \\}", REFUSED},
        {"1, 2, \\ldots, 10", REFUSED},
        {"2\\mathrm{e}", "2 e"},
        {"5\\text{ m}", "5 \\text{m}"},
        {"5\\text{ s}", "5 \\text{s}"},
        {"A^T", "A^{T}"},
        {"A^{-1}", "A^{-1}"},
        {"x^{*}", REFUSED},
        {"\\angle ABC", REFUSED},
        {"\\triangle ABC", REFUSED},
        {"12:30 PM", "12:30 \\text{PM}"},
        {"12:30 \\text{ p.m.}", "12:30 \\text{pm}"},
        {"3:00 \\text{ AM}", "3:00 \\text{AM}"},
        {"\\$12\\text{ per hour}", "\\$12 \\text{ per hour}"},
        {"\\$12/\\text{hour}", "\\$12/ \\text{hour}"},
        {"\\$12 per hour", "\\$12 \\text{ per hour}"},
        {"-20^\\circ\\text{C}", "-20^{\\circ}\\text{C}"},
        {"20\u00b0C", "20^{\\circ}\\text{C}"},
        {"68^{\\circ}\\text{F}", "68^{\\circ}\\text{F}"},
        {"2 in^2", "2 \\text{in^2}"},
        {"$3$ and $4$", "3, 4"},
        {"$x=1$ or $x=2$", "x = 1 \\text{ or } x = 2"},
        {"$5 and $6", "\\$5, \\$6"},
        {"\\text{non-zero}", "\\text{non-zero}"},
        {"5\\text{ square-units}", "5 \\text{square-units}"},
        {"\\text{$}5", "\\$5"},
        {"\\text{A.}", "A"},
        {"\\frac{dy}{dx}", "\\frac{d y}{d x}"},
        {"\\frac{d}{dx}", "\\frac{d}{d x}"},
        {"\\frac{d}{2}", "\\frac{d}{2}"},
        {"\u00a5500", "\\yen 500"},
        {"x \\lor y", "x \\text{ or } y"},
        {"\\operatorname{Re}(z)", "\\Re(z)"},
        {"\\Re(z)", "\\Re(z)"},
        {"cosx+1", "\\cos(x) + 1"},
        {"1 234", "1234"},
        {"5 km", "5 \\text{km}"},
        {"5e", "5 e"},
        {"\\mathrm{GCD}(4,6)", "\\gcd(4, 6)"},
        {"\\text{cos}(x)", "\\cos(x)"},
        {"\\text{OR}", REFUSED},
    };

    (void)state;
    check_readings(rows, ARRAY_LENGTH(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_unit_follows_a_number),
        cmocka_unit_test(test_prose_is_never_a_number),
        cmocka_unit_test(test_code_and_hidden_text_are_refused),
        cmocka_unit_test(test_words_are_words),
        cmocka_unit_test(test_matrices_have_rows_of_equal_length),
        cmocka_unit_test(test_brackets_close_as_they_open),
        cmocka_unit_test(test_signs_stand_once),
        cmocka_unit_test(test_decorations_leave_nothing),
        cmocka_unit_test(test_letters_and_signs_of_mathematics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
